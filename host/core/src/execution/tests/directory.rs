//! The directory of a test: groups, managers and substitutes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::actor::StandIn;
use crate::lookup::{Findings, Lookup, Workload, WorkloadsOf};

/// People and groups, and how often somebody asked about them.
#[derive(Debug, Clone, Default)]
pub(super) struct TestDirectory {
    pub(super) groups: BTreeMap<String, BTreeSet<String>>,
    pub(super) managers: BTreeMap<String, String>,
    pub(super) stand_ins: BTreeMap<String, Vec<StandIn>>,
    /// How much work people have. Who is not in it has none.
    pub(super) workloads: BTreeMap<String, Workload>,
    pub(super) away: BTreeSet<String>,
    pub(super) asked: usize,
}

impl TestDirectory {
    /// A crew of ten.
    pub(super) fn new() -> TestDirectory {
        let crew = [
            "ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal", "ida", "jim",
        ];
        TestDirectory::default().group("crew", &crew)
    }

    pub(super) fn group(mut self, group: &str, members: &[&str]) -> TestDirectory {
        let members = members.iter().map(ToString::to_string).collect();
        self.groups.insert(group.into(), members);
        self
    }

    pub(super) fn manager(mut self, of: &str, manager: &str) -> TestDirectory {
        self.managers.insert(of.into(), manager.into());
        self
    }

    pub(super) fn working(
        mut self,
        person: &str,
        open: u32,
        given_at: Option<Timestamp>,
    ) -> TestDirectory {
        let workload = Workload { open, given_at };
        self.workloads.insert(person.into(), workload);
        self
    }

    pub(super) fn away(mut self, person: &str) -> TestDirectory {
        self.away.insert(person.into());
        self
    }

    fn workload(&self, person: &String, of: &WorkloadsOf) -> Option<(String, Workload)> {
        if self.away.contains(person) {
            return None;
        }
        let workload = self.workloads.get(person).cloned().unwrap_or_default();
        let open = workload.open.min(of.open_max);
        Some((person.clone(), Workload { open, ..workload }))
    }

    /// What a host would find.
    pub(super) fn found(&mut self, lookup: &Lookup) -> Findings {
        self.asked += 1;
        let members_max = usize::try_from(lookup.members_max).expect("a small number");
        let members = self
            .groups
            .iter()
            .filter(|(group, members)| lookup.groups.contains(*group) && !members.is_empty())
            .map(|(group, members)| {
                let first = members.iter().take(members_max).cloned().collect();
                (group.clone(), first)
            });
        let groups_of = |person: &String| -> Vec<String> {
            let groups = self.groups.iter();
            let own = groups.filter(|(_, members)| members.contains(person));
            own.map(|(group, _)| group.clone()).collect()
        };
        let wanted = |people: &BTreeSet<String>, one: &String| people.contains(one);
        Findings {
            managers: self
                .managers
                .iter()
                .filter(|(person, _)| wanted(&lookup.managers_of, person))
                .map(|(person, manager)| (person.clone(), manager.clone()))
                .collect(),
            members: members.collect(),
            groups: lookup
                .memberships_of
                .iter()
                .map(|person| (person.clone(), groups_of(person)))
                .collect(),
            stand_ins: self
                .stand_ins
                .iter()
                .filter(|(person, _)| wanted(&lookup.stand_ins_of, person))
                .map(|(person, found)| (person.clone(), found.clone()))
                .collect(),
            workloads: lookup
                .workloads
                .iter()
                .flat_map(|of| of.people.iter().filter_map(|one| self.workload(one, of)))
                .collect(),
            ..Findings::default()
        }
    }
}

/// A directory in which everybody exists except `nobody`.
pub(super) fn everybody(lookup: &Lookup) -> Findings {
    let known = lookup.people.iter().filter(|id| *id != "nobody");
    Findings {
        people: known.cloned().collect(),
        ..TestDirectory::new().found(lookup)
    }
}
