//! Owners lose tasks that they may no longer decide. After a change of groups, managers or absences, a reassessment releases
//! these tasks. After an owner's decision, they are released at once. The staffing check in `fallback` follows.

use std::collections::BTreeSet;

use super::eligibility::{Workplace, is_candidate};
use super::staffing::OpenState;
use super::{Execution, state_instance_of};
use crate::event::Event;
use crate::event::reasons::LOST_ELIGIBILITY;
use crate::ids::{StateId, TaskId};
use crate::instance::{Ownership, StateInstance, Task, TaskStatus};
use crate::lookup::{Findings, Lookup};

/// Adds the owners of claimed tasks to the question to the directory.
pub(super) fn ask_for_owners(open_state: OpenState<'_>, lookup: &mut Lookup) {
    for (owner, ownership) in open_state.open().filter_map(claimed_by) {
        lookup.memberships_of.insert(owner.to_owned());
        if ownership.on_behalf_of.is_some() {
            lookup.stand_ins_of.insert(owner.to_owned());
        }
    }
}

/// Releases the other tasks of a state instance that goes on after this decision: those that the people of the decision own, or that
/// others own on their behalf. `blind`: the decision is hidden.
pub(super) fn release_to_others(
    execution: &mut Execution<'_>,
    state: StateId,
    decided: TaskId,
    blind: bool,
) {
    let instance = &execution.instance;
    let decided = instance.task(decided).expect("a task with a decision");
    let people: BTreeSet<&str> = decided.deciders().collect();
    for release in releases(state_instance_of(instance, state), &people, blind) {
        execution.emit(release);
    }
}

/// Releases tasks whose owners claimed them and may no longer decide them: they are no longer candidates or substitutes of
/// candidates, or are excluded.
pub(super) fn release_lost(execution: &mut Execution<'_>, state: StateId, findings: &Findings) {
    let Some(open_state) = execution.open_state(state) else {
        return;
    };
    let place = Workplace {
        context: execution.context,
        instance: &execution.instance,
        state_instance: open_state.state_instance,
    };
    let lost: Vec<_> = open_state
        .open()
        .filter_map(|task| claimed_by(task).map(|(owner, ownership)| (task, owner, ownership)))
        .filter(|(task, owner, ownership)| !keeps(place, task, owner, ownership, findings))
        .map(|(task, owner, _)| (task.id, owner.to_owned()))
        .collect();
    for (task, owner) in lost {
        execution.emit(Event::released(
            task,
            state,
            owner,
            Some(LOST_ELIGIBILITY),
            false,
        ));
    }
}

/// Whether the owner may still decide the task, for themselves or for the absent person for whom they claimed it.
fn keeps(
    place: Workplace<'_>,
    task: &Task,
    owner: &str,
    ownership: &Ownership,
    findings: &Findings,
) -> bool {
    let is_excluded = |person: &str| place.not_excluded(person).is_err();
    if is_excluded(owner) {
        return false;
    }
    let groups = findings.groups.get(owner).map_or(&[][..], Vec::as_slice);
    let own = is_candidate(task, owner, groups);
    let Some(absent) = &ownership.on_behalf_of else {
        return own;
    };
    let key = &place.instance.definition.key;
    let stands_in = findings.stand_ins.get(owner).into_iter().flatten();
    own || stands_in
        .filter(|stand_in| stand_in.person == *absent)
        .filter(|stand_in| stand_in.is_for(key))
        .filter(|stand_in| place.is_open_to(stand_in))
        .any(|stand_in| is_candidate(task, absent, &stand_in.groups) && !is_excluded(absent))
}

/// The releases of the open tasks that these people own, or that others own on their behalf. `blind`: because of a decision that is hidden.
pub(super) fn releases(
    state_instance: &StateInstance,
    people: &BTreeSet<&str>,
    blind: bool,
) -> Vec<Event> {
    let is_concerned = |person: &str| people.contains(person);
    let state = state_instance.id;
    let tasks = state_instance.tasks.iter();
    let mut releases = Vec::new();
    for task in tasks.filter(|task| task.status.is_open()) {
        let Some(owner) = task.owner() else {
            continue;
        };
        if is_concerned(owner) || task.represented().any(is_concerned) {
            let (owner, reason) = (owner.to_owned(), Some(LOST_ELIGIBILITY));
            releases.push(Event::released(task.id, state, owner, reason, blind));
        }
    }
    releases
}

/// The owner, if they claimed the task. None for an owner by assignment or delegation, who need not be a candidate.
fn claimed_by(task: &Task) -> Option<(&str, &Ownership)> {
    match &task.status {
        TaskStatus::Claimed {
            owner, ownership, ..
        } if !ownership.assigned && ownership.delegations.is_empty() => Some((owner, ownership)),
        TaskStatus::Claimed { .. }
        | TaskStatus::Pending
        | TaskStatus::Completed { .. }
        | TaskStatus::Cancelled { .. } => None,
    }
}
