//! Triggers without a caller: a deadline, a child's end, a service's reply, a buffered signal.
//!
//! If flow logic refuses such a trigger, or anything that follows from it, the command does not fail. The effects of the trigger
//! are undone, and the refusal is recorded. A fault of flow logic ends a command of the host, and the host tries it again. A fault
//! with a buffered signal is recorded like a refusal: the sender chose the input, and the command before the signal is valid.
//!
//! Each trigger is settled before the next is taken: states are entered, joins begin, staffing is checked, and the size is checked.
//! So a refusal always belongs to the newest savepoint, and one savepoint is enough.

use super::fault::{self, ExecutionError};
use super::{Execution, Phase};
use crate::answer::{Reason, Refusal};
use crate::event::Event;
use crate::ids::StateId;
use crate::instance::Instance;
use crate::rejection::Rejection;

/// The execution before the trigger.
pub(super) struct Savepoint {
    state: StateId,
    trigger: String,
    instance: Instance,
    /// How many events there were.
    events: usize,
    /// The value for the rest of the command if the trigger is refused.
    may_enlarge: bool,
    /// Whether the trigger is a buffered signal.
    pub(super) of_signal: bool,
}

/// Saves the execution, in case the trigger is refused. Everything before the trigger is settled, so no joins or checks are
/// pending.
pub(super) fn set(execution: &mut Execution<'_>, state: StateId, trigger: &str, of_signal: bool) {
    execution.savepoint = Some(Box::new(Savepoint {
        state,
        trigger: trigger.to_owned(),
        instance: execution.instance.clone(),
        events: execution.events.len(),
        // The rest of a command of the host records a fact: a deadline passed, a child ended or a service answered.
        may_enlarge: execution.may_enlarge && !execution.context.actor.is_host(),
        of_signal,
    }));
    execution.routers.clear();
    execution.may_enlarge = true;
}

/// Takes a refusal of flow logic.
pub(super) fn take_refusal(
    execution: &mut Execution<'_>,
    function: &'static str,
    refusal: Refusal,
) -> Result<(), ExecutionError> {
    let rejection = fault::rejection(function, refusal)?;
    reject(execution, rejection)
}

/// Ends the command with this rejection. If there is a savepoint, goes back to it and records the rejection instead.
pub(super) fn reject(
    execution: &mut Execution<'_>,
    rejection: Rejection,
) -> Result<(), ExecutionError> {
    let Some(savepoint) = execution.savepoint.take() else {
        return Err(rejection.into());
    };
    undo(execution, *savepoint, rejection.into_reason());
    Ok(())
}

/// Takes an error. If it is a fault with a buffered signal, undoes the signal and records the fault. Any other error ends the command.
pub(super) fn undo_faulty(
    execution: &mut Execution<'_>,
    error: ExecutionError,
) -> Result<(), ExecutionError> {
    let ExecutionError::Fault(fault) = &error else {
        return Err(error);
    };
    let reason = Reason {
        code: fault::LOGIC_FAULT.to_owned(),
        message: fault.to_string(),
    };
    match execution.savepoint.take_if(|savepoint| savepoint.of_signal) {
        Some(savepoint) => undo(execution, *savepoint, reason),
        None => return Err(error),
    }
    Ok(())
}

/// Goes back to the savepoint, and records why.
fn undo(execution: &mut Execution<'_>, savepoint: Savepoint, reason: Reason) {
    execution.instance = savepoint.instance;
    execution.events.truncate(savepoint.events);
    execution.may_enlarge = savepoint.may_enlarge;
    execution.ready_joins.clear();
    execution.dropping.clear();
    execution.staffing_checks.clear();
    execution.entering.clear();
    execution.works.clear();
    execution.phase = Phase::Settle;
    record_refusal(execution, savepoint.state, savepoint.trigger, reason);
}

/// Records the refusal of a trigger without a caller.
pub(super) fn record_refusal(
    execution: &mut Execution<'_>,
    state: StateId,
    trigger: String,
    reason: Reason,
) {
    execution.emit(Event::TriggerRefused {
        state,
        trigger,
        code: reason.code,
        message: fault::bounded(reason.message),
    });
}
