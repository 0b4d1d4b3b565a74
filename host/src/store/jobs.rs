//! What hosts have to do later or elsewhere: rows that commits insert and delete, and that workers claim here.
//!
//! A claim is a lease, one short statement that holds no lock once it returned: a row lock held over a command would
//! block the very commit that deletes the row. A host that dies with a job in hand loses its lease, and another one
//! claims the job again; the revision of the instance sees to it that each job acts once.
//!
//! Of one instance only the earliest job is handed out. As long as it exists, in hand or failed, the later ones wait,
//! and nobody else does: so an instance whose jobs fail costs one attempt after ever longer pauses, however many it has.
//! Two kinds stand apart: the cancellation of a child waits for no other job, and starts of children hold up starts alone.
//! Who gets a turn stands in [`claims`].

mod claims;
mod failing;

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::ids::{InstanceId, TenantId};
use crate::domain::json::Json;

pub use claims::Rota;
pub(crate) use claims::STOPPED_LOOKED_AGAIN;
pub use failing::JobView;

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
    /// When it was claimed.
    pub claimed_at: Timestamp,
}

impl Store {
    /// Deletes a job that is done, if its commit has not. One that was put off or claimed anew meanwhile stays.
    pub async fn finish_job(&self, job: &Job) -> Result<(), StoreError> {
        self.settle(job, None).await
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
        self.settle(job, Some(until)).await
    }

    /// Ends a job or puts it off, and lets the instance's next one take its turn: behind all that could be claimed
    /// when this one was.
    async fn settle(&self, job: &Job, put_off: Option<Timestamp>) -> Result<(), StoreError> {
        // What was claimed before is in hand, or waits after a failure: its lease stays.
        sqlx::query!(
            "with ended as (
                delete from job
                where $5::timestamptz is null and tenant_id = $1 and id = $2 and due_at = $3 and claim = $4
                returning id
            ),
            put_off as (
                update job set due_at = $5, lease_until = null, attempts = attempts - 1, claim = null
                where $5::timestamptz is not null and tenant_id = $1 and id = $2 and due_at = $3 and claim = $4
                returning id
            ),
            -- Whoever ends the instance meanwhile takes these rows as well: this one first, and no waiting for others, so that
            -- neither waits for the other.
            settled as materialized (
                select (select count(*) from ended) + (select count(*) from put_off) as jobs
            ),
            next as (
                (select n.id from job n
                 where n.tenant_id = $1 and n.instance_id = $6 and n.id <> $2 and n.attempts = 0 and n.kind <> 'start_child'
                 order by n.due_at, n.id limit 1)
                union all
                (select n.id from job n
                 where n.tenant_id = $1 and n.instance_id = $6 and n.id <> $2 and n.attempts = 0 and n.kind = 'start_child'
                 order by n.due_at, n.id limit 1)
            ),
            free as materialized (
                select j.id from settled join job j on settled.jobs >= 0 and j.tenant_id = $1 and j.id in (select id from next)
                where j.attempts = 0 and (j.due_at <= $7 or j.lease_until > $7)
                for update of j skip locked
            )
            update job j set lease_until = $7 from free where j.tenant_id = $1 and j.id = free.id",
            job.tenant.0,
            job.id,
            Time(job.due_at) as _,
            job.claim,
            put_off.map(Time) as _,
            job.instance.0,
            Time(job.claimed_at) as _
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

    /// When the next job can be claimed, past or to come, or a moment before it; none when there is no job.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        // Of the first few, the first one that waits for no other of its instance. Where all of them wait, a claim moves
        // them out of the way.
        let next = sqlx::query_scalar!(
            r#"select coalesce(min(l.ready_at) filter (where not l.waits), max(l.ready_at)) as "ready_at: Time" from (
                select greatest(j.due_at, j.lease_until) as ready_at, exists (
                    select from job earlier
                    where earlier.tenant_id = j.tenant_id and earlier.instance_id = j.instance_id
                      and (earlier.due_at, earlier.id) < (j.due_at, j.id)
                ) as waits
                from job j order by greatest(j.due_at, j.lease_until) limit 32
            ) l"#
        );
        let next = next.fetch_one(&self.writer).await?;
        Ok(next.map(|time| time.0))
    }
}
