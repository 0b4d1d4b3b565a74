//! The directory of a scenario: people, groups and calendars.
//!
//! It has what the test sets. A group without given members has unknown members. In a calendar that is not set, all time is
//! working time. It remembers to whom the host gave tasks.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use wrkflw_core::actor::{Actor, StandIn};
use wrkflw_core::json::Json;
use wrkflw_core::lookup::{Findings, Lookup, Workload, WorkloadsOf};

/// Every minute of the week.
const ALWAYS: &str = r#"{"timeZone":"Etc/UTC","hours":{
    "monday":[{"from":"00:00","to":"24:00"}],"tuesday":[{"from":"00:00","to":"24:00"}],
    "wednesday":[{"from":"00:00","to":"24:00"}],"thursday":[{"from":"00:00","to":"24:00"}],
    "friday":[{"from":"00:00","to":"24:00"}],"saturday":[{"from":"00:00","to":"24:00"}],
    "sunday":[{"from":"00:00","to":"24:00"}]}}"#;

#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    people: BTreeMap<String, Person>,
    empty: BTreeSet<String>,
    calendars: BTreeMap<String, Json>,
    /// How many tasks the host gave to people.
    gave: i64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Person {
    pub(super) groups: Vec<String>,
    pub(super) permissions: Vec<String>,
    pub(super) manager: Option<String>,
    /// How many open tasks of other instances they own.
    pub(super) open: u32,
    /// When they were last given a task, by its state; by an empty text for those that the test names.
    pub(super) given: BTreeMap<String, Timestamp>,
    pub(super) absent: bool,
}

impl Directory {
    pub(super) fn person(&mut self, user: &str) -> &mut Person {
        self.people.entry(user.to_owned()).or_default()
    }

    pub(super) fn empty(&mut self, group: &str) {
        self.empty.insert(group.to_owned());
    }

    /// Remembers a task that the host gave to somebody. Tasks of the same moment stay in their order.
    pub(super) fn gave(&mut self, user: &str, state: &str, now: Timestamp) {
        self.gave += 1;
        let at = now + SignedDuration::from_nanos(self.gave);
        self.person(user).given.insert(state.to_owned(), at);
    }

    pub(super) fn calendar(&mut self, name: &str, settings: Json) {
        self.calendars.insert(name.to_owned(), settings);
    }

    /// Somebody as they act, in place of an absent person where one is named.
    pub(super) fn actor(&self, user: &str, absent: Option<&str>) -> Actor {
        let person = self.people.get(user).cloned().unwrap_or_default();
        let stand_in = absent.map(|absent| StandIn {
            person: absent.to_owned(),
            groups: self.groups(absent).to_vec(),
            definition: None,
            via: vec![],
        });
        Actor {
            id: user.to_owned(),
            groups: person.groups,
            permissions: person.permissions,
            on_behalf_of: None,
            stands_in_for: stand_in.into_iter().collect(),
        }
    }

    /// What the host would find.
    pub(super) fn found(&self, lookup: &Lookup) -> Findings {
        let manager = |user: &String| {
            let manager = self.people.get(user)?.manager.clone()?;
            Some((user.clone(), manager))
        };
        let members = |group: &String| {
            let members = self.members(group, lookup.members_max);
            (!members.is_empty()).then(|| (group.clone(), members))
        };
        let groups = |user: &String| {
            let groups = self.groups(user).to_vec();
            (!groups.is_empty()).then(|| (user.clone(), groups))
        };
        Findings {
            managers: lookup.managers_of.iter().filter_map(manager).collect(),
            members: lookup.groups.iter().filter_map(members).collect(),
            calendars: lookup
                .calendars
                .iter()
                .map(|name| self.known(name))
                .collect(),
            people: lookup.people.clone(),
            groups: lookup.memberships_of.iter().filter_map(groups).collect(),
            stand_ins: BTreeMap::new(),
            workloads: lookup
                .workloads
                .as_ref()
                .map_or_else(BTreeMap::new, |of| self.workloads(of)),
        }
    }

    fn workloads(&self, of: &WorkloadsOf) -> BTreeMap<String, Workload> {
        let work = |user: &String| {
            let person = self.people.get(user).cloned().unwrap_or_default();
            let given = person.given.get(&of.state).or(person.given.get(""));
            let workload = Workload {
                open: person.open.min(of.open_max),
                given_at: given.copied(),
            };
            (!person.absent).then(|| (user.clone(), workload))
        };
        of.people.iter().filter_map(work).collect()
    }

    fn groups(&self, user: &str) -> &[String] {
        self.people.get(user).map_or(&[], |person| &person.groups)
    }

    fn members(&self, group: &str, members_max: u32) -> Vec<String> {
        let people = self.people.iter();
        let named = people.filter(|(_, person)| person.groups.iter().any(|held| held == group));
        let named: Vec<_> = named.map(|(user, _)| user.clone()).collect();
        let unnamed = (1..=members_max).map(|number| format!("member {number} of {group}"));
        let all = if named.is_empty() && !self.empty.contains(group) {
            unnamed.collect()
        } else {
            named
        };
        all.into_iter().take(members_max as usize).collect()
    }

    fn known(&self, calendar: &str) -> (String, Json) {
        let given = self.calendars.get(calendar).cloned();
        let settings = given.unwrap_or_else(|| Json::parse(ALWAYS).expect("a constant"));
        (calendar.to_owned(), settings)
    }
}
