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

/// How many signals an instance keeps for states to come; and of one sender, so that nobody fills it alone.
pub const EARLY_MAX: usize = 400;
pub const EARLY_OF_SENDER_MAX: usize = 100;
/// How many bytes of input these may have together. Every command on the instance reads and writes them.
const EARLY_BYTES_MAX: usize = 1024 * 1024;
const EARLY_BYTES_OF_SENDER_MAX: usize = 256 * 1024;
/// The code of a signal by correlation for which the instance does not wait, or no longer: it is another's.
pub const NOBODY_WAITS: &str = "nobody_waits";
/// The longest id of a signal, in bytes.
pub const SIGNAL_ID_BYTES_MAX: usize = 200;

/// A signal as it is judged.
struct Sent<'s> {
    trigger: &'s str,
    input: &'s Json,
    sender: &'s Actor,
}

impl<'a> Turn<'a> {
    /// Somebody sends a signal. Whether it has counted already is known before. One by correlation is for a stay that
    /// waits under that name, and is not kept where none does.
    pub(super) fn signal(
        &mut self,
        trigger: &str,
        id: &str,
        input: &Json,
        correlation: Option<&str>,
    ) -> Result<(), TurnError> {
        super::operation::not_ended(&self.instance)?;
        if !(1..=SIGNAL_ID_BYTES_MAX).contains(&id.len()) || id.chars().any(char::is_control) {
            let message = format!(
                "the id of a signal has 1 to {SIGNAL_ID_BYTES_MAX} bytes, none of them a control character"
            );
            return Err(Rejection::invalid("/id", "malformed", message).into());
        }
        self.check_declared(trigger)?;
        let sent = &Sent {
            trigger,
            input,
            sender: self.context.actor,
        };
        let is_meant = |stay: &&StateInstance| {
            correlation.is_none() || stay.correlation.as_deref() == correlation
        };
        let taker = self.takers(trigger).find(is_meant).map(|stay| stay.id);
        match (taker, correlation) {
            (Some(state), _) => self.permits(state, sent)?,
            (None, Some(name)) => {
                let message = format!("no state waits under {name} for {trigger}");
                return Err(Rejection::not_now(NOBODY_WAITS, message).into());
            }
            (None, None) => self.check_room(sent)?,
        }
        self.emit(Event::SignalReceived {
            id: id.to_owned(),
            trigger: trigger.to_owned(),
            state: taker,
            input: sent.input.clone(),
            sender: sent.sender.clone(),
        });
        if let Some(state) = taker {
            self.propose(state, sent);
        }
        Ok(())
    }

    /// Whether there is room for one more to be kept.
    fn check_room(&self, sent: &Sent<'_>) -> Result<(), Rejection> {
        let early = &self.instance.early;
        let own = early
            .iter()
            .filter(|signal| signal.sender.id == sent.sender.id);
        let bytes = |signal: &EarlySignal| signal.input.as_str().len();
        let coming = sent.input.as_str().len();
        let of_sender: usize = own.clone().map(bytes).sum();
        let of_all: usize = early.iter().map(bytes).sum();
        let full = if own.count() >= EARLY_OF_SENDER_MAX {
            format!("{EARLY_OF_SENDER_MAX} signals of yours are")
        } else if of_sender + coming > EARLY_BYTES_OF_SENDER_MAX {
            format!("with it, more than {EARLY_BYTES_OF_SENDER_MAX} bytes of yours would be")
        } else if early.len() >= EARLY_MAX {
            format!("{EARLY_MAX} signals are")
        } else if of_all + coming > EARLY_BYTES_MAX {
            format!("with it, more than {EARLY_BYTES_MAX} bytes would be")
        } else {
            return Ok(());
        };
        let trigger = sent.trigger;
        let message =
            format!("no state takes {trigger} now, and {full} kept for states to come already");
        Err(Rejection::not_now("limit_reached", message))
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
        let dropped: Vec<_> = early.cloned().collect();
        for signal in &dropped {
            self.take(signal, state);
        }
    }

    /// A signal is kept no longer. Others that are kept may have its id.
    fn take(&mut self, signal: &EarlySignal, state: StateId) {
        let mut namesakes = self
            .instance
            .early
            .iter()
            .filter(|kept| kept.id == signal.id);
        let older = namesakes.position(|kept| kept == signal);
        let older = older.filter(|older| *older > 0);
        self.emit(Event::SignalTaken {
            id: signal.id.clone(),
            state,
            older: older.and_then(|older| u32::try_from(older).ok()),
        });
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
        self.take(&signal, state);
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
