//! Jobs: deferred work on an instance. Commits insert and delete the rows; workers claim and settle them here.
//!
//! A claim is a lease, written by one short statement. It holds no row lock while the job runs, because the commit of the job's
//! command deletes the row. When the host of a claimed job fails, its lease expires, and another host claims the job again. The
//! revision of the instance ensures that each job takes effect once.
//!
//! Only the earliest job of an instance can be claimed. While it exists, claimed, failed or at rest, the later jobs of the instance wait.
//! So an instance whose jobs fail costs one attempt after each pause, and one every ten minutes for each stuck job. There are four
//! exceptions. The cancellation of a child waits for no other job. Starts of children delay only later starts. The delivery of a signal
//! to a suspended instance waits for no job, because another instance may take the signal. No job waits for a stuck job, because that may
//! fail for ever. [`claims`] decides whose jobs are claimed next. These rules are not for calls of services: [`calls`] claims them for
//! workers of their own.

pub mod calls;
mod claims;
mod due;
pub mod failing;

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::json::Json;

pub use calls::{CallProgress, CallTurn};
pub use claims::{STOPPED_RETRY, TenantSlots, claim};
pub use due::list_due;
pub use failing::{Jobs, ListedJob};

/// From this number of attempts on, a job counts as stuck. The index `job_stuck`, the claim and the look for the next job have the same
/// number.
pub const STUCK_ATTEMPTS: u32 = 10;
/// Limit of a stored error, in characters.
const ERROR_CHARS_MAX: usize = 1000;

/// A job that this host has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub tenant: TenantId,
    pub id: Uuid,
    /// The kind, as stored. A host of a later release may have stored a kind that this one does not know.
    pub kind: String,
    /// The instance that the job's command changes.
    pub instance: InstanceId,
    pub due_at: Timestamp,
    pub payload: Json,
    /// The number of claims, with this one.
    pub attempts: u32,
    /// The id of this claim. A job is settled only by its last claim.
    pub claim: Uuid,
    /// When it was claimed.
    pub claimed_at: Timestamp,
}

/// Deletes a job that is done, unless its commit has deleted it, or it was postponed or claimed again meanwhile.
pub async fn finish(store: &Store, job: &Job) -> Result<(), StoreError> {
    settle(store, job, None).await
}

/// Ends the claim of a job that failed. It can be claimed again from `next` on. Changes nothing if the job was postponed or
/// claimed again meanwhile.
pub async fn fail(
    store: &Store,
    job: &Job,
    error: &str,
    next: Timestamp,
) -> Result<(), StoreError> {
    release_job(store, job, Some(kept(error)), next).await
}

/// Ends the claim of a job whose instance is suspended. The job keeps its place, so no later job of the instance overtakes it
/// when the instance is resumed. It can be claimed again from `next` on.
pub async fn rest(store: &Store, job: &Job, next: Timestamp) -> Result<(), StoreError> {
    release_job(store, job, None, next).await
}

/// Ends a claim. Without an error the attempts are counted anew, but from one. The end of a job makes only jobs without
/// attempts due; with zero attempts, two jobs at rest would wake each other.
async fn release_job(
    store: &Store,
    job: &Job,
    error: Option<String>,
    next: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update job set lease_until = $5, last_error = $6, claim = null,
            attempts = case when $6::text is null then 1 else attempts end
        where tenant_id = $1 and id = $2 and claim = $3 and due_at = $4",
        job.tenant.0,
        job.id,
        job.claim,
        Time(job.due_at) as _,
        Time(next) as _,
        error
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Postpones a job that has not failed: it is not due yet, or has done a portion. Its attempts are counted anew, so that failures
/// with successes between them do not add up. The worker does not delete a postponed job.
pub async fn put_off(store: &Store, job: &Job, until: Timestamp) -> Result<(), StoreError> {
    settle(store, job, Some(until)).await
}

/// Deletes or postpones a job, and makes the next job of the instance due. That job comes after all jobs that could be
/// claimed when this one was claimed.
async fn settle(store: &Store, job: &Job, put_off: Option<Timestamp>) -> Result<(), StoreError> {
    // The next job has no attempts yet. A job with attempts is claimed, at rest, or waits after a failure, and keeps its lease.
    sqlx::query!(
        "with ended as (
            delete from job
            where $5::timestamptz is null and tenant_id = $1 and id = $2 and due_at = $3 and claim = $4
            returning id
        ),
        put_off as (
            update job set due_at = $5, lease_until = null, attempts = 0, last_error = null, claim = null
            where $5::timestamptz is not null and tenant_id = $1 and id = $2 and due_at = $3 and claim = $4
            returning id
        ),
        -- A commit that ends the instance locks the same rows. To avoid a deadlock, this statement locks its own job first, and
        -- skips others that are locked.
        settled as materialized (
            select (select count(*) from ended) + (select count(*) from put_off) as jobs
        ),
        next as (
            (select n.tenant_id, n.id from job n
             where n.tenant_id = $1 and n.instance_id = $6 and n.id <> $2 and n.attempts = 0
                and n.kind not in ('start_child', 'call_service')
             order by n.due_at, n.id limit 1)
            union all
            (select n.tenant_id, n.id from job n
             where n.tenant_id = $1 and n.instance_id = $6 and n.id <> $2 and n.attempts = 0 and n.kind = 'start_child'
             order by n.due_at, n.id limit 1)
        ),
        free as materialized (
            select j.tenant_id, j.id from settled join next n on settled.jobs >= 0
            join job j on j.tenant_id = n.tenant_id and j.id = n.id
            where j.attempts = 0 and (j.due_at <= $7 or j.lease_until > $7)
            for update of j skip locked
        )
        -- A claim by a clock that is ahead must not delay it.
        update job j set lease_until = least($7, now()) from free where j.tenant_id = free.tenant_id and j.id = free.id",
        job.tenant.0,
        job.id,
        Time(job.due_at) as _,
        job.claim,
        put_off.map(Time) as _,
        job.instance.0,
        Time(job.claimed_at) as _
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Whether a job exists, claimed or not.
pub async fn exists(store: &Store, tenant: TenantId, id: Uuid) -> Result<bool, StoreError> {
    let found = sqlx::query_scalar!(
        r#"select exists(select from job where tenant_id = $1 and id = $2) as "found!""#,
        tenant.0,
        id
    );
    Ok(found.fetch_one(&store.writer).await?)
}

/// When the next job can be claimed, or an earlier moment. None if there is no job.
pub async fn next_due(store: &Store) -> Result<Option<Timestamp>, StoreError> {
    // The first of the next 32 jobs that does not wait for another job of its instance. If all 32 wait, a claim postpones them.
    let next = sqlx::query_scalar!(
        r#"select coalesce(min(l.ready_at) filter (where not l.waits), max(l.ready_at)) as "ready_at: Time" from (
            select greatest(j.due_at, j.lease_until) as ready_at, exists (
                select from job earlier
                where earlier.tenant_id = j.tenant_id and earlier.instance_id = j.instance_id
                  and earlier.kind <> 'call_service'
                  and not (earlier.attempts >= 10 and earlier.last_error is not null)
                  and (earlier.due_at, earlier.id) < (j.due_at, j.id)
            ) as waits
            from job j where j.service is null order by greatest(j.due_at, j.lease_until) limit 32
        ) l"#
    );
    let next = next.fetch_one(&store.writer).await?;
    Ok(next.map(|time| time.0))
}

/// The part of an error that is stored.
fn kept(error: &str) -> String {
    let plain = error.chars().filter(|character| *character != '\0');
    plain.take(ERROR_CHARS_MAX).collect()
}
