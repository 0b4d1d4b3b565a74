//! Staffing: how many open tasks of a state instance the eligible people can decide.
//!
//! A candidate or owner of a task is eligible unless excluded. Requesters are excluded (except from their own work). So are
//! people whom the assignment excludes, and people who have decided in this state instance. An owner who has the task on
//! behalf of an excluded person is excluded, too, because the decision would be made in that person's name. Substitutes are
//! not counted: the person for whom they act could decide, and the decision counts for that person.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::Graph;
use crate::ids::{StateId, TaskId};
use crate::instance::{Candidate, Instance, StateInstance, Task};
use crate::lookup::{Findings, Lookup};

/// How many members of a group are read. Only hundreds of tasks, requesters and excluded people together reach this limit.
pub(super) const MEMBERS_MAX: usize = 1_024;

/// The staffing of one state instance.
pub(super) struct Staffing {
    /// How many tasks can be decided when each person decides one.
    possible: usize,
    /// How many decisions the state instance still needs.
    required: usize,
    /// Tasks for which nobody is eligible.
    pub(super) nobody: Vec<TaskId>,
    /// Tasks for which nobody is left when each person decides one.
    pub(super) unstaffed: Vec<TaskId>,
}

impl Staffing {
    pub(super) fn of(open_state: OpenState<'_>, findings: &Findings) -> Staffing {
        let mut open: Vec<_> = open_state.open().collect();
        // Owners keep their tasks; the other people are matched with the rest.
        open.sort_by_key(|task| task.owner().is_none());
        let excluded_people = open_state.excluded_people();
        let mut numbers = BTreeMap::new();
        let eligible: Vec<Vec<usize>> = open
            .iter()
            .map(|task| {
                let people = eligible(task, &excluded_people, findings, open.len()).into_iter();
                let number = |person| {
                    let next = numbers.len();
                    *numbers.entry(person).or_insert(next)
                };
                people.map(number).collect()
            })
            .collect();
        let done_by = matching(&eligible, numbers.len());
        let of = |is_wanted: &dyn Fn(usize) -> bool| -> Vec<TaskId> {
            let wanted = (0..open.len()).filter(|task| is_wanted(*task));
            wanted.map(|task| open[task].id).collect()
        };
        let unstaffed = of(&|task| done_by[task].is_none());
        let decided = open_state
            .state_instance
            .tasks
            .iter()
            .filter_map(Task::decision)
            .count();
        let needed = usize::try_from(open_state.state_instance.needed).unwrap_or(usize::MAX);
        Staffing {
            possible: open.len() - unstaffed.len(),
            required: needed.saturating_sub(decided).max(1).min(open.len()),
            nobody: of(&|task| eligible[task].is_empty()),
            unstaffed,
        }
    }

    /// Whether as many tasks can be decided as the state instance needs, and at least one.
    pub(super) fn suffices(&self) -> bool {
        self.possible >= self.required
    }
}

/// A state instance with open tasks.
#[derive(Clone, Copy)]
pub(super) struct OpenState<'a> {
    pub(super) instance: &'a Instance,
    pub(super) state_instance: &'a StateInstance,
    /// The initiator does this work on their own request.
    pub(super) own_work: bool,
}

impl<'a> OpenState<'a> {
    /// The active state instance, if it has open tasks.
    pub(super) fn find(
        graph: &Graph,
        instance: &'a Instance,
        state: StateId,
    ) -> Option<OpenState<'a>> {
        let state_instance = instance
            .active
            .iter()
            .find(|state_instance| state_instance.id == state)?;
        let open_state = OpenState::of(graph, instance, state_instance);
        open_state.open().next().is_some().then_some(open_state)
    }

    pub(super) fn of(
        graph: &Graph,
        instance: &'a Instance,
        state_instance: &'a StateInstance,
    ) -> OpenState<'a> {
        OpenState {
            instance,
            state_instance,
            own_work: graph.is_own_work(&state_instance.name),
        }
    }

    pub(super) fn open(self) -> impl Iterator<Item = &'a Task> {
        self.state_instance
            .tasks
            .iter()
            .filter(|task| task.status.is_open())
    }

    /// The people who must not decide in the state instance, including those who have decided.
    pub(super) fn excluded_people(self) -> BTreeSet<&'a str> {
        let requesters = self.instance.requesters.iter();
        let requesters = requesters.filter(|_| !self.own_work);
        requesters
            .chain(&self.state_instance.exclude)
            .map(String::as_str)
            .chain(self.state_instance.tasks.iter().flat_map(Task::deciders))
            .collect()
    }

    /// The question to the directory about the groups among the candidates. It does not depend on the requesters. So many
    /// instances ask the same question, and the answer can be cached.
    pub(super) fn lookup(self) -> Lookup {
        if self.own_work {
            return Lookup::default();
        }
        let candidates = self.open().flat_map(|task| &task.candidates);
        let groups = candidates.filter_map(|candidate| match candidate {
            Candidate::Group(id) => Some(id.clone()),
            Candidate::User(_) | Candidate::Member { .. } => None,
        });
        Lookup {
            groups: groups.collect(),
            members_max: self.members_max(),
            ..Lookup::default()
        }
    }

    /// How many members of a group to ask for: enough to have one for each open task even if all excluded people are members.
    pub(super) fn members_max(self) -> u32 {
        let people = self.open().count()
            + self
                .state_instance
                .tasks
                .iter()
                .flat_map(Task::deciders)
                .count()
            + self.instance.requesters.len()
            + self.state_instance.exclude.len();
        u32::try_from(people.min(MEMBERS_MAX)).expect("a small number")
    }
}

/// Up to `people_max` people who are eligible for the task.
fn eligible<'a>(
    task: &'a Task,
    excluded_people: &BTreeSet<&str>,
    findings: &'a Findings,
    people_max: usize,
) -> BTreeSet<&'a str> {
    let candidates = task.candidates.iter();
    let users = candidates.clone().filter_map(|candidate| match candidate {
        // A reassessment removes former members from the candidates.
        Candidate::User(id) | Candidate::Member { person: id, .. } => Some(id.as_str()),
        Candidate::Group(_) => None,
    });
    let members = candidates.flat_map(|candidate| match candidate {
        Candidate::Group(id) => findings.members.get(id).map_or(&[][..], Vec::as_slice),
        Candidate::User(_) | Candidate::Member { .. } => &[],
    });
    let from_excluded = task
        .represented()
        .any(|person| excluded_people.contains(person));
    let owner = task.owner().filter(|_| !from_excluded);
    let mut eligible = BTreeSet::new();
    for person in owner
        .into_iter()
        .chain(users)
        .chain(members.map(String::as_str))
    {
        if eligible.len() == people_max {
            break;
        }
        if !excluded_people.contains(person) {
            eligible.insert(person);
        }
    }
    eligible
}

/// A maximum matching of tasks and people, where each person does at most one task, by augmenting paths (Kuhn). Returns the
/// person for each task; none for a task without a person. `eligible` has the people for each task, as numbers below `people`;
/// [`eligible()`] gives at most as many as there are tasks. Earlier tasks are matched first.
fn matching(eligible: &[Vec<usize>], people: usize) -> Vec<Option<usize>> {
    let mut doing = vec![None; people];
    for task in 0..eligible.len() {
        augment(eligible, task, &mut doing, &mut vec![false; people]);
    }
    let mut done_by = vec![None; eligible.len()];
    for (person, task) in doing.into_iter().enumerate() {
        if let Some(task) = task {
            done_by[task] = Some(person);
        }
    }
    done_by
}

/// Finds a person for the task, and moves other people to other tasks if necessary. Recurses at most once per task.
fn augment(
    eligible: &[Vec<usize>],
    task: usize,
    doing: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    for &person in &eligible[task] {
        if std::mem::replace(&mut tried[person], true) {
            continue;
        }
        let is_free = match doing[person] {
            None => true,
            Some(other) => augment(eligible, other, doing, tried),
        };
        if is_free {
            doing[person] = Some(task);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
