//! The relay's side of the outbox: it claims a partition, reads its events in order, and stores their results.
//!
//! A claim is the row lock of a partition, so its transaction stays open while the events are published. Locked events are
//! never skipped: that would reorder the events of an instance. Events are read by a separate statement after the lock,
//! because an earlier snapshot could still show events that the previous claim deleted.

mod backlog;

use std::time::Duration;

use jiff::Timestamp;
use sqlx::{Postgres, Transaction};

pub use backlog::{BACKLOG_COUNTED_MAX, Backlog};

use super::described::{KeptTexts, Undescribed};
use super::pool::{Pool, within};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::cloudevent::{Public, PublicEntry};
use wrkflw_core::event::EventContext;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::instance::Entity;
use wrkflw_core::template::Labels;

/// Events that one claim reads.
pub const BATCH_EVENTS_MAX: i64 = 500;
/// Payload bytes after which a claim reads no further event.
pub const BATCH_BYTES_MAX: i64 = 8 * 1024 * 1024;
/// The database ends a claim that is silent for this time, so that a frozen host does not keep a partition.
pub const CLAIM_SILENT_MAX: Duration = Duration::from_mins(1);
/// Why an operation on the outbox failed.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    #[error("the database refused the relay: {0}")]
    Database(#[from] sqlx::Error),
    #[error(
        "somebody else deleted {missing} events of outbox partition {partition} while it was claimed"
    )]
    LostEvents { partition: i16, missing: u64 },
}

/// The outbox, through connections that run as the relay's role.
#[derive(Debug, Clone)]
pub struct Outbox {
    pool: Pool,
    texts: KeptTexts,
}

/// Where a claim begins to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Above the partition's floor. This skips the remains of deleted events.
    AboveFloor,
    /// At the first event, in case one was left below the floor.
    Everything,
}

/// An event that waits in its partition.
#[derive(Debug)]
pub struct Waiting {
    pub pos: i64,
    pub tenant: TenantId,
    pub instance: InstanceId,
    /// Its number in the stream of its instance, or that of the checkpoint.
    pub seq: i64,
    /// Whether earlier events of its instance are parked.
    pub follows_parked: bool,
    /// Whether it was published before.
    pub replayed: bool,
    /// The audit entry or checkpoint of the event, or why it cannot be read.
    pub entry: Result<Public, String>,
    /// Why the event must wait for a later release.
    pub unreadable: Option<String>,
}

impl Waiting {
    fn undescribed(&mut self) -> Option<Undescribed<'_>> {
        match &mut self.entry {
            Ok(Public::Entry(entry)) => Some(Undescribed {
                tenant: self.tenant,
                seq: self.seq,
                entry,
            }),
            Ok(Public::Checkpoint(_)) | Err(_) => None,
        }
    }
}

/// An event that goes to the dead letters. A replayed one is dropped instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    pub pos: i64,
    pub error: String,
    pub attempts: i32,
}

/// The results of a claim's events. Events without a result stay.
#[derive(Debug, Default)]
pub struct Settlement {
    /// Positions that the broker acknowledged.
    pub acknowledged: Vec<i64>,
    pub parked: Vec<Parked>,
    /// The new floor of the partition.
    pub floor: Option<i64>,
}

/// The input of the relay's `Fence`.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// The last position that any transaction has drawn.
    pub drawn: i64,
    /// The number of a transaction, taken after that.
    pub xid: i64,
    /// The oldest transaction that was still unfinished.
    pub oldest: i64,
}

/// A partition, locked by its row. Dropping it releases the partition and changes nothing.
#[derive(Debug)]
pub struct Claim {
    transaction: Transaction<'static, Postgres>,
    pub partition: i16,
    /// Consecutive failures before this claim.
    pub failures: i32,
    pub events: Vec<Waiting>,
    /// Whether more events wait behind these.
    pub is_cut: bool,
}

impl Outbox {
    /// `pool`'s connections run as the relay's role.
    pub(super) fn new(pool: Pool, texts: KeptTexts) -> Outbox {
        Outbox { pool, texts }
    }

    /// Has connections replaced after a failure: they may lead to a database that takes no writes any more.
    pub fn renew(&self) {
        self.pool.renew();
    }

    /// Claims the partition with events whose last turn was longest ago. None if no partition can be claimed.
    pub async fn claim(&self, reach: Reach) -> Result<Option<Claim>, OutboxError> {
        within(Box::pin(self.claim_one(reach))).await
    }

    async fn claim_one(&self, reach: Reach) -> Result<Option<Claim>, OutboxError> {
        let mut transaction = self.pool.begin().await?;
        let partition = sqlx::query!(
            r#"
            select l.partition, l.failures, case when $1 then 0 else l.floor end as "after!",
                set_config('idle_in_transaction_session_timeout', $2, true) as silent_max
            from outbox_partition l
            where l.retry_at <= now()
                and exists (
                    select from outbox_event e
                    where e.partition = l.partition and e.pos > case when $1 then 0 else l.floor end)
            order by l.polled_at, l.partition
            limit 1
            for update of l skip locked
            "#,
            reach == Reach::Everything,
            CLAIM_SILENT_MAX.as_millis().to_string(),
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(partition) = partition else {
            transaction.rollback().await?;
            return Ok(None);
        };
        let (mut events, is_cut) =
            read(&mut transaction, partition.partition, partition.after).await?;
        let mut undescribed = events
            .iter_mut()
            .filter_map(Waiting::undescribed)
            .collect::<Vec<_>>();
        let unreadable = self
            .texts
            .describe(&mut transaction, &mut undescribed)
            .await?;
        for event in &mut events {
            if let Ok(Public::Entry(entry)) = &event.entry {
                event.unreadable = unreadable.reason(event.tenant, entry);
            }
        }
        Ok(Some(Claim {
            transaction,
            partition: partition.partition,
            failures: partition.failures,
            events,
            is_cut,
        }))
    }

    /// Reads the current positions and transactions. The position is read before this transaction gets its number, so the
    /// transactions that drew it or an earlier one have smaller numbers.
    pub async fn mark(&self) -> Result<Mark, OutboxError> {
        let mark = sqlx::query_as!(
            Mark,
            r#"
            with drawn as materialized (select case when is_called then last_value else 0 end as pos from event_pos)
            select pos as "drawn!", pg_current_xact_id()::text::bigint as "xid!",
                pg_snapshot_xmin(pg_current_snapshot())::text::bigint as "oldest!"
            from drawn
            "#
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(mark)
    }

    /// Pauses a partition for the time of `pause`, and stores the error for operators.
    pub async fn back_off(
        &self,
        partition: i16,
        pause: Duration,
        error: &str,
    ) -> Result<(), OutboxError> {
        sqlx::query!(
            "update outbox_partition set retry_at = now() + make_interval(secs => $2), failures = failures + 1, last_error = $3
             where partition = $1",
            partition,
            pause.as_secs_f64(),
            error,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

impl Claim {
    /// Deletes the acknowledged events, parks the refused ones, and releases the partition, in one transaction.
    pub async fn settle(self, settlement: Settlement) -> Result<(), OutboxError> {
        within(self.settled(settlement)).await
    }

    async fn settled(mut self, settlement: Settlement) -> Result<(), OutboxError> {
        let Settlement {
            acknowledged,
            parked,
            floor,
        } = settlement;
        let parked_at = parked.iter().map(|parked| parked.pos);
        let gone: Vec<i64> = acknowledged.iter().copied().chain(parked_at).collect();
        if !parked.is_empty() {
            self.park(&parked).await?;
        }
        // A replayed event was counted when it was published.
        let counts = sqlx::query!(
            r#"with deleted as (
                delete from outbox_event where partition = $1 and pos = any($2) returning pos, replayed
            )
            select count(*) as "deleted!", count(*) filter (where not replayed and pos = any($3)) as "settled!" from deleted"#,
            self.partition,
            &gone,
            &acknowledged
        )
        .fetch_one(&mut *self.transaction)
        .await?;
        let missing = (gone.len() as u64).saturating_sub(counts.deleted.cast_unsigned());
        if missing > 0 {
            return Err(OutboxError::LostEvents {
                partition: self.partition,
                missing,
            });
        }
        wrkflw_fault::point("relay.deleted");
        sqlx::query!(
            "update outbox_partition set floor = greatest(floor, $2), settled = settled + $3, polled_at = clock_timestamp(),
                 failures = 0, last_error = null
             where partition = $1",
            self.partition,
            floor.unwrap_or(0),
            counts.settled,
        )
        .execute(&mut *self.transaction)
        .await?;
        self.transaction.commit().await?;
        Ok(())
    }

    /// Releases the partition without changes.
    pub async fn release(self) -> Result<(), OutboxError> {
        within(self.transaction.rollback()).await?;
        Ok(())
    }

    async fn park(&mut self, parked: &[Parked]) -> Result<(), OutboxError> {
        let positions: Vec<i64> = parked.iter().map(|parked| parked.pos).collect();
        let errors: Vec<String> = parked.iter().map(|parked| parked.error.clone()).collect();
        let attempts: Vec<i32> = parked.iter().map(|parked| parked.attempts).collect();
        sqlx::query!(
            "insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
             select e.tenant_id, e.instance_id, e.seq, e.partition, e.pos, p.error, p.attempts, now()
             from outbox_event e
             join unnest($2::bigint[], $3::text[], $4::int[]) as p (pos, error, attempts) on p.pos = e.pos
             where e.partition = $1 and not e.replayed",
            self.partition,
            &positions,
            &errors,
            &attempts,
        )
        .execute(&mut *self.transaction)
        .await?;
        Ok(())
    }
}

/// An event with the columns of its entry, instance, tenant and checkpoint that exist.
struct Row {
    pos: i64,
    tenant_id: i32,
    instance_id: uuid::Uuid,
    follows_parked: bool,
    replayed: bool,
    /// The number of rows before the limit of bytes is applied.
    taken: i64,
    tenant: Option<String>,
    id: Option<uuid::Uuid>,
    kind: Option<String>,
    payload: Option<String>,
    event_seq: Option<i64>,
    occurred_at_us: Option<i64>,
    actor: Option<String>,
    definition_key: Option<String>,
    definition_version: Option<i32>,
    entity_type: Option<String>,
    entity_id: Option<String>,
    title: Option<String>,
    summary: Option<String>,
    traceparent: Option<String>,
    revision: Option<i32>,
    seq: i64,
    checkpoint: Option<i64>,
    size: Option<i64>,
    root: Option<Vec<u8>>,
    previous_root: Option<Vec<u8>>,
    key_id: Option<String>,
    signature: Option<Vec<u8>>,
}

async fn read(
    transaction: &mut Transaction<'static, Postgres>,
    partition: i16,
    after: i64,
) -> Result<(Vec<Waiting>, bool), OutboxError> {
    let rows = sqlx::query_as!(
        Row,
        r#"
        select e.pos as "pos!", e.tenant_id as "tenant_id!", e.instance_id as "instance_id!", e.taken as "taken!",
            exists (
                select from dead_letter d
                where d.tenant_id = e.tenant_id and d.instance_id = e.instance_id and d.seq < e.seq
            ) as "follows_parked!", e.replayed as "replayed!",
            t.name as "tenant?", e.id as "id?", e.type as "kind?", e.payload as "payload?", e.event_seq as "event_seq?",
            (extract(epoch from coalesce(e.occurred_at, c.signed_at)) * 1000000)::bigint as occurred_at_us, e.actor as "actor?",
            i.definition_key as "definition_key?", coalesce((
                select (case when m.payload like '{%' then m.payload::json end -> 'previous' ->> 'version')::int from audit_entry m
                where m.tenant_id = e.tenant_id and m.stream_kind = 'instance' and m.stream_id = e.instance_id
                  and m.type = 'FLOW_MIGRATED' and m.seq > e.seq
                order by m.seq limit 1
            ), i.definition_version) as "definition_version?",
            i.entity_type as "entity_type?", i.entity_id as "entity_id?", i.title as "title?", i.summary as "summary?", e.traceparent as "traceparent?",
            e.revision as "revision?", e.seq as "seq!",
            c.number as "checkpoint?", c.size as "size?", c.root as "root?", c.previous_root as "previous_root?",
            c.key_id as "key_id?", c.signature as "signature?"
        from (
            select o.partition, o.pos, o.tenant_id, o.instance_id, o.seq, o.replayed, a.id, a.type, a.payload, a.event_seq, a.occurred_at, a.actor,
                a.traceparent, a.revision, count(*) over () as taken,
                coalesce(sum(octet_length(a.payload)) over (
                    order by o.pos rows between unbounded preceding and 1 preceding), 0) as bytes_before
            from (select * from outbox_event where partition = $1 and pos > $2 order by pos limit $3) o
            left join audit_entry a on a.tenant_id = o.tenant_id and a.stream_kind = 'instance'
                and a.stream_id = o.instance_id and a.seq = o.seq
        ) e
        left join instance i on i.tenant_id = e.tenant_id and i.id = e.instance_id
        left join tenant t on t.id = e.tenant_id
        left join checkpoint c on c.tenant_id = e.tenant_id and c.number = e.seq
            and e.instance_id = '00000000-0000-0000-0000-000000000000'
        where e.bytes_before <= $4
        order by e.pos
        "#,
        partition,
        after,
        BATCH_EVENTS_MAX,
        BATCH_BYTES_MAX,
    )
    .fetch_all(&mut **transaction)
    .await?;
    let taken = rows.first().map_or(0, |row| row.taken);
    let is_cut =
        taken == BATCH_EVENTS_MAX || i64::try_from(rows.len()).is_ok_and(|read| read < taken);
    let events = rows.into_iter().map(Waiting::from).collect();
    Ok((events, is_cut))
}

impl From<Row> for Waiting {
    fn from(row: Row) -> Waiting {
        Waiting {
            pos: row.pos,
            tenant: TenantId(row.tenant_id),
            instance: InstanceId(row.instance_id),
            seq: row.seq,
            follows_parked: row.follows_parked,
            replayed: row.replayed,
            unreadable: None,
            entry: match row.checkpoint {
                Some(_) => signed(row).map(Public::Checkpoint),
                None => public_entry(row).map(Public::Entry),
            },
        }
    }
}

fn signed(row: Row) -> Result<Checkpoint, String> {
    Ok(Checkpoint {
        tenant: present("tenant.name", row.tenant)?,
        number: whole("outbox_event.seq", Some(row.seq))?,
        size: whole("checkpoint.size", row.size)?,
        root: present("checkpoint.root", row.root)?,
        previous_root: present("checkpoint.previous_root", row.previous_root)?,
        signed_at: at("checkpoint.signed_at", row.occurred_at_us)?,
        key_id: present("checkpoint.key_id", row.key_id)?,
        signature: present("checkpoint.signature", row.signature)?,
    })
}

fn at(column: &str, microseconds: Option<i64>) -> Result<Timestamp, String> {
    present(column, microseconds)
        .and_then(|at| Timestamp::from_microsecond(at).map_err(|error| error.to_string()))
}

/// Each row is checked by itself, so that a damaged one does not block its partition.
fn public_entry(row: Row) -> Result<PublicEntry, String> {
    Ok(PublicEntry {
        instance: InstanceId(row.instance_id),
        tenant: present("tenant.name", row.tenant)?,
        id: present("audit_entry.id", row.id)?,
        kind: present("audit_entry.type", row.kind)?,
        payload: present("audit_entry.payload", row.payload)?,
        event_seq: whole("audit_entry.event_seq", row.event_seq)?,
        occurred_at: at("audit_entry.occurred_at", row.occurred_at_us)?,
        actor: row.actor,
        definition: VersionRef {
            key: present("instance.definition_key", row.definition_key)?,
            version: whole("instance.definition_version", row.definition_version)?,
        },
        entity: Entity {
            kind: present("instance.entity_type", row.entity_type)?,
            id: present("instance.entity_id", row.entity_id)?,
        },
        traceparent: row.traceparent,
        revision: whole("audit_entry.revision", row.revision)?,
        context: EventContext {
            labels: Labels {
                title: row.title,
                summary: row.summary,
            },
            ..EventContext::default()
        },
    })
}

fn present<T>(column: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("{column} is missing"))
}

fn whole<T: Copy + std::fmt::Display, U: TryFrom<T>>(
    column: &str,
    value: Option<T>,
) -> Result<U, String> {
    let value = present(column, value)?;
    U::try_from(value).map_err(|_| format!("{column} is {value}"))
}
