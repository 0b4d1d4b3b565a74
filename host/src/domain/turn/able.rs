//! Who is able to do the open work of a stay, as far as the directory was asked.
//!
//! Able is who is offered a task, or owns it, and is not barred: no requester outside their own work, nobody excluded,
//! nobody who has decided in this stay already. An owner who has the task from somebody barred is not able either: it
//! would be decided in that person's name. Substitutes add nobody: whom they act for could decide themselves, and
//! their decision counts for that person.

use std::collections::{BTreeMap, BTreeSet};

use super::matching::matching;
use crate::domain::answer::Principal;
use crate::domain::ids::TaskId;
use crate::domain::instance::{Instance, StateInstance, Task, TaskStatus};
use crate::domain::lookup::{Findings, Lookup};

/// How many members of a group are looked at. Reached only where hundreds of tasks, requesters and excluded people come
/// together.
const MEMBERS_MAX: usize = 1_024;

/// What is known of a stay's open tasks.
pub(super) struct Ability {
    /// Tasks that people can decide, when each of them decides one.
    possible: usize,
    /// Decisions that the stay still waits for, at the least.
    required: usize,
    /// Tasks that nobody at all is able to do.
    pub(super) nobody: Vec<TaskId>,
    /// Tasks for which nobody is left when everybody does one.
    pub(super) lacking: Vec<TaskId>,
}

impl Ability {
    pub(super) fn of(circle: Circle<'_>, findings: &Findings) -> Ability {
        let mut open: Vec<_> = circle.open().collect();
        // Who owns a task keeps it; others are found for the rest.
        open.sort_by_key(|task| task.owner().is_none());
        let barred = circle.barred();
        let mut numbers = BTreeMap::new();
        let able: Vec<Vec<usize>> = open
            .iter()
            .map(|task| {
                let people = able(task, &barred, findings, open.len()).into_iter();
                let number = |person| {
                    let next = numbers.len();
                    *numbers.entry(person).or_insert(next)
                };
                people.map(number).collect()
            })
            .collect();
        let done_by = matching(&able, numbers.len());
        let of = |is_wanted: &dyn Fn(usize) -> bool| -> Vec<TaskId> {
            let wanted = (0..open.len()).filter(|task| is_wanted(*task));
            wanted.map(|task| open[task].id).collect()
        };
        let lacking = of(&|task| done_by[task].is_none());
        let decided = circle.stay.tasks.iter().filter_map(Task::decision).count();
        let needed = usize::try_from(circle.stay.needed).unwrap_or(usize::MAX);
        Ability {
            possible: open.len() - lacking.len(),
            required: needed.saturating_sub(decided).max(1).min(open.len()),
            nobody: of(&|task| able[task].is_empty()),
            lacking,
        }
    }

    /// Whether as many tasks can be decided as the stay needs, and one at the least.
    pub(super) fn suffices(&self) -> bool {
        self.possible >= self.required
    }
}

/// A stay, and who must not work in it.
#[derive(Clone, Copy)]
pub(super) struct Circle<'a> {
    pub(super) instance: &'a Instance,
    pub(super) stay: &'a StateInstance,
    /// It is the initiator's own.
    pub(super) own_work: bool,
}

impl<'a> Circle<'a> {
    pub(super) fn open(self) -> impl Iterator<Item = &'a Task> {
        self.stay.tasks.iter().filter(|task| task.status.is_open())
    }

    /// Those who must not decide in the stay, or not again.
    pub(super) fn barred(self) -> BTreeSet<&'a str> {
        let requesters = self.instance.requesters.iter();
        let requesters = requesters.filter(|_| !self.own_work);
        requesters
            .chain(&self.stay.exclude)
            .map(String::as_str)
            .chain(self.stay.tasks.iter().flat_map(deciders))
            .collect()
    }

    /// What to ask of the groups that its open tasks are offered to. It does not say who the requesters are, so that
    /// many instances ask the same.
    pub(super) fn lookup(self) -> Lookup {
        if self.own_work {
            return Lookup::default();
        }
        let candidates = self.open().flat_map(|task| &task.candidates);
        let groups = candidates.filter_map(|candidate| match candidate {
            Principal::Group(id) => Some(id.clone()),
            Principal::User(_) | Principal::ManagerOf(_) => None,
        });
        Lookup {
            groups: groups.collect(),
            members_max: self.members_max(),
            ..Lookup::default()
        }
    }

    /// So many members that, whoever of them is barred, there is one for each open task - if the group has them.
    pub(super) fn members_max(self) -> u32 {
        let people = self.open().count()
            + self.stay.tasks.iter().flat_map(deciders).count()
            + self.instance.requesters.len()
            + self.stay.exclude.len();
        u32::try_from(people.min(MEMBERS_MAX)).expect("a small number")
    }
}

/// Whom a decision bars from another in the stay: who made it, and in whose name.
pub(super) fn deciders(task: &Task) -> impl Iterator<Item = &str> {
    let decision = task.decision();
    let named = decision.map(|decision| {
        let principal = decision.on_behalf_of.as_deref();
        // Somebody absent may have owned the task for another.
        let owner = task.owner().filter(|owner| *owner != decision.actor);
        let others = principal.into_iter().chain(owner);
        std::iter::once(decision.actor.as_str()).chain(others)
    });
    named.into_iter().flatten()
}

/// Up to `people_max` people able to do the task.
fn able<'a>(
    task: &'a Task,
    barred: &BTreeSet<&str>,
    findings: &'a Findings,
    people_max: usize,
) -> BTreeSet<&'a str> {
    let candidates = task.candidates.iter();
    let users = candidates.clone().filter_map(|candidate| match candidate {
        Principal::User(id) => Some(id.as_str()),
        Principal::Group(_) | Principal::ManagerOf(_) => None,
    });
    let members = candidates.flat_map(|candidate| match candidate {
        Principal::Group(id) => findings.members.get(id).map_or(&[][..], Vec::as_slice),
        Principal::User(_) | Principal::ManagerOf(_) => &[],
    });
    let from_barred = behind(task).any(|person| barred.contains(person));
    let owner = task.owner().filter(|_| !from_barred);
    let mut able = BTreeSet::new();
    for person in owner
        .into_iter()
        .chain(users)
        .chain(members.map(String::as_str))
    {
        if able.len() == people_max {
            break;
        }
        if !barred.contains(person) {
            able.insert(person);
        }
    }
    able
}

/// From whom its owner has a task: the absent person whose it is, and those who handed it on.
fn behind(task: &Task) -> impl Iterator<Item = &str> {
    let holding = match &task.status {
        TaskStatus::Claimed { holding, .. } => Some(holding),
        TaskStatus::Pending | TaskStatus::Completed { .. } | TaskStatus::Cancelled { .. } => None,
    };
    holding.into_iter().flat_map(|holding| {
        let delegators = holding.delegations.iter().map(|link| link.from.as_str());
        delegators.chain(holding.on_behalf_of.as_deref())
    })
}
