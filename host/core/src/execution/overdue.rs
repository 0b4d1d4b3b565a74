//! The effects of a deadline that passes.
//!
//! The host issues a command when a deadline is due. The execution reminds people, takes the work back, reassigns it, or
//! fires a trigger. A deadline that is no longer open, or was postponed, does nothing. `deadline` opens deadlines.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::deadline::may_fire;
use super::reassessment::releases;
use super::{
    Execution, Moving, Phase, assign, enter, operation, savepoint, separate, state_instance_of,
    suspension,
};
use crate::answer::{Assignment, OverdueAction};
use crate::event::Event;
use crate::event::reasons::{ESCALATED, OVERDUE};
use crate::graph::Graph;
use crate::ids::{DeadlineId, StateId, TaskId};
use crate::instance::{Candidate, Instance, OpenDeadline, StateInstance, Status, Task, TaskStatus};
use crate::json::Json;
use crate::question::{EntryCause, Occurrence, Source};

/// The name of a refused escalation in its record, in place of a trigger.
const ESCALATION: &str = "escalate";
/// The code of a refused trigger that the instance's version does not declare.
const NOT_DECLARED: &str = "trigger_not_declared";

/// A deadline that has passed, with its state instance and task.
struct DueDeadline {
    state: StateId,
    task: Option<TaskId>,
    deadline: OpenDeadline,
}

/// Runs the action of a deadline, if it is still open and due at that moment.
pub(super) fn act(execution: &mut Execution<'_>, id: DeadlineId, due_at: Timestamp) {
    if execution.instance.status != Status::Running {
        return;
    }
    if suspension::resume_due(execution, id, due_at) {
        return;
    }
    let Some(passed) = open_deadline(&execution.instance, id)
        .filter(|found| found.deadline.due_at == Some(due_at))
    else {
        return;
    };
    let (state, task) = (passed.state, passed.task);
    let count = passed.deadline.count.saturating_add(1);
    let late = execution.context.now.duration_since(due_at).as_secs();
    execution.emit(Event::DeadlinePassed {
        deadline: id,
        state,
        task,
        action: passed.deadline.action.clone(),
        due_at,
        count,
        late: u64::try_from(late).unwrap_or(0),
        next: next_repetition(due_at, passed.deadline.repeat, execution.context.now),
    });
    let graph = &execution.context.version.graph;
    match passed.deadline.action {
        OverdueAction::Remind => remind(execution, state, task, due_at, count),
        OverdueAction::Release => take_back(execution, state, task),
        OverdueAction::Escalate => escalate(execution, state, task, due_at, count),
        OverdueAction::Cancel(reason) => {
            operation::cancel_all(execution, &reason, Some((state, id)));
        }
        OverdueAction::Fire(trigger)
            if may_still_fire(graph, &execution.instance, state, &trigger) =>
        {
            let source = Source::Deadline {
                task,
                due_at,
                count,
            };
            fire(execution, state, trigger, source, Json::empty());
        }
        OverdueAction::Fire(trigger) => execution.emit(Event::TriggerRefused {
            state,
            message: format!("the definition declares {trigger} for no deadline there"),
            trigger,
            code: NOT_DECLARED.to_owned(),
        }),
    }
}

/// The trigger was checked when the deadline was opened. A migration may have changed the version since.
fn may_still_fire(graph: &Graph, instance: &Instance, state: StateId, trigger: &str) -> bool {
    may_fire(graph, &state_instance_of(instance, state).name, trigger)
}

/// The deadline of this id, if it counts.
fn open_deadline(instance: &Instance, id: DeadlineId) -> Option<DueDeadline> {
    let found =
        |deadlines: &[OpenDeadline]| deadlines.iter().find(|deadline| deadline.id == id).cloned();
    instance.active.iter().find_map(|state_instance| {
        let state = state_instance.id;
        let of_state_instance = found(&state_instance.deadlines).map(|deadline| (None, deadline));
        let open = state_instance
            .tasks
            .iter()
            .filter(|task| task.status.is_open());
        let mut of_tasks = open.filter_map(|task| Some((Some(task.id), found(task.counting())?)));
        let (task, deadline) = of_state_instance.or_else(|| of_tasks.next())?;
        Some(DueDeadline {
            state,
            task,
            deadline,
        })
    })
}

/// The open tasks that are overdue when a deadline passes: this task, or without one all of the state instance.
fn overdue_tasks(instance: &Instance, state: StateId, task: Option<TaskId>) -> Vec<Task> {
    let state_instance = state_instance_of(instance, state);
    let open = state_instance
        .tasks
        .iter()
        .filter(|known| known.status.is_open() && task.is_none_or(|task| task == known.id));
    open.cloned().collect()
}

/// Reminds the people who hold the overdue tasks.
fn remind(
    execution: &mut Execution<'_>,
    state: StateId,
    task: Option<TaskId>,
    due_at: Timestamp,
    count: u32,
) {
    let recipients = holders(&overdue_tasks(&execution.instance, state, task));
    if !recipients.is_empty() {
        execution.emit(Event::TaskReminded {
            state,
            task,
            recipients,
            due_at,
            count,
        });
    }
}

/// Takes the overdue tasks from their owners.
fn take_back(execution: &mut Execution<'_>, state: StateId, task: Option<TaskId>) {
    for task in overdue_tasks(&execution.instance, state, task) {
        if let TaskStatus::Claimed { owner, .. } = task.status {
            execution.emit(Event::released(task.id, state, owner, Some(OVERDUE), false));
        }
    }
}

/// Asks `enter` for a new assignment of the overdue work. If the assignment exceeds a limit of the host, the work does not change, and
/// the refusal is recorded. The tasks that earlier escalations withdrew count, so a repeated escalation reaches a limit in the end.
fn escalate(
    execution: &mut Execution<'_>,
    state: StateId,
    task: Option<TaskId>,
    due_at: Timestamp,
    count: u32,
) {
    let overdue = overdue_tasks(&execution.instance, state, task);
    if overdue.is_empty() {
        return;
    }
    savepoint::set(execution, state, ESCALATION, false);
    execution.emit(Event::TaskEscalated {
        state,
        task,
        // Empty if nobody is eligible.
        from: holders(&overdue),
        reason: OVERDUE.to_owned(),
        to: Vec::new(),
        due_at: Some(due_at),
        count: Some(count),
    });
    enter::ask_again(execution, state, EntryCause::Overdue { task, count });
}

/// Cancels the overdue tasks, and releases the other tasks of people who are excluded now. The new offers follow.
pub(super) fn withdraw(
    execution: &mut Execution<'_>,
    state_instance: &StateInstance,
    task: Option<TaskId>,
    assignment: &Assignment,
) {
    let kept = assign::count_kept(state_instance, &EntryCause::Overdue { task, count: 0 });
    let (graph, instance) = (&execution.context.version.graph, &execution.instance);
    let exclude = assignment.exclude.clone();
    let exclude = separate::all_excluded(graph, instance, &state_instance.name, exclude);
    execution.emit(Event::StateReassigned {
        state: state_instance.id,
        needed: assignment.needed_of(assignment.offers.len() + kept),
        share: assignment.share,
        exclude: exclude.clone(),
        fallback: assignment.fallback.clone(),
        priority: assignment.priority,
        priority_name: enter::priority_name(graph, assignment.priority),
        deadlines: None,
        subscriptions: None,
    });
    for overdue in overdue_tasks(&execution.instance, state_instance.id, task) {
        execution.emit(Event::TaskCancelled {
            task: overdue.id,
            state: state_instance.id,
            reason: Some(ESCALATED.to_owned()),
        });
    }
    let people: BTreeSet<&str> = exclude.iter().map(String::as_str).collect();
    let state_instance = state_instance_of(&execution.instance, state_instance.id);
    for release in releases(state_instance, &people, false) {
        execution.emit(release);
    }
}

/// Asks flow logic about a trigger without a caller. A savepoint comes first, because the trigger may be refused.
pub(super) fn fire(
    execution: &mut Execution<'_>,
    state: StateId,
    trigger: String,
    source: Source,
    input: Json,
) {
    let occurrence = Occurrence {
        state_instance: state.to_string(),
        trigger,
        source,
        input,
    };
    let moving = Moving {
        state,
        decision: None,
    };
    savepoint::set(execution, state, &occurrence.trigger, false);
    execution.phase = Phase::Transition(occurrence.into(), moving);
}

/// The owners of the tasks, and the candidates of those without an owner.
fn holders(tasks: &[Task]) -> Vec<Candidate> {
    let of = |task: &Task| match task.owner() {
        Some(owner) => vec![Candidate::User(owner.to_owned())],
        None => task.candidates.clone(),
    };
    let mut holders: Vec<_> = tasks.iter().flat_map(of).collect();
    holders.sort_unstable();
    holders.dedup();
    holders
}

/// The next repetition after now. Skips repetitions that were missed while no host ran.
pub(super) fn next_repetition(
    due_at: Timestamp,
    repeat: Option<u32>,
    now: Timestamp,
) -> Option<Timestamp> {
    let pause = i64::from(repeat?).max(1);
    let missed = now.duration_since(due_at).as_secs().max(0) / pause;
    let seconds = pause.checked_mul(missed + 1)?;
    let next = SignedDuration::from_secs(seconds);
    due_at.checked_add(next).ok()
}
