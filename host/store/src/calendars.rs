//! Working calendars of tenants. A change leaves an entry in the tenant's directory stream, in the same transaction.

use jiff::Timestamp;
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::definitions::running::COUNTED_MAX;
use super::pool::transacted;
use super::streams::{Note, append};
use super::time::Time;
use super::{Reader, Store, StoreError};
use wrkflw_core::audit::{Stream, StreamKind};
use wrkflw_core::graph::NameUse;
use wrkflw_core::ids::{TenantId, VersionRef};
use wrkflw_core::json::Json;

/// Maximum calendars of a tenant.
pub const CALENDARS_MAX: i64 = 100;
/// Versions that the refusal of a deletion names at most.
pub const USERS_MAX: i64 = 20;

/// The one directory stream of a tenant.
const DIRECTORY: Uuid = Uuid::nil();

/// A calendar under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCalendar {
    pub name: String,
    /// In canonical form.
    pub settings: Json,
    pub updated_at: Timestamp,
}

/// A calendar in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarSummary {
    pub name: String,
    pub time_zone: String,
    pub updated_at: Timestamp,
}

/// The result of storing a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalendarPut {
    /// The calendar has the new settings.
    Done,
    /// The tenant has [`CALENDARS_MAX`] other calendars.
    TooMany,
}

/// The result of deleting a calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CalendarDeletion {
    Done,
    Missing,
    /// These versions use it, and the deletion is not forced.
    Used(Vec<VersionRef>),
}

pub async fn get(
    reader: &Reader,
    tenant: TenantId,
    name: &str,
) -> Result<Option<NamedCalendar>, StoreError> {
    let row = sqlx::query!(
        r#"select settings, updated_at as "updated_at: Time" from calendar where tenant_id = $1 and name = $2"#,
        tenant.0,
        name
    )
    .fetch_optional(&mut reader.reading(tenant).await?)
    .await?;
    Ok(row.map(|row| NamedCalendar {
        name: name.to_owned(),
        settings: Json::from_canonical(row.settings),
        updated_at: row.updated_at.0,
    }))
}

/// All calendars of the tenant, by name.
pub async fn list(reader: &Reader, tenant: TenantId) -> Result<Vec<CalendarSummary>, StoreError> {
    let rows = sqlx::query!(
        r#"select name, settings::json ->> 'timeZone' as "time_zone!", updated_at as "updated_at: Time"
        from calendar where tenant_id = $1 order by name limit $2"#,
        tenant.0,
        CALENDARS_MAX
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    let summaries = rows.into_iter().map(|row| CalendarSummary {
        name: row.name,
        time_zone: row.time_zone,
        updated_at: row.updated_at.0,
    });
    Ok(summaries.collect())
}

/// Adds or replaces a calendar. The settings must be valid. If they are the stored ones, nothing is written.
pub async fn put(
    store: &Store,
    tenant: TenantId,
    name: &str,
    settings: &Json,
    note: &Note<'_>,
) -> Result<CalendarPut, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        let before = sqlx::query_scalar!(
            "select settings from calendar where tenant_id = $1 and name = $2",
            tenant.0,
            name
        )
        .fetch_optional(&mut *transaction)
        .await?;
        if before.as_deref() == Some(settings.as_str()) {
            return Ok(CalendarPut::Done);
        }
        let payload = Json::object([("calendar", Json::of(&name)), ("settings", settings.clone())]);
        // The entry comes first: it makes changes of the directory wait for each other, so that two cannot both pass the limit.
        record(&mut transaction, tenant, note, "CALENDAR_PUT", &payload).await?;
        let others = sqlx::query_scalar!(
            r#"select count(*) as "count!" from calendar where tenant_id = $1 and name <> $2"#,
            tenant.0,
            name
        )
        .fetch_one(&mut *transaction)
        .await?;
        if others >= CALENDARS_MAX {
            return Ok(CalendarPut::TooMany);
        }
        sqlx::query!(
            "insert into calendar (tenant_id, name, settings, updated_at) values ($1, $2, $3, $4)
         on conflict (tenant_id, name) do update set settings = excluded.settings, updated_at = excluded.updated_at",
            tenant.0,
            name,
            settings.as_str(),
            Time(note.at) as _
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(CalendarPut::Done)
    }))
    .await
}

/// Deletes a calendar, unless a version uses it that is active or has running instances; by force also then. Open deadlines that
/// were computed with it do not change.
pub async fn delete(
    store: &Store,
    tenant: TenantId,
    name: &str,
    force: bool,
    note: &Note<'_>,
) -> Result<CalendarDeletion, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        // The entry comes first, as in `put`: whoever locks in another order could wait for each other.
        let payload = serde_json::json!({ "calendar": name });
        record(&mut transaction, tenant, note, "CALENDAR_DELETED", &payload).await?;
        let deleted = sqlx::query!(
            "delete from calendar where tenant_id = $1 and name = $2",
            tenant.0,
            name
        )
        .execute(&mut *transaction)
        .await?;
        if deleted.rows_affected() == 0 {
            return Ok(CalendarDeletion::Missing);
        }
        if !force {
            let users = users(&mut transaction, tenant, name).await?;
            if !users.is_empty() {
                return Ok(CalendarDeletion::Used(users));
            }
        }
        transaction.commit().await?;
        Ok(CalendarDeletion::Done)
    }))
    .await
}

/// The first versions that use this calendar and are active or have running instances, of which a bounded number is examined for
/// each definition.
async fn users(
    connection: &mut PgConnection,
    tenant: TenantId,
    name: &str,
) -> Result<Vec<VersionRef>, StoreError> {
    // As it stands in a graph, whose text is canonical.
    let used = Json::of(&NameUse::Calendar(name.to_owned()));
    let rows = sqlx::query!(
        r#"with naming as materialized (
            select v.key, v.version, d.active_version from definition_version v
            join definition d on d.tenant_id = v.tenant_id and d.key = v.key
            where v.tenant_id = $1 and strpos(v.graph, $2) > 0
        ),
        running as materialized (
            select distinct r.key, r.version from (select distinct key from naming) n cross join lateral (
                select i.definition_key as key, i.definition_version as version from instance i
                where i.tenant_id = $1 and i.definition_key = n.key and i.status in ('RUNNING', 'SUSPENDED') limit $3
            ) r
        )
        select n.key as "key!", n.version as "version!" from naming n
        where n.version = n.active_version
           or exists (select from running r where r.key = n.key and r.version = n.version)
        order by n.key, n.version limit $4"#,
        tenant.0,
        used.as_str(),
        COUNTED_MAX,
        USERS_MAX
    )
    .fetch_all(connection)
    .await?;
    let users = rows.into_iter().map(|row| VersionRef {
        key: row.key,
        version: row.version.cast_unsigned(),
    });
    Ok(users.collect())
}

async fn record(
    connection: &mut PgConnection,
    tenant: TenantId,
    note: &Note<'_>,
    kind: &str,
    payload: &impl Serialize,
) -> Result<(), StoreError> {
    let stream = Stream {
        tenant,
        kind: StreamKind::Directory,
        id: DIRECTORY,
    };
    append(connection, stream, note.draft(kind, 0, payload)).await
}
