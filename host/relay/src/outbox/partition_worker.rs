//! A worker of the relay: it claims a partition, publishes its events, settles them, and repeats.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Relay;
use super::failure::Failure;
use super::fence::Fence;
use super::kafka::{Gaps, Producer};
use super::passed_positions::PassedPositions;
use super::publish::{Published, publish};
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::worker::{Backoff, Worker};
use wrkflw_store::outbox::{Claim, ClaimStart, OutboxError, Settlement, Waiting};

/// How often a worker reads each partition once from its beginning. The fence makes that unnecessary, but it finds events below a
/// floor that was set by hand.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// The pause of a partition with events that this release cannot read. A relay of a later release can claim the partition after it.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(1);
/// The pauses between turns while there are no events.
const IDLE: Backoff = Backoff {
    first: Duration::from_millis(5),
    last: Duration::from_millis(250),
};

/// A worker of the relay, with its state between turns.
pub(super) struct PartitionWorker {
    relay: Relay,
    wake: Arc<Notify>,
    cancel: CancellationToken,
    producer: Option<Producer>,
    fence: Fence,
    sweep: Sweep,
    passed: PassedPositions,
    /// Turns without events in a row.
    idle_turns: u32,
    is_busy: bool,
}

/// Reads of all partitions from their beginning, now and then.
struct Sweep {
    ended_at: Instant,
    /// The partitions that the current sweep has read.
    read: BTreeSet<i16>,
}

impl Sweep {
    fn after(ended_at: Instant) -> Sweep {
        Sweep {
            ended_at,
            read: BTreeSet::new(),
        }
    }

    fn reach(&self) -> ClaimStart {
        if self.ended_at.elapsed() >= SWEEP_EVERY {
            ClaimStart::Everything
        } else {
            ClaimStart::AboveFloor
        }
    }

    /// The worker claims partitions in turn. So the sweep ends when a partition comes again, or when none has events.
    fn claimed(&mut self, reach: ClaimStart, partition: Option<i16>) {
        if reach == ClaimStart::AboveFloor {
            return;
        }
        if partition.is_none_or(|partition| !self.read.insert(partition)) {
            *self = Sweep::after(Instant::now());
        }
    }
}

/// Why a turn failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum TurnError {
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    #[error(transparent)]
    Kafka(#[from] Failure),
}

impl Worker for PartitionWorker {
    type Error = TurnError;

    const BACK_OFF: Backoff = Backoff {
        first: Duration::from_millis(100),
        last: Duration::from_secs(5),
    };

    async fn turn(&mut self) -> Result<Duration, TurnError> {
        if self.producer.is_none() {
            self.producer = Some(self.connect().await?);
        }
        if self.is_busy && self.fence.is_due() {
            self.fence.note(self.relay.outbox.mark().await?);
        }
        let reach = self.sweep.reach();
        let passed = self.passed.positions();
        let claim = self.relay.outbox.claim(reach, &passed).await?;
        let partition = claim.as_ref().map(|claim| claim.partition);
        self.sweep.claimed(reach, partition);
        let Some(claim) = claim else {
            self.is_busy = false;
            let pause = IDLE.pause(self.idle_turns);
            self.idle_turns = self.idle_turns.saturating_add(1);
            return Ok(pause);
        };
        self.is_busy = true;
        wrkflw_fault::point("relay.claimed");
        if claim.is_cut {
            // There are more events than one claim takes: wake another worker of this process.
            self.wake.notify_one();
        }
        self.send(claim).await?;
        self.idle_turns = 0;
        Ok(Duration::ZERO)
    }

    async fn woken(&mut self) {
        self.wake.notified().await;
        self.idle_turns = 0;
    }

    fn failed(&mut self, error: TurnError, pause: Duration) {
        report(&error, pause);
        if matches!(error, TurnError::Outbox(_)) {
            // The database may be another one, restored to an earlier moment.
            self.fence = Fence::default();
            self.passed = PassedPositions::default();
            self.relay.outbox.renew();
        }
    }
}

impl PartitionWorker {
    pub(super) fn new(relay: Relay, wake: Arc<Notify>, cancel: CancellationToken) -> Self {
        PartitionWorker {
            relay,
            wake,
            cancel,
            producer: None,
            fence: Fence::default(),
            sweep: Sweep::after(Instant::now()),
            passed: PassedPositions::default(),
            idle_turns: 0,
            is_busy: true,
        }
    }

    /// Closes the connection to Kafka, after the last turn.
    pub(super) async fn stop(self) {
        if let Some(producer) = self.producer {
            producer.discard().await;
        }
    }

    /// Connects before a partition is claimed: a claim is an open transaction, and readers of the event feed wait for those.
    async fn connect(&self) -> Result<Producer, TurnError> {
        tokio::select! {
            producer = Producer::connect(&self.relay.settings, Gaps::Forbidden) => Ok(producer?),
            () = self.cancel.cancelled() => Err(Failure::Transport("the host stops".into()).into()),
        }
    }

    /// Publishes and settles the events of a claim.
    async fn send(&mut self, claim: Claim) -> Result<(), TurnError> {
        let (partition, failures) = (claim.partition, claim.failures);
        let published = publish(
            &mut self.producer,
            &claim.events,
            &self.relay.settings,
            &self.relay.naming,
            &self.cancel,
        )
        .await;
        wrkflw_fault::point("relay.acknowledged");
        alarm(&claim, &published.parked);
        measure_lag(&claim.events, &published.acknowledged);
        // Counted although settling may fail: Kafka has these events already, and gets them again after such a failure.
        let count = published.acknowledged.len();
        metrics::counter!("wrkflw_relay_published_total").increment(count as u64);
        let failure = published.failure.clone();
        let waits = self.settle(claim, published).await?;
        wrkflw_fault::point("relay.settled");
        let Some(failure) = failure else {
            return self.wait_for_release(partition, waits).await;
        };
        if !self.cancel.is_cancelled() {
            let pause = Self::BACK_OFF.pause(u32::try_from(failures).unwrap_or(0));
            self.relay
                .outbox
                .back_off(partition, pause, &failure.to_string())
                .await?;
        }
        Err(failure.into())
    }

    /// Stores the results of a claim. Returns why events wait for a later release, unless there are more events behind them.
    async fn settle(
        &mut self,
        claim: Claim,
        published: Published,
    ) -> Result<Option<String>, TurnError> {
        let (partition, is_cut) = (claim.partition, claim.is_cut);
        let mut events = claim.events.iter();
        let unreadable = events.find_map(|event| event.unreadable.clone());
        let gone = published.acknowledged.len() + published.parked.len();
        let is_settled = gone == claim.events.len() && claim.passed.is_none();
        let horizon = self.fence.horizon();
        let end = match claim.events.last() {
            Some(last) if is_cut => horizon.min(last.pos),
            _ => horizon,
        };
        let is_open = gone + published.waiting < claim.events.len();
        let begins_before = |first: &Waiting| first.pos <= end;
        let passes = is_cut
            && published.waiting > 0
            && !is_open
            && claim.events.first().is_some_and(begins_before);
        // A claim from the beginning, as a sweep makes, comes to an earlier position than those before it.
        let moves =
            claim.passed.is_some() || self.passed.pos(partition).is_none_or(|pos| pos < end);
        if passes && moves {
            self.passed.pass(partition, end, unreadable.clone());
        } else if !passes && claim.passed.is_none() {
            self.passed.forget(partition);
        }
        // A partition in which the worker passes over events has had its turn, as if it had published some.
        if gone > 0 || passes {
            claim
                .settle(Settlement {
                    acknowledged: published.acknowledged,
                    parked: published.parked,
                    floor: is_settled.then_some(end),
                })
                .await?;
        } else {
            claim.release().await?;
        }
        let reads_on = passes || (is_cut && gone > 0);
        let waits = unreadable.or_else(|| self.passed.reason(partition));
        Ok(waits.filter(|_| !reads_on))
    }

    /// Pauses a partition with events that this release cannot read.
    async fn wait_for_release(
        &self,
        partition: i16,
        unreadable: Option<String>,
    ) -> Result<(), TurnError> {
        if let Some(reason) = unreadable {
            tracing::warn!(partition, "events wait in the outbox: {reason}");
            let outbox = &self.relay.outbox;
            outbox
                .back_off(partition, UNREADABLE_PAUSE, &reason)
                .await?;
        }
        Ok(())
    }
}

fn report(error: &TurnError, pause: Duration) {
    let class = match error {
        TurnError::Outbox(_) => "database",
        TurnError::Kafka(_) => "transport",
    };
    metrics::counter!("wrkflw_relay_failures_total", "class" => class).increment(1);
    let retry_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
    tracing::warn!(class, retry_ms, "events wait in the outbox: {error}");
}

/// Records the time from each command to the acknowledgement of its event, except for replayed events. The clocks of two hosts may
/// differ, so the time is at least zero.
fn measure_lag(events: &[Waiting], acknowledged: &[i64]) {
    let (now, lag) = (
        Clock::System.now(),
        metrics::histogram!("wrkflw_relay_lag_seconds"),
    );
    let mut acknowledged = acknowledged.iter().peekable();
    for event in events {
        if acknowledged.next_if(|pos| **pos == event.pos).is_some()
            && !event.replayed
            && let Ok(entry) = &event.entry
        {
            lag.record(now.duration_since(entry.at()).as_secs_f64().max(0.0));
        }
    }
}

/// Logs the parked events as errors: an operator must act, because they are not sent again by themselves.
fn alarm(claim: &Claim, parked: &[wrkflw_store::outbox::Parked]) {
    for parked in parked.iter().filter(|parked| parked.attempts > 0) {
        let refused = claim.events.iter().find(|event| event.pos == parked.pos);
        let instance = refused
            .map(|event| event.instance.to_string())
            .unwrap_or_default();
        let what = if refused.is_some_and(|event| event.replayed) {
            "did not send a replayed event again"
        } else {
            "parked an event and all later ones of its instance as dead letters"
        };
        metrics::counter!("wrkflw_relay_failures_total", "class" => "refused").increment(1);
        tracing::error!(
            instance.id = instance,
            pos = parked.pos,
            attempts = parked.attempts,
            "{what}: {}",
            parked.error
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_ends_although_every_claim_has_events() {
        let mut sweep = Sweep::after(Instant::now());
        assert_eq!(sweep.reach(), ClaimStart::AboveFloor);
        sweep.ended_at = Instant::now().checked_sub(SWEEP_EVERY).expect("a time");
        for partition in 0..16 {
            let reach = sweep.reach();
            assert_eq!(reach, ClaimStart::Everything, "{partition}");
            sweep.claimed(reach, Some(partition));
        }
        sweep.claimed(ClaimStart::Everything, Some(0));
        assert_eq!(sweep.reach(), ClaimStart::AboveFloor);
        assert!(sweep.read.is_empty());
        sweep.ended_at = Instant::now().checked_sub(SWEEP_EVERY).expect("a time");
        sweep.claimed(ClaimStart::Everything, None);
        assert_eq!(sweep.reach(), ClaimStart::AboveFloor);
    }
}
