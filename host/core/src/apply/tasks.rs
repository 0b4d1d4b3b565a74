//! The fold of task events: how each changes its task, and the state instance around it.

use super::{Stamp, active, by_whom, next_due, postpone};
use crate::event::Event;
use crate::ids::{StateId, TaskId};
use crate::instance::{
    Decision, Delegation, Instance, OpenDeadline, Ownership, Suspension, Task, TaskStatus,
};

pub(super) fn change(
    instance: &mut Instance,
    event: &Event,
    stamp: Stamp<'_>,
) -> Result<(), String> {
    match event {
        Event::TaskCreated { state, task, .. } => {
            let state_instance = active(instance, *state)?;
            state_instance.tasks.push(task.clone());
            state_instance.recount();
        }
        Event::TaskClaimed { task, state, .. } | Event::TaskReassigned { task, state, .. } => {
            take_over(open(instance, *state, *task)?, event, stamp);
        }
        Event::TaskDelegated { task, state, .. } | Event::TaskResolved { task, state, .. } => {
            hand_over(open(instance, *state, *task)?, event, stamp)?;
        }
        Event::TaskReleased { task, state, .. } | Event::TaskReset { task, state, .. } => {
            let task = open(instance, *state, *task)?;
            resume(task, stamp);
            task.status = TaskStatus::Pending;
            count_from_now(task, &[]);
        }
        Event::TaskSuspended { task, state, .. } | Event::TaskResumed { task, state } => {
            change_suspension(open(instance, *state, *task)?, event, stamp)?;
        }
        Event::TaskRerouted {
            task,
            state,
            candidates,
            ..
        } => open(instance, *state, *task)?
            .candidates
            .clone_from(candidates),
        Event::DecisionRecorded { task, state, .. } => {
            decide(open(instance, *state, *task)?, event, stamp)?;
        }
        Event::TaskCancelled {
            task,
            state,
            reason,
        } => {
            let task = open(instance, *state, *task)?;
            task.status = TaskStatus::Cancelled {
                owner: task.owner().map(str::to_owned),
                cancelled_at: stamp.at,
                reason: reason.clone(),
            };
            task.suspended = None;
            task.deadlines.clear();
            // Without a reason, its state ends with what was needed.
            if reason.is_some() {
                active(instance, *state)?.recount();
            }
        }
        _ => unreachable!("called only for changes of tasks"),
    }
    Ok(())
}

pub(super) fn open(
    instance: &mut Instance,
    state: StateId,
    id: TaskId,
) -> Result<&mut Task, String> {
    active(instance, state)?
        .tasks
        .iter_mut()
        .find(|task| task.id == id && task.status.is_open())
        .ok_or_else(|| format!("task {id} is not open"))
}

/// Gives a task to a new owner, by a claim or an operator.
fn take_over(task: &mut Task, event: &Event, stamp: Stamp<'_>) {
    let (owner, ownership, deadlines) = match event {
        Event::TaskClaimed {
            owner,
            on_behalf_of,
            deadlines,
            ..
        } => {
            let ownership = Ownership {
                on_behalf_of: on_behalf_of.clone(),
                ..Ownership::default()
            };
            (owner, ownership, deadlines)
        }
        Event::TaskReassigned { to, deadlines, .. } => {
            let ownership = Ownership {
                assigned: true,
                ..Ownership::default()
            };
            (to, ownership, deadlines)
        }
        _ => unreachable!("called only for a new owner"),
    };
    resume(task, stamp);
    task.status = TaskStatus::Claimed {
        owner: owner.clone(),
        claimed_at: stamp.at,
        ownership,
    };
    count_from_now(task, deadlines);
}

/// Suspends or resumes a task.
fn change_suspension(task: &mut Task, event: &Event, stamp: Stamp<'_>) -> Result<(), String> {
    match event {
        Event::TaskSuspended { .. } if task.suspended.is_some() => {
            Err(format!("task {} is suspended", task.id))
        }
        Event::TaskSuspended { reason, until, .. } => {
            task.due_at = None;
            task.suspended = Some(Suspension {
                by: by_whom(stamp),
                at: stamp.at,
                reason: reason.clone(),
                until: *until,
            });
            Ok(())
        }
        _ if resume(task, stamp) => Ok(()),
        _ => Err(format!("task {} is not suspended", task.id)),
    }
}

/// Ends the suspension of a task, if it is suspended. Its deadlines are postponed by the length of the suspension.
fn resume(task: &mut Task, stamp: Stamp<'_>) -> bool {
    let Some(suspended) = task.suspended.take() else {
        return false;
    };
    let pause = stamp.at.duration_since(suspended.at);
    postpone(&mut task.deadlines, &mut task.due_at, pause);
    true
}

/// Replaces the deadlines that count from a claim: by these, or by none that counts.
fn count_from_now(task: &mut Task, counting: &[OpenDeadline]) {
    let from_claim = task.deadlines.iter_mut();
    let mut from_claim = from_claim
        .filter(|deadline| deadline.since_claim.is_some())
        .peekable();
    if from_claim.peek().is_none() {
        return;
    }
    for deadline in from_claim {
        let now = counting.iter().find(|now| now.id == deadline.id);
        deadline.due_at = now.and_then(|now| now.due_at);
    }
    task.due_at = None;
    next_due(&task.deadlines, &mut task.due_at);
}

/// Changes the owner by a delegation or its resolution.
fn hand_over(task: &mut Task, event: &Event, stamp: Stamp<'_>) -> Result<(), String> {
    let TaskStatus::Claimed {
        owner, ownership, ..
    } = &mut task.status
    else {
        return Err(format!("task {} has no owner", task.id));
    };
    match event {
        Event::TaskDelegated {
            from, to, reason, ..
        } => {
            ownership.delegations.push(Delegation {
                from: from.clone(),
                to: to.clone(),
                reason: reason.clone(),
                at: stamp.at,
            });
            owner.clone_from(to);
        }
        Event::TaskResolved { to, .. } => {
            let last = ownership.delegations.pop();
            if last.is_none_or(|last| last.from != *to) {
                return Err(format!("task {} was not delegated by {to}", task.id));
            }
            owner.clone_from(to);
        }
        _ => unreachable!("called only for delegations"),
    }
    Ok(())
}

fn decide(task: &mut Task, event: &Event, stamp: Stamp<'_>) -> Result<(), String> {
    let Event::DecisionRecorded {
        outcome,
        on_behalf_of,
        comment,
        input,
        ..
    } = event
    else {
        unreachable!("called only for a decision")
    };
    let TaskStatus::Claimed {
        owner, claimed_at, ..
    } = task.status.clone()
    else {
        return Err(format!("task {} has no owner", task.id));
    };
    let decision = Decision {
        outcome: outcome.clone(),
        actor: stamp.actor.ok_or("a decision has no actor")?.to_owned(),
        on_behalf_of: on_behalf_of.clone(),
        comment: comment.clone(),
        input: input.clone(),
        decided_at: stamp.at,
    };
    task.status = TaskStatus::Completed {
        owner,
        claimed_at,
        decision,
    };
    task.deadlines.clear();
    Ok(())
}
