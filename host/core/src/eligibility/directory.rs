//! The part of a tenant's directory that determines eligibility, as of one moment, and hypothetical changes of it.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

/// The part of a tenant's directory that determines eligibility, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Directory {
    pub members: BTreeMap<String, BTreeSet<String>>,
    /// Groups of which only the first members are known.
    pub cut: BTreeSet<String>,
    /// Whether there may be more absences in force than `substitutions` has.
    pub lacks_absences: bool,
    /// The absences in force at the moment, by the absent person.
    pub substitutions: BTreeMap<String, Vec<Substitution>>,
}

/// An absence that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitution {
    pub absence: Uuid,
    pub person: String,
    pub substitute: String,
    /// Limits it to work of this definition; none for all work.
    pub definition: Option<String>,
}

/// A hypothetical change of a directory, in force from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Joins { group: String, person: String },
    Leaves { group: String, person: String },
    Absent(Substitution),
    Back { absence: Uuid, person: String },
}

impl Directory {
    /// The directory after the change.
    #[must_use]
    pub fn after(&self, change: &Change) -> Directory {
        let mut after = self.clone();
        match change {
            Change::Joins { group, person } => {
                let members = after.members.entry(group.clone()).or_default();
                members.insert(person.clone());
            }
            Change::Leaves { group, person } => {
                if let Some(members) = after.members.get_mut(group) {
                    members.remove(person);
                }
            }
            Change::Absent(new) => {
                let of_person = after.substitutions.entry(new.person.clone()).or_default();
                of_person.push(new.clone());
            }
            Change::Back { absence, person } => {
                if let Some(of_person) = after.substitutions.get_mut(person) {
                    of_person.retain(|known| known.absence != *absence);
                }
            }
        }
        after
    }
}
