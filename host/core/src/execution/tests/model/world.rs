//! The people of a random walk: their current groups, managers, absences and permissions.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::directory::TestDirectory;
use crate::actor::{Actor, StandIn};
use crate::instance::Candidate;
use crate::lookup::{Findings, Lookup};

pub(super) const PEOPLE: [&str; 8] = ["ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal"];
pub(super) const GROUPS: [&str; 3] = ["crew", "desk", "board"];
/// The definition of the instance.
const KEY: &str = "subflows";
/// The longest chain of substitutes.
const LINKS_MAX: usize = 3;
/// The permission that some transitions need.
pub(super) const PRESS: &str = "errand:press";
/// Lets its holders take tasks from their owners.
pub(super) const ASSIGN: &str = "task:assign";

/// For which definitions an absence holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    This,
    Other,
}

/// One change of the directory. Numbers name people and groups.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Enters or leaves the group.
    Membership(usize, usize),
    Manager(usize, Option<usize>),
    Away(usize, usize, Scope),
    Back(usize),
    /// May press, may assign.
    Powers(usize, bool, bool),
}

#[derive(Debug, Clone, Default)]
pub(super) struct World {
    groups: BTreeMap<String, BTreeSet<String>>,
    managers: BTreeMap<String, String>,
    /// Each absent person's substitute.
    away: BTreeMap<String, (String, Scope)>,
    powers: BTreeMap<String, Vec<String>>,
}

pub(super) fn change() -> impl Strategy<Value = Change> {
    let one = 0..PEOPLE.len();
    let scope = prop_oneof![4 => Just(Scope::All), 2 => Just(Scope::This), 1 => Just(Scope::Other)];
    prop_oneof![
        4 => (one.clone(), 0..GROUPS.len()).prop_map(|(person, group)| Change::Membership(person, group)),
        1 => (one.clone(), prop::option::of(one.clone())).prop_map(|(of, manager)| Change::Manager(of, manager)),
        3 => (one.clone(), one.clone(), scope).prop_map(|(person, by, scope)| Change::Away(person, by, scope)),
        1 => one.clone().prop_map(Change::Back),
        1 => (one, any::<bool>(), any::<bool>()).prop_map(|(person, press, assign)| Change::Powers(person, press, assign)),
    ]
}

impl World {
    pub(super) fn take(&mut self, change: &Change) {
        let name = |person: usize| PEOPLE[person].to_owned();
        match change {
            Change::Membership(person, group) => {
                let members = self.groups.entry(GROUPS[*group].to_owned()).or_default();
                if !members.remove(PEOPLE[*person]) {
                    members.insert(name(*person));
                }
            }
            Change::Manager(of, Some(manager)) if of != manager => {
                self.managers.insert(name(*of), name(*manager));
            }
            Change::Manager(of, _) => drop(self.managers.remove(PEOPLE[*of])),
            // The directory refuses circles when they are made.
            Change::Away(person, by, _) if self.leads(PEOPLE[*by], PEOPLE[*person]) => {}
            Change::Away(person, by, scope) => {
                self.away.insert(name(*person), (name(*by), *scope));
            }
            Change::Back(person) => drop(self.away.remove(PEOPLE[*person])),
            Change::Powers(person, press, assign) => {
                let held = [(*press, PRESS), (*assign, ASSIGN)];
                let held = held.iter().filter(|(is_held, _)| *is_held);
                let held = held.map(|(_, power)| (*power).to_owned());
                self.powers.insert(name(*person), held.collect());
            }
        }
    }

    fn leads(&self, from: &str, to: &str) -> bool {
        let next = self.away.get(from);
        from == to || next.is_some_and(|(by, _)| self.leads(by, to))
    }

    /// Who is between the two, if one may act for the other at this moment: an absence of this flow names them, or their
    /// substitute's does.
    pub(super) fn between(&self, actor: &str, absent: &str) -> Option<Vec<&str>> {
        let (mut between, mut person) = (Vec::new(), absent);
        for _ in 0..LINKS_MAX {
            let (by, _) = self
                .away
                .get(person)
                .filter(|(_, of)| *of != Scope::Other)?;
            if by == actor {
                return Some(between);
            }
            between.push(by.as_str());
            person = by;
        }
        None
    }

    pub(super) fn may_press(&self, person: &str) -> bool {
        self.has(person, PRESS)
    }

    pub(super) fn may_assign(&self, person: &str) -> bool {
        self.has(person, ASSIGN)
    }

    fn has(&self, person: &str, power: &str) -> bool {
        let held = self.powers.get(person).into_iter().flatten();
        held.into_iter().any(|held| held == power)
    }

    pub(super) fn is_in(&self, person: &str, group: &str) -> bool {
        let members = self.groups.get(group);
        members.is_some_and(|members| members.contains(person))
    }

    /// Whether the person is absent from work of this flow.
    pub(super) fn is_away(&self, person: &str) -> bool {
        let away = self.away.get(person);
        away.is_some_and(|(_, of)| *of != Scope::Other)
    }

    /// Whether the work is offered to this person, as things stand.
    pub(super) fn is_offered(&self, to: &[Candidate], person: &str) -> bool {
        to.iter().any(|principal| match principal {
            Candidate::User(id) => id == person,
            Candidate::Group(group) => self.is_in(person, group),
            Candidate::Member { person: id, group } => id == person && self.is_in(person, group),
        })
    }

    pub(super) fn manager(&self, of: &str) -> Option<&str> {
        self.managers.get(of).map(String::as_str)
    }

    pub(super) fn substitute(&self, of: &str) -> Option<&str> {
        self.away.get(of).map(|(by, _)| by.as_str())
    }

    fn groups_of(&self, person: &str) -> Vec<String> {
        let groups = self.groups.iter();
        let own = groups.filter(|(_, members)| members.contains(person));
        own.map(|(group, _)| group.clone()).collect()
    }

    /// The person as a host would load them.
    pub(super) fn actor(&self, id: &str) -> Actor {
        Actor {
            id: id.to_owned(),
            groups: self.groups_of(id),
            permissions: self.powers.get(id).cloned().unwrap_or_default(),
            on_behalf_of: None,
            stands_in_for: self.stand_ins(id),
        }
    }

    fn stand_ins(&self, actor: &str) -> Vec<StandIn> {
        let mut found: Vec<_> = PEOPLE
            .iter()
            .filter_map(|absent| self.stand_in(actor, absent))
            .collect();
        found.sort_by_key(|stand_in| stand_in.via.len());
        found
    }

    fn stand_in(&self, actor: &str, absent: &str) -> Option<StandIn> {
        let (mut via, mut scopes, mut person) = (Vec::new(), Vec::new(), absent);
        loop {
            let (by, scope) = self.away.get(person)?;
            scopes.push(*scope);
            if by == actor {
                break;
            }
            via.push(by.clone());
            if via.len() == LINKS_MAX {
                return None;
            }
            person = by;
        }
        let definition = match (
            scopes.contains(&Scope::This),
            scopes.contains(&Scope::Other),
        ) {
            (true, true) => return None,
            (true, false) => Some(KEY.to_owned()),
            (false, true) => Some("chores".to_owned()),
            (false, false) => None,
        };
        Some(StandIn {
            person: absent.to_owned(),
            groups: self.groups_of(absent),
            definition,
            via,
        })
    }

    /// The answer that a host would give.
    pub(super) fn found(&self, lookup: &Lookup) -> Findings {
        let stand_ins = PEOPLE
            .iter()
            .map(|id| ((*id).to_owned(), self.stand_ins(id)));
        let mut directory = TestDirectory {
            groups: self.groups.clone(),
            managers: self.managers.clone(),
            stand_ins: stand_ins.collect(),
            away: PEOPLE
                .iter()
                .filter(|person| self.is_away(person))
                .map(ToString::to_string)
                .collect(),
            ..TestDirectory::default()
        };
        let known = lookup.people.iter();
        let known = known.filter(|id| PEOPLE.contains(&id.as_str()));
        Findings {
            people: known.cloned().collect(),
            ..directory.found(lookup)
        }
    }
}
