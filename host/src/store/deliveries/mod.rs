//! Deliveries to webhooks: claimed by lease, settled by what the receiver answered, kept when it never accepted.
//!
//! A host that dies with a lease loses nothing: the delivery is due again when the lease is over, and the receiver
//! knows the message by its id. Of two hosts that tried, the count of attempts lets one write.

mod claim;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::pool::transacted;
use super::time::Time;
use super::{Store, StoreError};
use crate::domain::ids::TenantId;
pub use claim::{Claimed, Line};

/// Deliveries given up in a row after which a subscription is disabled.
pub const FAILURES_MAX: i32 = 20;
/// Deliveries that one call sends again.
pub const RETRIES_MAX: i64 = 1_000;
/// Deliveries that one sweep forgets.
const SWEEP_MAX: i64 = 5_000;

/// Why a receiver did not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: Option<u16>,
    pub error: String,
}

/// What becomes of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    Delivered,
    /// Tried again, not before this moment.
    Later(Timestamp, Refusal),
    /// Given up, and kept for people to look at.
    Dead(Refusal),
    /// Given up, because the receiver wants nothing any more.
    Gone(Refusal),
}

/// A delivery that was not accepted yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    /// Of the message: the event's or the notification's.
    pub id: Uuid,
    /// `pending` or `dead`.
    pub state: String,
    pub instance_id: Uuid,
    pub attempts: i32,
    /// The receiver's last status.
    pub last_status: Option<i16>,
    pub last_error: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it is tried again, or would have been.
    #[schema(value_type = String, format = DateTime)]
    pub due_at: Timestamp,
}

/// What waits, of all tenants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryBacklog {
    pub pending: i64,
    pub dead: i64,
    /// When the oldest that waits was made.
    pub since: Option<Timestamp>,
}

impl Store {
    /// Writes down what became of a delivery. Does nothing when another host did so meanwhile.
    pub async fn settle_delivery(
        &self,
        claimed: &Claimed,
        settlement: &Settlement,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        match settlement {
            Settlement::Delivered => self.delivered(claimed, at).await,
            Settlement::Later(due_at, refusal) => self.later(claimed, *due_at, refusal).await,
            Settlement::Dead(refusal) => self.dead(claimed, refusal, None).await,
            Settlement::Gone(refusal) => self.dead(claimed, refusal, Some(&refusal.error)).await,
        }
    }

    async fn delivered(&self, claimed: &Claimed, at: Timestamp) -> Result<(), StoreError> {
        sqlx::query!(
            "with gone as (
                delete from webhook_delivery where tenant_id = $1 and subscription_id = $2 and message_id = $3
                returning notifies
            ), told as (
                update notification set sent_at = $4
                where tenant_id = $1 and id = $3 and sent_at is null and exists (select from gone where notifies)
            )
            update subscription set failures = 0 where tenant_id = $1 and id = $2 and failures <> 0",
            claimed.tenant.0,
            claimed.subscription,
            claimed.message,
            Time(at) as _
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    async fn later(
        &self,
        claimed: &Claimed,
        due_at: Timestamp,
        refusal: &Refusal,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "update webhook_delivery
             set attempts = attempts + 1, due_at = $5, lease_until = null, last_status = $6, last_error = $7
             where tenant_id = $1 and subscription_id = $2 and message_id = $3 and attempts = $4 and state = 'pending'",
            claimed.tenant.0,
            claimed.subscription,
            claimed.message,
            claimed.attempts,
            Time(due_at) as _,
            refusal.status.and_then(|status| i16::try_from(status).ok()),
            refusal.error
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    async fn dead(
        &self,
        claimed: &Claimed,
        refusal: &Refusal,
        disabled: Option<&str>,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "with dead as (
                update webhook_delivery
                set state = 'dead', attempts = attempts + 1, lease_until = null, last_status = $5, last_error = $6
                where tenant_id = $1 and subscription_id = $2 and message_id = $3 and attempts = $4 and state = 'pending'
                returning message_id
            )
            update subscription set failures = failures + 1, active = active and $7::text is null and failures + 1 < $8,
                disabled_reason = case
                    when not active then disabled_reason
                    when $7::text is not null then $7
                    when failures + 1 >= $8 then 'given up ' || (failures + 1) || ' deliveries in a row, the last with: ' || $6
                end
            where tenant_id = $1 and id = $2 and exists (select from dead)",
            claimed.tenant.0,
            claimed.subscription,
            claimed.message,
            claimed.attempts,
            refusal.status.and_then(|status| i16::try_from(status).ok()),
            refusal.error,
            disabled,
            FAILURES_MAX
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    /// What a subscription's receiver has not accepted, newest first.
    pub async fn deliveries(
        &self,
        tenant: TenantId,
        subscription: Uuid,
        state: Option<&str>,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        let rows = sqlx::query!(
            r#"select message_id, state, instance_id, attempts, last_status, last_error, created_at as "created_at: Time",
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
        .fetch_all(&mut *self.reading(tenant).await?)
        .await?;
        let view = rows.into_iter().map(|row| DeliveryView {
            id: row.message_id,
            state: row.state,
            instance_id: row.instance_id,
            attempts: row.attempts,
            last_status: row.last_status,
            last_error: row.last_error,
            created_at: row.created_at.0,
            due_at: row.due_at.0,
        });
        Ok(view.collect())
    }

    /// Sends what was given up once more, oldest first and [`RETRIES_MAX`] at the most, and enables the subscription
    /// again. How many; none when there is no such subscription.
    pub async fn retry_deliveries(
        &self,
        tenant: TenantId,
        subscription: Uuid,
        at: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        transacted(Box::pin(async move {
        let mut transaction = self.writer.begin().await?;
        let found = sqlx::query!(
            "update subscription set active = true, failures = 0, disabled_reason = null where tenant_id = $1 and id = $2",
            tenant.0,
            subscription
        )
        .execute(&mut *transaction)
        .await?;
        if found.rows_affected() == 0 {
            return Ok(None);
        }
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
        transaction.commit().await?;
        Ok(Some(retried.rows_affected()))
    })).await
    }

    /// Counts what waits and what was given up.
    pub async fn delivery_backlog(&self) -> Result<DeliveryBacklog, StoreError> {
        let row = sqlx::query!(
            r#"select (select count(*) from webhook_delivery where state = 'pending') as "pending!",
                (select count(*) from webhook_delivery where state = 'dead') as "dead!",
                (select min(created_at) from webhook_delivery where state = 'pending') as "since: Time""#
        )
        .fetch_one(&self.writer)
        .await?;
        Ok(DeliveryBacklog {
            pending: row.pending,
            dead: row.dead,
            since: row.since.map(|time| time.0),
        })
    }

    /// Forgets what was given up and not looked at since `limit`; true when there may be more.
    pub async fn purge_deliveries(&self, limit: Timestamp) -> Result<bool, StoreError> {
        let forgotten = sqlx::query!(
            "delete from webhook_delivery d using (
                 select tenant_id, subscription_id, message_id from webhook_delivery
                 where state = 'dead' and due_at < $1 limit $2
             ) old
             where d.tenant_id = old.tenant_id and d.subscription_id = old.subscription_id and d.message_id = old.message_id
               and d.state = 'dead'",
            Time(limit) as _,
            SWEEP_MAX
        )
        .execute(&self.writer)
        .await?;
        Ok(forgotten.rows_affected() >= SWEEP_MAX.cast_unsigned())
    }
}
