//! Time in a scenario: which deadline passes next, and when an absence begins or ends. The execution determines the effects.

use jiff::Timestamp;

use super::World;
use crate::command::Command;
use crate::ids::DeadlineId;
use crate::instance::{Instance, OpenDeadline, StateInstance, Status, Task};

/// Limit of the deadlines that pass in one step of a test.
pub const PASSING_MAX: usize = 1000;

/// A deadline that has not passed, or that repeats.
#[derive(Clone, Copy)]
pub struct Due<'a> {
    pub state: &'a StateInstance,
    /// Of this task alone.
    pub task: Option<&'a Task>,
    pub deadline: &'a OpenDeadline,
    pub at: Timestamp,
}

/// The deadlines of active states and of their open tasks, if they count.
pub fn due(instance: &Instance) -> impl Iterator<Item = Due<'_>> {
    instance.active.iter().flat_map(|state| {
        let of_state = state.deadlines.iter().map(|deadline| (None, deadline));
        let of_tasks = open(state).flat_map(|task| {
            let deadlines = task.counting().iter();
            deadlines.map(move |deadline| (Some(task), deadline))
        });
        of_state
            .chain(of_tasks)
            .filter_map(move |(task, deadline)| {
                Some(Due {
                    state,
                    task,
                    deadline,
                    at: deadline.due_at?,
                })
            })
    })
}

/// When the host acts by itself: at deadlines, and when it resumes a suspended task.
fn moments(instance: &Instance) -> impl Iterator<Item = (Timestamp, DeadlineId)> {
    let tasks = instance.active.iter().flat_map(open);
    let resumptions = tasks.filter_map(Task::resumption);
    let resumptions = resumptions.map(|(id, at)| (at, id));
    due(instance)
        .map(|due| (due.at, due.deadline.id))
        .chain(resumptions)
}

fn open(state: &StateInstance) -> impl Iterator<Item = &Task> {
    state.tasks.iter().filter(|task| task.status.is_open())
}

/// Moves the time to the next moment by `until` at which the host acts by itself, and returns its command: for a deadline that
/// passes, or for an absence that begins or ends. Without one, moves the time to `until`.
pub fn next_moment(world: &mut World, until: Timestamp) -> Option<Command> {
    let running = world.instance.as_ref();
    let running = running.filter(|instance| instance.status == Status::Running);
    let next = running.and_then(|instance| {
        let deadlines = moments(instance).map(|(at, deadline)| (at, Some(deadline)));
        let change = world.directory.next_change(world.now);
        // `None` sorts first: the absence comes before the deadlines of its moment.
        let next = deadlines.chain(change.map(|at| (at, None))).min();
        let (at, deadline) = next.filter(|(at, _)| *at <= until)?;
        Some((instance.id, at, deadline))
    });
    let Some((instance, at, deadline)) = next else {
        world.now = world.now.max(until);
        return None;
    };
    world.now = world.now.max(at);
    Some(match deadline {
        Some(deadline) => Command::Deadline {
            instance,
            deadline,
            due_at: at,
        },
        None => Command::Reassessment { instance },
    })
}

/// Whether the deadline of this command is still due after it ran: a host would try it again and again.
pub fn is_still_due(world: &World, command: &Command) -> bool {
    let Command::Deadline {
        deadline, due_at, ..
    } = command
    else {
        return false;
    };
    let mut left = world.instance.iter().flat_map(moments);
    left.any(|moment| moment == (*due_at, *deadline))
}
