//! The fold: what an event does to an instance. Folding an instance's audit entries gives the stored instance.

use jiff::Timestamp;

use super::event::{Effects, Event};
use super::ids::{InstanceId, StateId, TaskId};
use super::instance::{Decision, Instance, PastState, StateInstance, Status, Task, TaskStatus};

/// What stays are left by when their instance ends in another branch or in a terminal state.
pub const ENDED: &str = "END";
/// What stays are left by when somebody cancels the instance.
pub const CANCELLED: &str = "CANCEL";

/// What an entry says besides its event.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    pub instance: InstanceId,
    /// The instance's revision after the command.
    pub revision: u32,
    pub at: Timestamp,
    /// None for the host itself.
    pub actor: Option<&'a str>,
}

/// The event cannot have happened to this instance: the entries are not its own, or not in their order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event} cannot follow here: {why}")]
pub struct IllegalEvent {
    event: &'static str,
    why: String,
}

/// Folds one event into the instance; the first one makes it.
pub fn apply(
    instance: Option<Instance>,
    event: &Event,
    stamp: Stamp<'_>,
) -> Result<Instance, IllegalEvent> {
    let illegal = |why: String| IllegalEvent {
        event: event.kind(),
        why,
    };
    let mut instance = match (instance, event) {
        (None, Event::FlowStarted { .. }) => return Ok(started(event, stamp)),
        (None, _) => return Err(illegal("the instance has not started".into())),
        (Some(_), Event::FlowStarted { .. }) => {
            return Err(illegal("the instance has started".into()));
        }
        (Some(instance), _) => instance,
    };
    if instance.status.ended_at().is_some() {
        return Err(illegal("the instance has ended".into()));
    }
    change(&mut instance, event, stamp).map_err(illegal)?;
    instance.revision = stamp.revision;
    instance.updated_at = stamp.at;
    Ok(instance)
}

fn started(event: &Event, stamp: Stamp<'_>) -> Instance {
    let Event::FlowStarted {
        definition,
        entity,
        initiator,
        requesters,
        predecessor,
        parent,
        data,
    } = event
    else {
        unreachable!("asked for a start only")
    };
    Instance {
        id: stamp.instance,
        definition: definition.clone(),
        revision: stamp.revision,
        entity: entity.clone(),
        initiator: initiator.clone(),
        requesters: requesters.clone(),
        status: Status::Running,
        started_at: stamp.at,
        updated_at: stamp.at,
        predecessor: *predecessor,
        parent: *parent,
        data: data.clone(),
        attributes: std::collections::BTreeMap::new(),
        active: Vec::new(),
        waiting: Vec::new(),
        past: Vec::new(),
    }
}

fn change(instance: &mut Instance, event: &Event, stamp: Stamp<'_>) -> Result<(), String> {
    match event {
        Event::FlowStarted { .. } | Event::Custom { .. } => {}
        Event::StateEntered { state } => instance.active.push(state.clone()),
        Event::TaskCreated { state, task, .. } => {
            active(instance, *state)?.tasks.push(task.clone());
        }
        Event::TaskClaimed { task, state, owner } => {
            open_task(instance, *state, *task)?.status = TaskStatus::Claimed {
                owner: owner.clone(),
                claimed_at: stamp.at,
            };
        }
        Event::TaskReleased { task, state, .. } => {
            open_task(instance, *state, *task)?.status = TaskStatus::Pending;
        }
        Event::DecisionRecorded { task, state, .. } => {
            decide(open_task(instance, *state, *task)?, event, stamp)?;
        }
        Event::TaskCancelled { task, state } => {
            let task = open_task(instance, *state, *task)?;
            task.status = TaskStatus::Cancelled {
                owner: task.owner().map(str::to_owned),
                cancelled_at: stamp.at,
            };
        }
        Event::StateTransitioned {
            state,
            trigger,
            effects,
            ..
        } => {
            leave(instance, *state, trigger, stamp)?;
            take_effect(instance, effects);
        }
        Event::StateContinued { state, effects, .. } => {
            active(instance, *state)?;
            take_effect(instance, effects);
        }
        Event::StateCancelled { state, trigger, .. } => leave(instance, *state, trigger, stamp)?,
        Event::FlowCompleted { outcome } => {
            leave_all(instance, ENDED, stamp)?;
            instance.status = Status::Completed {
                outcome: outcome.clone(),
                at: stamp.at,
            };
        }
        Event::FlowCancelled { reason } => {
            let by = stamp.actor.ok_or("somebody cancels a flow")?.to_owned();
            leave_all(instance, CANCELLED, stamp)?;
            instance.status = Status::Cancelled {
                reason: reason.clone(),
                by,
                at: stamp.at,
            };
        }
    }
    Ok(())
}

fn active(instance: &mut Instance, id: StateId) -> Result<&mut StateInstance, String> {
    instance
        .active
        .iter_mut()
        .find(|state| state.id == id)
        .ok_or_else(|| format!("state {id} is not active"))
}

fn open_task(instance: &mut Instance, state: StateId, id: TaskId) -> Result<&mut Task, String> {
    active(instance, state)?
        .tasks
        .iter_mut()
        .find(|task| task.id == id && task.status.is_open())
        .ok_or_else(|| format!("task {id} is not open"))
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
        unreachable!("asked for a decision only")
    };
    let TaskStatus::Claimed { owner, claimed_at } = task.status.clone() else {
        return Err(format!("task {} has no owner", task.id));
    };
    let decision = Decision {
        outcome: outcome.clone(),
        actor: stamp.actor.ok_or("somebody decides a task")?.to_owned(),
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
    Ok(())
}

fn leave_all(instance: &mut Instance, by: &str, stamp: Stamp<'_>) -> Result<(), String> {
    while let Some(id) = instance.active.first().map(|state| state.id) {
        leave(instance, id, by, stamp)?;
    }
    Ok(())
}

fn leave(
    instance: &mut Instance,
    id: StateId,
    trigger: &str,
    stamp: Stamp<'_>,
) -> Result<(), String> {
    let index = instance
        .active
        .iter()
        .position(|state| state.id == id)
        .ok_or_else(|| format!("state {id} is not active"))?;
    let state = instance.active.remove(index);
    if let Some(task) = state.tasks.iter().find(|task| task.status.is_open()) {
        return Err(format!("task {} is still open", task.id));
    }
    let past = PastState {
        state,
        left_at: stamp.at,
        left_by: trigger.to_owned(),
        actor: stamp.actor.map(str::to_owned),
    };
    // Of those left in one instant the first entered comes first: an order that rows can tell, too.
    let place = instance
        .past
        .partition_point(|other| other.order() <= past.order());
    instance.past.insert(place, past);
    Ok(())
}

fn take_effect(instance: &mut Instance, effects: &Effects) {
    if let Some(patch) = &effects.data {
        instance.data = instance.data.merged(patch);
    }
    for attribute in &effects.attributes {
        match &attribute.value {
            Some(value) => instance
                .attributes
                .insert(attribute.name.clone(), value.clone()),
            None => instance.attributes.remove(&attribute.name),
        };
    }
}

#[cfg(test)]
mod tests;
