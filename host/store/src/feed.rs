//! The feed: public events in the order of their transactions, for readers without Kafka.
//!
//! Transactions draw positions before they commit, so a reader that remembers only the last position would miss late commits.
//! The order here is (history, transaction, position). Events behind the oldest unfinished transaction are not returned yet.
//!
//! A history has the events that one server wrote on one timeline: see `begin_history` in the migrations. Transaction numbers
//! may repeat in the next history, so a cursor has the number of its history. Earlier histories are complete and come first.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sqlx::PgExecutor;
use uuid::Uuid;

use super::described::Undescribed;
use super::pool::Limited;
use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, StoreError};
use wrkflw_core::cloudevent::PublicEntry;
use wrkflw_core::event::EventContext;
use wrkflw_core::event_filter::{EventFacts, EventFilter};
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::instance::Entity;
use wrkflw_core::participant::{Circle, Kind};
use wrkflw_core::template::Labels;

/// The position of a reader: at an entry, or, if `pos` is 0, before the first entry of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedCursor {
    /// The number of the history.
    pub epoch: i32,
    pub xid: i64,
    pub pos: i64,
    /// The last four bytes of the entry's id. After a restore, another entry may have the same numbers.
    pub check: i64,
}

impl FeedCursor {
    /// Before everything.
    pub const FIRST: FeedCursor = FeedCursor::before(0, 0);

    /// Before the first entry of this transaction.
    pub const fn before(epoch: i32, xid: i64) -> FeedCursor {
        FeedCursor {
            epoch,
            xid,
            pos: 0,
            check: 0,
        }
    }
}

impl fmt::Display for FeedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}", self.epoch, self.xid, self.pos, self.check)
    }
}

impl FromStr for FeedCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<FeedCursor, ()> {
        let mut parts = text
            .splitn(4, '-')
            .map(|part| part.parse::<i64>().ok().filter(|number| *number >= 0));
        let mut next = || parts.next().flatten().ok_or(());
        Ok(FeedCursor {
            epoch: i32::try_from(next()?).map_err(|_| ())?,
            xid: next()?,
            pos: next()?,
            check: next()?,
        })
    }
}

/// Entries that one read of a filtered feed examines. The next read goes on from there.
pub const SCANNED_MAX: i64 = 1_000;
/// Payload bytes after which one read takes no further entry.
pub const READ_BYTES_MAX: i64 = 4 * 1024 * 1024;

/// The value of [`FeedCursor::check`] for an entry.
fn check(id: Uuid) -> i64 {
    let [.., a, b, c, d] = id.into_bytes();
    i64::from(u32::from_be_bytes([a, b, c, d]))
}

/// An entry at its place.
#[derive(Debug)]
pub struct FeedEntry {
    pub cursor: FeedCursor,
    pub entry: PublicEntry,
    /// Who sees its instance; none: everybody of the tenant.
    pub circle: Option<Arc<Circle>>,
    seq: i64,
}

impl FeedEntry {
    /// Its number in the stream of its instance.
    pub(super) fn seq(&self) -> i64 {
        self.seq
    }
}

/// A page of the feed.
#[derive(Debug)]
pub struct FeedPage {
    /// Includes entries that the reader of the page does not see. The caller leaves them out.
    pub entries: Vec<FeedEntry>,
    /// Whether the given cursor is invalid in this database: its entry does not exist, as after a restored backup, or its
    /// history is unknown.
    pub is_astray: bool,
    /// The position behind this page.
    pub end: FeedCursor,
    /// Whether there may be more behind it now.
    pub more: bool,
    /// The position behind all entries that can be returned now. Later entries come behind it.
    pub horizon: FeedCursor,
    /// The tenant's access mark. It covers all changes that were committed before an entry of the page.
    pub access_mark: Option<Uuid>,
}

/// A public entry as queries of this crate read it.
pub(super) struct EntryRow {
    pub(super) epoch: i32,
    pub(super) xid: i64,
    pub(super) pos: i64,
    pub(super) id: Uuid,
    pub(super) seq: i64,
    pub(super) kind: String,
    pub(super) payload: String,
    pub(super) event_seq: i64,
    pub(super) at: Time,
    pub(super) actor: Option<String>,
    pub(super) traceparent: Option<String>,
    pub(super) revision: i32,
    pub(super) stream_id: Uuid,
    pub(super) tenant: String,
    pub(super) definition_key: String,
    pub(super) definition_version: i32,
    pub(super) entity_type: String,
    pub(super) entity_id: String,
    pub(super) requesters: Vec<String>,
    pub(super) title: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) observers: Option<Vec<String>>,
}

impl EntryRow {
    pub(super) fn cursor(&self) -> FeedCursor {
        FeedCursor {
            epoch: self.epoch,
            xid: self.xid,
            pos: self.pos,
            check: check(self.id),
        }
    }

    pub(super) fn entry(self) -> PublicEntry {
        PublicEntry {
            tenant: self.tenant,
            instance: InstanceId(self.stream_id),
            id: self.id,
            kind: self.kind,
            payload: self.payload,
            event_seq: self.event_seq.cast_unsigned(),
            occurred_at: self.at.0,
            actor: self.actor,
            definition: VersionRef {
                key: self.definition_key,
                version: self.definition_version.cast_unsigned(),
            },
            entity: Entity {
                kind: self.entity_type,
                id: self.entity_id,
            },
            traceparent: self.traceparent,
            revision: self.revision.cast_unsigned(),
            context: EventContext {
                labels: Labels {
                    title: self.title,
                    summary: self.summary,
                },
                ..EventContext::default()
            },
        }
    }
}

/// Whether the entry at the cursor exists. Entries are never deleted, so it exists in the database that made the cursor.
async fn is_there(
    connection: &mut Limited,
    tenant: TenantId,
    cursor: FeedCursor,
) -> Result<bool, StoreError> {
    let found = sqlx::query_scalar!(
        "select e.id from audit_entry e
        where e.tenant_id = $1 and e.event_seq is not null and e.xid = $2::bigint::text::xid8 and e.pos = $3
          and (select max(f.epoch) from feed_epoch f where f.began_after < e.pos) = $4",
        tenant.0,
        cursor.xid,
        cursor.pos,
        cursor.epoch
    );
    let found = found.fetch_optional(connection).await?;
    Ok(found.is_some_and(|id| check(id) == cursor.check))
}

/// Entries after the cursor, or from the first one, that match the filter. The entries of one instance are found by their key.
/// Any other filter reads at most [`SCANNED_MAX`] entries in the order of the feed, and [`FeedPage::end`] is behind them.
/// Large entries end a page early: see [`READ_BYTES_MAX`].
pub async fn page(
    reader: &Reader,
    tenant: TenantId,
    after: Option<FeedCursor>,
    limit: i64,
    filter: &EventFilter,
) -> Result<FeedPage, StoreError> {
    let mut connection = reader.reading(Viewer::all(tenant)).await?;
    let now = sqlx::query!(
        r#"select max(epoch) as "epoch!", pg_snapshot_xmin(pg_current_snapshot())::text::bigint as "xmin!",
            (select access_mark from tenant where id = $1) as access_mark
        from feed_epoch"#,
        tenant.0
    )
    .fetch_one(&mut connection)
    .await?;
    let horizon = FeedCursor::before(now.epoch, now.xmin);
    let start = after.unwrap_or(FeedCursor::FIRST);
    let is_astray = if start.pos > 0 {
        !is_there(&mut connection, tenant, start).await?
    } else {
        // The cursor is at a horizon, which never goes back, or before everything.
        start > horizon || start.xid > 0 && start.epoch < now.epoch
    };
    // A limit of 0 asks only for the end. Then no entries are read for the filter.
    let scanned = if filter.is_open() || limit == 0 {
        limit
    } else {
        SCANNED_MAX.max(limit)
    };
    let query = FeedQuery {
        start,
        horizon: now.xmin,
        types: None,
        instance: filter.instance,
        limit: scanned,
    };
    let read = if is_astray {
        Read::default()
    } else {
        read(&mut connection, tenant, query).await?
    };
    let selected = Selected::of(read, filter, limit).await;
    let Selected {
        mut entries,
        end,
        more,
    } = selected;
    let mut undescribed: Vec<_> = entries
        .iter_mut()
        .map(|FeedEntry { entry, seq, .. }| Undescribed {
            tenant,
            seq: *seq,
            entry,
        })
        .collect();
    let unreadable = connection
        .within(|connection| reader.texts.describe(connection, &mut undescribed))
        .await?;
    let unreadable = entries
        .iter()
        .find_map(|found| unreadable.reason(tenant, &found.entry));
    if let Some(reason) = unreadable {
        return Err(sqlx::Error::Decode(reason.into()).into());
    }
    gather(&mut connection, tenant, &mut entries).await?;
    Ok(FeedPage {
        entries,
        is_astray,
        end: end.unwrap_or(start),
        more,
        horizon,
        access_mark: now.access_mark,
    })
}

/// Whether the tenant has this instance.
pub async fn knows_instance(
    reader: &Reader,
    tenant: TenantId,
    id: Uuid,
) -> Result<bool, StoreError> {
    let found = sqlx::query_scalar!(
        r#"select exists(select from instance where tenant_id = $1 and id = $2) as "found!""#,
        tenant.0,
        id
    )
    .fetch_one(&mut reader.reading(Viewer::all(tenant)).await?)
    .await?;
    Ok(found)
}

/// Which entries to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct FeedQuery<'a> {
    /// The position before them.
    pub(super) start: FeedCursor,
    /// The transaction before which those of the current history are read.
    pub(super) horizon: i64,
    /// Only these audit types.
    pub(super) types: Option<&'a [&'a str]>,
    /// Only of this instance.
    pub(super) instance: Option<Uuid>,
    pub(super) limit: i64,
}

/// Entries as they were read.
#[derive(Default)]
pub(super) struct Read {
    pub(super) rows: Vec<EntryRow>,
    /// Whether it ended at a limit, of entries or of bytes, so there may be more.
    pub(super) more: bool,
}

/// The entries that match a filter.
struct Selected {
    entries: Vec<FeedEntry>,
    /// The position behind the last examined row.
    end: Option<FeedCursor>,
    more: bool,
}

impl Selected {
    /// Examines rows until `limit` of them match.
    async fn of(read: Read, filter: &EventFilter, limit: i64) -> Selected {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut selected = Selected {
            entries: Vec::new(),
            end: None,
            more: read.more,
        };
        for mut row in read.rows {
            // A filter parses payloads, which may be large, so other tasks run in between.
            if !filter.is_open() {
                tokio::task::yield_now().await;
            }
            if selected.entries.len() >= limit {
                selected.more = true;
                break;
            }
            selected.end = Some(row.cursor());
            let (cursor, seq) = (row.cursor(), row.seq);
            let circle = row.observers.take().map(|observers| {
                Arc::new(Circle {
                    observers: Some(observers),
                    ..Circle::default()
                })
            });
            let entry = row.entry();
            if filter.is_open() || filter.matches(&EventFacts::of(&entry)) {
                selected.entries.push(FeedEntry {
                    cursor,
                    entry,
                    circle,
                    seq,
                });
            }
        }
        selected
    }
}

/// Adds the participants and their managers to the circles of the entries.
async fn gather(
    connection: &mut Limited,
    tenant: TenantId,
    entries: &mut [FeedEntry],
) -> Result<(), StoreError> {
    let mut circles: HashMap<Uuid, Circle> = HashMap::new();
    for FeedEntry { entry, circle, .. } in &mut *entries {
        if let Some(circle) = circle {
            let known = circles.entry(entry.instance.0);
            known.or_insert_with(|| Circle::clone(circle));
        }
    }
    if circles.is_empty() {
        return Ok(());
    }
    let instances: Vec<_> = circles.keys().copied().collect();
    let rows = sqlx::query!(
        r#"select p.instance_id, p.kind, p.principal, m.manager_id as "manager?"
        from participant p
        left join manager m on p.kind = 'user' and m.tenant_id = $1 and m.person_id = p.principal and m.valid_to is null
        where p.tenant_id = $1 and p.instance_id = any($2) and p.kind <> 'observer'"#,
        tenant.0,
        &instances
    );
    for row in rows.fetch_all(connection).await? {
        let Some(circle) = circles.get_mut(&row.instance_id) else {
            continue;
        };
        circle.managers.extend(row.manager);
        let principals = if row.kind == Kind::Group.name() {
            &mut circle.groups
        } else {
            &mut circle.users
        };
        principals.push(row.principal);
    }
    let circles: HashMap<_, _> = circles
        .into_iter()
        .map(|(instance, circle)| (instance, Arc::new(circle)))
        .collect();
    for FeedEntry { entry, circle, .. } in entries {
        if circle.is_some() {
            *circle = circles.get(&entry.instance.0).cloned();
        }
    }
    Ok(())
}

/// Reads public entries in the order of the feed: at least one if there is one, and no further one behind [`READ_BYTES_MAX`].
pub(super) async fn read(
    connection: impl PgExecutor<'_>,
    tenant: TenantId,
    query: FeedQuery<'_>,
) -> Result<Read, StoreError> {
    let rows = sqlx::query_as!(
        EntryRow,
        r#"select e.epoch as "epoch!", e.xid::text::bigint as "xid!", e.pos, e.id, e.seq, e.type as kind, e.payload,
            e.event_seq as "event_seq!", e.occurred_at as "at: Time", e.actor, e.traceparent, e.revision, e.stream_id,
            (select n.name from tenant n where n.id = e.tenant_id) as "tenant!", i.definition_key, coalesce((
                    select (case when m.payload like '{%' then m.payload::json end -> 'previous' ->> 'version')::int from audit_entry m
                    where m.tenant_id = e.tenant_id and m.stream_kind = 'instance' and m.stream_id = e.stream_id
                      and m.type = 'FLOW_MIGRATED' and m.seq > e.seq
                    order by m.seq limit 1
                ), i.definition_version) as "definition_version!", i.entity_type, i.entity_id, i.requesters, i.title, i.summary,
            i.observers
        from (
            select h.epoch, e.*, coalesce(sum(octet_length(e.payload)) over (
                order by h.epoch, e.xid, e.pos rows between unbounded preceding and 1 preceding), 0) as bytes_before
            from (
                select f.epoch, f.began_after, lead(f.began_after) over (order by f.epoch) as ended_with,
                    case when f.epoch = $7 then $2::bigint else 0 end as xid,
                    case when f.epoch = $7 then $3::bigint else 0 end as pos,
                    case when lead(f.epoch) over (order by f.epoch) is null then $4::bigint else 9223372036854775807 end as horizon
                from feed_epoch f
            ) h
            cross join lateral (
                select * from audit_entry e
                where e.tenant_id = $1 and e.event_seq is not null
                  and (e.xid, e.pos) > (h.xid::text::xid8, h.pos)
                  and e.xid < h.horizon::text::xid8
                  and e.pos > h.began_after and (h.ended_with is null or e.pos <= h.ended_with)
                  and ($6::text[] is null or e.type = any($6))
                  and ($8::uuid is null or e.stream_kind = 'instance' and e.stream_id = $8)
                order by e.xid, e.pos
                limit $5
            ) e
            where h.epoch >= $7
            order by h.epoch, e.xid, e.pos
            limit $5
        ) e
        join instance i on i.tenant_id = e.tenant_id and i.id = e.stream_id
        where e.bytes_before < $9
        order by e.epoch, e.xid, e.pos"#,
        tenant.0,
        query.start.xid,
        query.start.pos,
        query.horizon,
        query.limit,
        query.types as _,
        query.start.epoch,
        query.instance,
        READ_BYTES_MAX
    )
    .fetch_all(connection)
    .await?;
    let bytes: usize = rows.iter().map(|row| row.payload.len()).sum();
    let reaches = |count: usize, limit: i64| i64::try_from(count).is_ok_and(|count| count >= limit);
    let more =
        query.limit > 0 && (reaches(rows.len(), query.limit) || reaches(bytes, READ_BYTES_MAX));
    Ok(Read { rows, more })
}
