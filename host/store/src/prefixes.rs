//! Finds instances and tasks by the beginning of their id.

use uuid::Uuid;

use crate::viewer::{Looking, Viewer};
use crate::{Reader, StoreError};

/// Limit of the instances, and of the tasks, that are read for a viewer who may not see all of them.
const READ_MAX: usize = 500;

/// An instance, or a task of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub instance: Uuid,
    pub task: Option<Uuid>,
}

/// The instances and tasks whose id is in this range, instances first, at most `limit` of each. The flag: whether unread rows may have
/// further matches, because the viewer does not see enough of the rows that were read.
pub async fn ids_between(
    reader: &Reader,
    viewer: &Viewer,
    (first, last): (Uuid, Uuid),
    limit: usize,
) -> Result<(Vec<Candidate>, bool), StoreError> {
    let most = if viewer.is_restricted() {
        READ_MAX.max(limit)
    } else {
        limit
    };
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut looking = reader.looking(viewer).await?;
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
        most
    )
    .fetch_all(looking.places().await?)
    .await?;
    let candidates = rows.into_iter().map(|row| Candidate {
        instance: row.instance,
        task: row.task,
    });
    let (mut tasks, mut found): (Vec<_>, Vec<_>) = candidates.partition(|one| one.task.is_some());
    let mut more = keep(&mut looking, &mut found, most, limit).await?;
    more |= keep(&mut looking, &mut tasks, most, limit).await?;
    found.extend(tasks);
    Ok((found, more))
}

/// Keeps the first rows that the viewer sees. True if there are too few of them and other rows were not read.
async fn keep(
    looking: &mut Looking<'_>,
    found: &mut Vec<Candidate>,
    most: i64,
    limit: usize,
) -> Result<bool, StoreError> {
    let of = |one: &Candidate| Some(one.instance);
    let reached = looking.keep_seen(found, most, of).await?;
    let more = reached.is_some() && found.len() < limit;
    found.truncate(limit);
    Ok(more)
}
