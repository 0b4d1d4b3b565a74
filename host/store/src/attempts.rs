//! Refused attempts. They are stored apart from the instances that they concern.

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, Store, StoreError};
use wrkflw_core::ids::{InstanceId, TaskId, TenantId};

/// One refused attempt.
#[derive(Debug)]
pub struct NewRefusedAttempt<'a> {
    pub id: Uuid,
    pub at: Timestamp,
    pub actor: &'a str,
    pub action: &'a str,
    pub instance: Option<InstanceId>,
    pub task: Option<TaskId>,
    pub code: &'a str,
    pub detail: &'a str,
    pub request_id: Option<&'a str>,
}

/// A refused attempt in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    pub id: Uuid,
    pub occurred_at: Timestamp,
    pub actor: String,
    pub action: String,
    /// The instance that it concerns, or that of its task. None for a refused start.
    pub instance: Option<Uuid>,
    pub task: Option<Uuid>,
    /// Why it was refused.
    pub reason: String,
    pub detail: String,
    pub request_id: Option<String>,
}

/// Which attempts a list has.
#[derive(Debug, Clone, Default)]
pub struct AttemptFilter {
    pub reason: Option<String>,
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// The last attempt of the page before.
    pub after: Option<(Timestamp, Uuid)>,
    pub limit: i64,
}

/// A page of attempts.
#[derive(Debug)]
pub struct Attempts {
    /// At most `limit`: callers ask for one more than they return.
    pub found: Vec<AttemptRow>,
    /// The last attempt that was read, if the viewer does not see all attempts that were read. More may follow.
    pub reached: Option<AttemptRow>,
}

/// The refused attempts, the newest first. A viewer who may not see every instance gets the attempts on instances that they see,
/// and refused starts.
pub async fn list(
    reader: &Reader,
    viewer: &Viewer,
    filter: &AttemptFilter,
) -> Result<Attempts, StoreError> {
    let mut looking = reader.looking(viewer).await?;
    let rows = sqlx::query!(
        r#"select r.id, r.occurred_at as "at: Time", r.actor, r.action, coalesce(r.instance_id, t.instance_id) as "instance?",
            r.task_id, r.code, r.detail, r.request_id
        from refused_attempt r left join task t on t.tenant_id = r.tenant_id and t.id = r.task_id
        where r.tenant_id = $1 and ($2::text is null or r.code = $2)
            and ($3::timestamptz is null or r.occurred_at >= $3) and ($4::timestamptz is null or r.occurred_at < $4)
            and ($5::timestamptz is null or (r.occurred_at, r.id) < ($5, $6::uuid))
        order by r.occurred_at desc, r.id desc limit $7"#,
        viewer.tenant.0,
        filter.reason,
        filter.from.map(Time) as _,
        filter.until.map(Time) as _,
        filter.after.map(|(at, _)| Time(at)) as _,
        filter.after.map(|(_, id)| id),
        filter.limit
    )
    .fetch_all(looking.places().await?)
    .await?;
    let attempt = rows.into_iter().map(|row| AttemptRow {
        id: row.id,
        occurred_at: row.at.0,
        actor: row.actor,
        action: row.action,
        instance: row.instance,
        task: row.task_id,
        reason: row.code,
        detail: row.detail,
        request_id: row.request_id,
    });
    let mut found: Vec<_> = attempt.collect();
    let reached = looking.keep_seen(&mut found, filter.limit, |row| row.instance);
    let reached = reached.await?;
    Ok(Attempts { found, reached })
}

pub async fn note(
    store: &Store,
    tenant: TenantId,
    attempt: &NewRefusedAttempt<'_>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into refused_attempt (tenant_id, id, occurred_at, actor, action, instance_id, task_id, code, detail, request_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        tenant.0,
        attempt.id,
        Time(attempt.at) as _,
        attempt.actor,
        attempt.action,
        attempt.instance.map(|id| id.0),
        attempt.task.map(|id| id.0),
        attempt.code,
        attempt.detail,
        attempt.request_id
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}
