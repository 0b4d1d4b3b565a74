//! Signals: which state instance takes a signal, and how signals are buffered.
//!
//! A signal moves the oldest active state instance that declares its trigger for signals. If there is none, the signal is
//! buffered until a state is entered that subscribes to buffered signals of its trigger. A wait state that declares the trigger
//! without such a subscription drops the signal; a task state leaves it in the buffer. A signal never replaces a decision.
//!
//! A command takes some of the buffered signals, and a job of the host takes the others. Until then, a new signal that could
//! be buffered goes behind them, so that signals are taken in the order in which they came.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::fault::ExecutionError;
use super::{Execution, Moving, Phase, operation, rules, savepoint, state_instance_of};
use crate::actor::Actor;
use crate::event::Event;
use crate::graph::{FiredBy, Graph, Transition};
use crate::ids::{StateId, check_id};
use crate::instance::{BufferedSignal, Instance, StateInstance, Status};
use crate::json::Json;
use crate::question::{Occurrence, Source};
use crate::rejection::Rejection;

/// How many signals an instance buffers, in all and of one sender, so that one sender cannot fill the buffer.
pub(crate) const BUFFERED_MAX: usize = 400;
pub(crate) const BUFFERED_OF_SENDER_MAX: usize = 100;
/// How many bytes of input the buffered signals may have. Every command on the instance reads and writes them.
const BUFFERED_BYTES_MAX: usize = 1024 * 1024;
const BUFFERED_BYTES_OF_SENDER_MAX: usize = 256 * 1024;
/// How many buffered signals one command takes. Each runs flow logic up to its budget while the sender of the command waits, so a
/// full buffer must not be taken at once. A job of the host goes on with the rest.
const TAKEN_MAX: u32 = 16;
/// The code of a refused signal by correlation: no state instance waits for it now.
pub const NOBODY_WAITS: &str = "nobody_waits";
/// The longest id of a signal, in bytes.
const SIGNAL_ID_BYTES_MAX: usize = 200;

/// Checks the id of a signal. The error states the rule.
pub fn check_signal_id(id: &str) -> Result<(), String> {
    if id.len() > SIGNAL_ID_BYTES_MAX {
        return Err(format!("at most {SIGNAL_ID_BYTES_MAX} bytes"));
    }
    check_id(id, SIGNAL_ID_BYTES_MAX)
}

/// A signal that is being checked.
struct Sent<'s> {
    trigger: &'s str,
    id: &'s str,
    input: &'s Json,
    sender: &'s Actor,
    correlation: Option<&'s str>,
    at: Timestamp,
}

/// Takes or buffers a signal. The caller has already excluded duplicates. A signal by correlation is only for a state
/// instance that subscribes to its trigger under that key. A signal to all is only for the named state instance. Both are
/// refused if there is no such state instance, and never buffered. `meant` is the named state instance; a signal to all always has a
/// correlation key.
pub(super) fn receive(
    execution: &mut Execution<'_>,
    trigger: &str,
    id: &str,
    input: &Json,
    correlation: Option<&str>,
    meant: Option<StateId>,
) -> Result<(), ExecutionError> {
    let graph = &execution.context.version.graph;
    operation::not_ended(&execution.instance)?;
    check_signal_id(id).map_err(|rule| Rejection::invalid("/id", "malformed", rule))?;
    check_declared(graph, trigger)?;
    let sent = &Sent {
        trigger,
        id,
        input,
        sender: execution.context.actor,
        correlation,
        at: execution.context.now,
    };
    let is_meant = |state_instance: &&StateInstance| {
        let is_subscribed = |key| {
            let mut correlated = state_instance.correlated();
            correlated.any(|(subscription, own)| own == key && subscription.trigger == trigger)
        };
        meant.is_none_or(|meant| meant == state_instance.id)
            && correlation.is_none_or(is_subscribed)
    };
    let instance = &execution.instance;
    let taker = takers(graph, instance, trigger)
        .find(is_meant)
        .map(|state_instance| state_instance.id);
    match (taker, correlation) {
        (Some(state), _) => {
            check_permission(graph, instance, state, sent)?;
            check_payload(graph, instance, state, sent)?;
        }
        (None, Some(name)) => {
            let message = format!("no state waits under {name} for {trigger}");
            return Err(Rejection::not_now(NOBODY_WAITS, message).into());
        }
        (None, None) => check_buffered_payload(graph, sent)?,
    }
    let taker =
        taker.filter(|state| correlation.is_some() || !queues(graph, instance, *state, trigger));
    if taker.is_none() {
        check_room(instance, sent)?;
    }
    execution.emit(Event::SignalReceived {
        id: id.to_owned(),
        trigger: trigger.to_owned(),
        state: taker,
        input: sent.input.clone(),
        sender: sent.sender.clone(),
    });
    if let Some(state) = taker {
        execution.phase = proposal(state, sent);
    }
    Ok(())
}

/// Whether a signal for this state instance goes behind buffered signals that are still to be taken.
fn queues(graph: &Graph, instance: &Instance, taker: StateId, trigger: &str) -> bool {
    instance.has_signal_to_take() && buffered_taker(graph, instance, trigger) == Some(taker)
}

/// Refuses a payload that does not fit the taker's transition.
fn check_payload(
    graph: &Graph,
    instance: &Instance,
    state: StateId,
    sent: &Sent<'_>,
) -> Result<(), Rejection> {
    let name = &state_instance_of(instance, state).name;
    let way = way(graph, name, sent.trigger);
    let violations = way.map_or(Vec::new(), |way| rules::input_violations(way, sent.input));
    if violations.is_empty() {
        return Ok(());
    }
    Err(Rejection::Invalid(violations))
}

/// Refuses a payload that fits no transition of its trigger. It is not known yet which of them takes the signal.
fn check_buffered_payload(graph: &Graph, sent: &Sent<'_>) -> Result<(), Rejection> {
    let ways = graph.signalled(sent.trigger);
    let (mut tried, mut refused) = (BTreeSet::new(), None);
    for way in ways {
        // Many transitions may share a schema.
        if !tried.insert(way.input.as_ref().map(Json::as_str)) {
            continue;
        }
        let violations = rules::input_violations(way, sent.input);
        if violations.is_empty() {
            return Ok(());
        }
        refused.get_or_insert(violations);
    }
    refused.map_or(Ok(()), |violations| Err(Rejection::Invalid(violations)))
}

/// Refuses a signal that exceeds the limits of the buffer.
fn check_room(instance: &Instance, sent: &Sent<'_>) -> Result<(), Rejection> {
    let buffered = &instance.buffered;
    let own = buffered
        .iter()
        .filter(|signal| signal.sender.id == sent.sender.id);
    let bytes = |signal: &BufferedSignal| signal.input.as_str().len();
    let coming = sent.input.as_str().len();
    let of_sender: usize = own.clone().map(bytes).sum();
    let of_all: usize = buffered.iter().map(bytes).sum();
    let full = if own.count() >= BUFFERED_OF_SENDER_MAX {
        format!("{BUFFERED_OF_SENDER_MAX} signals of yours are")
    } else if of_sender + coming > BUFFERED_BYTES_OF_SENDER_MAX {
        format!("with it, more than {BUFFERED_BYTES_OF_SENDER_MAX} bytes of yours would be")
    } else if buffered.len() >= BUFFERED_MAX {
        format!("{BUFFERED_MAX} signals are")
    } else if of_all + coming > BUFFERED_BYTES_MAX {
        format!("with it, more than {BUFFERED_BYTES_MAX} bytes would be")
    } else {
        return Ok(());
    };
    let trigger = sent.trigger;
    let message = format!("no state takes {trigger} now, and {full} buffered");
    Err(Rejection::not_now("limit_reached", message))
}

/// Refuses a trigger that the flow declares for no signal.
fn check_declared(graph: &Graph, trigger: &str) -> Result<(), Rejection> {
    let declared = graph.transitions.iter().filter(|way| by_signal(way));
    let mut declared: Vec<_> = declared.map(|way| way.trigger.as_str()).collect();
    declared.sort_unstable();
    declared.dedup();
    if declared.contains(&trigger) {
        return Ok(());
    }
    let message = if declared.is_empty() {
        "no state of this flow takes signals".to_owned()
    } else {
        format!("this flow takes the signals {}", declared.join(", "))
    };
    Err(Rejection::invalid("/trigger", "unknown_signal", message))
}

/// The state instances that declare this trigger for signals, the oldest first.
fn takers<'t>(
    graph: &'t Graph,
    instance: &'t Instance,
    trigger: &'t str,
) -> impl Iterator<Item = &'t StateInstance> + 't {
    let takes =
        move |state_instance: &&StateInstance| way(graph, &state_instance.name, trigger).is_some();
    instance.active.iter().filter(takes)
}

/// The transition that a signal fires in the state.
fn way<'g>(graph: &'g Graph, state: &str, trigger: &str) -> Option<&'g Transition> {
    let way = graph.transition(state, trigger);
    way.filter(|way| by_signal(way))
}

/// Refuses a sender who lacks the permission that the taker's transition needs.
fn check_permission(
    graph: &Graph,
    instance: &Instance,
    state: StateId,
    sent: &Sent<'_>,
) -> Result<(), Rejection> {
    let name = &state_instance_of(instance, state).name;
    let way = way(graph, name, sent.trigger);
    match way.and_then(|way| way.permission.as_deref()) {
        Some(permission) if !sent.sender.may(permission) => Err(Rejection::forbidden(
            "permission_missing",
            format!(
                "{} in {name} needs the permission {permission}",
                sent.trigger
            ),
        )),
        _ => Ok(()),
    }
}

/// The question to `transition` about a signal that this state instance takes.
fn proposal(state: StateId, sent: &Sent<'_>) -> Phase {
    let occurrence = Occurrence {
        state_instance: state.to_string(),
        trigger: sent.trigger.to_owned(),
        source: Source::Signal {
            sender: sent.sender.clone(),
            id: sent.id.to_owned(),
            correlation: sent.correlation.map(str::to_owned),
            at: sent.at,
        },
        input: sent.input.clone(),
    };
    let moving = Moving {
        state,
        decision: None,
    };
    Phase::Transition(occurrence.into(), moving)
}

/// Drops buffered signals whose trigger a wait state declares without taking buffered signals, unless another state instance
/// takes them. All following states have been entered by now, so the order of a plan's targets does not matter.
pub(super) fn drop_buffered(execution: &mut Execution<'_>) {
    let graph = &execution.context.version.graph;
    for state in std::mem::take(&mut execution.dropping) {
        let instance = &execution.instance;
        let mut active = instance.active.iter();
        // A join that began after it may have cancelled it.
        let Some(state_instance) = active.find(|active| active.id == state) else {
            continue;
        };
        let is_dropped = |signal: &&BufferedSignal| {
            way(graph, &state_instance.name, &signal.trigger).is_some()
                && buffered_taker(graph, instance, &signal.trigger).is_none()
        };
        let buffered = instance.buffered.iter().filter(is_dropped);
        let dropped: Vec<_> = buffered.cloned().collect();
        for signal in &dropped {
            take(execution, signal, state);
        }
    }
}

/// Removes a signal from the buffer. Other buffered signals may have the same id.
fn take(execution: &mut Execution<'_>, signal: &BufferedSignal, state: StateId) {
    let mut namesakes = execution
        .instance
        .buffered
        .iter()
        .filter(|kept| kept.id == signal.id);
    let older = namesakes.position(|kept| kept == signal);
    let older = older.filter(|older| *older > 0);
    execution.emit(Event::SignalTaken {
        id: signal.id.clone(),
        state,
        older: older.and_then(|older| u32::try_from(older).ok()),
    });
}

/// The oldest state instance that takes buffered signals of this trigger.
fn buffered_taker(graph: &Graph, instance: &Instance, trigger: &str) -> Option<StateId> {
    let mut takers = takers(graph, instance, trigger);
    let taker = takers.find(|state_instance| state_instance.takes_buffered(trigger));
    taker.map(|state_instance| state_instance.id)
}

/// Proposes the oldest buffered signal that a state instance takes, if there is one. A suspended instance takes it when it is
/// resumed.
pub(super) fn take_buffered(execution: &mut Execution<'_>) -> bool {
    if execution.instance.status != Status::Running || execution.signals_taken == TAKEN_MAX {
        return false;
    }
    let (graph, instance) = (&execution.context.version.graph, &execution.instance);
    let found = instance.buffered.iter().find_map(|signal| {
        let state = buffered_taker(graph, instance, &signal.trigger)?;
        Some((state, signal.clone()))
    });
    let Some((state, signal)) = found else {
        return false;
    };
    execution.signals_taken += 1;
    take(execution, &signal, state);
    let sent = Sent {
        trigger: &signal.trigger,
        id: &signal.id,
        input: &signal.input,
        sender: &signal.sender,
        correlation: None,
        at: signal.at,
    };
    let instance = &execution.instance;
    let checked = check_permission(graph, instance, state, &sent);
    match checked.and_then(|()| check_payload(graph, instance, state, &sent)) {
        Ok(()) => {
            savepoint::set(execution, state, sent.trigger, true);
            execution.phase = proposal(state, &sent);
        }
        Err(refused) => {
            let trigger = signal.trigger.clone();
            savepoint::record_refusal(execution, state, trigger, refused.into_reason());
        }
    }
    true
}

fn by_signal(way: &Transition) -> bool {
    way.by.contains(&FiredBy::Signal)
}
