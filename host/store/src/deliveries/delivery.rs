//! One delivery of a subscription: its attempts, its retry and its end by people, and test deliveries.

use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::enable;
use crate::pool::transacted;
use crate::streams::Note;
use crate::subscriptions::record;
use crate::time::Time;
use crate::viewer::Viewer;
use crate::{Reader, Store, StoreError};
use wrkflw_core::ids::TenantId;

/// Attempts that are shown of a delivery, the newest first.
const ATTEMPTS_MAX: i64 = 100;

/// An attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// When it ended.
    pub at: Timestamp,
    /// The receiver's status, if there was one.
    pub status: Option<i16>,
    pub duration_ms: i32,
    /// Why it failed.
    pub error: Option<String>,
}

/// The newest attempts of a delivery. None if there is no such delivery.
pub async fn attempts(
    reader: &Reader,
    tenant: TenantId,
    subscription: Uuid,
    delivery: Uuid,
) -> Result<Option<Vec<Attempt>>, StoreError> {
    let mut connection = reader.reading(Viewer::all(tenant)).await?;
    let found = sqlx::query_scalar!(
        r#"select exists(
            select from webhook_delivery where tenant_id = $1 and subscription_id = $2 and message_id = $3
        ) as "found!""#,
        tenant.0,
        subscription,
        delivery
    );
    if !found.fetch_one(&mut connection).await? {
        return Ok(None);
    }
    let rows = sqlx::query!(
        r#"select at as "at: Time", status, duration_ms, error from webhook_attempt
        where tenant_id = $1 and subscription_id = $2 and message_id = $3 order by at desc limit $4"#,
        tenant.0,
        subscription,
        delivery,
        ATTEMPTS_MAX
    );
    let rows = rows.fetch_all(&mut connection).await?;
    let attempts = rows.into_iter().map(|row| Attempt {
        at: row.at.0,
        status: row.status,
        duration_ms: row.duration_ms,
        error: row.error,
    });
    Ok(Some(attempts.collect()))
}

/// Tests of a subscription that may wait at a time.
pub const TESTS_MAX: i64 = 10;

/// Adds a test to the deliveries of a subscription. False if too many wait, or there is no such subscription. The lock prevents the
/// deletion of the subscription until the test is inserted.
pub async fn test(
    store: &Store,
    tenant: TenantId,
    subscription: Uuid,
    message: Uuid,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let added = sqlx::query!(
        "insert into webhook_delivery (
             tenant_id, subscription_id, message_id, notifies, instance_id, seq, test, created_at, due_at)
         select s.tenant_id, s.id, $3, false, '00000000-0000-0000-0000-000000000000', 0, true, $4, $4
         from subscription s
         where s.tenant_id = $1 and s.id = $2 and (
             select count(*) from webhook_delivery d
             where d.tenant_id = $1 and d.subscription_id = $2 and d.state = 'pending' and d.test
         ) < $5
         for key share of s",
        tenant.0,
        subscription,
        message,
        Time(at) as _,
        TESTS_MAX
    );
    let added = added.execute(&store.writer).await?;
    Ok(added.rows_affected() > 0)
}

/// Makes a delivery due, whatever its status, and enables its subscription. False if there is no such delivery.
pub async fn retry_delivery(
    store: &Store,
    tenant: TenantId,
    subscription: Uuid,
    delivery: Uuid,
    at: Timestamp,
) -> Result<bool, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        let again = sqlx::query!(
            "update webhook_delivery set state = 'pending', attempts = 0, due_at = $4, lease_until = null
            where tenant_id = $1 and subscription_id = $2 and message_id = $3",
            tenant.0,
            subscription,
            delivery,
            Time(at) as _
        );
        let again = again.execute(&mut *transaction).await?;
        let found = again.rows_affected() > 0
            && enable(&mut transaction, tenant, subscription).await?;
        if found {
            transaction.commit().await?;
        }
        Ok(found)
    }))
    .await
}

/// Gives up a delivery that the receiver has not accepted. False if there is no such delivery.
pub async fn discard_delivery(
    store: &Store,
    tenant: TenantId,
    (subscription, delivery): (Uuid, Uuid),
    reason: &str,
    note: &Note<'_>,
) -> Result<bool, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        let discarded = sqlx::query!(
            "update webhook_delivery set state = 'discarded', due_at = now(), lease_until = null
        where tenant_id = $1 and subscription_id = $2 and message_id = $3 and state in ('pending', 'dead')",
            tenant.0,
            subscription,
            delivery
        );
        let discarded = discarded.execute(&mut *transaction).await?;
        if discarded.rows_affected() == 0 {
            return Ok(false);
        }
        let payload =
            json!({ "subscription": subscription, "delivery": delivery, "reason": reason });
        record(
            &mut transaction,
            tenant,
            note,
            "DELIVERY_DISCARDED",
            &payload,
        )
        .await?;
        transaction.commit().await?;
        Ok(true)
    }))
    .await
}
