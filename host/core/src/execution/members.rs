//! Offers of a task for each member of a group.
//!
//! The members are those of the moment at which the work is asked for. Who joins the group later gets no task until the work is
//! offered anew. Who leaves it loses the task: a reassessment withdraws it, or leaves it to the fallbacks if too few others are
//! left.

use std::collections::BTreeSet;

use super::assign::{OFFERS_MAX, TASKS_MAX, count_kept};
use super::enter::PendingEntry;
use super::staffing::{MEMBERS_MAX, OpenState};
use super::{Execution, separate, state_instance_of};
use crate::answer::{Assignment, Offer, Principal};
use crate::event::Event;
use crate::event::reasons::LEFT_GROUP;
use crate::graph::Graph;
use crate::ids::{StateId, TaskId};
use crate::instance::{Candidate, Instance, StateInstance, Task, TaskStatus};
use crate::lookup::{Findings, Lookup};
use crate::question::EntryCause;
use crate::rejection::Rejection;

/// Whether some offers are for each member of a group.
pub(super) fn is_for_each_member(assignment: &Assignment) -> bool {
    let mut offers = assignment.offers.iter();
    offers.any(|offer| offer.each_member.is_some())
}

/// Whether an offer is the work of a task again: it has the same label and the same members.
pub(super) fn is_same_work(offer: &Offer, task: &Task) -> bool {
    offer.label == task.label && members_offered(offer).eq(members_among(&task.candidates))
}

/// The people who are candidates as members of groups, each with the group.
fn members_among(candidates: &[Candidate]) -> impl Iterator<Item = (&str, &str)> {
    candidates.iter().filter_map(|candidate| match candidate {
        Candidate::Member { person, group } => Some((person.as_str(), group.as_str())),
        Candidate::User(_) | Candidate::Group(_) => None,
    })
}

/// The people to whom an offer is made as members of groups, each with the group.
fn members_offered(offer: &Offer) -> impl Iterator<Item = (&str, &str)> {
    let candidates = offer.candidates.iter();
    candidates.filter_map(|principal| Some((principal.id(), principal.member_of()?)))
}

/// Adds the candidates who must be members to the question to the directory.
pub(super) fn ask_for_memberships(open_state: OpenState<'_>, lookup: &mut Lookup) {
    let members = open_state
        .open()
        .flat_map(|task| members_among(&task.candidates));
    let people = members.map(|(person, _)| person.to_owned());
    lookup.memberships_of.extend(people);
}

/// Adds the groups whose members get a task each to the question to the directory.
pub(super) fn ask_for_groups(
    graph: &Graph,
    instance: &Instance,
    entry: &PendingEntry,
    assignment: &Assignment,
    lookup: &mut Lookup,
) {
    let groups = assignment.offers.iter();
    let groups = groups.filter_map(|offer| offer.each_member.clone());
    lookup.groups.extend(groups);
    if lookup.groups.is_empty() {
        return;
    }
    // As many as there may be tasks, and one more, even if all people without a task are members.
    let people = OFFERS_MAX + 1 + without_task(graph, instance, entry, assignment).len();
    lookup.members_max = u32::try_from(people.min(MEMBERS_MAX)).expect("a small number");
}

/// Replaces each offer for the members of a group by an offer for each of them. If they are fewer than the decisions that are
/// needed, the offers that are missing have no candidates.
pub(super) fn expand(
    graph: &Graph,
    instance: &Instance,
    entry: &PendingEntry,
    assignment: Assignment,
    findings: &Findings,
) -> Result<Assignment, Rejection> {
    let Some(first) = assignment
        .offers
        .iter()
        .find(|offer| offer.each_member.is_some())
    else {
        return Ok(assignment);
    };
    let missing = Offer {
        each_member: None,
        ..first.clone()
    };
    let without_task = without_task(graph, instance, entry, &assignment);
    let PendingEntry {
        state_instance,
        cause,
    } = entry;
    let offers_max = OFFERS_MAX.min(TASKS_MAX.saturating_sub(state_instance.tasks.len()));
    let mut offers = Vec::new();
    for offer in &assignment.offers {
        let Some(group) = &offer.each_member else {
            offers.push(offer.clone());
            continue;
        };
        let members = findings.members.get(group).map_or(&[][..], Vec::as_slice);
        let people = members.iter();
        let people = people.filter(|person| !without_task.contains(person.as_str()));
        offers.extend(people.map(|person| Offer {
            each_member: None,
            candidates: vec![Principal::Member {
                person: person.clone(),
                group: group.clone(),
            }],
            ..offer.clone()
        }));
        if offers.len() > offers_max || members.len() >= MEMBERS_MAX {
            return Err(too_many(state_instance, group, offers_max));
        }
    }
    let needed = usize::try_from(assignment.needed).unwrap_or(usize::MAX);
    let needed = needed.clamp(1, OFFERS_MAX);
    let kept = count_kept(state_instance, cause);
    while offers.len() + kept < needed {
        offers.push(missing.clone());
    }
    Ok(Assignment {
        offers,
        ..assignment
    })
}

/// The people who get no task as members: they must not decide, have decided, or keep a task.
fn without_task(
    graph: &Graph,
    instance: &Instance,
    entry: &PendingEntry,
    assignment: &Assignment,
) -> BTreeSet<String> {
    let PendingEntry {
        state_instance,
        cause,
    } = entry;
    let keeps = |task: &&Task| match cause {
        EntryCause::Overdue {
            task: Some(overdue),
            ..
        } => task.status.is_open() && task.id != *overdue,
        _ => false,
    };
    let kept = state_instance.tasks.iter().filter(keeps);
    let kept = kept.flat_map(|task| members_among(&task.candidates));
    let kept = kept.map(|(person, _)| person.to_owned());
    let mut without = must_not_decide(graph, instance, state_instance, assignment);
    without.extend(kept);
    without
}

/// The people who must not decide in the state instance under this assignment, which is not the initiator's own work.
pub(super) fn must_not_decide(
    graph: &Graph,
    instance: &Instance,
    state_instance: &StateInstance,
    assignment: &Assignment,
) -> BTreeSet<String> {
    let requesters = instance.requesters.iter().cloned();
    let exclude = assignment.exclude.clone();
    let excluded = separate::all_excluded(graph, instance, &state_instance.name, exclude);
    let decided = state_instance.tasks.iter().flat_map(Task::deciders);
    requesters
        .chain(excluded)
        .chain(decided.map(str::to_owned))
        .collect()
}

/// Takes the open tasks of a state instance from candidates who have left the group.
pub(super) fn take_from_former(execution: &mut Execution<'_>, state: StateId, findings: &Findings) {
    let Some(open_state) = execution.open_state(state) else {
        return;
    };
    let has_left = |candidate: &Candidate| match candidate {
        Candidate::Member { person, group } => {
            let groups = findings.groups.get(person);
            !groups.is_some_and(|groups| groups.contains(group))
        }
        Candidate::User(_) | Candidate::Group(_) => false,
    };
    let concerned = open_state.open();
    let concerned = concerned.filter(|task| task.candidates.iter().any(has_left));
    let concerned: Vec<(TaskId, bool, Vec<Candidate>)> = concerned
        .map(|task| {
            let others = task.candidates.iter();
            let others = others.filter(|candidate| !has_left(candidate)).cloned();
            let is_owned = task.status != TaskStatus::Pending;
            (task.id, is_owned, others.collect())
        })
        .collect();
    for (task, is_owned, candidates) in concerned {
        let known = execution.instance.task(task).expect("an open task");
        let previous = known.candidates.clone();
        let can_spare = || can_spare_task(state_instance_of(&execution.instance, state));
        let is_withdrawn = candidates.is_empty() && !is_owned && can_spare();
        execution.emit(if is_withdrawn {
            Event::TaskCancelled {
                task,
                state,
                reason: Some(LEFT_GROUP.to_owned()),
            }
        } else {
            Event::TaskRerouted {
                task,
                state,
                step: LEFT_GROUP.to_owned(),
                candidates,
                previous,
            }
        });
    }
}

/// Whether the state instance can do without one of its open tasks: another one is open, and as many decisions as it then
/// needs can still be made.
fn can_spare_task(state_instance: &StateInstance) -> bool {
    let tasks = state_instance.tasks.iter();
    let open = tasks.clone().filter(|task| task.status.is_open()).count();
    let decided = tasks.filter(|task| task.decision().is_some()).count();
    let left = (decided + open).saturating_sub(1);
    let share = state_instance.share;
    let needed = share.map_or(state_instance.needed, |share| share.of(left));
    open > 1 && left >= usize::try_from(needed).unwrap_or(usize::MAX)
}

fn too_many(state_instance: &StateInstance, group: &str, tasks_max: usize) -> Rejection {
    let message = format!(
        "{} has a task for each member of {group}, and takes {tasks_max} tasks at most; the group has more members who may decide",
        state_instance.name
    );
    Rejection::not_now("limit_reached", message)
}
