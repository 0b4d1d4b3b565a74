//! The fold: the effect of an event on an instance. Folding an instance's audit entries gives the stored instance.

mod calls;
mod signals;
mod tasks;

use jiff::{SignedDuration, Timestamp};

use super::answer::Attribute;
use super::event::Event;
use super::ids::{DeadlineId, InstanceId, StateId};
use super::instance::{Instance, OpenDeadline, PastState, StateInstance, Status};
use super::json::Json;
use super::template::Labels;

/// The trigger recorded for state instances that are left because the instance ends in another branch or terminal state.
pub const ENDED: &str = "END";
/// The trigger recorded for state instances that are left because somebody cancels the instance.
pub const CANCELLED: &str = "CANCEL";

/// The parts of an audit entry besides its event.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    pub instance: InstanceId,
    /// The instance's revision after the command.
    pub revision: u32,
    pub at: Timestamp,
    /// None for the host itself.
    pub actor: Option<&'a str>,
}

/// The event cannot follow the events before it: the entries belong to another instance or are out of order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event} cannot follow here: {why}")]
pub struct IllegalEvent {
    event: &'static str,
    why: String,
}

/// Folds one event into the instance; the first event creates it.
pub fn apply(
    instance: Option<Instance>,
    event: &Event,
    stamp: Stamp<'_>,
) -> Result<Instance, IllegalEvent> {
    match (instance, event) {
        (None, Event::FlowStarted { .. }) => Ok(started(event, stamp)),
        (None, _) => Err(illegal(event, "the instance has not started".to_owned())),
        (Some(mut instance), _) => {
            apply_to(&mut instance, event, stamp)?;
            Ok(instance)
        }
    }
}

/// Folds one event into a started instance. An error leaves the instance half changed: discard it.
pub fn apply_to(
    instance: &mut Instance,
    event: &Event,
    stamp: Stamp<'_>,
) -> Result<(), IllegalEvent> {
    if matches!(event, Event::FlowStarted { .. }) {
        return Err(illegal(event, "the instance has started".to_owned()));
    }
    if instance.status.ended_at().is_some() && !matches!(event, Event::FlowCommented { .. }) {
        return Err(illegal(event, "the instance has ended".to_owned()));
    }
    change(instance, event, stamp).map_err(|why| illegal(event, why))?;
    instance.revision = stamp.revision;
    instance.updated_at = stamp.at;
    Ok(())
}

fn illegal(event: &Event, why: String) -> IllegalEvent {
    IllegalEvent {
        event: event.kind(),
        why,
    }
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
        title,
        summary,
        sole,
        observers,
    } = event
    else {
        unreachable!("called only for a start")
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
        labels: Labels {
            title: title.clone(),
            summary: summary.clone(),
        },
        sole: *sole,
        observers: observers.clone(),
        attributes: std::collections::BTreeMap::new(),
        active: Vec::new(),
        waiting: Vec::new(),
        past: Vec::new(),
        buffered: Vec::new(),
    }
}

fn change(instance: &mut Instance, event: &Event, stamp: Stamp<'_>) -> Result<(), String> {
    match event {
        Event::FlowStarted { .. }
        | Event::FlowRestarted { .. }
        | Event::ServiceRequested { .. }
        | Event::TaskReminded { .. }
        | Event::TaskEscalated { .. }
        | Event::TriggerRefused { .. }
        | Event::StateDisclosed { .. }
        | Event::FlowCommented { .. }
        | Event::Custom { .. } => Ok(()),
        Event::FlowCompleted { .. }
        | Event::FlowCancelled { .. }
        | Event::FlowSuspended { .. }
        | Event::FlowResumed {}
        | Event::FlowMigrated { .. }
        | Event::FlowRetitled { .. } => change_flow(instance, event, stamp),
        Event::StateEntered { .. }
        | Event::StateTransitioned { .. }
        | Event::StateContinued { .. }
        | Event::StateCancelled { .. }
        | Event::StateReassigned { .. }
        | Event::StateUnassignable { .. }
        | Event::StateAssignable { .. }
        | Event::BranchArrived { .. }
        | Event::SignalReceived { .. }
        | Event::SignalTaken { .. }
        | Event::ChildEnded { .. }
        | Event::ServiceAnswered { .. }
        | Event::ServiceFailed { .. }
        | Event::DeadlinePassed { .. } => change_state(instance, event, stamp),
        Event::TaskCreated { .. }
        | Event::TaskClaimed { .. }
        | Event::TaskReleased { .. }
        | Event::TaskDelegated { .. }
        | Event::TaskResolved { .. }
        | Event::TaskReassigned { .. }
        | Event::TaskReset { .. }
        | Event::TaskSuspended { .. }
        | Event::TaskResumed { .. }
        | Event::TaskRerouted { .. }
        | Event::DecisionRecorded { .. }
        | Event::TaskCancelled { .. } => tasks::change(instance, event, stamp),
    }
}

fn change_flow(instance: &mut Instance, event: &Event, stamp: Stamp<'_>) -> Result<(), String> {
    match event {
        Event::FlowCompleted { outcome } => {
            leave_all(instance, ENDED, stamp)?;
            instance.status = Status::Completed {
                outcome: outcome.clone(),
                at: stamp.at,
            };
        }
        Event::FlowCancelled { reason, .. } => {
            leave_all(instance, CANCELLED, stamp)?;
            instance.status = Status::Cancelled {
                reason: reason.clone(),
                by: by_whom(stamp),
                at: stamp.at,
            };
        }
        Event::FlowSuspended { reason } => {
            if instance.status != Status::Running {
                return Err("the instance is not running".into());
            }
            instance.status = Status::Suspended {
                reason: reason.clone(),
                by: by_whom(stamp),
                at: stamp.at,
            };
        }
        Event::FlowResumed {} => resume(instance, stamp)?,
        Event::FlowMigrated {
            definition,
            states,
            sole,
            observers,
            ..
        } => {
            instance.definition = definition.clone();
            instance.sole = *sole;
            instance.observers.clone_from(observers);
            for state_instance in instance.active.iter_mut().chain(&mut instance.waiting) {
                if let Some(name) = states.get(&state_instance.name) {
                    state_instance.name.clone_from(name);
                }
            }
        }
        Event::FlowRetitled { title, summary, .. } => {
            instance.labels = Labels {
                title: title.clone(),
                summary: summary.clone(),
            };
        }
        _ => unreachable!("called only for changes of the flow"),
    }
    Ok(())
}

fn by_whom(stamp: Stamp<'_>) -> String {
    stamp.actor.unwrap_or(super::actor::HOST).to_owned()
}

/// Ends a suspension. Each deadline is postponed by the length of the suspension.
fn resume(instance: &mut Instance, stamp: Stamp<'_>) -> Result<(), String> {
    let Status::Suspended { at, .. } = instance.status else {
        return Err("the instance is not suspended".into());
    };
    let pause = stamp.at.duration_since(at);
    for state_instance in instance.active.iter_mut().chain(&mut instance.waiting) {
        // The suspension of a task began earlier and includes this one.
        let of_tasks = state_instance
            .tasks
            .iter_mut()
            .filter(|task| task.status.is_open() && task.suspended.is_none())
            .map(|task| (&mut task.deadlines, &mut task.due_at));
        let all = std::iter::once((&mut state_instance.deadlines, &mut state_instance.due_at))
            .chain(of_tasks);
        for (deadlines, due_at) in all {
            postpone(deadlines, due_at, pause);
        }
    }
    instance.status = Status::Running;
    Ok(())
}

/// Moves deadlines by the length of a suspension.
fn postpone(deadlines: &mut [OpenDeadline], due_at: &mut Option<Timestamp>, pause: SignedDuration) {
    for deadline in deadlines.iter_mut() {
        deadline.due_at = deadline
            .due_at
            .map(|due_at| due_at.saturating_add(pause).unwrap_or(due_at));
    }
    next_due(deadlines, due_at);
}

fn change_state(instance: &mut Instance, event: &Event, stamp: Stamp<'_>) -> Result<(), String> {
    match event {
        Event::StateEntered { state, .. } => {
            instance.waiting.retain(|waiting| waiting.id != state.id);
            let order =
                |state_instance: &StateInstance| (state_instance.entered_at, state_instance.id);
            let place = instance
                .active
                .partition_point(|other| order(other) <= order(state));
            instance.active.insert(place, state.clone());
        }
        Event::BranchArrived { state } => {
            let known = instance.waiting.iter_mut();
            if let Some(known) = known.into_iter().find(|known| known.id == state.id) {
                *known = state.clone();
            } else {
                instance.waiting.push(state.clone());
            }
        }
        Event::StateTransitioned {
            state,
            trigger,
            data,
            attributes,
            ..
        } => {
            leave(instance, *state, trigger, stamp)?;
            take_effect(instance, data.as_ref(), attributes);
        }
        Event::StateContinued {
            state,
            data,
            attributes,
            ..
        } => {
            active(instance, *state)?;
            take_effect(instance, data.as_ref(), attributes);
        }
        Event::StateCancelled { state, trigger, .. } => leave(instance, *state, trigger, stamp)?,
        Event::StateReassigned { state, .. } => reassign(active(instance, *state)?, event),
        Event::StateUnassignable { state, .. } => {
            active(instance, *state)?.unassignable_since = Some(stamp.at);
        }
        Event::StateAssignable { state, .. } => {
            active(instance, *state)?.unassignable_since = None;
        }
        Event::SignalReceived { .. } => signals::receive(instance, event, stamp),
        Event::SignalTaken { id, older, .. } => {
            signals::take(&mut instance.buffered, id, older.unwrap_or(0));
        }
        Event::ChildEnded { .. } => end_child(instance, event)?,
        Event::ServiceAnswered { .. } | Event::ServiceFailed { .. } => calls::end(instance, event)?,
        Event::DeadlinePassed { .. } => pass_deadline(instance, event)?,
        _ => unreachable!("called only for changes of states"),
    }
    Ok(())
}

fn end_child(instance: &mut Instance, event: &Event) -> Result<(), String> {
    let Event::ChildEnded {
        state,
        child,
        version,
        outcome,
        ..
    } = event
    else {
        unreachable!("called only for the end of a child")
    };
    let children = &mut active(instance, *state)?.children;
    let known = children.iter_mut().find(|known| known.id == *child);
    let known = known.ok_or_else(|| format!("{child} is no child of it"))?;
    known.outcome = Some(outcome.clone());
    known.version = *version;
    Ok(())
}

fn pass_deadline(instance: &mut Instance, event: &Event) -> Result<(), String> {
    let Event::DeadlinePassed {
        deadline,
        state,
        task,
        next,
        count,
        ..
    } = event
    else {
        unreachable!("called only for a deadline")
    };
    let (deadlines, due_at) = if let Some(task) = task {
        let task = tasks::open(instance, *state, *task)?;
        (&mut task.deadlines, &mut task.due_at)
    } else {
        let state_instance = active(instance, *state)?;
        (&mut state_instance.deadlines, &mut state_instance.due_at)
    };
    pass(deadlines, *deadline, *count, *next)?;
    next_due(deadlines, due_at);
    Ok(())
}

fn reassign(state_instance: &mut StateInstance, event: &Event) {
    let Event::StateReassigned {
        needed,
        share,
        exclude,
        fallback,
        priority,
        priority_name,
        deadlines,
        subscriptions,
        ..
    } = event
    else {
        unreachable!("called only for a new assignment")
    };
    state_instance.needed = *needed;
    state_instance.share = *share;
    state_instance.exclude.clone_from(exclude);
    state_instance.fallback.clone_from(fallback);
    state_instance.priority = *priority;
    state_instance.priority_name.clone_from(priority_name);
    if let Some(deadlines) = deadlines {
        state_instance.deadlines.clone_from(deadlines);
        state_instance.due_at = None;
        next_due(&state_instance.deadlines, &mut state_instance.due_at);
    }
    if let Some(subscriptions) = subscriptions {
        state_instance.subscriptions.clone_from(subscriptions);
    }
}

/// Removes a deadline that has passed, or moves it to its next repetition. One that counts from a claim stays for the next one.
fn pass(
    deadlines: &mut Vec<OpenDeadline>,
    id: DeadlineId,
    count: u32,
    next: Option<Timestamp>,
) -> Result<(), String> {
    let place = deadlines.iter().position(|deadline| deadline.id == id);
    let place = place.ok_or_else(|| format!("deadline {id} is not open"))?;
    let deadline = &mut deadlines[place];
    match next {
        None if deadline.since_claim.is_none() => drop(deadlines.remove(place)),
        next => (deadline.due_at, deadline.count) = (next, count),
    }
    Ok(())
}

/// Sets `due_at` to the earliest open deadline. If none is open, it keeps its last value, which shows readers what was missed.
pub(crate) fn next_due(deadlines: &[OpenDeadline], due_at: &mut Option<Timestamp>) {
    if let Some(next) = deadlines.iter().filter_map(|one| one.due_at).min() {
        *due_at = Some(next);
    }
}

fn active(instance: &mut Instance, id: StateId) -> Result<&mut StateInstance, String> {
    instance
        .active
        .iter_mut()
        .find(|state| state.id == id)
        .ok_or_else(|| format!("state {id} is not active"))
}

fn leave_all(instance: &mut Instance, by: &str, stamp: Stamp<'_>) -> Result<(), String> {
    let here = instance.active.iter().chain(&instance.waiting);
    let ids: Vec<_> = here.map(|state| state.id).collect();
    ids.into_iter()
        .try_for_each(|id| leave(instance, id, by, stamp))
}

fn leave(
    instance: &mut Instance,
    id: StateId,
    trigger: &str,
    stamp: Stamp<'_>,
) -> Result<(), String> {
    let of = |states: &mut Vec<StateInstance>| {
        let index = states.iter().position(|state| state.id == id)?;
        Some(states.remove(index))
    };
    let mut state = of(&mut instance.active)
        .or_else(|| of(&mut instance.waiting))
        .ok_or_else(|| format!("state {id} is not active"))?;
    if let Some(task) = state.tasks.iter().find(|task| task.status.is_open()) {
        return Err(format!("task {} is still open", task.id));
    }
    state.clear();
    let past = PastState {
        state,
        left_at: stamp.at,
        left_trigger: trigger.to_owned(),
        actor: stamp.actor.map(str::to_owned),
    };
    // State instances that were left in the same instant are ordered by when they were entered, as queries order rows.
    let place = instance
        .past
        .partition_point(|other| other.order() <= past.order());
    instance.past.insert(place, past);
    Ok(())
}

/// Applies a plan's changes of data and attributes.
fn take_effect(instance: &mut Instance, patch: Option<&Json>, attributes: &[Attribute]) {
    if let Some(patch) = patch {
        instance.data = instance.data.merged(patch);
    }
    for attribute in attributes {
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
