//! Claims of bulk items: some items of one operation at a time, by lease. Tenants take turns, and so do the operations of each
//! tenant.
//!
//! When a host fails, other hosts claim its items after their leases have expired. The idempotency key of an item's command
//! ensures that it takes effect once.

use jiff::Timestamp;
use uuid::Uuid;

use crate::time::Time;
use crate::{Store, StoreError};
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::json::Json;

/// Limit of a stored detail, in characters.
const DETAIL_CHARS_MAX: usize = 1_000;

/// Items of one operation that this host has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub tenant: TenantId,
    pub operation: Uuid,
    /// The action, as stored.
    pub action: String,
    pub settings: Json,
    pub requested_by: String,
    pub roles: Vec<String>,
    /// The instance of each item, and the number of its claims with this one.
    pub items: Vec<(InstanceId, u32)>,
}

/// The outcome of an item, and when it was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub instance: InstanceId,
    pub outcome: Outcome,
    pub at: Timestamp,
}

/// The outcome of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Done { revision: u32 },
    Refused { code: String, detail: String },
    Failed { code: String, detail: String },
}

impl Outcome {
    /// The name in the table and in the API.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Done { .. } => "done",
            Outcome::Refused { .. } => "refused",
            Outcome::Failed { .. } => "failed",
        }
    }
}

/// Whether an operation has ended, or was stopped.
pub async fn has_ended(
    store: &Store,
    tenant: TenantId,
    operation: Uuid,
) -> Result<bool, StoreError> {
    let ended = sqlx::query_scalar!(
        r#"select exists(
            select from bulk_operation where tenant_id = $1 and id = $2 and ended_at is not null
        ) as "ended!""#,
        tenant.0,
        operation
    );
    Ok(ended.fetch_one(&store.writer).await?)
}

/// Claims up to `limit` items of the operation whose turn it is, until `lease_end`. An operation without open items ends. None if
/// no operation is running.
pub async fn claim_batch(
    store: &Store,
    now: Timestamp,
    lease_end: Timestamp,
    limit: i64,
) -> Result<Option<Batch>, StoreError> {
    let row = sqlx::query!(
        "with turns as (
            select tenant_id, max(taken_at) as taken_at from bulk_operation where ended_at is null group by tenant_id
        ),
        chosen as (
            select o.tenant_id, o.id from bulk_operation o join turns t on t.tenant_id = o.tenant_id
            where o.ended_at is null
            order by t.taken_at, o.taken_at limit 1 for update of o skip locked
        )
        update bulk_operation o set taken_at = $1 from chosen
        where o.tenant_id = chosen.tenant_id and o.id = chosen.id
        returning o.tenant_id, o.id, o.action, o.settings, o.requested_by, o.roles",
        Time(now) as _
    )
    .fetch_optional(&store.writer)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let (tenant, id) = (TenantId(row.tenant_id), row.id);
    let items = sqlx::query!(
        "with ready as (
            select tenant_id, operation_id, instance_id from bulk_item
            where tenant_id = $1 and operation_id = $2 and result is null and lease_until <= $3
              and exists (select from bulk_operation o where o.tenant_id = $1 and o.id = $2 and o.ended_at is null)
            order by lease_until limit $5 for update skip locked
        )
        update bulk_item i set lease_until = $4, attempts = i.attempts + 1 from ready
        where i.tenant_id = ready.tenant_id and i.operation_id = ready.operation_id
          and i.instance_id = ready.instance_id
        returning i.instance_id, i.attempts",
        tenant.0,
        id,
        Time(now) as _,
        Time(lease_end) as _,
        limit
    )
    .fetch_all(&store.writer)
    .await?;
    if items.is_empty() {
        end_operation(store, tenant, id).await?;
    }
    let roles = serde_json::from_str(&row.roles)
        .map_err(|error| StoreError::inconsistent("bulk_operation", id, error))?;
    let item = |(id, attempts): (Uuid, i32)| (InstanceId(id), attempts.cast_unsigned());
    let items = items.into_iter().map(|row| (row.instance_id, row.attempts));
    Ok(Some(Batch {
        tenant,
        operation: id,
        action: row.action,
        settings: Json::from_canonical(row.settings),
        requested_by: row.requested_by,
        roles,
        items: items.map(item).collect(),
    }))
}

/// Ends an operation without open items. The time comes from the database's clock, because the purge of ended operations
/// uses that clock.
async fn end_operation(store: &Store, tenant: TenantId, id: Uuid) -> Result<(), StoreError> {
    sqlx::query!(
        "update bulk_operation set ended_at = now()
        where tenant_id = $1 and id = $2 and ended_at is null and not exists (
            select from bulk_item where tenant_id = $1 and operation_id = $2 and result is null
        )",
        tenant.0,
        id
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Stores the outcomes of items. An item that has one keeps it.
pub async fn settle_items(store: &Store, batch: &Batch, ends: &[End]) -> Result<(), StoreError> {
    let mut rows: Vec<_> = ends.iter().map(Row::of).collect();
    // Two statements on the same items lock them in the same order, so there is no deadlock.
    rows.sort_unstable_by_key(|row| row.instance);
    sqlx::query_file!(
        "src/bulk/settle.sql",
        batch.tenant.0,
        batch.operation,
        &rows.iter().map(|row| row.instance).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.result).collect::<Vec<_>>() as &[&str],
        &rows.iter().map(|row| row.code).collect::<Vec<_>>() as &[Option<&str>],
        &rows
            .iter()
            .map(|row| row.detail.as_deref())
            .collect::<Vec<_>>() as &[Option<&str>],
        &rows.iter().map(|row| row.revision).collect::<Vec<_>>() as &[Option<i32>],
        &rows.iter().map(|row| row.at).collect::<Vec<_>>() as _
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Ends the claim of an item without an outcome. It can be claimed again from `next` on.
pub async fn put_off_item(
    store: &Store,
    batch: &Batch,
    instance: InstanceId,
    attempts: u32,
    next: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update bulk_item set lease_until = $5
        where tenant_id = $1 and operation_id = $2 and instance_id = $3 and attempts = $4 and result is null",
        batch.tenant.0,
        batch.operation,
        instance.0,
        attempts.cast_signed(),
        Time(next) as _
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// An outcome, as stored.
struct Row<'a> {
    instance: Uuid,
    result: &'static str,
    code: Option<&'a str>,
    detail: Option<String>,
    revision: Option<i32>,
    at: Time,
}

impl Row<'_> {
    fn of(end: &End) -> Row<'_> {
        let (code, detail, revision) = match &end.outcome {
            Outcome::Done { revision } => (None, None, Some(revision.cast_signed())),
            Outcome::Refused { code, detail } | Outcome::Failed { code, detail } => {
                let detail = detail.chars().filter(|character| *character != '\0');
                let detail = detail.take(DETAIL_CHARS_MAX).collect();
                (Some(code.as_str()), Some(detail), None)
            }
        };
        Row {
            instance: end.instance.0,
            result: end.outcome.name(),
            code,
            detail,
            revision,
            at: Time(end.at),
        }
    }
}
