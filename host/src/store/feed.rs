//! Public events in the order of their transactions, for readers without Kafka.
//!
//! Positions are drawn before their transactions commit, so a reader that only remembered the last position would
//! miss those that commit late. The order here is (transaction, position), and nothing is shown that an
//! unfinished transaction could still come before.

use std::fmt;
use std::str::FromStr;

use sqlx::PgConnection;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::cloudevent::PublicEntry;
use crate::domain::ids::{InstanceId, TenantId, VersionRef};
use crate::domain::instance::Entity;

/// Where a reader stands. Transaction numbers begin anew in a restored database, hence the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedCursor {
    pub epoch: i32,
    pub xid: i64,
    pub pos: i64,
}

impl fmt::Display for FeedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.epoch, self.xid, self.pos)
    }
}

impl FromStr for FeedCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<FeedCursor, ()> {
        let mut parts = text
            .splitn(3, '-')
            .map(|part| part.parse::<i64>().ok().filter(|number| *number >= 0));
        let mut next = || parts.next().flatten().ok_or(());
        Ok(FeedCursor {
            epoch: i32::try_from(next()?).map_err(|_| ())?,
            xid: next()?,
            pos: next()?,
        })
    }
}

/// A page of the feed.
#[derive(Debug)]
pub struct FeedPage {
    pub entries: Vec<(FeedCursor, PublicEntry)>,
    /// Whether the cursor asked after is of another history of this database: of another epoch, or at an entry that is not
    /// here, as after a restored backup. It is of no use here.
    pub is_astray: bool,
    /// Where a reader stands who has read all there is now.
    pub end: FeedCursor,
    /// Behind all that could be shown now, whether it fitted the page or not. What comes later stands behind it.
    pub horizon: FeedCursor,
    /// Another one after each change of who may do what in the tenant, also one that was committed before an entry of the
    /// page.
    pub standing: Option<Uuid>,
}

/// A public entry as the queries of this folder read it.
pub(super) struct EntryRow {
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
}

impl EntryRow {
    pub(super) fn cursor(&self, epoch: i32) -> FeedCursor {
        FeedCursor {
            epoch,
            xid: self.xid,
            pos: self.pos,
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
        }
    }
}

/// Whether there is an entry where the cursor stands. Entries are never deleted, so in this history there is.
async fn is_there(
    connection: &mut PgConnection,
    tenant: TenantId,
    cursor: FeedCursor,
) -> Result<bool, StoreError> {
    let found = sqlx::query_scalar!(
        r#"select exists(
            select from audit_entry e
            where e.tenant_id = $1 and e.event_seq is not null and e.xid = $2::bigint::text::xid8 and e.pos = $3
        ) as "found!""#,
        tenant.0,
        cursor.xid,
        cursor.pos
    );
    Ok(found.fetch_one(connection).await?)
}

impl Store {
    /// Entries after the cursor, or from the first one.
    pub async fn feed(
        &self,
        tenant: TenantId,
        after: Option<FeedCursor>,
        limit: i64,
    ) -> Result<FeedPage, StoreError> {
        let mut connection = self.reading(tenant).await?;
        let horizon = sqlx::query!(
            r#"select epoch, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as "xmin!",
                (select standing_mark from tenant where id = $1) as standing
            from feed_epoch"#,
            tenant.0
        )
        .fetch_one(&mut *connection)
        .await?;
        let behind_all = FeedCursor {
            epoch: horizon.epoch,
            xid: horizon.xmin,
            pos: 0,
        };
        let is_astray = match after {
            None => false,
            Some(after) if after.epoch != horizon.epoch => true,
            // It stands before the first entry of a transaction that was no later than the horizon, which never goes back.
            Some(after) if after.pos == 0 => after.xid > horizon.xmin,
            Some(after) => !is_there(&mut connection, tenant, after).await?,
        };
        let start = after.unwrap_or(FeedCursor {
            epoch: horizon.epoch,
            xid: 0,
            pos: 0,
        });
        if is_astray {
            return Ok(FeedPage {
                entries: Vec::new(),
                is_astray,
                end: start,
                horizon: behind_all,
                standing: horizon.standing,
            });
        }
        let rows = entries(&mut connection, tenant, start, horizon.xmin, None, limit).await?;
        let entries: Vec<_> = rows
            .into_iter()
            .map(|row| (row.cursor(horizon.epoch), row.entry()))
            .collect();
        let end = entries.last().map_or(start, |(cursor, _)| *cursor);
        Ok(FeedPage {
            entries,
            is_astray,
            end,
            horizon: behind_all,
            standing: horizon.standing,
        })
    }

    /// Instances whose audit streams hold this id: none or one.
    pub async fn knows_instance(&self, tenant: TenantId, id: Uuid) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar!(
            r#"select exists(select from instance where tenant_id = $1 and id = $2) as "found!""#,
            tenant.0,
            id
        )
        .fetch_one(&mut *self.reading(tenant).await?)
        .await?;
        Ok(found)
    }
}

/// Entries that have events, after a place and before the oldest transaction that may still be under way; all of them,
/// or those of some types.
pub(super) async fn entries(
    connection: &mut PgConnection,
    tenant: TenantId,
    start: FeedCursor,
    horizon: i64,
    types: Option<&[&str]>,
    limit: i64,
) -> Result<Vec<EntryRow>, StoreError> {
    let rows = sqlx::query_as!(
        EntryRow,
        r#"select e.xid::text::bigint as "xid!", e.pos, e.id, e.seq, e.type as kind, e.payload, e.event_seq as "event_seq!",
            e.occurred_at as "at: Time", e.actor, e.traceparent, e.revision, e.stream_id, n.name as tenant,
            i.definition_key, coalesce((
                    select (m.payload::json -> 'previous' ->> 'version')::int from audit_entry m
                    where m.tenant_id = e.tenant_id and m.stream_kind = 'instance' and m.stream_id = e.stream_id
                      and m.type = 'FLOW_MIGRATED' and m.seq > e.seq
                    order by m.seq limit 1
                ), i.definition_version) as "definition_version!", i.entity_type, i.entity_id, i.requesters
        from audit_entry e
        join instance i on i.tenant_id = e.tenant_id and i.id = e.stream_id
        join tenant n on n.id = e.tenant_id
        where e.tenant_id = $1 and e.event_seq is not null
          and (e.xid, e.pos) > ($2::bigint::text::xid8, $3::bigint)
          and e.xid < $4::bigint::text::xid8
          and ($6::text[] is null or e.type = any($6))
        order by e.xid, e.pos
        limit $5"#,
        tenant.0,
        start.xid,
        start.pos,
        horizon,
        limit,
        types as _
    )
    .fetch_all(connection)
    .await?;
    Ok(rows)
}
