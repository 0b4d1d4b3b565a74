//! Work that the host gives to one of its candidates: to everybody in turn, or to the person with the fewest open tasks.
//!
//! The execution asks the directory twice: for the members of the groups among the candidates, and then for the work of the
//! people who may do the task. Both answers are recorded, so a replay makes the same choice. Concurrent commands do not see each
//! other's choice, so a person may get two tasks in a row.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::assign::LookupPurpose;
use super::enter::PendingEntry;
use super::staffing::MEMBERS_MAX;
use super::{
    Context, Execution, ExecutionError, Phase, assign, familiar, members, state_instance_of,
};
use crate::answer::{Allocation, Assignment, Offer, Principal};
use crate::event::reasons::ESCALATED;
use crate::graph::Graph;
use crate::ids::StateId;
use crate::instance::{Instance, Task, TaskStatus};
use crate::lookup::{Findings, Lookup, WorkloadsOf};
use crate::question::EntryCause;

/// How many people are considered: for one offer, and for all offers of an assignment. They are taken in the order of the
/// candidates, and the members of a group in the order of their ids. The host gives no task to anybody beyond this limit.
/// They may still claim a task that the host gives to nobody.
pub(crate) const CONSIDERED_MAX: usize = 100;
/// How many open tasks of a person are counted. Further tasks do not count.
pub(crate) const OPEN_TASKS_MAX: u32 = 100;

/// An assignment that waits for the work of its candidates.
pub(super) struct Allocating {
    pub(super) entry: PendingEntry,
    pub(super) assignment: Assignment,
    /// The findings about the assignment.
    pub(super) known: Findings,
}

/// The people to whom tasks of one state instance may be given.
pub(super) struct Pool(BTreeMap<String, Standing>);

/// The facts that decide a person's place in the order.
struct Standing {
    open: usize,
    /// When they were last given a task, and which of the instance's tasks in that state it was.
    turn: Option<(Timestamp, usize)>,
}

/// The offers of an assignment whose tasks the host allocates, unless they have an owner.
fn allocated(assignment: &Assignment) -> impl Iterator<Item = &Offer> {
    let offers = assignment.offers.iter();
    offers.filter(|offer| !offer.allocation.is_offered())
}

/// How many people are examined to allocate an assignment. A candidate that stands for nobody counts as one.
pub(super) fn examined(assignment: &Assignment, findings: &Findings) -> usize {
    let candidates = allocated(assignment).flat_map(|offer| &offer.candidates);
    candidates
        .map(|principal| principal.people(findings).count().max(1))
        .sum()
}

/// The people among the candidates of an offer, as far as the directory was asked for them.
fn people<'f>(offer: &'f Offer, findings: &'f Findings) -> impl Iterator<Item = &'f str> {
    let candidates = offer.candidates.iter();
    candidates.flat_map(|principal| principal.people(findings))
}

/// The first person of each list, then the second of each, until there are enough.
fn first_of_each<'f>(mut lists: Vec<impl Iterator<Item = &'f str>>) -> BTreeSet<String> {
    let mut first = BTreeSet::new();
    while !lists.is_empty() {
        lists.retain_mut(|list| {
            let next = list.next().filter(|_| first.len() < CONSIDERED_MAX);
            next.map(|person| first.insert(person.to_owned())).is_some()
        });
    }
    first
}

/// Whether the host gives tasks to candidates here: not when work is offered anew, nor in the initiator's own work.
fn allocates(graph: &Graph, entry: &PendingEntry) -> bool {
    let is_new = match entry.cause {
        EntryCause::Entered | EntryCause::Overdue { .. } => true,
        EntryCause::Migrated | EntryCause::Reoffered => false,
    };
    is_new && !graph.is_own_work(&entry.state_instance.name)
}

/// Adds the groups among the candidates of allocated offers to the question to the directory.
pub(super) fn ask_for_candidates(
    graph: &Graph,
    instance: &Instance,
    entry: &PendingEntry,
    assignment: &Assignment,
    lookup: &mut Lookup,
) {
    if !allocates(graph, entry) {
        return;
    }
    let (mut groups, mut people) = (BTreeSet::new(), BTreeSet::new());
    for principal in allocated(assignment).flat_map(|offer| &offer.candidates) {
        match principal {
            Principal::Group(id) if groups.len() < CONSIDERED_MAX => {
                groups.insert(id.clone());
            }
            Principal::Member { person, .. } if people.len() < CONSIDERED_MAX => {
                people.insert(person.clone());
            }
            _ => {}
        }
    }
    lookup.memberships_of.extend(people);
    if !groups.is_empty() {
        // Enough members to consider as many people as may be considered, even if all who must not decide are members.
        let excluded = members::must_not_decide(graph, instance, &entry.state_instance, assignment);
        let members_max = (CONSIDERED_MAX + excluded.len()).min(MEMBERS_MAX);
        let members_max = u32::try_from(members_max).expect("a small number");
        lookup.members_max = lookup.members_max.max(members_max);
        lookup.groups.extend(groups);
    }
}

/// Creates the tasks of a checked assignment, once the work of the people who may get them is known.
pub(super) fn allocate(
    execution: &mut Execution<'_>,
    entry: PendingEntry,
    assignment: Assignment,
    findings: &Findings,
) -> Result<(), ExecutionError> {
    let (context, instance) = (execution.context, &execution.instance);
    let Some(workloads) = workloads(context, instance, &entry, &assignment, findings) else {
        return assign::begin(execution, entry, assignment, findings);
    };
    let lookup = Lookup {
        workloads: Some(workloads),
        ..Lookup::default()
    };
    let allocating = Box::new(Allocating {
        entry,
        assignment,
        known: findings.clone(),
    });
    execution.phase = Phase::Lookup(lookup, LookupPurpose::Allocate(allocating));
    Ok(())
}

/// The question about the work of the people who may get the tasks; none if there is nobody.
fn workloads(
    context: Context<'_>,
    instance: &Instance,
    entry: &PendingEntry,
    assignment: &Assignment,
    findings: &Findings,
) -> Option<WorkloadsOf> {
    let graph = &context.version.graph;
    let mut offers = allocated(assignment).peekable();
    if !allocates(graph, entry) || offers.peek().is_none() {
        return None;
    }
    let excluded = members::must_not_decide(graph, instance, &entry.state_instance, assignment);
    let lists = offers.map(|offer| {
        let people = people(offer, findings).filter(|person| !excluded.contains(*person));
        people.take(CONSIDERED_MAX)
    });
    let people = first_of_each(lists.collect());
    let counts = |offer: &Offer| offer.allocation == Allocation::LeastLoaded;
    (!people.is_empty()).then(|| WorkloadsOf {
        people,
        definition: context.version.reference.key.clone(),
        state: entry.state_instance.name.clone(),
        besides: instance.id,
        open_max: if allocated(assignment).any(counts) {
            OPEN_TASKS_MAX
        } else {
            0
        },
    })
}

/// The people who may get new tasks of the state instance. Nobody gets two of its tasks, a task that they must not
/// decide, or a task that replaces their own overdue one.
pub(super) fn pool(
    graph: &Graph,
    instance: &Instance,
    state: StateId,
    offers: &[Offer],
    findings: &Findings,
) -> Pool {
    let mut pool: BTreeMap<_, _> = findings
        .workloads
        .iter()
        .map(|(person, work)| {
            let open = usize::try_from(work.open).unwrap_or(usize::MAX);
            let turn = work.given_at.map(|at| (at, 0));
            (person.clone(), Standing { open, turn })
        })
        .collect();
    if pool.is_empty() {
        return Pool(pool);
    }
    let state_instance = state_instance_of(instance, state);
    let tasks = state_instance.tasks.iter();
    let overdue = tasks.filter_map(|task| match &task.status {
        TaskStatus::Cancelled { owner, reason, .. } if reason.as_deref() == Some(ESCALATED) => {
            owner.as_deref()
        }
        _ => None,
    });
    let named = offers.iter().filter_map(|offer| offer.owner.as_deref());
    let busy = familiar::busy_in(graph, instance, state_instance).into_iter();
    for person in busy.chain(overdue).chain(named) {
        pool.remove(person);
    }
    count_own(instance, &state_instance.name, &mut pool);
    Pool(pool)
}

/// Counts the tasks of the instance itself, including those that this command creates.
fn count_own(instance: &Instance, state: &str, pool: &mut BTreeMap<String, Standing>) {
    let active = instance.active.iter();
    let open = active.flat_map(|active| &active.tasks);
    for owner in open
        .filter(|task| task.status.is_open())
        .filter_map(Task::owner)
    {
        if let Some(standing) = pool.get_mut(owner) {
            standing.open += 1;
        }
    }
    let here = instance.state_instances();
    let here = here.filter(|state_instance| state_instance.name == state);
    let tasks = here.flat_map(|state_instance| &state_instance.tasks);
    for (number, task) in (1..).zip(tasks) {
        if let Some(owner) = task.allocated_to()
            && let Some(standing) = pool.get_mut(owner)
        {
            standing.turn = standing.turn.max(Some((task.created_at, number)));
        }
    }
}

impl Pool {
    /// The person who gets the task of this offer; none if it stays open to all candidates. Of people with the same place in
    /// the order, the one whose turn is longest ago is chosen, and then the first by id.
    pub(super) fn choose(&self, offer: &Offer, findings: &Findings) -> Option<String> {
        if offer.owner.is_some() {
            return None;
        }
        let standing = people(offer, findings)
            .filter_map(|person| Some((person, self.0.get(person)?)))
            .take(CONSIDERED_MAX);
        let chosen = match offer.allocation {
            Allocation::Offered => None,
            Allocation::RoundRobin => standing
                .map(|(person, standing)| (0, standing.turn, person))
                .min(),
            Allocation::LeastLoaded => standing
                .map(|(person, standing)| (standing.open, standing.turn, person))
                .min(),
        };
        chosen.map(|(_, _, person)| person.to_owned())
    }

    /// Removes a person who owns a task of the state instance now.
    pub(super) fn leave(&mut self, person: &str) {
        self.0.remove(person);
    }
}
