//! A trigger that nobody waits for: a deadline, a child's end, a buffered signal.
//!
//! If flow logic refuses it, or refuses anything that follows from it, the command does not fail. The instance stays as it was
//! before the trigger, and the refusal is recorded.

use std::collections::VecDeque;

use super::fault::{self, ExecutionError};
use super::{Execution, Phase};
use crate::answer::{Reason, Refusal};
use crate::event::Event;
use crate::ids::StateId;
use crate::instance::Instance;

/// The execution before the trigger.
pub(super) struct Attempt {
    state: StateId,
    trigger: String,
    instance: Instance,
    /// How many events there were.
    events: usize,
    ready_joins: VecDeque<(StateId, bool)>,
    router_steps: u32,
}

impl Execution<'_> {
    /// Notes what to return to if the trigger is refused.
    pub(super) fn attempt(&mut self, state: StateId, trigger: &str) {
        self.attempt = Some(Box::new(Attempt {
            state,
            trigger: trigger.to_owned(),
            instance: self.instance.clone(),
            events: self.events.len(),
            ready_joins: self.ready_joins.clone(),
            router_steps: self.router_steps,
        }));
    }

    /// Flow logic refuses. A caller is told; a trigger that nobody waits for is undone.
    pub(super) fn refused(
        &mut self,
        function: &'static str,
        refusal: Refusal,
    ) -> Result<(), ExecutionError> {
        let rejection = fault::rejection(function, refusal)?;
        if self.attempt.is_none() {
            return Err(rejection.into());
        }
        self.undo(rejection.into_reason());
        Ok(())
    }

    /// Returns to the moment before the trigger, and records why.
    pub(super) fn undo(&mut self, reason: Reason) {
        let Some(attempt) = self.attempt.take() else {
            return;
        };
        self.instance = attempt.instance;
        self.events.truncate(attempt.events);
        self.ready_joins = attempt.ready_joins;
        self.router_steps = attempt.router_steps;
        self.entering.clear();
        self.works.clear();
        self.phase = Phase::Settle;
        self.refuse(attempt.state, attempt.trigger, reason);
    }

    /// Records a refusal for which no caller waits.
    pub(super) fn refuse(&mut self, state: StateId, trigger: String, reason: Reason) {
        self.emit(Event::TriggerRefused {
            state,
            trigger,
            code: reason.code,
            message: fault::bounded(reason.message),
        });
    }
}
