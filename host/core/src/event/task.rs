//! Which task an event is about.

use super::Event;
use crate::ids::TaskId;

impl Event {
    /// The task that it is about.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Event::TaskCreated { task, .. } => Some(task.id),
            Event::TaskClaimed { task, .. }
            | Event::TaskReleased { task, .. }
            | Event::TaskDelegated { task, .. }
            | Event::TaskResolved { task, .. }
            | Event::TaskReassigned { task, .. }
            | Event::TaskReset { task, .. }
            | Event::TaskSuspended { task, .. }
            | Event::TaskResumed { task, .. }
            | Event::TaskRerouted { task, .. }
            | Event::DecisionRecorded { task, .. }
            | Event::TaskCancelled { task, .. } => Some(*task),
            Event::DeadlinePassed { task, .. }
            | Event::TaskReminded { task, .. }
            | Event::TaskEscalated { task, .. } => *task,
            _ => None,
        }
    }
}
