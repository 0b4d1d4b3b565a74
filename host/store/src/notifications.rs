//! Notifications as their recipients read them. The notifier writes them (see `notifier`).

use jiff::Timestamp;
use uuid::Uuid;

use super::sessions::Preference;
use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, Store, StoreError};
use wrkflw_core::ids::TenantId;
use wrkflw_core::notification::{KINDS, Kind};

/// A notification to a person or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub id: Uuid,
    pub kind: String,
    pub recipient_type: String,
    pub recipient: String,
    pub instance_id: Uuid,
    /// Of the instance, as it is now.
    pub instance_title: Option<String>,
    pub instance_summary: Option<String>,
    /// What the instance runs now.
    pub definition_key: Option<String>,
    pub definition_version: Option<u32>,
    pub state_id: Option<Uuid>,
    /// The name of the state, and how urgent the work in it is.
    pub state: Option<String>,
    pub priority: Option<i16>,
    pub priority_name: Option<String>,
    pub task_id: Option<Uuid>,
    pub event_id: Uuid,
    pub due_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub sent_at: Option<Timestamp>,
    pub read_at: Option<Timestamp>,
}

/// Which notifications a page shows.
#[derive(Debug)]
pub struct NotificationFilter<'a> {
    /// Notifications to this person and to the groups that they are in now.
    pub person: &'a str,
    pub unread: bool,
    /// Only of this kind; none for all kinds. Kinds that the person has muted are left out in both cases.
    pub kind: Option<Kind>,
    /// Only older notifications.
    pub before: Option<Uuid>,
    pub limit: i64,
}

/// A page of notifications, newest first.
pub async fn list(
    reader: &Reader,
    viewer: &Viewer,
    filter: &NotificationFilter<'_>,
) -> Result<Vec<Notification>, StoreError> {
    let kinds: Vec<_> = match filter.kind {
        Some(kind) => vec![kind.name().to_owned()],
        None => KINDS.iter().map(|kind| kind.name().to_owned()).collect(),
    };
    // One index scan each for the unread and the read notifications of each kind, of the person and of each of their groups.
    // So the cost depends on the numbers of kinds and groups and on the size of the page, not on the number of notifications.
    let rows = sqlx::query!(
        r#"with name (kind, id) as (
            select 'user', $2::text
            union all
            select 'group', group_id from membership where tenant_id = $1 and person_id = $2 and valid_to is null
        ),
        wanted (kind) as (
            select k.name from unnest($6::text[]) k (name)
            where not exists (
                select from muted_notification m where m.tenant_id = $1 and m.person_id = $2 and m.kind = k.name
            )
        ),
        part (is_read) as (
            select false
            union all
            select true where not $3
        )
        select n.id, n.kind, n.recipient_kind, n.recipient, n.instance_id, n.state_id, n.task_id, n.event_id,
            n.due_at as "due_at: Time", n.created_at as "created_at: Time", n.sent_at as "sent_at: Time",
            n.read_at as "read_at: Time", i.title as "instance_title?", i.summary as "instance_summary?",
            i.definition_key as "definition_key?", i.definition_version as "definition_version?", s.name as "state?",
            s.priority as "priority?", s.priority_name as "priority_name?"
        from name cross join wanted cross join part cross join lateral (
            select * from notification n
            where n.tenant_id = $1 and n.recipient_kind = name.kind and n.recipient = name.id and n.kind = wanted.kind
              and (n.read_at is not null) = part.is_read and n.id < $4
            order by n.id desc limit $5
        ) n
        left join instance i on i.tenant_id = $1 and i.id = n.instance_id
        left join state_instance s on s.tenant_id = $1 and s.instance_id = n.instance_id and s.id = n.state_id
        order by n.id desc limit $5"#,
        viewer.tenant.0,
        filter.person,
        filter.unread,
        filter.before.unwrap_or(Uuid::max()),
        filter.limit,
        &kinds
    )
    .fetch_all(&mut reader.reading(viewer).await?)
    .await?;
    let view = rows.into_iter().map(|row| Notification {
        id: row.id,
        kind: row.kind,
        recipient_type: row.recipient_kind,
        recipient: row.recipient,
        instance_id: row.instance_id,
        instance_title: row.instance_title,
        instance_summary: row.instance_summary,
        definition_key: row.definition_key,
        definition_version: row.definition_version.map(i32::cast_unsigned),
        state_id: row.state_id,
        state: row.state,
        priority: row.priority,
        priority_name: row.priority_name,
        task_id: row.task_id,
        event_id: row.event_id,
        due_at: row.due_at.map(|time| time.0),
        created_at: row.created_at.0,
        sent_at: row.sent_at.map(|time| time.0),
        read_at: row.read_at.map(|time| time.0),
    });
    Ok(view.collect())
}

/// The kinds that a person has muted.
pub async fn muted(
    reader: &Reader,
    tenant: TenantId,
    person: &str,
) -> Result<Vec<Kind>, StoreError> {
    let kinds = sqlx::query_scalar!(
        "select kind from muted_notification where tenant_id = $1 and person_id = $2 order by kind",
        tenant.0,
        person
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    Ok(kinds.iter().filter_map(|kind| Kind::named(kind)).collect())
}

/// Replaces the preferences of a person: the muted kinds, and the settings of pages.
pub async fn prefer(
    store: &Store,
    tenant: TenantId,
    person: &str,
    kinds: &[Kind],
    preference: &Preference,
) -> Result<(), StoreError> {
    let kinds: Vec<_> = kinds.iter().map(|kind| kind.name().to_owned()).collect();
    sqlx::query!(
        "with gone as (
            delete from muted_notification where tenant_id = $1 and person_id = $2 and kind <> all($3)
        ),
        kept as (
            insert into preference (tenant_id, person, language, time_zone, theme) values ($1, $2, $4, $5, $6)
            on conflict (tenant_id, person) do update set
                language = excluded.language, time_zone = excluded.time_zone, theme = excluded.theme
        )
        insert into muted_notification (tenant_id, person_id, kind)
        select distinct $1::int, $2::text, k from unnest($3::text[]) k
        on conflict do nothing",
        tenant.0,
        person,
        &kinds,
        preference.language,
        preference.time_zone,
        preference.theme
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Marks a notification to the person, or to a group that they are in now. False if they have none with this id.
pub async fn mark_read(
    store: &Store,
    tenant: TenantId,
    id: Uuid,
    person: &str,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let marked = sqlx::query!(
        "update notification n set read_at = coalesce(read_at, $4)
         where n.tenant_id = $1 and n.id = $2 and case n.recipient_kind
             when 'user' then n.recipient = $3
             else exists (
                 select from membership m
                 where m.tenant_id = $1 and m.person_id = $3 and m.group_id = n.recipient and m.valid_to is null)
         end",
        tenant.0,
        id,
        person,
        Time(at) as _
    )
    .execute(&store.writer)
    .await?;
    Ok(marked.rows_affected() > 0)
}
