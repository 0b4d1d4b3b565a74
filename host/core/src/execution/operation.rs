//! Commands of operators on a whole instance: suspend, resume, cancel.

use super::{Execution, ExecutionError};
use crate::event::Event;
use crate::ids::{DeadlineId, StateId};
use crate::instance::{Instance, Status};
use crate::rejection::Rejection;

/// Refuses a command after the end of the instance.
pub(super) fn not_ended(instance: &Instance) -> Result<(), Rejection> {
    match instance.status.ended_at() {
        Some(at) => Err(Rejection::ended(instance, at)),
        None => Ok(()),
    }
}

impl Execution<'_> {
    pub(super) fn cancel(&mut self, reason: &str) -> Result<(), ExecutionError> {
        not_ended(&self.instance)?;
        self.cancel_all(reason, None);
        Ok(())
    }

    /// Ends the instance with all its state instances, including waiting joins, for an operator or for a deadline of a state instance.
    pub(super) fn cancel_all(&mut self, reason: &str, overdue: Option<(StateId, DeadlineId)>) {
        self.cancel_open_tasks(None);
        let (state, deadline) = overdue.unzip();
        self.emit(Event::FlowCancelled {
            reason: reason.to_owned(),
            deadline,
            state,
        });
    }

    pub(super) fn suspend(&mut self, reason: &str) -> Result<(), ExecutionError> {
        not_ended(&self.instance)?;
        self.emit(Event::FlowSuspended {
            reason: reason.to_owned(),
        });
        Ok(())
    }

    /// Ends the suspension. Each deadline is postponed by the length of the suspension.
    pub(super) fn end_suspension(&mut self) -> Result<(), ExecutionError> {
        not_ended(&self.instance)?;
        if self.instance.status == Status::Running {
            let message = "the instance is not suspended";
            return Err(Rejection::not_now("not_suspended", message).into());
        }
        self.emit(Event::FlowResumed {});
        Ok(())
    }
}
