//! Suspends and resumes tasks. While a task is suspended, nobody may decide it or give it to others, and its own deadlines
//! do not count. The deadlines of its state go on.

use jiff::{SignedDuration, Timestamp};

use super::eligibility::Workplace;
use super::ownership::ASSIGN;
use super::rules::task_not_suspended;
use super::{Execution, ExecutionError, rules};
use crate::event::Event;
use crate::ids::{DeadlineId, TaskId};
use crate::instance::Task;
use crate::rejection::Rejection;

/// How long a task may be suspended until the host resumes it.
const UNTIL_MAX: SignedDuration = SignedDuration::from_hours(24 * 366);

/// The owner, a substitute of the owner or an operator suspends the task.
pub(super) fn suspend(
    execution: &mut Execution<'_>,
    id: TaskId,
    reason: Option<&str>,
    until: Option<Timestamp>,
) -> Result<(), ExecutionError> {
    let (place, task) = rules::workplace(execution.context, &execution.instance, id)?;
    check_holder(place, task, "suspend")?;
    task_not_suspended(&execution.instance, task)?;
    let now = execution.context.now;
    let refuse = |code, message: &str| Err(Rejection::invalid("/until", code, message).into());
    match until.map(|until| until.duration_since(now)) {
        Some(pause) if pause <= SignedDuration::ZERO => {
            return refuse("not_in_future", "a time after now");
        }
        Some(pause) if pause > UNTIL_MAX => {
            return refuse("too_late", "at most 366 days ahead");
        }
        _ => {}
    }
    let state = place.state_instance.id;
    execution.emit(Event::TaskSuspended {
        task: id,
        state,
        reason: reason.map(str::to_owned),
        until,
    });
    Ok(())
}

/// The owner, a substitute of the owner or an operator resumes the task.
pub(super) fn resume(execution: &mut Execution<'_>, id: TaskId) -> Result<(), ExecutionError> {
    let (place, task) = rules::workplace(execution.context, &execution.instance, id)?;
    check_holder(place, task, "resume")?;
    if task.suspended.is_none() {
        let message = "the task is not suspended";
        return Err(Rejection::not_now("not_suspended", message).into());
    }
    let state = place.state_instance.id;
    execution.emit(Event::TaskResumed { task: id, state });
    Ok(())
}

/// Refuses an actor who may not suspend and resume the task. A task that nobody owns is suspended by operators only.
fn check_holder(place: Workplace<'_>, task: &Task, what: &str) -> Result<(), Rejection> {
    match place.owned(task, what) {
        Err(refusal) if !place.context.actor.may(ASSIGN) => Err(refusal),
        _ => Ok(()),
    }
}

/// Resumes the suspended task that this deadline resumes. False if no suspended task has this deadline at this time.
pub(super) fn resume_due(execution: &mut Execution<'_>, id: DeadlineId, due_at: Timestamp) -> bool {
    let found = execution.instance.active.iter().find_map(|state_instance| {
        let mut tasks = state_instance.tasks.iter();
        let task = tasks.find(|task| task.resumption() == Some((id, due_at)))?;
        Some((state_instance.id, task.id))
    });
    let Some((state, task)) = found else {
        return false;
    };
    execution.emit(Event::TaskResumed { task, state });
    true
}
