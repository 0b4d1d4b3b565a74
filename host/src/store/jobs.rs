//! What hosts have to do later or elsewhere: rows that commits insert and delete, and that workers claim here.
//!
//! A claim is a lease, one short statement that holds no lock once it returned: a row lock held over a command would
//! block the very commit that deletes the row. A host that dies with a job in hand loses its lease, and another one
//! claims the job again; the revision of the instance sees to it that each job acts once.
//!
//! Of one instance only the earliest job is handed out. As long as it exists, in hand or failed, the later ones wait,
//! and nobody else does.

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::ids::{InstanceId, TenantId};
use crate::domain::json::Json;

/// From so many attempts on, a job counts as stuck. The index `job_stuck` says the same.
pub const STUCK_ATTEMPTS: u32 = 10;
/// How much of an error is kept with its job.
const ERROR_CHARS_MAX: usize = 1000;

/// Something to do, claimed by this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub tenant: TenantId,
    pub id: Uuid,
    /// As the table names it. Hosts of a later release may know kinds that this one does not.
    pub kind: String,
    /// The instance that it is a command on.
    pub instance: InstanceId,
    pub due_at: Timestamp,
    pub payload: Json,
    /// How often it was claimed, this time included.
    pub attempts: u32,
    /// Tells this claim from every other one, of this host or another.
    pub claim: Uuid,
}

impl Store {
    /// Claims up to `limit` jobs that are due until `lease`, those that have waited longest first.
    pub async fn claim_jobs(
        &self,
        now: Timestamp,
        lease: Timestamp,
        limit: i64,
    ) -> Result<Vec<Job>, StoreError> {
        // `greatest` is over the index `job_ready` and passes over nulls. A row that somebody claims between the
        // look and the lock is tested again as it is then, and has a lease.
        let rows = sqlx::query!(
            r#"with ready as (
                select j.tenant_id, j.id from job j
                where greatest(j.due_at, j.lease_until) <= $1 and not exists (
                    select from job earlier
                    where earlier.tenant_id = j.tenant_id and earlier.instance_id = j.instance_id
                      and (earlier.due_at, earlier.id) < (j.due_at, j.id)
                )
                order by greatest(j.due_at, j.lease_until)
                limit $3
                for update of j skip locked
            )
            update job set lease_until = $2, attempts = job.attempts + 1, claim = gen_random_uuid()
            from ready where job.tenant_id = ready.tenant_id and job.id = ready.id
            returning job.tenant_id, job.id, job.kind, job.instance_id, job.due_at as "due_at: Time", job.payload, job.attempts,
                job.claim as "claim!""#,
            Time(now) as _,
            Time(lease) as _,
            limit
        )
        .fetch_all(&self.writer)
        .await?;
        let mut jobs: Vec<_> = rows
            .into_iter()
            .map(|row| Job {
                tenant: TenantId(row.tenant_id),
                id: row.id,
                kind: row.kind,
                instance: InstanceId(row.instance_id),
                due_at: row.due_at.0,
                payload: Json::from_canonical(row.payload),
                attempts: row.attempts.cast_unsigned(),
                claim: row.claim,
            })
            .collect();
        jobs.sort_by_key(|job| (job.due_at, job.id));
        Ok(jobs)
    }

    /// Deletes a job that is done, if its commit has not. One that was put off or claimed anew meanwhile stays.
    pub async fn finish_job(&self, job: &Job) -> Result<(), StoreError> {
        sqlx::query!(
            "delete from job where tenant_id = $1 and id = $2 and claim = $3 and due_at = $4",
            job.tenant.0,
            job.id,
            job.claim,
            Time(job.due_at) as _
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    /// Lets go of a job that failed, to be tried again from `next` on. One that was put off or claimed anew
    /// meanwhile stays as it is.
    pub async fn fail_job(
        &self,
        job: &Job,
        error: &str,
        next: Timestamp,
    ) -> Result<(), StoreError> {
        let error: String = error
            .chars()
            .filter(|character| *character != '\0')
            .take(ERROR_CHARS_MAX)
            .collect();
        sqlx::query!(
            "update job set lease_until = $5, last_error = $6, claim = null
            where tenant_id = $1 and id = $2 and claim = $3 and due_at = $4",
            job.tenant.0,
            job.id,
            job.claim,
            Time(job.due_at) as _,
            Time(next) as _,
            error
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    /// Puts a job off without counting the attempt, where its time has not come. The worker then lets it stay.
    pub async fn put_off_job(&self, job: &Job, until: Timestamp) -> Result<(), StoreError> {
        sqlx::query!(
            "update job set due_at = $5, lease_until = null, attempts = attempts - 1, claim = null
            where tenant_id = $1 and id = $2 and claim = $3 and due_at = $4",
            job.tenant.0,
            job.id,
            job.claim,
            Time(job.due_at) as _,
            Time(until) as _
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    /// Whether a job is still to be done, or in hand.
    pub async fn has_job(&self, tenant: TenantId, id: Uuid) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar!(
            r#"select exists(select from job where tenant_id = $1 and id = $2) as "found!""#,
            tenant.0,
            id
        );
        Ok(found.fetch_one(&self.writer).await?)
    }

    /// When the next job can be claimed, past or to come; none when there is no job.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let next = sqlx::query_scalar!(
            r#"select greatest(j.due_at, j.lease_until) as "ready_at!: Time" from job j
            where not exists (
                select from job earlier
                where earlier.tenant_id = j.tenant_id and earlier.instance_id = j.instance_id
                  and (earlier.due_at, earlier.id) < (j.due_at, j.id)
            )
            order by greatest(j.due_at, j.lease_until)
            limit 1"#
        )
        .fetch_optional(&self.writer)
        .await?;
        Ok(next.map(|time| time.0))
    }

    /// How many jobs failed so often that somebody should look.
    pub async fn stuck_jobs(&self) -> Result<i64, StoreError> {
        // The number stands in the text, or the partial index would not do.
        let stuck =
            sqlx::query_scalar!(r#"select count(*) as "stuck!" from job where attempts >= 10"#);
        Ok(stuck.fetch_one(&self.writer).await?)
    }
}
