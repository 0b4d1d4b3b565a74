//! Publishing one claim's events, so that each instance's events arrive in order or not at all.
//!
//! First all events together. If the broker refuses a record, it refuses everything that travelled with it, and the
//! culprit is not known: what is left of the batch is then sent one by one, so that only true culprits are
//! found guilty, together with those that follow them in their instances.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rdkafka::producer::DeliveryFuture;
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::kafka::{Gaps, Producer};
use super::settings::KafkaSettings;
use crate::domain::cloudevent::{CloudEvent, Naming};
use crate::domain::ids::{InstanceId, TenantId};
use crate::store::outbox::{Parked, Waiting};

/// How long the broker may take to acknowledge a batch, or one event on its own.
pub(super) const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(10);
/// What is left of that once the host is asked to stop.
pub(super) const STOPPED_WITHIN: Duration = Duration::from_secs(3);
/// Pauses before an event is tried on its own; after the last the event is parked.
const ATTEMPTS_AFTER: [Duration; ATTEMPTS as usize] = [
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_secs(1),
];
const ATTEMPTS: i32 = 3;
/// How long the client may take to answer for what it was told to give up.
const PURGED_WITHIN: Duration = Duration::from_secs(2);
/// How long all of that may take in one claim, well within what the database lets a claim be silent.
const ALONE_WITHIN: Duration = Duration::from_secs(20);
/// Events that are tried on their own in one claim; the others wait for the next.
const ALONE_EVENTS_MAX: usize = 100;

/// Why an event follows others into the dead letters.
const FOLLOWS_PARKED: &str = "an earlier event of its instance is parked";

/// What became of the events of one claim.
#[derive(Debug, Default)]
pub(super) struct Published {
    pub(super) acknowledged: Vec<i64>,
    pub(super) parked: Vec<Parked>,
    /// Why some events are neither: they are still to be sent.
    pub(super) failure: Option<Failure>,
}

type Stream = (TenantId, InstanceId);

/// One event on its way.
struct Letter {
    pos: i64,
    stream: Stream,
    event: Result<CloudEvent, Failure>,
    state: State,
}

enum State {
    Unsent,
    Sent(DeliveryFuture),
    Acknowledged,
    Failed(Failure),
    Parked(Parked),
}

/// Publishes `events`. A producer that has failed is taken from `producer`.
pub(super) async fn publish(
    producer: &mut Option<Producer>,
    events: &[Waiting],
    settings: &KafkaSettings,
    naming: &Naming,
    cancel: &CancellationToken,
) -> Published {
    let mut letters: Vec<Letter> = events
        .iter()
        .map(|waiting| letter(waiting, naming))
        .collect();
    if let Some(together) = producer {
        send_together(together, &mut letters);
        crate::fault::point("relay.produced");
        await_reports(together, &mut letters, cancel).await;
    }
    let failure = letters.iter().find_map(|letter| match &letter.state {
        State::Failed(failure @ Failure::Transport(_)) => Some(failure.clone()),
        _ => None,
    });
    let refused = letters
        .iter()
        .any(|letter| matches!(letter.state, State::Failed(Failure::Refused(_))));
    if (refused || failure.is_some())
        && let Some(broken) = producer.take()
    {
        broken.discard().await;
    }
    if refused {
        let failure = send_alone(&mut letters, settings, cancel).await.err();
        return conclude(letters, failure);
    }
    conclude(letters, failure)
}

fn letter(waiting: &Waiting, naming: &Naming) -> Letter {
    let event = match &waiting.entry {
        Ok(public) => CloudEvent::public(public, naming)
            .map_err(|error| format!("audit_entry.payload is damaged: {error}")),
        Err(reason) => Err(reason.clone()),
    };
    let parked = Parked {
        pos: waiting.pos,
        error: FOLLOWS_PARKED.into(),
        attempts: 0,
    };
    Letter {
        pos: waiting.pos,
        stream: (waiting.tenant, waiting.instance),
        event: event.map_err(Failure::Refused),
        state: if waiting.follows_parked {
            State::Parked(parked)
        } else {
            State::Unsent
        },
    }
}

/// Hands over everything in order. An instance whose event could not be handed over sends nothing more.
fn send_together(producer: &Producer, letters: &mut [Letter]) {
    let mut held: HashSet<Stream> = HashSet::new();
    for letter in letters {
        if !matches!(letter.state, State::Unsent) || held.contains(&letter.stream) {
            continue;
        }
        let sent = letter
            .event
            .as_ref()
            .map_err(Failure::clone)
            .and_then(|event| producer.send(event));
        match sent {
            Ok(report) => letter.state = State::Sent(report),
            Err(failure @ Failure::Refused(_)) => {
                held.insert(letter.stream);
                letter.state = State::Failed(failure);
            }
            // The client's own queue is full or broken: what comes later must not overtake.
            Err(failure @ Failure::Transport(_)) => {
                letter.state = State::Failed(failure);
                return;
            }
        }
    }
}

/// Awaits all delivery reports, until the deadline at the latest: then nothing more may be delivered.
async fn await_reports(producer: &Producer, letters: &mut [Letter], cancel: &CancellationToken) {
    let expired = expired(producer, cancel);
    tokio::pin!(expired);
    let mut purged = None;
    for letter in letters {
        let State::Sent(report) = &mut letter.state else {
            continue;
        };
        let mut outcome = None;
        if purged.is_none() {
            tokio::select! {
                biased;
                report = &mut *report => outcome = Some(delivered(report)),
                late = &mut expired => {
                    producer.purge();
                    purged = Some(late);
                }
            }
        }
        letter.state = match (outcome, &purged) {
            (Some(outcome), _) => outcome,
            // The purge answers every open report, many with the acknowledgement that was just under way.
            (None, late) => match tokio::time::timeout(PURGED_WITHIN, report).await {
                Ok(report) => delivered(report),
                Err(_) => Err(late.clone().unwrap_or(Failure::Transport(
                    "the Kafka client does not answer".into(),
                ))),
            },
        }
        .map_or_else(State::Failed, |()| State::Acknowledged);
    }
}

/// Completes when a batch, or one event on its own, has had its time, or has none left.
async fn expired(producer: &Producer, cancel: &CancellationToken) -> Failure {
    let stopped = async {
        cancel.cancelled().await;
        tokio::time::sleep(STOPPED_WITHIN).await;
    };
    tokio::select! {
        () = tokio::time::sleep(ACKNOWLEDGED_WITHIN) => {
            Failure::Transport(format!("the broker did not acknowledge within {} s", ACKNOWLEDGED_WITHIN.as_secs()))
        }
        () = producer.broken() => Failure::Transport("the Kafka producer gave up".into()),
        () = stopped => Failure::Transport("the broker did not acknowledge before the host stopped".into()),
    }
}

type Report = <DeliveryFuture as Future>::Output;

fn delivered(report: Report) -> Result<(), Failure> {
    match report {
        Ok(Ok(_)) => Ok(()),
        Ok(Err((error, _))) => Err(error.into()),
        Err(_) => Err(Failure::Transport("the Kafka producer ended".into())),
    }
}

/// Sends what is left one by one, and parks what is refused each time.
async fn send_alone(
    letters: &mut [Letter],
    settings: &KafkaSettings,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let producer = Producer::connect(settings, Gaps::Permitted).await?;
    let outcome = try_alone(&producer, letters, cancel).await;
    producer.discard().await;
    outcome
}

async fn try_alone(
    producer: &Producer,
    letters: &mut [Letter],
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let end = letters
        .iter()
        .enumerate()
        .filter(|(_, letter)| letter.is_open())
        .nth(ALONE_EVENTS_MAX)
        .map_or(letters.len(), |(end, _)| end);
    let begun = Instant::now();
    for pause in ATTEMPTS_AFTER {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = cancel.cancelled() => return Ok(()),
        }
        let mut held: HashSet<Stream> = HashSet::new();
        for letter in letters[..end].iter_mut().filter(|letter| letter.is_open()) {
            if held.contains(&letter.stream) {
                letter.state = State::Unsent;
                continue;
            }
            if cancel.is_cancelled() {
                return Ok(());
            }
            if begun.elapsed() > ALONE_WITHIN {
                return Err(Failure::Transport(
                    "the broker answers too slowly to try events one by one".into(),
                ));
            }
            letter.send_alone(producer, cancel).await?;
            if letter.is_open() {
                held.insert(letter.stream);
            }
        }
        if held.is_empty() {
            return Ok(());
        }
    }
    park(letters, end);
    Ok(())
}

/// Parks every event refused to the last, and all that follow it in its instance.
fn park(letters: &mut [Letter], tried: usize) {
    let mut parked: HashSet<Stream> = HashSet::new();
    for (index, letter) in letters.iter_mut().enumerate() {
        let (error, attempts) = match &letter.state {
            State::Acknowledged | State::Parked(_) => continue,
            _ if parked.contains(&letter.stream) => (FOLLOWS_PARKED.to_owned(), 0),
            State::Failed(Failure::Refused(reason)) if index < tried => (reason.clone(), ATTEMPTS),
            State::Failed(_) | State::Unsent | State::Sent(_) => continue,
        };
        parked.insert(letter.stream);
        letter.state = State::Parked(Parked {
            pos: letter.pos,
            error,
            attempts,
        });
    }
}

impl Letter {
    fn is_open(&self) -> bool {
        !matches!(self.state, State::Acknowledged | State::Parked(_))
    }

    /// Err only if it is not the event's own fault.
    async fn send_alone(
        &mut self,
        producer: &Producer,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        let sent = self
            .event
            .as_ref()
            .map_err(Failure::clone)
            .and_then(|event| producer.send(event));
        match sent {
            Ok(report) => {
                self.state = State::Sent(report);
                await_reports(producer, std::slice::from_mut(self), cancel).await;
            }
            Err(failure) => self.state = State::Failed(failure),
        }
        match &self.state {
            State::Failed(failure @ Failure::Transport(_)) => Err(failure.clone()),
            State::Failed(Failure::Refused(_))
            | State::Unsent
            | State::Sent(_)
            | State::Acknowledged
            | State::Parked(_) => Ok(()),
        }
    }
}

/// An acknowledgement counts only if nothing of the same instance was left behind: what is sent again must be sent
/// again in order.
fn conclude(letters: Vec<Letter>, failure: Option<Failure>) -> Published {
    let mut published = Published {
        failure,
        ..Published::default()
    };
    let mut left: HashSet<Stream> = HashSet::new();
    for letter in letters {
        match letter.state {
            State::Acknowledged if !left.contains(&letter.stream) => {
                published.acknowledged.push(letter.pos);
            }
            State::Parked(parked) => published.parked.push(parked),
            State::Acknowledged | State::Unsent | State::Sent(_) | State::Failed(_) => {
                left.insert(letter.stream);
            }
        }
    }
    published
}
