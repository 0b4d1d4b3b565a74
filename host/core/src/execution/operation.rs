//! Commands of operators on a whole instance: suspend, resume, cancel.

use super::{Execution, ExecutionError};
use crate::command::Command;
use crate::event::Event;
use crate::ids::{DeadlineId, StateId};
use crate::instance::{Instance, Status};
use crate::rejection::Rejection;

/// Whether the command may enlarge the facts that flow logic is shown. The commands below add little or nothing, so they are
/// never refused for the size.
pub(super) fn may_enlarge(command: &Command) -> bool {
    !matches!(
        command,
        Command::Release { .. }
            | Command::Resolve { .. }
            | Command::Reset { .. }
            | Command::ResumeTask { .. }
            | Command::Comment { .. }
            | Command::Cancel { .. }
            | Command::Suspend { .. }
            | Command::Resume { .. }
            | Command::Reassessment { .. }
    )
}

/// Refuses commands on a suspended instance, except to comment on it, cancel, resume or migrate it. A reassessment is allowed, too; it does
/// nothing while the instance is suspended.
pub(super) fn not_suspended(instance: &Instance, command: &Command) -> Result<(), Rejection> {
    match (&instance.status, command) {
        (
            _,
            Command::Cancel { .. }
            | Command::Comment { .. }
            | Command::Resume { .. }
            | Command::Migrate { .. }
            | Command::Reassessment { .. },
        ) => Ok(()),
        (Status::Suspended { reason, by, at }, _) => Err(Rejection::Suspended {
            id: instance.id,
            reason: reason.clone(),
            by: by.clone(),
            at: *at,
            revision: instance.revision,
        }),
        _ => Ok(()),
    }
}

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

    /// Ends the instance with all its state instances, including waiting joins: for an operator, or for a deadline of a state
    /// instance.
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

    /// Cancels the open tasks of one state instance, or of all.
    pub(super) fn cancel_open_tasks(&mut self, of: Option<StateId>) {
        let open: Vec<_> = self
            .instance
            .active
            .iter()
            .filter(|state| of.is_none_or(|id| id == state.id))
            .flat_map(|state| {
                state
                    .tasks
                    .iter()
                    .filter(|task| task.status.is_open())
                    .map(|task| (state.id, task.id))
            })
            .collect();
        for (state, task) in open {
            self.emit(Event::TaskCancelled {
                task,
                state,
                reason: None,
            });
        }
    }
}
