//! Deliveries to webhooks: claimed by lease, settled by the answer of the receiver, and kept for some time with their attempts.
//!
//! When the host of a claimed delivery fails, the delivery is due again after the lease. Then the receiver may get the message
//! twice, with the same id. If two hosts made the same attempt and both failed, only one of them stores it, because each compares
//! the number of attempts. A success always ends the delivery.

mod claim;
mod delivery;

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::outbox::BACKLOG_COUNTED_MAX;
use super::pool::transacted;
use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, Store, StoreError};
use wrkflw_core::ids::TenantId;

pub use claim::{Claimed, DeliveryQueue, claim, queues};
pub use delivery::{Attempt, TESTS_MAX, attempts, discard_delivery, retry_delivery, test};

/// Dead deliveries in a row after which a subscription is disabled.
pub const FAILURES_MAX: i32 = 20;
/// Limit of the dead deliveries that one call makes due again.
pub const RETRIES_MAX: i64 = 1_000;

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: Option<u16>,
    pub error: String,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The receiver answered with this status.
    Delivered(u16),
    /// The next attempt is at this moment.
    Later(Timestamp, Refusal),
    /// There are no more attempts. The delivery is kept for operators.
    Dead(Refusal),
    /// Like `Dead`, but not a failure of the receiver: the host cannot send it.
    Unsendable(Refusal),
    /// Like `Dead`, and the subscription is disabled, because the receiver has unsubscribed.
    Gone(Refusal),
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptDelivery {
    pub id: Uuid,
    pub state: String,
    /// None for a test.
    pub instance_id: Option<Uuid>,
    pub attempts: i32,
    pub last_status: Option<i16>,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
    pub due_at: Timestamp,
}

/// The pending and dead deliveries of all tenants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryBacklog {
    pub pending: i64,
    pub dead: i64,
    /// When the oldest pending delivery was created.
    pub since: Option<Timestamp>,
}

/// The result of a retry of all dead deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retried {
    pub count: u64,
    /// Whether more are dead.
    pub more: bool,
}

/// The deliveries of a subscription, newest first.
pub async fn list(
    reader: &Reader,
    tenant: TenantId,
    subscription: Uuid,
    state: Option<&str>,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<KeptDelivery>, StoreError> {
    let rows = sqlx::query!(
        r#"select message_id, state, case when not test then instance_id end as instance_id, attempts, last_status, last_error, created_at as "created_at: Time",
            due_at as "due_at: Time"
        from webhook_delivery
        where tenant_id = $1 and subscription_id = $2 and ($3::text is null or state = $3)
          and ($4::uuid is null or message_id < $4)
        order by message_id desc limit $5"#,
        tenant.0,
        subscription,
        state,
        before,
        limit
    )
    .fetch_all(&mut reader.reading(Viewer::all(tenant)).await?)
    .await?;
    let deliveries = rows.into_iter().map(|row| KeptDelivery {
        id: row.message_id,
        state: row.state,
        instance_id: row.instance_id,
        attempts: row.attempts,
        last_status: row.last_status,
        last_error: row.last_error,
        created_at: row.created_at.0,
        due_at: row.due_at.0,
    });
    Ok(deliveries.collect())
}

/// Stores an attempt and its result. A failure changes nothing if another host has stored this attempt. A success ends the delivery
/// in any case, also a dead or discarded one.
pub async fn settle(
    store: &Store,
    claimed: &Claimed,
    settlement: &Settlement,
    took: Duration,
    at: Timestamp,
) -> Result<(), StoreError> {
    match settlement {
        Settlement::Delivered(status) => delivered(store, claimed, *status, took, at).await,
        Settlement::Later(due_at, refusal) => later(store, claimed, *due_at, refusal, took).await,
        Settlement::Dead(refusal) => dead(store, claimed, refusal, None, true, took).await,
        Settlement::Unsendable(refusal) => dead(store, claimed, refusal, None, false, took).await,
        Settlement::Gone(refusal) => {
            dead(store, claimed, refusal, Some(&refusal.error), true, took).await
        }
    }
}

async fn delivered(
    store: &Store,
    claimed: &Claimed,
    status: u16,
    took: Duration,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query!(
        "with ended as (
            update webhook_delivery
            set state = 'delivered', attempts = attempts + 1, due_at = now(), lease_until = null, last_status = $5, last_error = null
            where tenant_id = $1 and subscription_id = $2 and message_id = $3 and state <> 'delivered'
            returning notifies
        ), tried as (
            insert into webhook_attempt (tenant_id, subscription_id, message_id, status, duration_ms)
            select $1, $2, $3, $5, $6 from ended
        ), notified as (
            update notification set sent_at = $4
            where tenant_id = $1 and id = $3 and sent_at is null and exists (select from ended where notifies)
        )
        update subscription set failures = 0 where tenant_id = $1 and id = $2 and failures <> 0",
        claimed.queue.tenant.0,
        claimed.queue.subscription,
        claimed.message,
        Time(at) as _,
        i16::try_from(status).ok(),
        milliseconds(took)
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

async fn later(
    store: &Store,
    claimed: &Claimed,
    due_at: Timestamp,
    refusal: &Refusal,
    took: Duration,
) -> Result<(), StoreError> {
    sqlx::query!(
        "with tried as (
            update webhook_delivery
            set attempts = attempts + 1, due_at = $5, lease_until = null, last_status = $6, last_error = $7
            where tenant_id = $1 and subscription_id = $2 and message_id = $3 and attempts = $4 and state = 'pending'
            returning message_id
        )
        insert into webhook_attempt (tenant_id, subscription_id, message_id, status, error, duration_ms)
        select $1, $2, message_id, $6, $7, $8 from tried",
        claimed.queue.tenant.0,
        claimed.queue.subscription,
        claimed.message,
        claimed.attempts,
        Time(due_at) as _,
        refusal.status.and_then(|status| i16::try_from(status).ok()),
        refusal.error,
        milliseconds(took)
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// `counts` is false if the receiver is not at fault: the delivery then does not count towards [`FAILURES_MAX`].
async fn dead(
    store: &Store,
    claimed: &Claimed,
    refusal: &Refusal,
    disabled: Option<&str>,
    counts: bool,
    took: Duration,
) -> Result<(), StoreError> {
    sqlx::query!(
        "with dead as (
            update webhook_delivery
            set state = 'dead', attempts = attempts + 1, due_at = now(), lease_until = null, last_status = $5, last_error = $6
            where tenant_id = $1 and subscription_id = $2 and message_id = $3 and attempts = $4 and state = 'pending'
            returning message_id
        ), tried as (
            insert into webhook_attempt (tenant_id, subscription_id, message_id, status, error, duration_ms)
            select $1, $2, message_id, $5, $6, $9 from dead
        )
        update subscription set failures = failures + $10, active = active and $7::text is null and failures + $10 < $8,
            disabled_reason = case
                when not active then disabled_reason
                when $7::text is not null then $7
                when failures + $10 >= $8 then 'given up ' || (failures + $10) || ' deliveries in a row, the last with: ' || $6
            end,
            (disabled_epoch, disabled_snapshot, enabled_epoch, enabled_snapshot) = (
                select case when ends then f.epoch else disabled_epoch end,
                    case when ends then pg_current_snapshot() else disabled_snapshot end,
                    case when not ends then enabled_epoch end, case when not ends then enabled_snapshot end
                from (select max(epoch) as epoch, active and ($7::text is not null or failures + $10 >= $8) as ends from feed_epoch) f
            )
        where tenant_id = $1 and id = $2 and exists (select from dead)",
        claimed.queue.tenant.0,
        claimed.queue.subscription,
        claimed.message,
        claimed.attempts,
        refusal.status.and_then(|status| i16::try_from(status).ok()),
        refusal.error,
        disabled,
        FAILURES_MAX,
        milliseconds(took),
        i32::from(counts)
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Makes dead deliveries due again, the oldest first and at most [`RETRIES_MAX`], and enables the subscription. None if there is no
/// such subscription.
pub async fn retry(
    store: &Store,
    tenant: TenantId,
    subscription: Uuid,
    at: Timestamp,
) -> Result<Option<Retried>, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        let retried = sqlx::query!(
            "update webhook_delivery d set state = 'pending', attempts = 0, due_at = $3, lease_until = null
         from (
             select message_id from webhook_delivery
             where tenant_id = $1 and subscription_id = $2 and state = 'dead' order by message_id limit $4
         ) dead
         where d.tenant_id = $1 and d.subscription_id = $2 and d.message_id = dead.message_id and d.state = 'dead'",
            tenant.0,
            subscription,
            Time(at) as _,
            RETRIES_MAX
        )
        .execute(&mut *transaction)
        .await?;
        let more = sqlx::query_scalar!(
            r#"select exists(
            select from webhook_delivery where tenant_id = $1 and subscription_id = $2 and state = 'dead'
        ) as "more!""#,
            tenant.0,
            subscription
        )
        .fetch_one(&mut *transaction)
        .await?;
        if !enable(&mut transaction, tenant, subscription).await? {
            return Ok(None);
        }
        transaction.commit().await?;
        let count = retried.rows_affected();
        Ok(Some(Retried { count, more }))
    }))
    .await
}

/// Counts the pending and the dead deliveries, each up to [`BACKLOG_COUNTED_MAX`].
pub async fn backlog(store: &Store) -> Result<DeliveryBacklog, StoreError> {
    let row = sqlx::query!(
        r#"select p.pending as "pending!", p.since as "since: Time",
            (select count(*) from (select from webhook_delivery where state = 'dead' limit $1) d) as "dead!"
        from (
            select count(*) as pending, min(created_at) as since
            from (select created_at from webhook_delivery where state = 'pending' limit $1) d
        ) p"#,
        BACKLOG_COUNTED_MAX
    )
    .fetch_one(&store.writer)
    .await?;
    Ok(DeliveryBacklog {
        pending: row.pending,
        dead: row.dead,
        since: row.since.map(|time| time.0),
    })
}

fn milliseconds(took: Duration) -> i32 {
    i32::try_from(took.as_millis()).unwrap_or(i32::MAX)
}

/// Enables a subscription. False if there is none. Every transaction that changes deliveries and their subscription changes the
/// deliveries first, so that two such transactions cannot deadlock.
async fn enable(
    connection: &mut PgConnection,
    tenant: TenantId,
    subscription: Uuid,
) -> Result<bool, StoreError> {
    let found = sqlx::query!(
        "update subscription set active = true, failures = 0, disabled_reason = null,
            enabled_epoch = case when active then enabled_epoch else (select max(epoch) from feed_epoch) end,
            enabled_snapshot = case when active then enabled_snapshot else pg_current_snapshot() end
        where tenant_id = $1 and id = $2",
        tenant.0,
        subscription
    );
    Ok(found.execute(connection).await?.rows_affected() > 0)
}
