//! Whose turn it is: tenants take turns, and so do the instances of each, however much one of them has to do.
//!
//! A claim looks at a bounded number of tenants and of their jobs. What it finds to be waiting - for an earlier job of its
//! instance, or for an operator who has stopped its version - it moves behind what is not, so that the next claim does not come by it again: a
//! flood costs each of its jobs a few looks, and others nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::Job;
use crate::domain::ids::{InstanceId, TenantId};
use crate::domain::json::Json;
use crate::store::time::Time;
use crate::store::{Store, StoreError};

/// Tenants that one claim looks at, of those whose turn it is, and jobs of the front line, where most tenants have nothing
/// to do.
const TENANTS_LOOKED_AT: i32 = 32;
/// Jobs of a tenant that one look is about, at least.
const JOBS_LOOKED_AT: i64 = 32;
/// How often a claim looks again where all that it found waits.
const LOOKS_MAX: usize = 16;
/// A job that waits for another one is told when that is done, and looked at again after so long: whoever had the other in
/// hand may have died, or met a claim that was just about to let this one wait.
const IN_HAND_LOOKED_AGAIN: Duration = Duration::from_secs(1);
/// The same, where the other one has failed.
const FAILED_LOOKED_AGAIN: Duration = Duration::from_mins(1);
/// A job of a stopped version is looked at again after so long, should nobody tell that it may go on.
pub(crate) const STOPPED_LOOKED_AGAIN: Duration = Duration::from_mins(5);

/// Whose turn comes next, and what each tenant has in hand here.
#[derive(Debug)]
pub struct Rota {
    after: TenantId,
    in_hand: BTreeMap<TenantId, i64>,
    each_max: i64,
}

impl Rota {
    /// No tenant has more than `each_max` jobs in hand.
    pub fn new(each_max: i64) -> Rota {
        Rota {
            after: TenantId(0),
            in_hand: BTreeMap::new(),
            each_max,
        }
    }

    fn room(&self, tenant: TenantId) -> i64 {
        self.each_max - self.in_hand.get(&tenant).copied().unwrap_or(0)
    }

    /// Whether a tenant has as much in hand as it may.
    pub fn is_full(&self) -> bool {
        let mut in_hand = self.in_hand.values();
        in_hand.any(|in_hand| *in_hand >= self.each_max)
    }

    /// A job of the tenant is no longer in hand.
    pub fn ended(&mut self, tenant: TenantId) {
        if let Some(in_hand) = self.in_hand.get_mut(&tenant) {
            *in_hand -= 1;
            if *in_hand <= 0 {
                self.in_hand.remove(&tenant);
            }
        }
    }
}

/// A tenant that a claim has come by.
struct Seen {
    tenant: TenantId,
    /// It is among those whose turn it is, not only in the front line.
    in_turn: bool,
    is_due: bool,
}

/// What a claim starts from.
#[derive(Clone, Copy)]
struct Claim {
    now: Timestamp,
    lease: Timestamp,
}

impl Store {
    /// Claims up to `limit` jobs that are due until `lease`: of the tenants whose turn it is in equal parts, and of each
    /// those that have waited longest, starts of children last.
    pub async fn claim_jobs(
        &self,
        now: Timestamp,
        lease: Timestamp,
        limit: i64,
        rota: &mut Rota,
    ) -> Result<Vec<Job>, StoreError> {
        let due = self.due_tenants(now, limit, rota).await?;
        let mut claimed = Vec::new();
        let mut left = limit;
        for (index, tenant) in due.iter().enumerate() {
            let others = i64::try_from(due.len() - index).unwrap_or(1);
            let share = (left.max(1) - 1) / others + 1;
            let share = share.min(left).min(rota.room(*tenant));
            if share < 1 {
                continue;
            }
            let jobs = self.claim_of(*tenant, Claim { now, lease }, share).await?;
            let count = i64::try_from(jobs.len()).unwrap_or(share);
            *rota.in_hand.entry(*tenant).or_default() += count;
            left -= count;
            claimed.extend(jobs);
        }
        rota.in_hand.retain(|_, in_hand| *in_hand > 0);
        Ok(claimed)
    }

    /// Tenants with jobs that are due and room for them, in their turn.
    async fn due_tenants(
        &self,
        now: Timestamp,
        limit: i64,
        rota: &mut Rota,
    ) -> Result<Vec<TenantId>, StoreError> {
        let seen = self.look_around(now, rota.after).await?;
        let most = usize::try_from(limit).unwrap_or(0);
        let mut due: Vec<TenantId> = Vec::new();
        for Seen {
            tenant,
            in_turn,
            is_due,
        } in seen
        {
            if due.len() >= most {
                break;
            }
            if in_turn {
                rota.after = tenant;
            }
            if is_due && rota.room(tenant) > 0 && !due.contains(&tenant) {
                due.push(tenant);
            }
        }
        Ok(due)
    }

    /// The tenants behind this one, in a circle, and those of the jobs that have waited longest.
    async fn look_around(&self, now: Timestamp, after: TenantId) -> Result<Vec<Seen>, StoreError> {
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
                     where j.tenant_id = c.tenant_id and case when j.kind = 'start_child' then 1 else 0 end = 0
                       and greatest(j.due_at, j.lease_until) <= $1 limit 1),
                    (select true from job j
                     where j.tenant_id = c.tenant_id and case when j.kind = 'start_child' then 1 else 0 end = 1
                       and greatest(j.due_at, j.lease_until) <= $1 limit 1),
                    false
                ) as is_due
                from circle c where c.turn > 0
                union all
                select distinct f.tenant_id, null::int, true from (
                    select j.tenant_id from job j where greatest(j.due_at, j.lease_until) <= $1
                    order by greatest(j.due_at, j.lease_until) limit $3
                ) f
            ) as seen
            order by turn nulls last"#,
            Time(now) as _,
            after.0,
            TENANTS_LOOKED_AT
        )
        .fetch_all(&self.writer)
        .await?;
        let seen = rows.into_iter().map(|row| Seen {
            tenant: TenantId(row.tenant),
            in_turn: row.turn.is_some(),
            is_due: row.is_due,
        });
        Ok(seen.collect())
    }

    /// Claims jobs of one tenant. Looks again where the first ones all wait.
    async fn claim_of(
        &self,
        tenant: TenantId,
        claim: Claim,
        limit: i64,
    ) -> Result<Vec<Job>, StoreError> {
        for _ in 0..LOOKS_MAX {
            let (claimed, moved) = self.look(tenant, claim, limit).await?;
            if !claimed.is_empty() || moved == 0 {
                return Ok(claimed);
            }
        }
        Ok(Vec::new())
    }

    /// One look: claims what can be, moves what waits, and says how much that was.
    async fn look(
        &self,
        tenant: TenantId,
        Claim { now, lease }: Claim,
        limit: i64,
    ) -> Result<(Vec<Job>, i64), StoreError> {
        let rows = sqlx::query_file!(
            "src/store/jobs/look.sql",
            tenant.0,
            Time(now) as _,
            Time(lease) as _,
            limit.max(JOBS_LOOKED_AT),
            limit,
            Time(now + IN_HAND_LOOKED_AGAIN) as _,
            Time(now + STOPPED_LOOKED_AGAIN) as _,
            Time(now + FAILED_LOOKED_AGAIN) as _
        )
        .fetch_all(&self.writer)
        .await?;
        let moved = rows.first().map_or(0, |row| row.moved);
        let job = |id, kind, instance, due_at: Time, payload, (attempts, claim): (i32, _)| Job {
            tenant,
            id,
            kind,
            instance: InstanceId(instance),
            due_at: due_at.0,
            payload: Json::from_canonical(payload),
            attempts: attempts.cast_unsigned(),
            claim,
            claimed_at: now,
        };
        let mut jobs: Vec<_> = rows
            .into_iter()
            .filter_map(|row| {
                Some(job(
                    row.id?,
                    row.kind?,
                    row.instance?,
                    row.due_at?,
                    row.payload?,
                    (row.attempts?, row.claim?),
                ))
            })
            .collect();
        jobs.sort_by_key(|job| (job.due_at, job.id));
        Ok((jobs, moved))
    }
}
