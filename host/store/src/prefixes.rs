//! Finds instances and tasks by the beginning of their id.

use uuid::Uuid;

use crate::viewer::Viewer;
use crate::{Reader, StoreError};

/// An instance, or a task of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub instance: Uuid,
    pub task: Option<Uuid>,
}

impl Reader {
    /// The instances and tasks whose id is in this range, instances first, at most `limit` of each.
    pub async fn ids_between(
        &self,
        viewer: &Viewer,
        (first, last): (Uuid, Uuid),
        limit: i64,
    ) -> Result<Vec<Candidate>, StoreError> {
        let rows = sqlx::query!(
            r#"select instance as "instance!", task from (
                (select id as instance, null::uuid as task from instance
                 where tenant_id = $1 and id between $2 and $3 order by id limit $4)
                union all
                (select instance_id, id from task where tenant_id = $1 and id between $2 and $3 order by id limit $4)
            ) as found order by task nulls first, instance"#,
            viewer.tenant.0,
            first,
            last,
            limit
        )
        .fetch_all(&mut *self.reading(viewer).await?)
        .await?;
        let candidate = |instance, task| Candidate { instance, task };
        Ok(rows
            .into_iter()
            .map(|row| candidate(row.instance, row.task))
            .collect())
    }
}
