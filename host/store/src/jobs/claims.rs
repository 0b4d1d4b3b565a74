//! Claims of jobs. Tenants take turns, and so do the instances of each tenant, regardless of how many jobs they have.
//!
//! A claim reads a bounded number of tenants and of their jobs. Some due jobs cannot run yet: an earlier job of the instance comes
//! first, or an operator has stopped the version. The claim postpones these, so that the next claim does not read them again. So
//! the jobs of a tenant that floods its queue are read a few times each, and the claims of others do not become slower.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::Job;
use crate::time::Time;
use crate::{Store, StoreError};
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::json::Json;

/// Tenants that one claim reads in their order, and jobs that it reads in the order of all tenants' due times. The second list
/// finds the due jobs when most tenants have none.
const TENANTS_READ: i32 = 32;
/// Jobs of a tenant that one statement reads, at least.
const JOBS_READ: i64 = 32;
/// Limit of the statements of one claim for a tenant whose jobs must all wait.
const READS_MAX: usize = 16;
/// For how long a job is postponed that waits for a claimed job. The end of that job makes it due earlier. It becomes due by
/// itself if the host of the claimed job has failed, or if a claim postponed it just after that end.
const CLAIMED_RETRY: Duration = Duration::from_secs(1);
/// The longest time for which a job is postponed that waits for a failed job, or for a job of a suspended instance.
const FAILED_RETRY: Duration = Duration::from_mins(1);
/// For how long a job of a stopped version is postponed. When the version is resumed, it becomes due at once,
/// unless it was attempted before.
pub const STOPPED_RETRY: Duration = Duration::from_mins(5);

/// The slots that each tenant occupies in one worker, and the tenant whose turn was last.
#[derive(Debug)]
pub struct TenantSlots {
    after: TenantId,
    in_flight: BTreeMap<TenantId, i64>,
    each_max: i64,
}

impl TenantSlots {
    /// No tenant may occupy more than `each_max` slots.
    pub fn new(each_max: i64) -> TenantSlots {
        TenantSlots {
            after: TenantId(0),
            in_flight: BTreeMap::new(),
            each_max,
        }
    }

    fn free(&self, tenant: TenantId) -> i64 {
        self.each_max - self.in_flight.get(&tenant).copied().unwrap_or(0)
    }

    /// Whether a tenant occupies all slots that it may.
    pub fn is_full(&self) -> bool {
        let mut in_flight = self.in_flight.values();
        in_flight.any(|in_flight| *in_flight >= self.each_max)
    }

    /// Frees the slot of a job that has ended.
    pub fn ended(&mut self, tenant: TenantId) {
        if let Some(in_flight) = self.in_flight.get_mut(&tenant) {
            *in_flight -= 1;
            if *in_flight <= 0 {
                self.in_flight.remove(&tenant);
            }
        }
    }
}

/// A tenant with jobs.
struct TenantJobs {
    tenant: TenantId,
    /// Whether it was read in the order of tenants, and not only because one of its jobs has been due for long.
    in_turn: bool,
    is_due: bool,
}

/// When jobs are claimed, and until when.
#[derive(Clone, Copy)]
struct Claim {
    now: Timestamp,
    lease_end: Timestamp,
}

/// Claims up to `limit` due jobs until `lease_end`: equal numbers for the tenants whose turn it is, and for each tenant the jobs that
/// were due first. Starts of children come last. If a later claim fails, the call returns the jobs claimed so far.
pub async fn claim(
    store: &Store,
    now: Timestamp,
    lease_end: Timestamp,
    limit: i64,
    slots: &mut TenantSlots,
) -> Result<Vec<Job>, StoreError> {
    let due = due_tenants(store, now, limit, slots).await?;
    let mut claimed = Vec::new();
    let mut left = limit;
    for (index, tenant) in due.iter().enumerate() {
        let others = i64::try_from(due.len() - index).unwrap_or(1);
        let share = (left.max(1) - 1) / others + 1;
        let share = share.min(left).min(slots.free(*tenant));
        if share < 1 {
            continue;
        }
        let claim = Claim { now, lease_end };
        let jobs = match claim_of(store, *tenant, claim, share).await {
            Ok(jobs) => jobs,
            // Claimed jobs must be run. If the failure lasts, the next call returns it.
            Err(_) if !claimed.is_empty() => break,
            Err(error) => return Err(error),
        };
        let count = i64::try_from(jobs.len()).unwrap_or(share);
        *slots.in_flight.entry(*tenant).or_default() += count;
        left -= count;
        claimed.extend(jobs);
    }
    slots.in_flight.retain(|_, in_flight| *in_flight > 0);
    Ok(claimed)
}

/// The tenants with due jobs and free slots, in the order of their turns.
async fn due_tenants(
    store: &Store,
    now: Timestamp,
    limit: i64,
    slots: &mut TenantSlots,
) -> Result<Vec<TenantId>, StoreError> {
    let tenants = tenants_with_jobs(store, now, slots.after).await?;
    let most = usize::try_from(limit).unwrap_or(0);
    let mut due: Vec<TenantId> = Vec::new();
    for TenantJobs {
        tenant,
        in_turn,
        is_due,
    } in tenants
    {
        if due.len() >= most {
            break;
        }
        if in_turn {
            slots.after = tenant;
        }
        if is_due && slots.free(tenant) > 0 && !due.contains(&tenant) {
            due.push(tenant);
        }
    }
    Ok(due)
}

/// The tenants after this one in the order of ids, starting over at the end, and the tenants of the jobs that were due first.
async fn tenants_with_jobs(
    store: &Store,
    now: Timestamp,
    after: TenantId,
) -> Result<Vec<TenantJobs>, StoreError> {
    let rows = sqlx::query!(
        r#"with recursive circle (tenant_id, turned, turn) as (
            select $2::int, false, 0
            union all
            select n.tenant_id, n.turned, c.turn + 1
            from circle c cross join lateral (
                (select j.tenant_id, c.turned as turned from job j where j.tenant_id > c.tenant_id
                 order by j.tenant_id limit 1)
                union all
                (select j.tenant_id, true from job j where not c.turned order by j.tenant_id limit 1)
                limit 1
            ) n
            where c.turn < $3 and not (n.turned and n.tenant_id > $2)
        )
        select tenant_id as "tenant!", turn, is_due as "is_due!" from (
            select c.tenant_id, c.turn, coalesce(
                (select true from job j
                 where j.tenant_id = c.tenant_id and j.service is null and case when j.kind = 'start_child' then 1 else 0 end = 0
                   and greatest(j.due_at, j.lease_until) <= $1 limit 1),
                (select true from job j
                 where j.tenant_id = c.tenant_id and j.service is null and case when j.kind = 'start_child' then 1 else 0 end = 1
                   and greatest(j.due_at, j.lease_until) <= $1 limit 1),
                false
            ) as is_due
            from circle c where c.turn > 0
            union all
            select distinct f.tenant_id, null::int, true from (
                select j.tenant_id from job j where j.service is null and greatest(j.due_at, j.lease_until) <= $1
                order by greatest(j.due_at, j.lease_until) limit $3
            ) f
        ) as seen
        order by turn nulls last"#,
        Time(now) as _,
        after.0,
        TENANTS_READ
    )
    .fetch_all(&store.writer)
    .await?;
    let tenants = rows.into_iter().map(|row| TenantJobs {
        tenant: TenantId(row.tenant),
        in_turn: row.turn.is_some(),
        is_due: row.is_due,
    });
    Ok(tenants.collect())
}

/// Claims jobs of one tenant. Reads on while all jobs that were read must wait.
async fn claim_of(
    store: &Store,
    tenant: TenantId,
    claim: Claim,
    limit: i64,
) -> Result<Vec<Job>, StoreError> {
    for _ in 0..READS_MAX {
        let (claimed, postponed) = claim_or_postpone(store, tenant, claim, limit).await?;
        if !claimed.is_empty() || postponed == 0 {
            return Ok(claimed);
        }
    }
    Ok(Vec::new())
}

/// One statement: claims the jobs that can run, and postpones those that must wait. Also returns the number of postponed jobs.
async fn claim_or_postpone(
    store: &Store,
    tenant: TenantId,
    Claim { now, lease_end }: Claim,
    limit: i64,
) -> Result<(Vec<Job>, i64), StoreError> {
    let rows = sqlx::query_file!(
        "src/jobs/claim.sql",
        tenant.0,
        Time(now) as _,
        Time(lease_end) as _,
        limit.max(JOBS_READ),
        limit,
        Time(now + CLAIMED_RETRY) as _,
        Time(now + STOPPED_RETRY) as _,
        Time(now + FAILED_RETRY) as _
    )
    .fetch_all(&store.writer)
    .await?;
    let postponed = rows.first().map_or(0, |row| row.postponed);
    let jobs = rows.into_iter().filter_map(|row| {
        Some(Job {
            tenant,
            id: row.id?,
            kind: row.kind?,
            instance: InstanceId(row.instance?),
            due_at: row.due_at?.0,
            payload: Json::from_canonical(row.payload?),
            attempts: row.attempts?.cast_unsigned(),
            claim: row.claim?,
            claimed_at: now,
        })
    });
    let mut jobs: Vec<_> = jobs.collect();
    jobs.sort_by_key(|job| (job.due_at, job.id));
    Ok((jobs, postponed))
}
