//! One worker of the relay: claim a lane, publish its events, settle, and again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::fence::Fence;
use super::kafka::{Gaps, Producer};
use super::publish::{Published, publish};
use super::settings::KafkaSettings;
use crate::clock::Clock;
use crate::domain::cloudevent::Naming;
use crate::store::outbox::{Claim, Outbox, OutboxError, Reach, Settlement, Waiting};

/// How often lanes are read from their beginning. The fence makes it needless; it costs little and forgives a
/// floor that somebody set by hand.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// The pause after an empty look doubles from the first to the second.
const POLL_BUSY: Duration = Duration::from_millis(5);
const POLL_IDLE: Duration = Duration::from_millis(250);
/// The pause after a failure doubles from the first to the second.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

pub(super) struct Worker {
    pub(super) outbox: Outbox,
    pub(super) settings: Arc<KafkaSettings>,
    pub(super) naming: Arc<Naming>,
    pub(super) wake: Arc<Notify>,
    pub(super) cancel: CancellationToken,
}

/// What a worker carries from one turn to the next.
struct Memory {
    producer: Option<Producer>,
    fence: Fence,
    swept_at: Instant,
    is_busy: bool,
}

/// How a turn ended.
enum Turn {
    Published,
    NothingWaits,
}

/// Why a turn failed.
#[derive(Debug, thiserror::Error)]
enum TurnError {
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    #[error(transparent)]
    Kafka(#[from] Failure),
}

impl Worker {
    pub(super) async fn run(self) {
        let mut memory = Memory::new();
        let mut poll = Pause::new(POLL_BUSY, POLL_IDLE);
        let mut back_off = Pause::new(BACK_OFF_MIN, BACK_OFF_MAX);
        while !self.cancel.is_cancelled() {
            match self.turn(&mut memory).await {
                Ok(Turn::Published) => {
                    poll.restart();
                    back_off.restart();
                }
                Ok(Turn::NothingWaits) => {
                    back_off.restart();
                    tokio::select! {
                        () = self.cancel.cancelled() => {}
                        () = self.wake.notified() => poll.restart(),
                        () = tokio::time::sleep(poll.next()) => {}
                    }
                }
                Err(error) => {
                    let pause = back_off.next();
                    report(&error, pause);
                    memory.forget(&error);
                    if matches!(error, TurnError::Outbox(_)) {
                        self.outbox.renew();
                    }
                    tokio::select! {
                        () = self.cancel.cancelled() => {}
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            }
        }
        if let Some(producer) = memory.producer {
            producer.discard().await;
        }
    }

    async fn turn(&self, memory: &mut Memory) -> Result<Turn, TurnError> {
        if memory.producer.is_none() {
            memory.producer = Some(self.connect().await?);
        }
        if memory.is_busy && memory.fence.is_due() {
            memory.fence.note(self.outbox.mark().await?);
        }
        let reach = if memory.swept_at.elapsed() >= SWEEP_EVERY {
            Reach::Everything
        } else {
            Reach::AboveFloor
        };
        let Some(claim) = self.outbox.claim(reach).await? else {
            if reach == Reach::Everything {
                memory.swept_at = Instant::now();
            }
            memory.is_busy = false;
            return Ok(Turn::NothingWaits);
        };
        memory.is_busy = true;
        crate::fault::point("relay.claimed");
        if claim.is_cut {
            // There is work for another worker of this process as well.
            self.wake.notify_one();
        }
        self.relay(memory, claim).await?;
        Ok(Turn::Published)
    }

    /// A broker that does not answer is waited for without holding a lane: a claim is an unfinished transaction,
    /// and readers of the feed wait behind those.
    async fn connect(&self) -> Result<Producer, TurnError> {
        tokio::select! {
            producer = Producer::connect(&self.settings, Gaps::Forbidden) => Ok(producer?),
            () = self.cancel.cancelled() => Err(Failure::Transport("the host stops".into()).into()),
        }
    }

    async fn relay(&self, memory: &mut Memory, claim: Claim) -> Result<(), TurnError> {
        let (lane, failures, count) = (claim.lane, claim.failures, claim.events.len());
        let published = publish(
            &mut memory.producer,
            &claim.events,
            &self.settings,
            &self.naming,
            &self.cancel,
        )
        .await;
        let Published {
            acknowledged,
            parked,
            failure,
        } = published;
        crate::fault::point("relay.acknowledged");
        alarm(&claim, &parked);
        measure_lag(&claim.events, &acknowledged);
        let published = acknowledged.len();
        let is_settled = published + parked.len() == count;
        let last = claim.events.last().map_or(0, |event| event.pos);
        let floor = if claim.is_cut {
            memory.fence.horizon().min(last)
        } else {
            memory.fence.horizon()
        };
        if published > 0 || !parked.is_empty() {
            let floor = is_settled.then_some(floor);
            claim
                .settle(Settlement {
                    acknowledged,
                    parked,
                    floor,
                })
                .await?;
        } else {
            claim.release().await?;
        }
        crate::fault::point("relay.settled");
        metrics::counter!("wrkflw_relay_published_total").increment(published as u64);
        let Some(failure) = failure else {
            return Ok(());
        };
        if !self.cancel.is_cancelled() {
            let pause = Pause::after(failures, BACK_OFF_MIN, BACK_OFF_MAX);
            self.outbox
                .back_off(lane, pause, &failure.to_string())
                .await?;
        }
        Err(failure.into())
    }
}

impl Memory {
    fn new() -> Memory {
        Memory {
            producer: None,
            fence: Fence::default(),
            swept_at: Instant::now(),
            is_busy: true,
        }
    }

    /// After a failure of the database it may be another one, restored to an earlier moment.
    fn forget(&mut self, error: &TurnError) {
        if matches!(error, TurnError::Outbox(_)) {
            self.fence = Fence::default();
        }
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

/// How long it took from the commands to here. The clocks of two hosts may differ: no event comes before its command.
fn measure_lag(events: &[Waiting], acknowledged: &[i64]) {
    let (now, lag) = (
        Clock::System.now(),
        metrics::histogram!("wrkflw_relay_lag_seconds"),
    );
    let mut acknowledged = acknowledged.iter().peekable();
    for event in events {
        if acknowledged.next_if(|pos| **pos == event.pos).is_some()
            && let Ok(entry) = &event.entry
        {
            lag.record(now.duration_since(entry.at()).as_secs_f64().max(0.0));
        }
    }
}

/// Parked events need a person: nothing sends them again by itself.
fn alarm(claim: &Claim, parked: &[crate::store::outbox::Parked]) {
    for parked in parked.iter().filter(|parked| parked.attempts > 0) {
        let refused = claim.events.iter().find(|event| event.pos == parked.pos);
        let instance = refused
            .map(|event| event.instance.to_string())
            .unwrap_or_default();
        metrics::counter!("wrkflw_relay_failures_total", "class" => "refused").increment(1);
        tracing::error!(
            instance.id = instance,
            pos = parked.pos,
            attempts = parked.attempts,
            "parked an event and all later ones of its instance as dead letters: {}",
            parked.error
        );
    }
}

/// A pause that doubles up to a limit.
struct Pause {
    first: Duration,
    last: Duration,
    taken: i32,
}

impl Pause {
    fn new(first: Duration, last: Duration) -> Pause {
        Pause {
            first,
            last,
            taken: 0,
        }
    }

    fn restart(&mut self) {
        self.taken = 0;
    }

    fn next(&mut self) -> Duration {
        let pause = Pause::after(self.taken, self.first, self.last);
        self.taken = self.taken.saturating_add(1);
        pause
    }

    /// The pause after `taken` others.
    fn after(taken: i32, first: Duration, last: Duration) -> Duration {
        let doublings = u32::try_from(taken).unwrap_or(0).min(16);
        first.saturating_mul(1 << doublings).min(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_limit() {
        let mut pause = Pause::new(POLL_BUSY, POLL_IDLE);
        let taken: Vec<u128> = (0..8).map(|_| pause.next().as_millis()).collect();
        assert_eq!(taken, [5, 10, 20, 40, 80, 160, 250, 250]);
        pause.restart();
        assert_eq!(pause.next(), POLL_BUSY);
        assert_eq!(
            Pause::after(i32::MAX, BACK_OFF_MIN, BACK_OFF_MAX),
            BACK_OFF_MAX
        );
    }
}
