//! To whom work is offered, as flow logic says it.

use serde::{Deserialize, Serialize};

use crate::instance::Candidate;
use crate::lookup::{Findings, Lookup};

/// A person, a group or somebody's manager, to whom work is offered. The host resolves it to a
/// [candidate](crate::instance::Candidate) before it creates the task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", content = "id")]
pub enum Principal {
    User(String),
    Group(String),
    ManagerOf(String),
    /// This person, as long as they are a member of the group.
    Member {
        person: String,
        group: String,
    },
}

impl Principal {
    /// The id of the person or group.
    pub fn id(&self) -> &str {
        match self {
            Principal::User(id) | Principal::Group(id) | Principal::ManagerOf(id) => id,
            Principal::Member { person, .. } => person,
        }
    }

    /// The group of which the person must be a member.
    pub fn member_of(&self) -> Option<&str> {
        match self {
            Principal::Member { group, .. } => Some(group),
            Principal::User(_) | Principal::Group(_) | Principal::ManagerOf(_) => None,
        }
    }

    /// Adds to `lookup` the names that are needed to resolve it.
    pub fn ask(&self, lookup: &mut Lookup) {
        match self {
            Principal::User(_) | Principal::Group(_) | Principal::Member { .. } => {}
            Principal::ManagerOf(id) => drop(lookup.managers_of.insert(id.clone())),
        }
    }

    /// The candidate that it resolves to; none if the person has no manager.
    pub fn resolved(self, findings: &Findings) -> Option<Candidate> {
        match self {
            Principal::User(id) => Some(Candidate::User(id)),
            Principal::Group(id) => Some(Candidate::Group(id)),
            Principal::ManagerOf(id) => findings.managers.get(&id).cloned().map(Candidate::User),
            Principal::Member { person, group } => Some(Candidate::Member { person, group }),
        }
    }

    /// The people whom it means, as far as the directory was asked for them.
    pub fn people<'f>(&'f self, findings: &'f Findings) -> impl Iterator<Item = &'f str> {
        let (one, many) = match self {
            Principal::User(id) => (Some(id), None),
            Principal::ManagerOf(id) => (findings.managers.get(id), None),
            Principal::Member { person, group } => {
                let is_in = |found: Option<&Vec<String>>, one| {
                    found.is_some_and(|found| found.contains(one))
                };
                let is_member = is_in(findings.groups.get(person), group)
                    || is_in(findings.members.get(group), person);
                (is_member.then_some(person), None)
            }
            Principal::Group(id) => (None, findings.members.get(id)),
        };
        one.into_iter()
            .chain(many.into_iter().flatten())
            .map(String::as_str)
    }
}
