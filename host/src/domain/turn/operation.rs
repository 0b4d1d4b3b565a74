//! What operators do with an instance as a whole: suspend it, let it go on, cancel it. No task changes its owner here.

use super::{Turn, TurnError};
use crate::domain::command::Command;
use crate::domain::event::Event;
use crate::domain::ids::StateId;
use crate::domain::instance::{Instance, Status};
use crate::domain::rejection::Rejection;

/// Nothing happens to a suspended instance but what ends the suspension, or the instance, or prepares it for either. A
/// look at who is able to act is no harm: it finds nothing to do until the instance goes on.
pub(super) fn not_suspended(instance: &Instance, command: &Command) -> Result<(), Rejection> {
    match (&instance.status, command) {
        (
            _,
            Command::Cancel { .. }
            | Command::Resume { .. }
            | Command::Migrate { .. }
            | Command::Recheck { .. },
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

/// Refuses what comes after the end.
pub(super) fn not_ended(instance: &Instance) -> Result<(), Rejection> {
    match instance.status.ended_at() {
        Some(at) => Err(Rejection::ended(instance, at)),
        None => Ok(()),
    }
}

impl Turn<'_> {
    /// Ends everything that goes on in the instance, joins that wait for branches included.
    pub(super) fn cancel(&mut self, reason: &str) -> Result<(), TurnError> {
        not_ended(&self.instance)?;
        self.cancel_open_tasks(None);
        self.emit(Event::FlowCancelled {
            reason: reason.to_owned(),
        });
        Ok(())
    }

    pub(super) fn suspend(&mut self, reason: &str) -> Result<(), TurnError> {
        not_ended(&self.instance)?;
        self.emit(Event::FlowSuspended {
            reason: reason.to_owned(),
        });
        Ok(())
    }

    /// Ends the suspension. Deadlines rested: each is due as much later as it lasted.
    pub(super) fn go_on(&mut self) -> Result<(), TurnError> {
        not_ended(&self.instance)?;
        if self.instance.status == Status::Running {
            let message = "the instance is not suspended";
            return Err(Rejection::not_now("not_suspended", message).into());
        }
        self.emit(Event::FlowResumed {});
        Ok(())
    }

    /// Cancels the open tasks of one stay, or of all.
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
