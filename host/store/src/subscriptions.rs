//! Webhook subscriptions. The tenant's operation stream records their creation and deletion, because they determine where
//! data goes. The secret is written here, and only deliveries read it.

use jiff::Timestamp;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::pool::transacted;
use super::snapshot::Snapshot;
use super::streams::{Note, append};
use super::time::Time;
use super::{Reader, Store, StoreError};
use wrkflw_core::audit::{Stream, StreamKind};
use wrkflw_core::ids::TenantId;
use wrkflw_core::subscription::{Patterns, SUBSCRIPTIONS_MAX};

/// The id of a tenant's own operation stream.
const OPERATION: Uuid = Uuid::nil();

/// A subscription as the notifier reads it.
#[derive(Debug, Clone)]
pub struct Subscriber {
    pub id: Uuid,
    pub types: Patterns,
    pub definition: Option<String>,
    /// Earlier events are not delivered.
    pub since: Since,
    /// When it was disabled the last time, and when it was enabled again. Events in between are not delivered.
    pub disabled: Option<Since>,
    pub enabled: Option<Since>,
}

/// When a subscription was created, disabled or enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// By the transactions that were committed at that time: those of earlier histories, and those that the snapshot saw.
    Snapshot { epoch: i32, snapshot: Snapshot },
    /// By a host's clock, for subscriptions without a snapshot.
    Moment(Timestamp),
}

/// A subscription to create.
#[derive(Debug)]
pub struct NewSubscription {
    pub id: Uuid,
    pub url: String,
    pub types: Patterns,
    pub definition: Option<String>,
    pub secret: [u8; 32],
}

/// A webhook subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub id: Uuid,
    pub url: String,
    pub types: Vec<String>,
    pub definition: Option<String>,
    pub active: bool,
    pub disabled_reason: Option<String>,
    pub failures: i32,
    pub created_at: Timestamp,
    pub created_by: String,
}

/// The tenant's subscriptions, or the one with this id. Newest first.
pub async fn list(
    reader: &Reader,
    tenant: TenantId,
    id: Option<Uuid>,
) -> Result<Vec<Subscription>, StoreError> {
    let rows = sqlx::query!(
        r#"select id, url, types, definition_key, active, disabled_reason, failures, created_at as "created_at: Time",
            created_by
        from subscription where tenant_id = $1 and ($2::uuid is null or id = $2) order by id desc"#,
        tenant.0,
        id
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    let subscription = rows.into_iter().map(|row| Subscription {
        id: row.id,
        url: row.url,
        types: row.types,
        definition: row.definition_key,
        active: row.active,
        disabled_reason: row.disabled_reason,
        failures: row.failures,
        created_at: row.created_at.0,
        created_by: row.created_by,
    });
    Ok(subscription.collect())
}

/// Creates a subscription. False if the tenant has [`SUBSCRIPTIONS_MAX`] already.
pub async fn subscribe(
    store: &Store,
    tenant: TenantId,
    new: &NewSubscription,
    note: &Note<'_>,
) -> Result<bool, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        let about = json!({ "subscription": new.id, "url": new.url, "types": new.types.names(), "definition": new.definition });
        // This locks the head of the stream, so that two concurrent requests cannot both pass the limit.
        record(
            &mut transaction,
            tenant,
            note,
            "SUBSCRIPTION_CREATED",
            &about,
        )
        .await?;
        let count = sqlx::query_scalar!(
            r#"select count(*) as "count!" from subscription where tenant_id = $1"#,
            tenant.0
        )
        .fetch_one(&mut *transaction)
        .await?;
        if usize::try_from(count).unwrap_or(usize::MAX) >= SUBSCRIPTIONS_MAX {
            return Ok(false);
        }
        sqlx::query!(
            "insert into subscription (
             tenant_id, id, url, types, definition_key, secret, active, created_at, created_by, since_epoch, since_snapshot)
         values ($1, $2, $3, $4, $5, $6, true, $7, $8, (select max(epoch) from feed_epoch), pg_current_snapshot())",
            tenant.0,
            new.id,
            new.url,
            new.types.names(),
            new.definition,
            new.secret.as_slice(),
            Time(note.at) as _,
            note.actor
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(true)
    }))
    .await
}

/// Deletes a subscription and its pending and dead deliveries. False if there is none.
pub async fn unsubscribe(
    store: &Store,
    tenant: TenantId,
    id: Uuid,
    note: &Note<'_>,
) -> Result<bool, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        // Deliveries first, as in every transaction that changes both.
        delete_open(&mut transaction, tenant, id).await?;
        let deleted = sqlx::query!(
            "delete from subscription where tenant_id = $1 and id = $2",
            tenant.0,
            id
        )
        .execute(&mut *transaction)
        .await?;
        if deleted.rows_affected() == 0 {
            return Ok(false);
        }
        // A separate statement sees the rows that other transactions committed while the last statement waited for its lock.
        delete_open(&mut transaction, tenant, id).await?;
        let about = json!({ "subscription": id });
        record(
            &mut transaction,
            tenant,
            note,
            "SUBSCRIPTION_DELETED",
            &about,
        )
        .await?;
        transaction.commit().await?;
        Ok(true)
    }))
    .await
}

/// Deletes the pending and dead deliveries of a subscription.
async fn delete_open(
    connection: &mut PgConnection,
    tenant: TenantId,
    subscription: Uuid,
) -> Result<(), StoreError> {
    sqlx::query!(
        "delete from webhook_delivery where tenant_id = $1 and subscription_id = $2 and state in ('pending', 'dead')",
        tenant.0,
        subscription
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Appends an entry to the tenant's own stream of operations.
pub(crate) async fn record(
    connection: &mut PgConnection,
    tenant: TenantId,
    note: &Note<'_>,
    kind: &str,
    payload: &serde_json::Value,
) -> Result<(), StoreError> {
    let stream = Stream {
        tenant,
        kind: StreamKind::Operation,
        id: OPERATION,
    };
    append(connection, stream, note.draft(kind, 0, payload)).await
}
