//! The directory of a scenario: people, groups, absences and calendars.
//!
//! It has the values that the test sets. If a test does not set the members of a group, they are unknown. In a calendar
//! that is not set, all time is working time. The directory remembers to whom the host gave tasks.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::absence::{Absence, LINKS_MAX};
use crate::actor::{Actor, StandIn};
use crate::json::Json;
use crate::lookup::{Findings, Lookup, Workload, WorkloadsOf};

/// Every minute of the week.
const ALWAYS: &str = r#"{"timeZone":"Etc/UTC","hours":{
    "monday":[{"from":"00:00","until":"24:00"}],"tuesday":[{"from":"00:00","until":"24:00"}],
    "wednesday":[{"from":"00:00","until":"24:00"}],"thursday":[{"from":"00:00","until":"24:00"}],
    "friday":[{"from":"00:00","until":"24:00"}],"saturday":[{"from":"00:00","until":"24:00"}],
    "sunday":[{"from":"00:00","until":"24:00"}]}}"#;

/// People, groups, absences and calendars.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    people: BTreeMap<String, Person>,
    /// Groups whose members are known, even if there are none.
    known: BTreeSet<String>,
    calendars: BTreeMap<String, Json>,
    /// Who is absent when, with their substitutes.
    pub absences: Vec<Absence>,
    /// How many tasks the host gave to people.
    tasks_given: i64,
}

#[derive(Clone, Debug, Default)]
struct Person {
    groups: BTreeSet<String>,
    permissions: Vec<String>,
    manager: Option<String>,
    /// How many open tasks of other instances they own.
    open: u32,
    /// When they were last given a task, by the name of its state. The empty name stands for tasks of other instances.
    given: BTreeMap<String, Timestamp>,
    /// Whether they are always absent. [`Directory::absences`] has the people who are absent for a time.
    absent: bool,
}

impl Directory {
    /// Makes the members of the group known. A group without members is then empty.
    pub fn knows(&mut self, group: &str) {
        self.known.insert(group.to_owned());
    }

    /// Somebody is a member of the group.
    pub fn joins(&mut self, user: &str, group: &str) {
        self.knows(group);
        self.person(user).groups.insert(group.to_owned());
    }

    /// Somebody is not a member of the group.
    pub fn leaves(&mut self, user: &str, group: &str) {
        self.person(user).groups.remove(group);
    }

    /// Somebody's roles permit this.
    pub fn permits(&mut self, user: &str, permission: &str) {
        let person = self.person(user);
        person.permissions.push(permission.to_owned());
    }

    /// Somebody has this manager, or none.
    pub fn manages(&mut self, user: &str, manager: Option<&str>) {
        self.person(user).manager = manager.map(str::to_owned);
    }

    /// Sets how many open tasks of other instances somebody owns.
    pub fn owns(&mut self, user: &str, tasks: u32) {
        self.person(user).open = tasks;
    }

    /// The host gave somebody a task in another instance at this time.
    pub fn was_given(&mut self, user: &str, at: Timestamp) {
        self.person(user).given.insert(String::new(), at);
    }

    /// Somebody is absent at all times, without a substitute.
    pub fn is_absent(&mut self, user: &str) {
        self.person(user).absent = true;
    }

    /// Remembers a task that the host gave to somebody. Tasks of the same moment stay in their order.
    pub(super) fn remember_given(&mut self, user: &str, state: &str, now: Timestamp) {
        self.tasks_given += 1;
        let at = now + SignedDuration::from_nanos(self.tasks_given);
        self.person(user).given.insert(state.to_owned(), at);
    }

    /// The settings of a working calendar.
    pub fn calendar(&mut self, name: &str, settings: Json) {
        self.calendars.insert(name.to_owned(), settings);
    }

    /// Somebody as an actor now: for `absent`, if that is given, and for the people whom they substitute.
    pub fn actor(&self, user: &str, absent: Option<&str>, now: Timestamp) -> Actor {
        let person = self.people.get(user).cloned().unwrap_or_default();
        let named = absent.map(|absent| self.stand_in(absent, None, &[]));
        let mut stands_in_for: Vec<_> = named.into_iter().collect();
        stands_in_for.extend(self.stand_ins(user, now));
        Actor {
            id: user.to_owned(),
            groups: person.groups.into_iter().collect(),
            permissions: person.permissions,
            on_behalf_of: None,
            stands_in_for,
        }
    }

    /// The findings of a host.
    pub fn found(&self, lookup: &Lookup, now: Timestamp) -> Findings {
        let manager = |user: &String| {
            let manager = self.people.get(user)?.manager.clone()?;
            Some((user.clone(), manager))
        };
        let members = |group: &String| {
            let members = self.members(group, lookup.members_max);
            (!members.is_empty()).then(|| (group.clone(), members))
        };
        let groups = |user: &String| {
            let groups = self.groups(user);
            (!groups.is_empty()).then(|| (user.clone(), groups))
        };
        let stand_ins = |user: &String| {
            let stand_ins = self.stand_ins(user, now);
            (!stand_ins.is_empty()).then(|| (user.clone(), stand_ins))
        };
        Findings {
            managers: lookup.managers_of.iter().filter_map(manager).collect(),
            members: lookup.groups.iter().filter_map(members).collect(),
            calendars: lookup
                .calendars
                .iter()
                .map(|name| self.settings(name))
                .collect(),
            people: lookup.people.clone(),
            groups: lookup.memberships_of.iter().filter_map(groups).collect(),
            stand_ins: lookup.stand_ins_of.iter().filter_map(stand_ins).collect(),
            workloads: lookup
                .workloads
                .as_ref()
                .map_or_else(BTreeMap::new, |of| self.workloads(of, now)),
        }
    }

    /// The work of those who are not absent.
    fn workloads(&self, of: &WorkloadsOf, now: Timestamp) -> BTreeMap<String, Workload> {
        let work = |user: &String| {
            let person = self.people.get(user).cloned().unwrap_or_default();
            let mut absences = self.absences.iter();
            let is_away = absences.any(|absence| {
                let applies = absence
                    .definition
                    .as_ref()
                    .is_none_or(|key| *key == of.definition);
                absence.person == *user && applies && absence.from <= now && now < absence.until
            });
            let given = person.given.get(&of.state).or(person.given.get(""));
            let workload = Workload {
                open: person.open.min(of.open_max),
                given_at: given.copied(),
            };
            (!person.absent && !is_away).then(|| (user.clone(), workload))
        };
        of.people.iter().filter_map(work).collect()
    }

    fn person(&mut self, user: &str) -> &mut Person {
        self.people.entry(user.to_owned()).or_default()
    }

    fn groups(&self, user: &str) -> Vec<String> {
        let person = self.people.get(user);
        person.map_or_else(Vec::new, |person| person.groups.iter().cloned().collect())
    }

    fn members(&self, group: &str, members_max: u32) -> Vec<String> {
        if !self.known.contains(group) {
            let unknown = (1..=members_max).map(|number| format!("member {number} of {group}"));
            return unknown.collect();
        }
        let people = self.people.iter();
        let members = people.filter(|(_, person)| person.groups.contains(group));
        let members = members.map(|(user, _)| user.clone());
        members.take(members_max as usize).collect()
    }

    fn settings(&self, calendar: &str) -> (String, Json) {
        let given = self.calendars.get(calendar).cloned();
        let settings = given.unwrap_or_else(|| Json::parse(ALWAYS).expect("a constant"));
        (calendar.to_owned(), settings)
    }

    /// The absent people for whom somebody may act now, also through chains of substitutes, the nearest first.
    fn stand_ins(&self, user: &str, now: Timestamp) -> Vec<StandIn> {
        let (mut all, mut nearest) = (Vec::new(), vec![(user, None::<&str>, Vec::new())]);
        for _ in 0..LINKS_MAX {
            let mut next = Vec::new();
            for (substitute, only, via) in &nearest {
                for absence in self.absences_for(substitute, now) {
                    let definition = absence.definition.as_deref();
                    if only.is_some() && definition.is_some() && *only != definition {
                        continue;
                    }
                    let only = only.or(definition);
                    all.push(self.stand_in(&absence.person, only, via));
                    let mut via = via.clone();
                    via.push(absence.person.clone());
                    next.push((absence.person.as_str(), only, via));
                }
            }
            nearest = next;
        }
        // In the order of a host.
        all.sort_by(|one, other| {
            let key = |stand_in: &StandIn| {
                let definition = stand_in.definition.clone();
                (
                    stand_in.via.len(),
                    stand_in.person.clone(),
                    definition.is_none(),
                    definition,
                )
            };
            key(one).cmp(&key(other))
        });
        all
    }

    /// When the next absence begins or ends after `now`.
    pub(super) fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let absences = self.absences.iter();
        let changes = absences.flat_map(|absence| [absence.from, absence.until]);
        changes.filter(|at| *at > now).min()
    }

    fn absences_for<'a>(
        &'a self,
        substitute: &'a str,
        now: Timestamp,
    ) -> impl Iterator<Item = &'a Absence> {
        let absences = self.absences.iter();
        absences.filter(move |absence| {
            absence.substitute == substitute && absence.from <= now && now < absence.until
        })
    }

    fn stand_in(&self, absent: &str, definition: Option<&str>, via: &[String]) -> StandIn {
        StandIn {
            person: absent.to_owned(),
            groups: self.groups(absent),
            definition: definition.map(str::to_owned),
            via: via.to_vec(),
        }
    }
}
