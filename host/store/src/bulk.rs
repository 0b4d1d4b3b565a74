//! Bulk operations: commands on many instances. They and their items are begun, stopped and read here.
//!
//! The items are chosen when the operation begins. [`claims`] assigns them to workers.

mod claims;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::pool::{LimitLock, lock, transacted};
use super::streams::{Note, append};
use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, Store, StoreError};
use wrkflw_core::audit::{Stream, StreamKind, sha256};
use wrkflw_core::ids::{TenantId, VersionRef, hex};
use wrkflw_core::json::Json;

pub use claims::{Batch, End, Outcome, claim_batch, has_ended, put_off_item, settle_items};

/// Items of one operation.
pub const ITEMS_MAX: usize = 100_000;
/// Operations of one tenant that run at a time.
pub const RUNNING_MAX: i64 = 10;
/// Items written by one statement.
const CHUNK: usize = 5_000;

/// A filter for the running and suspended instances of a version. It is part of an operation's settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AliveFilter {
    /// `RUNNING` or `SUSPENDED`; none for both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Name of an active state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<String>,
    /// Only instances behind this one, in the order in which they are chosen.
    #[serde(rename = "afterInstanceId", skip_serializing_if = "Option::is_none")]
    pub after: Option<Uuid>,
}

/// An operation to begin.
#[derive(Debug)]
pub struct NewOperation<'a> {
    pub id: Uuid,
    /// `migrate` or `cancel`.
    pub action: &'static str,
    pub settings: &'a Json,
    pub roles: &'a [String],
    pub instances: &'a [Uuid],
    /// More instances match than the operation includes.
    pub more: bool,
}

/// The result of beginning an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeginResult {
    /// It has begun, now or by an earlier attempt of the same request.
    Yes,
    /// The id belongs to another request.
    Taken,
    /// The tenant has [`RUNNING_MAX`] running operations.
    TooMany,
}

/// An operation and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub id: Uuid,
    pub action: String,
    pub status: &'static str,
    pub settings: Json,
    pub requested_by: String,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub stopped_by: Option<String>,
    pub total: u32,
    pub more: bool,
    /// The last instance that it includes, behind which another operation goes on. None once its items are deleted.
    pub last: Option<Uuid>,
    pub done: u32,
    pub refused: u32,
    pub failed: u32,
}

/// One instance of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub instance: Uuid,
    pub result: Option<String>,
    pub code: Option<String>,
    pub detail: Option<String>,
    pub revision: Option<u32>,
    pub ended_at: Option<Timestamp>,
}

/// The next instances of the version that have not ended and that the viewer sees, in the order of their ids. Also the place from
/// which to go on, if there may be more.
pub async fn alive(
    reader: &Reader,
    viewer: &Viewer,
    version: &VersionRef,
    filter: &AliveFilter,
    after: Option<Uuid>,
    limit: usize,
) -> Result<(Vec<Uuid>, Option<Uuid>), StoreError> {
    let mut looking = reader.looking(viewer).await?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let is_restricted = viewer.is_restricted();
    let connection = if is_restricted {
        looking.places().await?
    } else {
        looking.seen().await?
    };
    let ids = sqlx::query_scalar!(
        "select i.id from instance i
        where i.tenant_id = $1 and i.definition_key = $2 and i.definition_version = $3
          and i.status in ('RUNNING', 'SUSPENDED')
          and ($4::text is null or i.status = $4)
          and ($5::text is null or exists (
              select from state_instance s
              where s.tenant_id = i.tenant_id and s.name = $5 and s.instance_id = i.id and s.left_at is null
          ))
          and ($6::text is null or i.entity_type = $6)
          and ($7::text is null or i.entity_id = $7)
          and ($8::text is null or i.initiator = $8)
          and ($9::uuid is null or i.id > $9)
        order by i.id limit $10",
        viewer.tenant.0,
        version.key,
        version.version.cast_signed(),
        filter.status,
        filter.state,
        filter.entity_type,
        filter.entity_id,
        filter.initiator,
        after,
        most
    );
    let mut found = ids.fetch_all(connection).await?;
    let next = found.last().copied();
    let next = next.filter(|_| found.len() >= limit);
    looking.keep_seen(&mut found, most, |id| Some(*id)).await?;
    Ok((found, next))
}

/// An operation and its progress.
pub async fn get(
    reader: &Reader,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<Operation>, StoreError> {
    let mut found = list(reader, tenant, Some(id), None, (None, 1)).await?;
    Ok(found.pop())
}

/// The operations before a place, newest first, or the one with this id. With `by`, only those that this person requested.
pub async fn list(
    reader: &Reader,
    tenant: TenantId,
    id: Option<Uuid>,
    before: Option<(Timestamp, Uuid)>,
    (by, limit): (Option<&str>, i64),
) -> Result<Vec<Operation>, StoreError> {
    let (at, last) = before.unzip();
    let rows = sqlx::query!(
        r#"select id, action, settings, requested_by, created_at as "created_at: Time", ended_at as "ended_at: Time",
            stopped_by, total, more, done, refused, failed, (
                select i.instance_id from bulk_item i where i.tenant_id = o.tenant_id and i.operation_id = o.id
                order by i.instance_id desc limit 1
            ) as "last?"
        from bulk_operation o where tenant_id = $1 and ($2::uuid is null or id = $2)
          and ($3::timestamptz is null or (created_at, id) < ($3, $4)) and ($6::text is null or requested_by = $6)
        order by created_at desc, id desc limit $5"#,
        tenant.0,
        id,
        at.map(Time) as _,
        last,
        limit,
        by
    )
    // The last instance serves only as a position, so it may be one that the viewer does not see.
    .fetch_all(&mut reader.reading(Viewer::all(tenant)).await?)
    .await?;
    let view = rows.into_iter().map(|row| Operation {
        id: row.id,
        action: row.action,
        status: match (row.ended_at, &row.stopped_by) {
            (None, _) => "RUNNING",
            (Some(_), None) => "DONE",
            (Some(_), Some(_)) => "STOPPED",
        },
        settings: Json::from_canonical(row.settings),
        requested_by: row.requested_by,
        created_at: row.created_at.0,
        ended_at: row.ended_at.map(|time| time.0),
        stopped_by: row.stopped_by,
        total: row.total.cast_unsigned(),
        more: row.more,
        last: row.last,
        done: row.done.cast_unsigned(),
        refused: row.refused.cast_unsigned(),
        failed: row.failed.cast_unsigned(),
    });
    Ok(view.collect())
}

/// The items of an operation, by instance id. `result` selects the items with it; `waiting` selects those without one.
pub async fn items(
    reader: &Reader,
    viewer: &Viewer,
    id: Uuid,
    result: Option<&str>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Item>, StoreError> {
    let rows = sqlx::query!(
        r#"select instance_id, result, code, detail, revision, ended_at as "ended_at: Time"
        from bulk_item where tenant_id = $1 and operation_id = $2
          and ($3::text is null or coalesce(result, 'waiting') = $3)
          and ($4::uuid is null or instance_id > $4)
        order by instance_id limit $5"#,
        viewer.tenant.0,
        id,
        result,
        after,
        limit
    )
    .fetch_all(&mut reader.reading(viewer).await?)
    .await?;
    let view = rows.into_iter().map(|row| Item {
        instance: row.instance_id,
        result: row.result,
        code: row.code,
        detail: row.detail,
        revision: row.revision.map(i32::cast_unsigned),
        ended_at: row.ended_at.map(|time| time.0),
    });
    Ok(view.collect())
}

/// Begins an operation with all its items, unless the same request has begun it before.
pub async fn begin(
    store: &Store,
    tenant: TenantId,
    new: &NewOperation<'_>,
    note: &Note<'_>,
) -> Result<BeginResult, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        // Without the lock, two concurrent requests could both pass the limit.
        lock(&mut transaction, LimitLock::RunningOperations, tenant).await?;
        let known = sqlx::query!(
            "select settings, requested_by from bulk_operation where tenant_id = $1 and id = $2",
            tenant.0,
            new.id
        )
        .fetch_optional(&mut *transaction)
        .await?;
        if let Some(known) = known {
            let same = known.settings == new.settings.as_str() && known.requested_by == note.actor;
            return Ok(if same { BeginResult::Yes } else { BeginResult::Taken });
        }
        let running = sqlx::query_scalar!(
            r#"select count(*) as "running!" from bulk_operation where tenant_id = $1 and ended_at is null"#,
            tenant.0
        )
        .fetch_one(&mut *transaction)
        .await?;
        if running >= RUNNING_MAX {
            return Ok(BeginResult::TooMany);
        }
        let roles = Json::of(&new.roles);
        let total = i32::try_from(new.instances.len()).unwrap_or(i32::MAX);
        sqlx::query!(
            "insert into bulk_operation (tenant_id, id, action, settings, requested_by, roles, created_at, total, more)
        values ($1, $2, $9, $3, $4, $5, $6, $7, $8)",
            tenant.0,
            new.id,
            new.settings.as_str(),
            note.actor,
            roles.as_str(),
            Time(note.at) as _,
            total,
            new.more,
            new.action
        )
        .execute(&mut *transaction)
        .await?;
        for chunk in new.instances.chunks(CHUNK) {
            sqlx::query!(
                "insert into bulk_item (tenant_id, operation_id, instance_id) select $1, $2, unnest($3::uuid[])",
                tenant.0,
                new.id,
                chunk
            )
            .execute(&mut *transaction)
            .await?;
        }
        let payload = serde_json::json!({
            "action": new.action, "settings": new.settings, "total": total, "roles": new.roles, "more": new.more,
            "instances": digest(new.instances),
        });
        let draft = note.draft("OPERATION_BEGUN", 1, &payload);
        append(&mut transaction, stream(tenant, new.id), draft).await?;
        transaction.commit().await?;
        Ok(BeginResult::Yes)
    }))
    .await
}

/// Stops an operation; false if there is none. Items that have begun are still done.
pub async fn stop(
    store: &Store,
    tenant: TenantId,
    id: Uuid,
    note: &Note<'_>,
) -> Result<bool, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        let stopped = sqlx::query!(
            "update bulk_operation set ended_at = now(), stopped_by = $3
        where tenant_id = $1 and id = $2 and ended_at is null",
            tenant.0,
            id,
            note.actor
        )
        .execute(&mut *transaction)
        .await?
        .rows_affected();
        if stopped == 0 {
            drop(transaction);
            return Ok(get(store, tenant, id).await?.is_some());
        }
        let draft = note.draft("OPERATION_STOPPED", 2, &serde_json::json!({}));
        append(&mut transaction, stream(tenant, id), draft).await?;
        transaction.commit().await?;
        Ok(true)
    }))
    .await
}

/// The digest of the instances in the entry: the SHA-256 of their sorted ids.
fn digest(instances: &[Uuid]) -> String {
    let mut sorted = instances.to_vec();
    sorted.sort_unstable();
    let bytes: Vec<u8> = sorted.iter().flat_map(|id| *id.as_bytes()).collect();
    hex(&sha256(&bytes))
}

fn stream(tenant: TenantId, id: Uuid) -> Stream {
    Stream {
        tenant,
        kind: StreamKind::Operation,
        id,
    }
}
