//! Replaces the offers of an active state: after a migration, or because a plan offers the work anew.
//!
//! Decisions are kept. An owner keeps a task that is offered again, if they are still eligible.

use std::collections::{BTreeMap, BTreeSet};

use super::fallback::Cause;
use super::staffing::OpenState;
use super::{
    Execution, ExecutionError, assign, deadline, enter, fallback, members, separate,
    state_instance_of,
};
use crate::answer::{Assignment, Offer};
use crate::event::Event;
use crate::event::reasons::{MIGRATED, REOFFERED};
use crate::ids::{StateId, TaskId};
use crate::instance::{Candidate, StateInstance, Task, TaskStatus};
use crate::lookup::Findings;

/// Why the offers are replaced. Its name is the `reason` of cancelled tasks, and the `step` of tasks with new candidates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReofferCause {
    Migrated,
    Reoffered,
}

impl ReofferCause {
    fn name(self) -> &'static str {
        match self {
            ReofferCause::Migrated => MIGRATED,
            ReofferCause::Reoffered => REOFFERED,
        }
    }
}

/// Replaces the offers of a state instance. Tasks that are offered again are kept if possible.
pub(super) fn replace_offers(
    execution: &mut Execution<'_>,
    state_instance: &StateInstance,
    why: ReofferCause,
    assignment: Assignment,
    findings: &Findings,
) -> Result<(), ExecutionError> {
    let (graph, now) = (&execution.context.version.graph, execution.context.now);
    let (deadlines, subscriptions) = match why {
        ReofferCause::Migrated => {
            let from = deadline::counting_from(&execution.instance, now);
            let ids = &mut *execution.ids;
            let deadlines = deadline::open(ids, from, &assignment.deadlines, false, findings)?;
            (Some(deadlines), Some(assignment.subscriptions.clone()))
        }
        ReofferCause::Reoffered => (None, None),
    };
    let decided = state_instance.tasks.iter().filter_map(Task::decision);
    execution.emit(Event::StateReassigned {
        state: state_instance.id,
        needed: assignment.needed_of(assignment.offers.len() + decided.count()),
        share: assignment.share,
        exclude: separate::all_excluded(
            graph,
            &execution.instance,
            &state_instance.name,
            assignment.exclude,
        ),
        fallback: assignment.fallback,
        priority: assignment.priority,
        priority_name: enter::priority_name(graph, assignment.priority),
        deadlines,
        subscriptions,
    });
    let instance = &execution.instance;
    let offers = assign::effective_offers(graph, instance, state_instance, assignment.offers);
    let reassigned = state_instance_of(instance, state_instance.id);
    let open_state = OpenState::of(graph, instance, reassigned);
    let continued = continued(open_state, why, &offers, findings);
    // The offers by their places, because the new tasks come in the order of their offers.
    let mut offers: BTreeMap<usize, Offer> = offers.into_iter().enumerate().collect();
    let mut new_tasks = Vec::new();
    for task in state_instance
        .tasks
        .iter()
        .filter(|task| task.status.is_open())
    {
        let again = continued.get(&task.id);
        let Some((place, offer)) = again.and_then(|place| offers.remove_entry(place)) else {
            withdraw(execution, state_instance.id, why, task);
            continue;
        };
        let (ids, instance) = (&mut *execution.ids, &execution.instance);
        let new = assign::new_task(ids, instance, now, offer, Some(&task.status), findings)?;
        // A migration may bring other deadlines. The deadlines of a task cannot change, so such a task is replaced. On a
        // reoffer the task keeps its deadlines.
        let has_deadlines = !new.deadlines.is_empty() || !task.deadlines.is_empty();
        if why == ReofferCause::Reoffered || !has_deadlines {
            keep(execution, state_instance.id, why, task, new);
        } else {
            withdraw(execution, state_instance.id, why, task);
            new_tasks.push((place, new));
        }
    }
    for (place, offer) in offers {
        let (ids, instance) = (&mut *execution.ids, &execution.instance);
        let new = assign::new_task(ids, instance, now, offer, None, findings)?;
        new_tasks.push((place, new));
    }
    new_tasks.sort_by_key(|(place, _)| *place);
    for (_, task) in new_tasks {
        execution.emit(Event::TaskCreated {
            state: state_instance.id,
            state_name: state_instance.name.clone(),
            task,
        });
    }
    let checks = &mut execution.staffing_checks;
    fallback::queue_check(state_instance.id, Cause::Replaced, checks);
    Ok(())
}

/// The place of the offer that continues a task, for each open task that goes on. Tasks with an owner choose first. Among these, and
/// among the others, tasks that are offered to the same candidates again choose first.
fn continued(
    open_state: OpenState<'_>,
    why: ReofferCause,
    offers: &[Offer],
    findings: &Findings,
) -> BTreeMap<TaskId, usize> {
    let excluded_people = open_state.excluded_people();
    let resolved = |offer: &Offer| -> Vec<Candidate> {
        let candidates = offer.candidates.iter().cloned();
        let candidates = candidates.filter_map(|candidate| candidate.resolved(findings));
        candidates.collect()
    };
    let candidates: Vec<_> = offers.iter().map(resolved).collect();
    let mut continued: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    for (is_owned, to_same) in [(true, true), (true, false), (false, true), (false, false)] {
        for task in open_state.open() {
            if task.owner().is_some() != is_owned || continued.contains_key(&task.id) {
                continue;
            }
            let place = (0..offers.len()).find(|place| {
                !taken.contains(place)
                    && (!to_same || candidates[*place] == task.candidates)
                    && is_kept(why, task, &offers[*place], &excluded_people)
            });
            if let Some(place) = place {
                continued.insert(task.id, place);
                taken.insert(place);
            }
        }
    }
    continued
}

/// Keeps a task, with the new candidates.
fn keep(
    execution: &mut Execution<'_>,
    state: StateId,
    why: ReofferCause,
    task: &Task,
    offered: Task,
) {
    if offered.candidates != task.candidates {
        execution.emit(Event::TaskRerouted {
            task: task.id,
            state,
            step: why.name().to_owned(),
            candidates: offered.candidates,
            previous: task.candidates.clone(),
        });
    }
}

/// Cancels a task that is not offered again.
fn withdraw(execution: &mut Execution<'_>, state: StateId, why: ReofferCause, task: &Task) {
    execution.emit(Event::TaskCancelled {
        task: task.id,
        state,
        reason: Some(why.name().to_owned()),
    });
}

/// Whether the offer may continue the task: it is the same work, and the task's owner is not excluded. A migration always
/// replaces tasks without an owner. The staffing check then asks the directory whether the owner is still a candidate.
fn is_kept(
    why: ReofferCause,
    task: &Task,
    offer: &Offer,
    excluded_people: &BTreeSet<&str>,
) -> bool {
    if !members::is_same_work(offer, task) {
        return false;
    }
    let TaskStatus::Claimed {
        owner, ownership, ..
    } = &task.status
    else {
        return why == ReofferCause::Reoffered && offer.owner.is_none();
    };
    let mut concerned = std::iter::once(owner.as_str()).chain(ownership.represented());
    // An owner by claim must be a candidate; an owner by assignment need not be. So an offer that assigns work to an owner by
    // claim makes a new task.
    let is_given = ownership.assigned || !ownership.delegations.is_empty();
    let mut named = offer.owner.iter();
    named.all(|assigned| assigned == owner && is_given)
        && !concerned.any(|person| excluded_people.contains(person))
}
