//! Questions of an execution to the tenant's directory about groups, managers, absences and calendars, and their answers.
//!
//! An execution reads nothing itself: its driver answers the questions. Questions and answers are recorded with the command, so
//! that a replay uses the same answers.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::actor::StandIn;
use super::ids::InstanceId;
use super::json::Json;

/// A question to the directory. All parts are answered together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lookup {
    /// People whose managers are needed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub managers_of: BTreeSet<String>,
    /// Groups whose members are needed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub groups: BTreeSet<String>,
    /// How many members of each group are enough.
    pub members_max: u32,
    /// Names of working calendars whose settings are needed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub calendars: BTreeSet<String>,
    /// People whose existence is checked.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub people: BTreeSet<String>,
    /// People whose groups are needed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub memberships_of: BTreeSet<String>,
    /// People for whom the absent people they may act for are needed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub stand_ins_of: BTreeSet<String>,
    /// The people of whom one is to get a task, so that their work is needed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workloads: Option<WorkloadsOf>,
}

/// A question about the work of people, to give one of them a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadsOf {
    pub people: BTreeSet<String>,
    /// The key of the task's definition, and its state.
    pub definition: String,
    pub state: String,
    /// The instance whose own tasks are not counted: the execution knows them better.
    pub besides: InstanceId,
    /// The limit of the counted open tasks of a person; 0 if the count is not needed.
    pub open_max: u32,
}

/// The work of one person.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// How many open tasks the person owns in the tenant, counted up to the limit in the question.
    pub open: u32,
    /// When the person was last given a task of this definition in this state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub given_at: Option<Timestamp>,
}

/// The directory's answer, as of the moment of the command.
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
    /// The people of the question who exist.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub people: BTreeSet<String>,
    /// The groups of each person who is in one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub groups: BTreeMap<String, Vec<String>>,
    /// The absent people for whom each person may act.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub stand_ins: BTreeMap<String, Vec<StandIn>>,
    /// The people of the question about work who are not absent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub workloads: BTreeMap<String, Workload>,
}

impl Lookup {
    /// Whether the question is empty.
    pub fn is_empty(&self) -> bool {
        self.managers_of.is_empty()
            && self.groups.is_empty()
            && self.calendars.is_empty()
            && self.people.is_empty()
            && self.memberships_of.is_empty()
            && self.stand_ins_of.is_empty()
            && self.workloads.is_none()
    }

    /// The number of names in it, plus one.
    pub fn names(&self) -> usize {
        let sets = [
            &self.managers_of,
            &self.groups,
            &self.calendars,
            &self.people,
            &self.memberships_of,
            &self.stand_ins_of,
        ];
        let workloads = self.workloads.as_ref().map_or(0, |of| of.people.len());
        1 + workloads + sets.iter().map(|set| set.len()).sum::<usize>()
    }

    /// Whether the answer is the same until the directory changes. Absences begin and end without a change, and the work of people
    /// changes with every command.
    pub fn is_lasting(&self) -> bool {
        self.stand_ins_of.is_empty() && self.workloads.is_none()
    }
}

impl Findings {
    /// The number of names and settings in it.
    pub fn names(&self) -> usize {
        let lists = self.members.values().chain(self.groups.values());
        let stand_ins = self.stand_ins.values().flatten();
        self.managers.len()
            + self.calendars.len()
            + self.people.len()
            + self.workloads.len()
            + lists.map(|list| 1 + list.len()).sum::<usize>()
            + stand_ins.map(|one| 1 + one.groups.len()).sum::<usize>()
    }
}
