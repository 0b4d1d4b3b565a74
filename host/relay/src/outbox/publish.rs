//! Publishes the events of one claim, so that each instance's events arrive in order or not at all.
//!
//! First the relay sends all events together. If the broker refuses a record, all records of its batch fail, and the report does not say
//! which one was refused. So the relay then sends the rest one by one. It parks only events that the broker refuses when they are sent
//! singly, together with the later events of their instances. It does not send an event that this release cannot read, nor the later
//! events of its instance: they wait for another relay.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rdkafka::producer::DeliveryFuture;
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::kafka::{Gaps, Producer};
use super::settings::KafkaSettings;
use wrkflw_core::cloudevent::{CloudEvent, Naming};
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_store::outbox::{Parked, Waiting};

/// How long the broker may take to acknowledge a batch, or a single event.
pub(super) const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(10);
/// The limit of that time after the host is asked to stop.
pub(super) const STOPPED_WITHIN: Duration = Duration::from_secs(3);
/// Pauses before the attempts to send a single event. After the last attempt the event is parked.
const ATTEMPTS_AFTER: [Duration; ATTEMPTS as usize] = [
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_secs(1),
];
const ATTEMPTS: i32 = 3;
/// How long the client may take to report on purged records.
const PURGED_WITHIN: Duration = Duration::from_secs(2);
/// After this time no further single attempt of a claim begins. This time and the last attempt together are well below the time
/// after which the database ends an idle claim.
const ALONE_WITHIN: Duration = Duration::from_secs(20);
/// After this time the first attempts of a claim end with a refused event. So a slow broker leaves time for the other attempts of the
/// refused events. None of these attempts takes longer than the first ones.
const REFUSED_WITHIN: Duration = Duration::from_secs(5);
/// Events sent singly in one claim. The others wait for the next claim.
const ALONE_EVENTS_MAX: usize = 100;

/// The error of an event that is parked because it follows a parked one.
const FOLLOWS_PARKED: &str = "an earlier event of its instance is parked";

/// The result of publishing one claim.
#[derive(Debug, Default)]
pub(super) struct Published {
    pub(super) acknowledged: Vec<i64>,
    pub(super) parked: Vec<Parked>,
    /// How many wait for a later release.
    pub(super) waiting: usize,
    /// The failure of transport, if there was one. Without one, events may still be open: they need a later release, the host stops, or
    /// more than [`ALONE_EVENTS_MAX`] events had to be sent singly.
    pub(super) failure: Option<Failure>,
}

type Stream = (TenantId, InstanceId);

/// One event to send, and its state.
struct Message {
    pos: i64,
    stream: Stream,
    replayed: bool,
    event: Result<CloudEvent, Failure>,
    state: State,
}

enum State {
    Unsent,
    Sent(DeliveryFuture),
    Acknowledged,
    Failed(Failure),
    Parked(Parked),
    /// It or an earlier event of its instance needs a later release.
    Unreadable,
}

/// Publishes `events`. After a failure of transport or a refused event, `producer` is None: the caller connects a new one.
pub(super) async fn publish(
    producer: &mut Option<Producer>,
    events: &[Waiting],
    settings: &KafkaSettings,
    naming: &Naming,
    cancel: &CancellationToken,
) -> Published {
    let mut unreadable: HashSet<Stream> = HashSet::new();
    let mut messages = Vec::with_capacity(events.len());
    for waiting in events {
        let mut message = message(waiting, naming);
        if waiting.unreadable.is_some() || waiting.follows_waiting {
            unreadable.insert(message.stream);
        }
        if matches!(message.state, State::Unsent) && unreadable.contains(&message.stream) {
            message.state = State::Unreadable;
        }
        messages.push(message);
    }
    if let Some(connected) = producer {
        send_together(connected, &mut messages);
        wrkflw_fault::point("relay.produced");
        await_reports(connected, &mut messages, cancel).await;
    }
    let failure = messages.iter().find_map(|message| match &message.state {
        State::Failed(failure @ Failure::Transport(_)) => Some(failure.clone()),
        _ => None,
    });
    let refused = messages
        .iter()
        .any(|message| matches!(message.state, State::Failed(Failure::Refused(_))));
    if (refused || failure.is_some())
        && let Some(broken) = producer.take()
    {
        broken.discard().await;
    }
    if refused {
        let failure = send_alone(&mut messages, settings, cancel).await.err();
        return conclude(messages, failure);
    }
    conclude(messages, failure)
}

fn message(waiting: &Waiting, naming: &Naming) -> Message {
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
    Message {
        pos: waiting.pos,
        stream: (waiting.tenant, waiting.instance),
        replayed: waiting.replayed,
        event: event.map_err(Failure::Refused),
        state: if waiting.follows_parked {
            State::Parked(parked)
        } else {
            State::Unsent
        },
    }
}

/// Sends everything in order. After an event that could not be sent, no more events of its instance are sent.
fn send_together(producer: &Producer, messages: &mut [Message]) {
    let mut blocked: HashSet<Stream> = HashSet::new();
    for message in messages {
        if !matches!(message.state, State::Unsent) || blocked.contains(&message.stream) {
            continue;
        }
        let sent = message
            .event
            .as_ref()
            .map_err(Failure::clone)
            .and_then(|event| producer.send(event, message.replayed));
        match sent {
            Ok(report) => message.state = State::Sent(report),
            Err(failure @ Failure::Refused(_)) => {
                blocked.insert(message.stream);
                message.state = State::Failed(failure);
            }
            // The client's queue is full or broken. Later events must not overtake this one.
            Err(failure @ Failure::Transport(_)) => {
                message.state = State::Failed(failure);
                return;
            }
        }
    }
}

/// Awaits the delivery reports. At the deadline the producer is purged, so that nothing is delivered after it.
async fn await_reports(producer: &Producer, messages: &mut [Message], cancel: &CancellationToken) {
    let expired = expired(producer, cancel);
    tokio::pin!(expired);
    let mut purged = None;
    for message in messages {
        let State::Sent(report) = &mut message.state else {
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
        message.state = match (outcome, &purged) {
            (Some(outcome), _) => outcome,
            // A purge resolves every open report, often with an acknowledgement that has just arrived.
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

/// Completes when the relay must no longer wait for a batch or a single event.
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

/// Sends the open events one by one, and parks those that are refused on every attempt.
async fn send_alone(
    messages: &mut [Message],
    settings: &KafkaSettings,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let producer = Producer::connect(settings, Gaps::Permitted).await?;
    let outcome = try_alone(&producer, messages, cancel).await;
    producer.discard().await;
    outcome
}

async fn try_alone(
    producer: &Producer,
    messages: &mut [Message],
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let mut end = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| message.is_open())
        .nth(ALONE_EVENTS_MAX)
        .map_or(messages.len(), |(end, _)| end);
    let begun = Instant::now();
    for (attempt, pause) in ATTEMPTS_AFTER.into_iter().enumerate() {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = cancel.cancelled() => return Ok(()),
        }
        let mut blocked: HashSet<Stream> = HashSet::new();
        for (index, message) in messages[..end].iter_mut().enumerate() {
            if !message.is_open() {
                continue;
            }
            if attempt == 0 && !blocked.is_empty() && begun.elapsed() > REFUSED_WITHIN {
                end = index;
                break;
            }
            if blocked.contains(&message.stream) {
                message.state = State::Unsent;
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
            message.send_alone(producer, cancel).await?;
            if message.is_open() {
                blocked.insert(message.stream);
            }
        }
        if blocked.is_empty() {
            return Ok(());
        }
    }
    park(messages, end);
    Ok(())
}

/// Parks every event that the last attempt refused, and all later ones of its instance.
fn park(messages: &mut [Message], tried: usize) {
    let mut parked: HashSet<Stream> = HashSet::new();
    for (index, message) in messages.iter_mut().enumerate() {
        let (error, attempts) = match &message.state {
            State::Acknowledged | State::Parked(_) | State::Unreadable => continue,
            _ if parked.contains(&message.stream) => (FOLLOWS_PARKED.to_owned(), 0),
            State::Failed(Failure::Refused(reason)) if index < tried => (reason.clone(), ATTEMPTS),
            State::Failed(_) | State::Unsent | State::Sent(_) => continue,
        };
        // A replayed event was published before. If the broker refuses it now, the relay drops it and does not park the events behind it.
        if !message.replayed {
            parked.insert(message.stream);
        }
        message.state = State::Parked(Parked {
            pos: message.pos,
            error,
            attempts,
        });
    }
}

impl Message {
    fn is_open(&self) -> bool {
        !matches!(
            self.state,
            State::Acknowledged | State::Parked(_) | State::Unreadable
        )
    }

    /// Returns an error only for a failure of the transport.
    async fn send_alone(
        &mut self,
        producer: &Producer,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        let sent = self
            .event
            .as_ref()
            .map_err(Failure::clone)
            .and_then(|event| producer.send(event, self.replayed));
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
            | State::Parked(_)
            | State::Unreadable => Ok(()),
        }
    }
}

/// An acknowledgement counts only if all earlier events of the instance are settled, because repeated events must also be sent in order.
fn conclude(messages: Vec<Message>, failure: Option<Failure>) -> Published {
    let mut published = Published {
        failure,
        ..Published::default()
    };
    let mut left: HashSet<Stream> = HashSet::new();
    for message in messages {
        match message.state {
            State::Acknowledged if !left.contains(&message.stream) => {
                published.acknowledged.push(message.pos);
            }
            State::Parked(parked) => published.parked.push(parked),
            State::Unreadable => {
                published.waiting += 1;
                left.insert(message.stream);
            }
            State::Acknowledged | State::Unsent | State::Sent(_) | State::Failed(_) => {
                left.insert(message.stream);
            }
        }
    }
    published
}
