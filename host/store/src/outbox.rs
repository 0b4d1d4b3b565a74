//! The relay's side of the outbox: it claims a partition, reads its events in order, and stores their results.
//!
//! A claim is the row lock of a partition, so its transaction stays open while the events are published. It is no lease as of jobs:
//! a second claim must not send an event before the first one has ended, and a lock ends with its connection. A claim never
//! skips locked events, because that would reorder the events of an instance. Events are read by a separate statement
//! after the lock, because an earlier snapshot could still show events that the previous claim deleted.

mod backlog;
mod read;

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::{Postgres, Transaction};

pub(crate) use backlog::BACKLOG_COUNTED_MAX;
pub use backlog::Backlog;
use read::read;

use super::described::{KeptTexts, Undescribed};
use super::pool::{Pool, within};
use wrkflw_core::cloudevent::Public;
use wrkflw_core::ids::{InstanceId, TenantId};

/// Events that one claim reads.
pub(crate) const BATCH_EVENTS_MAX: i64 = 500;
/// Payload bytes after which a claim reads no further event.
pub(crate) const BATCH_BYTES_MAX: i64 = 8 * 1024 * 1024;
/// The database ends a claim that is silent for this time, so that a frozen host does not keep a partition.
pub(crate) const CLAIM_SILENT_MAX: Duration = Duration::from_mins(1);
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
pub enum ClaimStart {
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
    /// Whether the preceding event of its instance was passed over.
    pub follows_waiting: bool,
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
pub struct FenceMark {
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
    /// The position up to which waiting events were passed over. None if the events were read from the beginning.
    pub passed: Option<i64>,
    pub events: Vec<Waiting>,
    /// Whether more events wait behind these.
    pub is_cut: bool,
}

impl Outbox {
    /// `pool`'s connections run as the relay's role.
    pub(super) fn new(pool: Pool, texts: KeptTexts) -> Outbox {
        Outbox { pool, texts }
    }

    /// Replaces the connections after a failure, because their database may take no writes any more.
    pub fn renew(&self) {
        self.pool.renew();
    }

    /// Claims the partition with events whose last turn was longest ago. None if no partition can be claimed. `passed` has the
    /// positions of partitions up to which events wait. A claim reads the events behind them, unless it reads everything.
    pub async fn claim(
        &self,
        reach: ClaimStart,
        passed: &BTreeMap<i16, i64>,
    ) -> Result<Option<Claim>, OutboxError> {
        self.pool
            .within(Box::pin(self.claim_one(reach, passed)))
            .await
    }

    async fn claim_one(
        &self,
        reach: ClaimStart,
        passed: &BTreeMap<i16, i64>,
    ) -> Result<Option<Claim>, OutboxError> {
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
            reach == ClaimStart::Everything,
            CLAIM_SILENT_MAX.as_millis().to_string(),
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(partition) = partition else {
            transaction.rollback().await?;
            return Ok(None);
        };
        let passed = passed.get(&partition.partition).copied();
        let passed = passed.filter(|pos| reach == ClaimStart::AboveFloor && *pos > partition.after);
        let (mut events, is_cut) = read(
            &mut transaction,
            partition.partition,
            passed.unwrap_or(partition.after),
            passed.is_some(),
        )
        .await?;
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
            passed,
            events,
            is_cut,
        }))
    }

    /// Reads the current positions and transactions. The position is read before this transaction gets its number, so the
    /// transactions that drew it or an earlier one have smaller numbers.
    pub async fn mark(&self) -> Result<FenceMark, OutboxError> {
        let mark = sqlx::query_as!(
            FenceMark,
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

    /// Pauses a partition for `pause`, and stores the error for operators.
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
