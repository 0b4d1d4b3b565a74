//! The work of the notifier: it reads a tenant's new public entries and stores their notifications and deliveries together
//! with the new position of the tenant's cursor.
//!
//! A short transaction locks the row of the cursor, so one notifier at a time reads a tenant. If its host fails, nothing has
//! changed. The order of entries is that of the feed (see `feed`).

use std::collections::BTreeSet;

use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Postgres, Transaction};
use uuid::Uuid;

use super::feed::{EntryRow, FeedCursor, FeedQuery, Read, read};
use super::pool::within;
use super::subscriptions::{Since, Subscriber};
use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::cloudevent::PublicEntry;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::notification::{EVENT_TYPES, Notification};
use wrkflw_core::subscription::Patterns;

const INSERT: &str = "insert into notification (
        tenant_id, id, instance_id, event_id, kind, recipient_kind, recipient, state_id, task_id, due_at, created_at)
    select $1, n.* from unnest(
        $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::uuid[], $9::uuid[],
        $10::timestamptz[], $11::timestamptz[]) n";

/// How to insert notifications if some of them may exist already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDuplicate {
    /// If one exists, the statement fails with [`StoreError::is_known_notification`], and nothing is written. A cursor moves in the
    /// transaction that writes the notifications, so an existing notification means that the cursor was moved back. A check for existing
    /// ones in each batch would cost a quarter more.
    Refused,
    /// Those that exist stay unchanged, and the others are written.
    Skipped,
}

/// A public entry that the notifier has not read yet.
#[derive(Debug)]
pub struct Unsent {
    /// The number of the history and the transaction that wrote the entry.
    pub epoch: i32,
    pub xid: i64,
    /// The entry's number in the stream of its instance.
    pub seq: i64,
    pub entry: PublicEntry,
    /// The requesters of its instance.
    pub requesters: Vec<String>,
}

/// One message for one subscription. Its content is created when it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub subscription: Uuid,
    pub message: Uuid,
    /// Whether the message is a notification and not the event itself.
    pub notifies: bool,
    pub instance: InstanceId,
    pub seq: i64,
    /// The definition version of the instance at that event.
    pub version: u32,
}

/// A tenant's locked cursor. Dropping it changes nothing.
#[derive(Debug)]
pub struct LockedCursor {
    transaction: Transaction<'static, Postgres>,
    pub tenant: TenantId,
    start: FeedCursor,
    /// The number of the current history.
    epoch: i32,
    /// The oldest transaction that was still unfinished.
    horizon: i64,
}

/// A tenant's locked cursor with the entries that follow it. Dropping it without [`Reading::finish`] changes nothing.
#[derive(Debug)]
pub struct Reading {
    transaction: Transaction<'static, Postgres>,
    tenant: TenantId,
    end: FeedCursor,
    /// In the order of the feed. Without subscribers, only the types that create notifications.
    pub unsent: Vec<Unsent>,
    /// Whether the reading ended at a limit, so there may be more.
    pub more: bool,
    /// The tenant's subscriptions that were active when some of the entries were committed. They are locked, so none of them is
    /// deleted meanwhile.
    pub subscribers: Vec<Subscriber>,
}

impl Unsent {
    /// Whether the entry was written after the subscription was created, and not while it was disabled.
    pub fn is_for(&self, subscriber: &Subscriber) -> bool {
        let is_after = |moment: Option<&Since>| moment.is_some_and(|moment| self.is_after(moment));
        self.is_after(&subscriber.since)
            && (!is_after(subscriber.disabled.as_ref()) || is_after(subscriber.enabled.as_ref()))
    }

    fn is_after(&self, since: &Since) -> bool {
        match since {
            Since::Snapshot { epoch, snapshot } => {
                self.epoch > *epoch || self.epoch == *epoch && !snapshot.saw(self.xid)
            }
            Since::Moment(moment) => *moment <= self.entry.occurred_at,
        }
    }
}

/// Gives every tenant a cursor that begins with its first entry.
pub async fn ensure_cursors(store: &Store) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into notifier_cursor (tenant_id, epoch, xid, pos, moved_at)
         select t.id, 0, '0', 0, 'epoch' from tenant t
         where not exists (select from notifier_cursor c where c.tenant_id = t.id)
         on conflict do nothing"
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Locks a cursor of a tenant with new entries: the one that was moved longest ago. Skips those that were moved after `round`, and
/// those that another notifier has locked. None if no cursor is left.
pub async fn lock_cursor(
    store: &Store,
    round: Timestamp,
) -> Result<Option<LockedCursor>, StoreError> {
    let cursor = Box::pin(next_cursor(store, round));
    store.writer.within(cursor).await
}

async fn next_cursor(store: &Store, round: Timestamp) -> Result<Option<LockedCursor>, StoreError> {
    let mut transaction = store.writer.begin().await?;
    let cursor = sqlx::query!(
        r#"select c.tenant_id, c.epoch, c.xid::text::bigint as "xid!", c.pos, f.epoch as current,
            pg_snapshot_xmin(pg_current_snapshot())::text::bigint as "horizon!"
        from notifier_cursor c cross join (
            select epoch, began_after from feed_epoch order by epoch desc limit 1
        ) f
        -- A moment far ahead is the mark of a clock that was wrong.
        where not (c.moved_at > $1::timestamptz and c.moved_at < $1::timestamptz + interval '1 minute') and (c.epoch <> f.epoch or (
            -- The order leads to the index of the feed. Without statistics, `exists` may read all entries of the tenant.
            select true from audit_entry e
            where e.tenant_id = c.tenant_id and e.event_seq is not null and (e.xid, e.pos) > (c.xid, c.pos)
              and e.pos > f.began_after and e.xid < pg_snapshot_xmin(pg_current_snapshot())
            order by e.xid, e.pos limit 1))
        order by c.moved_at
        limit 1
        for update of c skip locked"#,
        Time(round) as _
    )
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(cursor) = cursor else {
        return Ok(None);
    };
    let start = FeedCursor {
        pos: cursor.pos,
        ..FeedCursor::before(cursor.epoch, cursor.xid)
    };
    Ok(Some(LockedCursor {
        transaction,
        tenant: TenantId(cursor.tenant_id),
        start,
        epoch: cursor.current,
        horizon: cursor.horizon,
    }))
}

/// Puts a tenant's cursor behind those of the others, without moving it: as if it had been moved at `at`.
pub async fn postpone_cursor(
    store: &Store,
    tenant: TenantId,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update notifier_cursor set moved_at = $2 where tenant_id = $1",
        tenant.0,
        Time(at) as _
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

impl LockedCursor {
    /// Reads at most `limit` entries that follow the cursor.
    pub async fn read(self, limit: i64) -> Result<Reading, StoreError> {
        within(Box::pin(self.read_entries(limit))).await
    }

    async fn read_entries(mut self, limit: i64) -> Result<Reading, StoreError> {
        let subscribers = subscribers(&mut self.transaction, self.tenant, &self.start).await?;
        let types = subscribers.is_empty().then_some(&EVENT_TYPES[..]);
        let query = FeedQuery {
            start: self.start,
            horizon: self.horizon,
            types,
            instance: None,
            limit,
        };
        let Read { rows, more } = read(&mut *self.transaction, self.tenant, query).await?;
        let end = match rows.last() {
            Some(last) if more => last.cursor(),
            // All entries before the horizon were read. Those of the transaction at the horizon come after this cursor.
            _ => FeedCursor::before(self.epoch, self.horizon),
        };
        let unsent = |mut row: EntryRow| Unsent {
            epoch: row.epoch,
            xid: row.xid,
            seq: row.seq,
            requesters: std::mem::take(&mut row.requesters),
            entry: row.entry(),
        };
        Ok(Reading {
            transaction: self.transaction,
            tenant: self.tenant,
            end,
            unsent: rows.into_iter().map(unsent).collect(),
            more,
            subscribers,
        })
    }
}

/// Reads the subscriptions that are active, or were active when an entry behind the cursor may have been committed. The lock prevents their
/// deletion until their deliveries are inserted.
async fn subscribers(
    transaction: &mut Transaction<'static, Postgres>,
    tenant: TenantId,
    start: &FeedCursor,
) -> Result<Vec<Subscriber>, StoreError> {
    let rows = sqlx::query!(
        r#"select id, types, definition_key, created_at as "created_at: Time", since_epoch, since_snapshot::text as since_snapshot,
            disabled_epoch, disabled_snapshot::text as disabled_snapshot, enabled_epoch, enabled_snapshot::text as enabled_snapshot
        from subscription
        where tenant_id = $1
          and (active or (disabled_epoch, pg_snapshot_xmax(disabled_snapshot)) > ($2::int, $3::bigint::text::xid8))
        order by id for key share"#,
        tenant.0,
        start.epoch,
        start.xid
    )
    .fetch_all(&mut **transaction)
    .await?;
    let subscribers = rows.into_iter().map(|row| Subscriber {
        id: row.id,
        types: Patterns::stored(row.types),
        definition: row.definition_key,
        since: moment(row.since_epoch, row.since_snapshot)
            .unwrap_or(Since::Moment(row.created_at.0)),
        disabled: moment(row.disabled_epoch, row.disabled_snapshot),
        enabled: moment(row.enabled_epoch, row.enabled_snapshot),
    });
    Ok(subscribers.collect())
}

/// None if the subscription has no such moment.
fn moment(epoch: Option<i32>, snapshot: Option<String>) -> Option<Since> {
    let snapshot = snapshot.and_then(|text| text.parse().ok());
    let moment = epoch.zip(snapshot);
    moment.map(|(epoch, snapshot)| Since::Snapshot { epoch, snapshot })
}

impl Reading {
    /// The kinds that each of these people has muted.
    pub async fn muted(
        &mut self,
        people: &[String],
    ) -> Result<BTreeSet<(String, String)>, StoreError> {
        if people.is_empty() {
            return Ok(BTreeSet::new());
        }
        let rows = sqlx::query!(
            "select person_id, kind from muted_notification where tenant_id = $1 and person_id = any($2)",
            self.tenant.0,
            people
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        let muted = rows.into_iter().map(|row| (row.person_id, row.kind));
        Ok(muted.collect())
    }

    /// Inserts the notifications and deliveries and moves the cursor behind the entries, in one transaction. Existing
    /// deliveries stay unchanged.
    pub async fn finish(
        self,
        notifications: &[Notification],
        deliveries: &[Delivery],
        at: Timestamp,
        known: OnDuplicate,
    ) -> Result<(), StoreError> {
        within(self.finished(notifications, deliveries, at, known)).await
    }

    async fn finished(
        mut self,
        notifications: &[Notification],
        deliveries: &[Delivery],
        at: Timestamp,
        known: OnDuplicate,
    ) -> Result<(), StoreError> {
        self.notify(notifications, known).await?;
        self.deliver(deliveries, at).await?;
        wrkflw_fault::point("notifier.written");
        sqlx::query!(
            "update notifier_cursor set epoch = $2, xid = $3::bigint::text::xid8, pos = $4, moved_at = $5 where tenant_id = $1",
            self.tenant.0,
            self.end.epoch,
            self.end.xid,
            self.end.pos,
            Time(at) as _
        )
        .execute(&mut *self.transaction)
        .await?;
        Ok(self.transaction.commit().await?)
    }

    async fn notify(
        &mut self,
        notifications: &[Notification],
        known: OnDuplicate,
    ) -> Result<(), StoreError> {
        if notifications.is_empty() {
            return Ok(());
        }
        let of = |member: fn(&Notification) -> Uuid| notifications.iter().map(member).collect();
        let (ids, instances, events): (Vec<_>, Vec<_>, Vec<_>) = (
            of(|one| one.id),
            of(|one| one.instance.0),
            of(|one| one.event),
        );
        let text = |member: fn(&Notification) -> &str| {
            notifications
                .iter()
                .map(|one| member(one).to_owned())
                .collect()
        };
        let (kinds, recipient_kinds, recipients): (Vec<_>, Vec<_>, Vec<_>) = (
            text(|one| one.kind.name()),
            text(|one| one.recipient.kind()),
            text(|one| one.recipient.id()),
        );
        let states: Vec<Option<Uuid>> = notifications.iter().map(|one| one.state).collect();
        let tasks: Vec<Option<Uuid>> = notifications.iter().map(|one| one.task).collect();
        let due: Vec<Option<Time>> = notifications
            .iter()
            .map(|one| one.due_at.map(Time))
            .collect();
        let at: Vec<Time> = notifications.iter().map(|one| Time(one.at)).collect();
        let insert = match known {
            OnDuplicate::Refused => INSERT.to_owned(),
            OnDuplicate::Skipped => format!("{INSERT} on conflict do nothing"),
        };
        sqlx::query(AssertSqlSafe(insert))
            .bind(self.tenant.0)
            .bind(&ids)
            .bind(&instances)
            .bind(&events)
            .bind(&kinds)
            .bind(&recipient_kinds)
            .bind(&recipients)
            .bind(&states)
            .bind(&tasks)
            .bind(&due)
            .bind(&at)
            .execute(&mut *self.transaction)
            .await?;
        Ok(())
    }

    async fn deliver(&mut self, deliveries: &[Delivery], at: Timestamp) -> Result<(), StoreError> {
        if deliveries.is_empty() {
            return Ok(());
        }
        let of = |member: fn(&Delivery) -> Uuid| deliveries.iter().map(member).collect();
        let (subscriptions, messages, instances): (Vec<_>, Vec<_>, Vec<_>) = (
            of(|one| one.subscription),
            of(|one| one.message),
            of(|one| one.instance.0),
        );
        let notifies: Vec<bool> = deliveries.iter().map(|one| one.notifies).collect();
        let seqs: Vec<i64> = deliveries.iter().map(|one| one.seq).collect();
        let version = |one: &Delivery| one.version.cast_signed();
        let versions: Vec<i32> = deliveries.iter().map(version).collect();
        sqlx::query!(
            "insert into webhook_delivery (
                 tenant_id, subscription_id, message_id, instance_id, notifies, seq, definition_version, created_at, due_at)
             select $1, d.*, $8, $8
             from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::boolean[], $6::bigint[], $7::int[]) d
             on conflict do nothing",
            self.tenant.0,
            &subscriptions,
            &messages,
            &instances,
            &notifies,
            &seqs,
            &versions,
            Time(at) as _
        )
        .execute(&mut *self.transaction)
        .await?;
        Ok(())
    }
}
