//! Commands that change the owner of a task: people claim, release, delegate and resolve; operators reassign and reset. Decisions
//! are in `rules`.

use std::collections::BTreeSet;

use super::assign::LookupPurpose;
use super::eligibility::Workplace;
use super::rules::task_not_suspended;
use super::{Execution, ExecutionError, Phase, deadline, rules};
use crate::answer::Violation;
use crate::event::Event;
use crate::event::reasons::{BY_OPERATOR, BY_SUBSTITUTE};
use crate::ids::{StateId, TaskId};
use crate::instance::{Instance, Ownership};
use crate::lookup::{Findings, Lookup};
use crate::rejection::Rejection;

/// How often a task may be delegated.
pub const DELEGATIONS_MAX: usize = 3;
/// The permission to take a task from its owner.
pub(super) const ASSIGN: &str = "task:assign";

/// A change of owner. It is pending until the directory confirms that the new owner exists, and gives the calendars of the
/// deadlines that count from the change.
pub(super) struct OwnerChange {
    /// None if the new owner is the actor.
    to: Option<String>,
    then: Event,
}

/// A claim of the actor's own task changes nothing, so a claim may be repeated.
pub(super) fn claim(execution: &mut Execution<'_>, id: TaskId) -> Result<(), ExecutionError> {
    let (place, task) = rules::workplace(execution.context, &execution.instance, id)?;
    if task.owner() == Some(execution.context.actor.id.as_str()) {
        return Ok(());
    }
    let claim = rules::claim_event(place, task)?;
    change_owner(execution, None, claim)
}

/// The owner, a substitute of the owner or an operator releases the task.
pub(super) fn release(execution: &mut Execution<'_>, id: TaskId) -> Result<(), ExecutionError> {
    let (place, task) = rules::workplace(execution.context, &execution.instance, id)?;
    let actor = execution.context.actor;
    let (owner, reason) = match (place.owned(task, "release"), task.owner()) {
        (Ok((owner, _)), _) if owner == actor.id => (owner, None),
        (Ok((owner, _)), _) => (owner, Some(BY_SUBSTITUTE)),
        (Err(_), Some(owner)) if actor.may(ASSIGN) => (owner, Some(BY_OPERATOR)),
        (Err(refusal), _) => return Err(refusal.into()),
    };
    task_not_suspended(&execution.instance, task)?;
    let state = place.state_instance.id;
    let event = Event::released(id, state, owner.to_owned(), reason, false);
    execution.emit(event);
    Ok(())
}

/// Gives the task of the owner to a delegate.
pub(super) fn delegate(
    execution: &mut Execution<'_>,
    id: TaskId,
    to: &str,
    reason: &str,
) -> Result<(), ExecutionError> {
    let (place, task) = rules::workplace(execution.context, &execution.instance, id)?;
    place.acting_for(task, "delegate")?;
    let (owner, ownership) = place.owned(task, "delegate")?;
    task_not_suspended(&execution.instance, task)?;
    if place.is_own_work() {
        return Err(own_work(place).into());
    }
    if ownership.delegations.len() >= DELEGATIONS_MAX {
        let message = format!("a task is delegated at most {DELEGATIONS_MAX} times");
        return Err(Rejection::not_now("delegations_exhausted", message).into());
    }
    check_stated(Some(to), reason)?;
    not_in_a_circle(to, &execution.context.actor.id, owner, ownership)?;
    place.not_excluded(to)?;
    let event = Event::TaskDelegated {
        task: id,
        state: place.state_instance.id,
        from: owner.to_owned(),
        to: to.to_owned(),
        reason: reason.to_owned(),
    };
    change_owner(execution, Some(to), event)
}

/// Gives the task back to the person who delegated it.
pub(super) fn resolve(execution: &mut Execution<'_>, id: TaskId) -> Result<(), ExecutionError> {
    let (place, task) = rules::workplace(execution.context, &execution.instance, id)?;
    let (owner, ownership) = place.owned(task, "resolve")?;
    task_not_suspended(&execution.instance, task)?;
    let Some(link) = ownership.delegations.last() else {
        let message = format!("nobody delegated this task to {owner}");
        return Err(Rejection::not_now("not_delegated", message).into());
    };
    let event = Event::TaskResolved {
        task: id,
        state: place.state_instance.id,
        from: owner.to_owned(),
        to: link.from.clone(),
    };
    execution.emit(event);
    Ok(())
}

/// Gives the task to another owner, for an operator.
pub(super) fn reassign(
    execution: &mut Execution<'_>,
    id: TaskId,
    to: &str,
    reason: &str,
) -> Result<(), ExecutionError> {
    let (place, task) = rules::workplace(execution.context, &execution.instance, id)?;
    let initiator = &execution.instance.initiator;
    if place.is_own_work() && task.owner() == Some(initiator) {
        return Err(own_work(place).into());
    }
    check_stated(Some(to), reason)?;
    place.not_excluded(to)?;
    if place.is_own_work() && to != initiator {
        return Err(own_work(place).into());
    }
    if task.owner() == Some(to) {
        let message = format!("{to} owns this task already");
        return Err(Rejection::invalid("/to", "already_owner", message).into());
    }
    let event = Event::TaskReassigned {
        task: id,
        state: place.state_instance.id,
        previous: task.owner().map(str::to_owned),
        to: to.to_owned(),
        reason: reason.to_owned(),
        deadlines: Vec::new(),
    };
    change_owner(execution, Some(to), event)
}

/// Takes the task from its owner, for an operator.
pub(super) fn reset(
    execution: &mut Execution<'_>,
    id: TaskId,
    reason: &str,
) -> Result<(), ExecutionError> {
    let (state, owner) = owned_task(&execution.instance, id)?;
    check_stated(None, reason)?;
    execution.emit(Event::TaskReset {
        task: id,
        state,
        owner,
        reason: reason.to_owned(),
    });
    Ok(())
}

/// Asks the directory whether the new owner exists, and for the calendars of deadlines that count from now. An unknown
/// owner is refused, because they could not sign in.
fn change_owner(
    execution: &mut Execution<'_>,
    to: Option<&str>,
    then: Event,
) -> Result<(), ExecutionError> {
    let calendars = match &then {
        Event::TaskClaimed { task, .. } | Event::TaskReassigned { task, .. } => {
            deadline::calendars_of_claim(&execution.instance, *task)
        }
        _ => BTreeSet::new(),
    };
    let to = to.map(str::to_owned);
    let lookup = Lookup {
        people: to.iter().cloned().collect(),
        calendars,
        ..Lookup::default()
    };
    let change = OwnerChange { to, then };
    if lookup.is_empty() {
        return new_owner_found(execution, change, &Findings::default());
    }
    execution.phase = Phase::Lookup(lookup, LookupPurpose::ChangeOwner(Box::new(change)));
    Ok(())
}

/// Emits the change of owner, unless the directory does not know the new one.
pub(super) fn new_owner_found(
    execution: &mut Execution<'_>,
    change: OwnerChange,
    findings: &Findings,
) -> Result<(), ExecutionError> {
    let OwnerChange { to, mut then } = change;
    if let Some(to) = to.filter(|to| !findings.people.contains(to)) {
        let message = format!("the directory does not know {to}");
        return Err(Rejection::invalid("/to", "unknown_person", message).into());
    }
    if let Event::TaskClaimed {
        task, deadlines, ..
    }
    | Event::TaskReassigned {
        task, deadlines, ..
    } = &mut then
    {
        let (instance, now) = (&execution.instance, execution.context.now);
        *deadlines = deadline::since_claim(instance, now, *task, findings)?;
    }
    execution.emit(then);
    Ok(())
}

/// The state instance and the owner of an open task.
fn owned_task(instance: &Instance, id: TaskId) -> Result<(StateId, String), Rejection> {
    let (state_instance, task) = rules::open(instance, id)?;
    match task.owner() {
        Some(owner) => Ok((state_instance.id, owner.to_owned())),
        None => Err(Rejection::not_now("not_claimed", "nobody owns this task")),
    }
}

/// Refuses a delegation to the actor, or to somebody who had the task before.
fn not_in_a_circle(
    to: &str,
    actor: &str,
    owner: &str,
    ownership: &Ownership,
) -> Result<(), Rejection> {
    let refuse = |code, message| Err(Rejection::invalid("/to", code, message));
    if to == actor {
        return refuse(
            "delegation_to_self",
            "a task cannot be delegated to oneself".to_owned(),
        );
    }
    let absent = ownership.on_behalf_of.as_deref();
    let mut before = ownership.delegations.iter().map(|link| link.from.as_str());
    if to == owner || absent == Some(to) || before.any(|from| from == to) {
        let message = format!("{to} had this task before; hand it back instead");
        return refuse("delegation_circle", message);
    }
    Ok(())
}

/// Refuses a command that does not name the new owner or the reason.
fn check_stated(to: Option<&str>, reason: &str) -> Result<(), Rejection> {
    let missing = |field: &str, message: &str| Violation {
        expected: None,
        field: field.to_owned(),
        code: "required".to_owned(),
        message: message.to_owned(),
    };
    let mut violations = Vec::new();
    if to.is_some_and(str::is_empty) {
        violations.push(missing("/to", "name the new owner"));
    }
    if reason.trim().is_empty() {
        violations.push(missing("/reason", "say why"));
    }
    if violations.is_empty() {
        Ok(())
    } else {
        Err(Rejection::Invalid(violations))
    }
}

/// The refusal of work that is the initiator's own.
fn own_work(place: Workplace<'_>) -> Rejection {
    let message = format!(
        "{} is the own work of {}, and nobody does it for them",
        place.state_instance.name, place.instance.initiator
    );
    Rejection::forbidden("own_work", message)
}
