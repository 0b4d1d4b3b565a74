//! Jobs that call services. They are claimed by service, so that a slow service occupies only its own places. Tenants take
//! turns at each service, and a claim takes one call of each tenant.
//!
//! Unlike other jobs, a call waits for no job of its instance, and no job waits for a call. Its claim lasts as long as an attempt may take.

use jiff::Timestamp;

use super::{Job, kept};
use crate::time::Time;
use crate::viewer::Viewer;
use crate::{Reader, Store, StoreError};
use wrkflw_core::ids::{InstanceId, StateId, TenantId};
use wrkflw_core::json::Json;

/// Tenants that one claim reads in their order, and calls that it reads in the order of their due times. The second list finds
/// the due calls when most tenants have none.
const TENANTS_READ: i32 = 32;
const CALLS_READ: i64 = 32;
/// Limit of the calls that one statement marks as unserved.
const MARKED_MAX: i64 = 1_000;

/// Whose turn it is at a service.
#[derive(Debug, Clone)]
pub struct CallTurn<'a> {
    pub service: &'a str,
    /// The tenant whose turn was last.
    pub after: TenantId,
    /// Tenants that may have no more calls in flight.
    pub full: &'a [TenantId],
    /// How many calls may be claimed.
    pub limit: i64,
}

/// The progress of the call of a state instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallProgress {
    pub state: StateId,
    /// The attempts so far, with the present one.
    pub attempts: u32,
    pub last_error: Option<String>,
    /// When the next attempt is due, or when the present one ends at the latest.
    pub next_at: Timestamp,
}

/// Which of these services have due calls.
pub async fn due_services(
    store: &Store,
    now: Timestamp,
    services: &[String],
) -> Result<Vec<String>, StoreError> {
    let due = sqlx::query_scalar!(
        r#"select s.name as "name!" from unnest($2::text[]) as s (name)
        where exists (select from job j where j.service = s.name and greatest(j.due_at, j.lease_until) <= $1)"#,
        Time(now) as _,
        services
    );
    Ok(due.fetch_all(&store.writer).await?)
}

/// When the next call of one of these services can be claimed. None if there is no call.
pub async fn next_due(store: &Store, services: &[String]) -> Result<Option<Timestamp>, StoreError> {
    let next = sqlx::query_scalar!(
        r#"select min(n.ready_at) as "ready_at: Time" from unnest($1::text[]) as s (name) cross join lateral (
            select greatest(j.due_at, j.lease_until) as ready_at from job j where j.service = s.name
            order by greatest(j.due_at, j.lease_until) limit 1
        ) n"#,
        services
    );
    let next = next.fetch_one(&store.writer).await?;
    Ok(next.map(|time| time.0))
}

/// Claims due calls of a service until `lease_end`, at most one of each tenant. Returns the tenant whose turn was last, too: a
/// tenant without due calls had its turn, so that the next claim reads others.
pub async fn claim(
    store: &Store,
    turn: &CallTurn<'_>,
    now: Timestamp,
    lease_end: Timestamp,
) -> Result<(Vec<Job>, TenantId), StoreError> {
    let full: Vec<i32> = turn.full.iter().map(|tenant| tenant.0).collect();
    let rows = sqlx::query_file!(
        "src/jobs/claim_calls.sql",
        turn.service,
        turn.after.0,
        TENANTS_READ,
        Time(now) as _,
        Time(lease_end) as _,
        turn.limit,
        &full,
        CALLS_READ
    )
    .fetch_all(&store.writer)
    .await?;
    let after = rows.first().map_or(turn.after, |row| TenantId(row.after));
    let jobs = rows.into_iter().filter_map(|row| {
        Some(Job {
            tenant: TenantId(row.tenant_id?),
            id: row.id?,
            kind: row.kind?,
            instance: InstanceId(row.instance_id?),
            due_at: row.due_at?.0,
            payload: Json::from_canonical(row.payload?),
            attempts: row.attempts?.cast_unsigned(),
            claim: row.claim?,
            claimed_at: now,
        })
    });
    Ok((jobs.collect(), after))
}

/// Ends the claim of a call, stores its payload and its attempts, and makes it due again at `next`. Operators see the number of failed
/// attempts and the last error. Changes nothing if the call was claimed again meanwhile or is over.
pub async fn keep(
    store: &Store,
    job: &Job,
    payload: &Json,
    attempts: u32,
    error: Option<&str>,
    next: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update job set lease_until = $4, payload = $5, last_error = coalesce($6, last_error), attempts = $7, claim = null
        where tenant_id = $1 and id = $2 and claim = $3",
        job.tenant.0,
        job.id,
        job.claim,
        Time(next) as _,
        payload.as_str(),
        error.map(kept),
        attempts.cast_signed()
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Deletes a call that is over.
pub async fn finish(store: &Store, job: &Job) -> Result<(), StoreError> {
    sqlx::query!(
        "delete from job where tenant_id = $1 and id = $2 and claim = $3",
        job.tenant.0,
        job.id,
        job.claim
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Marks due calls of services that are not among these, for operators: hosts that know only these services do not claim
/// such calls. `{}` in the error is the name of the service.
pub async fn mark_unserved(
    store: &Store,
    now: Timestamp,
    services: &[String],
    error: &str,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update job set last_error = replace($3, '{}', service)
        where (tenant_id, id) in (
            select j.tenant_id, j.id from job j
            where j.service is not null and j.service <> all ($2::text[]) and j.last_error is null and greatest(j.due_at, j.lease_until) <= $1
            limit $4
            for update skip locked
        )",
        Time(now) as _,
        services,
        kept(error),
        MARKED_MAX
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// The progress of the calls of an instance, without a check of visibility.
pub async fn of_instance(
    reader: &Reader,
    tenant: TenantId,
    instance: InstanceId,
) -> Result<Vec<CallProgress>, StoreError> {
    let rows = sqlx::query!(
        r#"select id, attempts, last_error, greatest(due_at, lease_until) as "next_at!: Time" from job
        where tenant_id = $1 and instance_id = $2 and service is not null order by id"#,
        tenant.0,
        instance.0
    )
    .fetch_all(&mut reader.reading(Viewer::all(tenant)).await?)
    .await?;
    let calls = rows.into_iter().map(|row| CallProgress {
        state: StateId(row.id),
        attempts: row.attempts.cast_unsigned(),
        last_error: row.last_error,
        next_at: row.next_at.0,
    });
    Ok(calls.collect())
}
