//! What a turn has to know of the tenant's directory once flow logic has named groups, managers and calendars.
//!
//! A turn reads nothing itself: it says what it wants to know, and is told. Both are recorded with the command, so that a
//! replay is told the same.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::actor::StandIn;
use super::json::Json;

/// What to find out, in one go.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lookup {
    /// People whose manager is asked for.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub managers_of: BTreeSet<String>,
    /// Groups of which members are asked for.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub groups: BTreeSet<String>,
    /// How many members of each group are enough to know.
    pub members_max: u32,
    /// Names of working calendars.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub calendars: BTreeSet<String>,
    /// People who must be known to the directory.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub people: BTreeSet<String>,
    /// People whose groups are asked for.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub memberships_of: BTreeSet<String>,
    /// People of whom it is asked for whom they may act at this moment.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub stand_ins_of: BTreeSet<String>,
}

/// What was found, as of the moment of the command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// The manager of each person who has one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub managers: BTreeMap<String, String>,
    /// The first members of each group, in the order of their ids; a group without members is left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub members: BTreeMap<String, Vec<String>>,
    /// The settings of each calendar that exists.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub calendars: BTreeMap<String, Json>,
    /// Those asked for whom the directory knows.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub people: BTreeSet<String>,
    /// The groups of each person who is in one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub groups: BTreeMap<String, Vec<String>>,
    /// The absent people for whom somebody may act.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub stand_ins: BTreeMap<String, Vec<StandIn>>,
}

impl Lookup {
    /// Whether there is nothing to find out.
    pub fn is_empty(&self) -> bool {
        self.managers_of.is_empty()
            && self.groups.is_empty()
            && self.calendars.is_empty()
            && self.people.is_empty()
            && self.memberships_of.is_empty()
            && self.stand_ins_of.is_empty()
    }

    /// How many names it is made of, and one.
    pub fn names(&self) -> usize {
        let sets = [
            &self.managers_of,
            &self.groups,
            &self.calendars,
            &self.people,
            &self.memberships_of,
            &self.stand_ins_of,
        ];
        1 + sets.iter().map(|set| set.len()).sum::<usize>()
    }

    /// Whether the same is found for as long as the directory stays as it is: absences begin and end of themselves.
    pub fn is_lasting(&self) -> bool {
        self.stand_ins_of.is_empty()
    }
}

impl Findings {
    /// How many names and settings it is made of.
    pub fn names(&self) -> usize {
        let lists = self.members.values().chain(self.groups.values());
        let stand_ins = self.stand_ins.values().flatten();
        self.managers.len()
            + self.calendars.len()
            + self.people.len()
            + lists.map(|list| 1 + list.len()).sum::<usize>()
            + stand_ins.map(|one| 1 + one.groups.len()).sum::<usize>()
    }
}
