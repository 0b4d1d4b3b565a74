//! Failing and stuck jobs, for operators.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::time::Time;
use crate::viewer::Viewer;
use crate::{Reader, Store, StoreError};
use wrkflw_core::ids::VersionRef;

/// A job counts as stuck if it was due for this time without a claim.
const OVERDUE: Duration = Duration::from_mins(5);
/// Limit of a count of jobs.
const COUNTED_MAX: i64 = 100_000;

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedJob {
    pub id: Uuid,
    pub kind: String,
    pub instance: Uuid,
    pub definition: Option<VersionRef>,
    pub due_at: Timestamp,
    pub attempts: u32,
    /// Why it failed last.
    pub error: Option<String>,
    pub next_at: Option<Timestamp>,
}

/// A page of jobs.
#[derive(Debug)]
pub struct Jobs {
    /// At most `limit` jobs: callers ask for one more than they return.
    pub found: Vec<ListedJob>,
    /// The last job that was read, if the viewer does not see all jobs that were read. More may follow.
    pub reached: Option<ListedJob>,
}

/// A job as it is read.
pub(super) struct Row {
    pub(super) id: Uuid,
    pub(super) kind: String,
    pub(super) instance_id: Uuid,
    pub(super) due_at: Time,
    pub(super) attempts: i32,
    pub(super) last_error: Option<String>,
    pub(super) lease_until: Option<Time>,
    pub(super) key: Option<String>,
    pub(super) version: Option<i32>,
}

impl From<Row> for ListedJob {
    fn from(row: Row) -> ListedJob {
        ListedJob {
            id: row.id,
            kind: row.kind,
            instance: row.instance_id,
            definition: row.key.zip(row.version).map(|(key, version)| VersionRef {
                key,
                version: version.cast_unsigned(),
            }),
            due_at: row.due_at.0,
            attempts: row.attempts.cast_unsigned(),
            error: row.last_error,
            next_at: row.lease_until.map(|time| time.0),
        }
    }
}

/// The failing jobs of instances that the viewer sees, in the order of their ids.
pub async fn list(
    reader: &Reader,
    viewer: &Viewer,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Jobs, StoreError> {
    let mut looking = reader.looking(viewer).await?;
    let rows = sqlx::query_as!(
        Row,
        r#"select j.id, j.kind, j.instance_id, j.due_at as "due_at: Time", j.attempts, j.last_error,
            j.lease_until as "lease_until: Time", i.definition_key as "key?", i.definition_version as "version?"
        from job j left join instance i on i.tenant_id = j.tenant_id and i.id = j.instance_id
        where j.tenant_id = $1 and j.last_error is not null and ($2::uuid is null or j.id > $2)
        order by j.id limit $3"#,
        viewer.tenant.0,
        after,
        limit
    )
    .fetch_all(looking.places().await?)
    .await?;
    let mut found: Vec<_> = rows.into_iter().map(ListedJob::from).collect();
    let reached = looking.keep_seen(&mut found, limit, |job| Some(job.instance));
    let reached = reached.await?;
    Ok(Jobs { found, reached })
}

/// The number of jobs that have failed and will be attempted again, counted up to a hundred thousand.
pub async fn count(store: &Store) -> Result<i64, StoreError> {
    let failing = sqlx::query_scalar!(
        r#"select count(*) as "failing!" from (select from job where last_error is not null limit $1) as failing"#,
        COUNTED_MAX
    );
    Ok(failing.fetch_one(&store.writer).await?)
}

/// The number of jobs with many attempts or overdue for long, which an operator should look at. Counted up to a hundred
/// thousand of each kind.
pub async fn stuck(store: &Store, now: Timestamp) -> Result<i64, StoreError> {
    // The number of attempts is a literal, because the planner does not use the partial index for a parameter.
    let stuck = sqlx::query_scalar!(
        r#"select count(*) as "stuck!" from (
            (select tenant_id, id from job where attempts >= 10 limit $2)
            union
            (select tenant_id, id from job where service is null and greatest(due_at, lease_until) <= $1 limit $2)
            union
            (select tenant_id, id from job where service is not null and greatest(due_at, lease_until) <= $1 limit $2)
        ) as stuck"#,
        Time(now - OVERDUE) as _,
        COUNTED_MAX
    );
    Ok(stuck.fetch_one(&store.writer).await?)
}
