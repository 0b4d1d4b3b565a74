//! Commands of operators on a whole instance: suspend, resume, cancel.

use super::{Execution, ExecutionError, plan};
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

pub(super) fn cancel(execution: &mut Execution<'_>, reason: &str) -> Result<(), ExecutionError> {
    not_ended(&execution.instance)?;
    cancel_all(execution, reason, None);
    Ok(())
}

/// Ends the instance with all its state instances, including waiting joins, for an operator or for a deadline of a state instance.
pub(super) fn cancel_all(
    execution: &mut Execution<'_>,
    reason: &str,
    overdue: Option<(StateId, DeadlineId)>,
) {
    plan::cancel_open_tasks(execution, None);
    let (state, deadline) = overdue.unzip();
    execution.emit(Event::FlowCancelled {
        reason: reason.to_owned(),
        deadline,
        state,
    });
}

pub(super) fn suspend(execution: &mut Execution<'_>, reason: &str) -> Result<(), ExecutionError> {
    not_ended(&execution.instance)?;
    execution.emit(Event::FlowSuspended {
        reason: reason.to_owned(),
    });
    Ok(())
}

/// Ends the suspension. Each deadline is postponed by the length of the suspension.
pub(super) fn end_suspension(execution: &mut Execution<'_>) -> Result<(), ExecutionError> {
    not_ended(&execution.instance)?;
    if execution.instance.status == Status::Running {
        let message = "the instance is not suspended";
        return Err(Rejection::not_now("not_suspended", message).into());
    }
    execution.emit(Event::FlowResumed {});
    Ok(())
}
