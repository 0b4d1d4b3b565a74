//! Stops and resumes versions, and holds the jobs of their instances.

use jiff::Timestamp;
use uuid::Uuid;

use super::{StatusChange, set_active, status, stream};
use crate::pool::{LimitLock, lock, transacted};
use crate::streams::{Note, append};
use crate::time::Time;
use crate::{Store, StoreError};
use wrkflw_core::ids::{TenantId, VersionRef};

/// Versions of one tenant that are stopped at a time. Each command reads the list of them.
pub const STOPPED_MAX: i64 = 100;

/// Stops a version until it is resumed.
pub async fn stop(
    store: &Store,
    tenant: TenantId,
    reference: &VersionRef,
    reason: &str,
    note: &Note<'_>,
) -> Result<StatusChange, StoreError> {
    set_stopped(store, tenant, reference, Some(reason), note).await
}

/// Resumes a stopped version.
pub async fn resume(
    store: &Store,
    tenant: TenantId,
    reference: &VersionRef,
    note: &Note<'_>,
) -> Result<StatusChange, StoreError> {
    set_stopped(store, tenant, reference, None, note).await
}

async fn set_stopped(
    store: &Store,
    tenant: TenantId,
    reference: &VersionRef,
    reason: Option<&str>,
    note: &Note<'_>,
) -> Result<StatusChange, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        if reason.is_some() {
            // Without the lock, two concurrent requests could both pass the limit.
            lock(&mut transaction, LimitLock::StoppedVersions, tenant).await?;
        }
        let Some(found) = status(&mut transaction, tenant, reference).await? else {
            return Ok(StatusChange::Missing);
        };
        if found.stopped == reason.is_some() {
            return Ok(StatusChange::Unchanged);
        }
        let changed = sqlx::query!(
            "update definition_version v set stopped_at = $4, stopped_by = $5, stop_reason = $6
            where v.tenant_id = $1 and v.key = $2 and v.version = $3
              and ($6::text is null or $7 > (
                  select count(*) from definition_version o where o.tenant_id = $1 and o.stopped_at is not null
              ))",
            tenant.0,
            reference.key,
            reference.version.cast_signed(),
            reason.map(|_| Time(note.at)) as _,
            reason.map(|_| note.actor),
            reason,
            STOPPED_MAX
        )
        .execute(&mut *transaction)
        .await?;
        if changed.rows_affected() == 0 {
            return Ok(StatusChange::TooMany);
        }
        set_active(&mut transaction, tenant, reference, found.active).await?;
        let (kind, payload) = match reason {
            Some(reason) => (
                "VERSION_STOPPED",
                serde_json::json!({ "key": reference.key, "version": reference.version, "reason": reason }),
            ),
            None => (
                "VERSION_RESUMED",
                serde_json::json!({ "key": reference.key, "version": reference.version }),
            ),
        };
        let draft = note.draft(kind, found.revision + 1, &payload);
        append(&mut transaction, stream(tenant, found.id), draft).await?;
        transaction.commit().await?;
        Ok(StatusChange::Changed)
    }))
    .await
}

/// Holds the jobs of a page of a version's instances `until` a time; none ends the hold. The page begins after the id `after`. Returns
/// the last id of the page, or none if the page is empty. Skips jobs that are locked, claimed or failed, and jobs that cancel a child.
pub async fn hold_jobs(
    store: &Store,
    tenant: TenantId,
    reference: &VersionRef,
    until: Option<Timestamp>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Option<Uuid>, StoreError> {
    let last = sqlx::query_scalar!(
        r#"with page as materialized (
            select i.id from instance i
            where i.tenant_id = $1 and i.definition_key = $2 and i.definition_version = $3
              and i.status in ('RUNNING', 'SUSPENDED') and i.id > coalesce($5::uuid, '00000000-0000-0000-0000-000000000000')
            order by i.id limit $6
        ),
        waiting as materialized (
            select j.tenant_id, j.id from page join job j on j.tenant_id = $1 and j.instance_id = page.id
            where j.kind <> 'cancel_child' and (j.attempts = 0 or (j.claim is null and j.last_error is null))
            for update of j skip locked
        ),
        held as (
            update job j set lease_until = $4 from waiting where j.tenant_id = waiting.tenant_id and j.id = waiting.id
        )
        select id from page order by id desc limit 1"#,
        tenant.0,
        reference.key,
        reference.version.cast_signed(),
        until.map(Time) as _,
        after,
        limit
    );
    Ok(last.fetch_optional(&store.writer).await?)
}
