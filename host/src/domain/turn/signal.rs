//! Signals: who takes one, those that come too early, and what becomes of them.
//!
//! A signal moves the oldest stay whose ways are declared for it. When there is none, it is kept until a wait state is
//! entered that counts signals from before; a wait state that does not count them ends the keeping. A signal never stands
//! in for a decision.

use super::fault::TurnError;
use super::{After, Moving, Phase, Turn};
use crate::domain::actor::Actor;
use crate::domain::answer::Reason;
use crate::domain::event::Event;
use crate::domain::graph::{FiredBy, StateKind, Transition};
use crate::domain::ids::StateId;
use crate::domain::instance::{EarlySignal, StateInstance, Status};
use crate::domain::json::Json;
use crate::domain::question::{Occurrence, Source};
use crate::domain::rejection::Rejection;

/// How many signals an instance keeps for states to come.
pub const EARLY_MAX: usize = 100;
/// The longest id of a signal, in bytes.
pub const SIGNAL_ID_BYTES_MAX: usize = 200;

/// A signal as it is judged.
struct Sent<'s> {
    trigger: &'s str,
    input: &'s Json,
    sender: &'s Actor,
}

impl<'a> Turn<'a> {
    /// Somebody sends a signal. Whether it has counted already is known before.
    pub(super) fn signal(
        &mut self,
        trigger: &str,
        id: &str,
        input: &Json,
    ) -> Result<(), TurnError> {
        super::operation::not_ended(&self.instance)?;
        if !(1..=SIGNAL_ID_BYTES_MAX).contains(&id.len()) || id.chars().any(char::is_control) {
            let message = format!(
                "the id of a signal has 1 to {SIGNAL_ID_BYTES_MAX} bytes, none of them a control character"
            );
            return Err(Rejection::invalid("/id", "malformed", message).into());
        }
        self.check_declared(trigger)?;
        let sender = self.context.actor;
        let sent = Sent {
            trigger,
            input,
            sender,
        };
        let taker = self.takers(trigger).next().map(|stay| stay.id);
        match taker {
            Some(state) => self.permits(state, &sent)?,
            None if self.instance.early.len() >= EARLY_MAX => {
                let message = format!(
                    "no state takes {trigger} now, and {EARLY_MAX} signals are kept for states to come already"
                );
                return Err(Rejection::not_now("limit_reached", message).into());
            }
            None => {}
        }
        self.emit(Event::SignalReceived {
            id: id.to_owned(),
            trigger: trigger.to_owned(),
            state: taker,
            input: input.clone(),
            sender: sender.clone(),
        });
        if let Some(state) = taker {
            self.propose(state, &sent);
        }
        Ok(())
    }

    fn check_declared(&self, trigger: &str) -> Result<(), Rejection> {
        let graph = &self.context.version.graph;
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

    /// The stays that take a signal of this trigger, the oldest first.
    fn takers<'t>(&'t self, trigger: &'t str) -> impl Iterator<Item = &'t StateInstance> + 't {
        let takes = move |stay: &&StateInstance| self.way(&stay.name, trigger).is_some();
        self.instance.active.iter().filter(takes)
    }

    fn way(&self, state: &str, trigger: &str) -> Option<&'a Transition> {
        let way = self.context.version.graph.transition(state, trigger);
        way.filter(|way| by_signal(way))
    }

    fn permits(&self, state: StateId, sent: &Sent<'_>) -> Result<(), Rejection> {
        let name = &self.stay_of(state).name;
        let way = self.way(name, sent.trigger);
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

    fn propose(&mut self, state: StateId, sent: &Sent<'_>) {
        let occurrence = Occurrence {
            state_instance: Some(state.to_string()),
            trigger: sent.trigger.to_owned(),
            source: Source::Signal(sent.sender.clone()),
            input: sent.input.clone(),
        };
        let moving = Moving {
            state,
            decision: None,
        };
        self.phase = Phase::Guard(occurrence, After::Transition(moving));
    }

    /// Ends the keeping of signals that the stay would take and that came before it, unless another one waits for them.
    pub(super) fn drop_early(&mut self, state: StateId) {
        let name = self.stay_of(state).name.clone();
        let taken = |signal: &&EarlySignal| {
            self.way(&name, &signal.trigger).is_some() && self.listener(&signal.trigger).is_none()
        };
        let early = self.instance.early.iter().filter(taken);
        let ids: Vec<_> = early.map(|signal| signal.id.clone()).collect();
        for id in ids {
            self.emit(Event::SignalTaken { id, state });
        }
    }

    /// The oldest wait state that counts signals of this trigger from before it was entered.
    fn listener(&self, trigger: &str) -> Option<StateId> {
        let graph = &self.context.version.graph;
        let waits = |stay: &&StateInstance| {
            let declared = graph.state(&stay.name);
            stay.keep_early && declared.is_some_and(|state| state.kind == StateKind::Wait)
        };
        let mut takers = self.takers(trigger);
        takers.find(waits).map(|stay| stay.id)
    }

    /// Gives the oldest signal that was kept to a state that waits for it, if there are both. A suspended instance takes
    /// it when it goes on.
    pub(super) fn take_early(&mut self) -> bool {
        if self.instance.status != Status::Running {
            return false;
        }
        let found = self.instance.early.iter().find_map(|signal| {
            let state = self.listener(&signal.trigger)?;
            Some((state, signal.clone()))
        });
        let Some((state, signal)) = found else {
            return false;
        };
        self.emit(Event::SignalTaken {
            id: signal.id,
            state,
        });
        let sent = Sent {
            trigger: &signal.trigger,
            input: &signal.input,
            sender: &signal.sender,
        };
        match self.permits(state, &sent) {
            Ok(()) => {
                self.propose(state, &sent);
                self.is_early = true;
            }
            Err(Rejection::Forbidden(reason)) => {
                self.refuse(state, signal.trigger.clone(), reason);
            }
            Err(other) => unreachable!("a permission is missing or not: {other}"),
        }
        true
    }

    /// Goes on with a signal that was kept as the guard judged it. A refusal goes into the record, and the next one is
    /// tried.
    pub(super) fn judged_early(
        &mut self,
        occurrence: Occurrence,
        moving: Moving,
        judged: Result<(), TurnError>,
    ) -> Result<(), TurnError> {
        let reason = match judged {
            Ok(()) => {
                self.phase = Phase::Transition(occurrence, moving);
                return Ok(());
            }
            Err(TurnError::Rejected(Rejection::Forbidden(reason))) => reason,
            Err(TurnError::Rejected(Rejection::Invalid(violations))) => {
                let first = violations.into_iter().next();
                let first = first.expect("an invalid verdict names one field at least");
                Reason {
                    code: first.code,
                    message: format!("{}: {}", first.field, first.message),
                }
            }
            Err(other) => return Err(other),
        };
        self.is_early = false;
        self.refuse(moving.state, occurrence.trigger, reason);
        Ok(())
    }

    /// Nobody waits for an answer; the record tells.
    pub(super) fn refuse(&mut self, state: StateId, trigger: String, reason: Reason) {
        self.emit(Event::TriggerRefused {
            state,
            trigger,
            code: reason.code,
            message: reason.message,
        });
    }
}

fn by_signal(way: &Transition) -> bool {
    way.by.contains(&FiredBy::Signal)
}
