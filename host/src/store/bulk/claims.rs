//! Who works on which items of an operation: claimed by lease, a few at a time; tenants take turns, and so do the operations
//! of each.
//!
//! What a host leaves undone, another claims when the lease is over. That no item acts twice is for the command's
//! idempotency key.

use jiff::Timestamp;
use uuid::Uuid;

use crate::domain::ids::{InstanceId, TenantId};
use crate::domain::json::Json;
use crate::store::time::Time;
use crate::store::{Store, StoreError};

/// How much of an explanation is kept with its item.
const DETAIL_CHARS_MAX: usize = 1_000;

/// Some items of one operation, claimed by this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub tenant: TenantId,
    pub operation: Uuid,
    /// As the table names it.
    pub action: String,
    pub settings: Json,
    pub requested_by: String,
    pub roles: Vec<String>,
    /// With how often each was claimed, this time included.
    pub items: Vec<(InstanceId, u32)>,
}

/// What an item came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Done { revision: u32 },
    Refused { code: String, detail: String },
    Failed { code: String, detail: String },
}

impl Outcome {
    /// As stored and shown.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Done { .. } => "done",
            Outcome::Refused { .. } => "refused",
            Outcome::Failed { .. } => "failed",
        }
    }
}

impl Store {
    /// Claims up to `limit` items of the operation whose turn it is, until `lease`; tenants take turns, and so do the
    /// operations of each; an operation without items left
    /// ends. None when no operation is under way.
    pub async fn claim_batch(
        &self,
        now: Timestamp,
        lease: Timestamp,
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
        .fetch_optional(&self.writer)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let (tenant, id) = (TenantId(row.tenant_id), row.id);
        let items = sqlx::query!(
            "with ready as (
                select tenant_id, operation_id, instance_id from bulk_item
                where tenant_id = $1 and operation_id = $2 and result is null and lease_until <= $3
                order by lease_until limit $5 for update skip locked
            )
            update bulk_item i set lease_until = $4, attempts = i.attempts + 1 from ready
            where i.tenant_id = ready.tenant_id and i.operation_id = ready.operation_id
              and i.instance_id = ready.instance_id
            returning i.instance_id, i.attempts",
            tenant.0,
            id,
            Time(now) as _,
            Time(lease) as _,
            limit
        )
        .fetch_all(&self.writer)
        .await?;
        if items.is_empty() {
            self.end_operation(tenant, id, now).await?;
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

    async fn end_operation(
        &self,
        tenant: TenantId,
        id: Uuid,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "update bulk_operation set ended_at = $3
            where tenant_id = $1 and id = $2 and ended_at is null and not exists (
                select from bulk_item where tenant_id = $1 and operation_id = $2 and result is null
            )",
            tenant.0,
            id,
            Time(now) as _
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    /// Keeps what an item came to, once.
    pub async fn settle_item(
        &self,
        batch: &Batch,
        instance: InstanceId,
        outcome: &Outcome,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (code, detail, revision) = match outcome {
            Outcome::Done { revision } => (None, None, Some(revision.cast_signed())),
            Outcome::Refused { code, detail } | Outcome::Failed { code, detail } => {
                let detail = detail.chars().filter(|character| *character != '\0');
                let detail: String = detail.take(DETAIL_CHARS_MAX).collect();
                (Some(code), Some(detail), None)
            }
        };
        sqlx::query!(
            "with item as (
                update bulk_item set result = $4, code = $5, detail = $6, revision = $7, ended_at = $8
                where tenant_id = $1 and operation_id = $2 and instance_id = $3 and result is null
                returning result
            )
            update bulk_operation o set
                done = o.done + (item.result = 'done')::int,
                refused = o.refused + (item.result = 'refused')::int,
                failed = o.failed + (item.result = 'failed')::int
            from item where o.tenant_id = $1 and o.id = $2",
            batch.tenant.0,
            batch.operation,
            instance.0,
            outcome.name(),
            code,
            detail,
            revision,
            Time(at) as _
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    /// Lets go of an item, to be tried again from `next` on.
    pub async fn put_off_item(
        &self,
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
        .execute(&self.writer)
        .await?;
        Ok(())
    }
}
