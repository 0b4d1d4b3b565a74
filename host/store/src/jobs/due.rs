//! The jobs of a tenant that are due next, for operators.

use jiff::Timestamp;
use uuid::Uuid;

use super::failing::{Jobs, ListedJob, Row};
use crate::time::Time;
use crate::viewer::Viewer;
use crate::{Reader, StoreError};

/// All jobs of instances that the viewer sees, by the moment at which they may be claimed, then by id.
pub async fn list_due(
    reader: &Reader,
    viewer: &Viewer,
    after: Option<(Timestamp, Uuid)>,
    limit: i64,
) -> Result<Jobs, StoreError> {
    let (at, id) = after.unwrap_or((Timestamp::UNIX_EPOCH, Uuid::nil()));
    let mut looking = reader.looking(viewer).await?;
    // The jobs of a tenant are indexed in two shares, so that each part is read in the order of the index.
    let rows = sqlx::query_as!(
        Row,
        r#"select j.id as "id!", j.kind as "kind!", j.instance_id as "instance_id!", j.due_at as "due_at!: Time",
            j.attempts as "attempts!", j.last_error, j.lease_until as "lease_until: Time",
            i.definition_key as "key?", i.definition_version as "version?"
        from (
            (select * from job where tenant_id = $1 and (case when kind = 'start_child' then 1 else 0 end) = 0
               and greatest(due_at, lease_until) >= $2 and (greatest(due_at, lease_until), id) > ($2, $3)
             order by greatest(due_at, lease_until), id limit $4)
            union all
            (select * from job where tenant_id = $1 and (case when kind = 'start_child' then 1 else 0 end) = 1
               and greatest(due_at, lease_until) >= $2 and (greatest(due_at, lease_until), id) > ($2, $3)
             order by greatest(due_at, lease_until), id limit $4)
        ) as j left join instance i on i.tenant_id = j.tenant_id and i.id = j.instance_id
        order by greatest(j.due_at, j.lease_until), j.id limit $4"#,
        viewer.tenant.0,
        Time(at) as _,
        id,
        limit
    )
    .fetch_all(looking.places().await?)
    .await?;
    let mut found: Vec<_> = rows.into_iter().map(ListedJob::from).collect();
    let reached = looking.keep_seen(&mut found, limit, |job| Some(job.instance));
    let reached = reached.await?;
    Ok(Jobs { found, reached })
}
