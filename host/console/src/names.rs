//! People, groups and priorities as pages name them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::json;

use crate::language::Words;
use crate::session::Visitor;

/// Limit of the people, and of the groups, whose names one page looks up. Others are shown by their ids. The API takes no more at once.
pub(crate) const NAMES_MAX: usize = 200;
/// A priority from which a badge is loud.
const HIGH: i16 = 50;

/// A person or a group that may take a task.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Candidate {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) id: String,
}

impl Candidate {
    pub(crate) fn is_group(&self) -> bool {
        self.kind == "group"
    }
}

/// The ids of the people and of the groups among candidates.
pub(crate) fn divided<'a>(
    candidates: impl Iterator<Item = &'a Candidate>,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let (groups, people): (Vec<_>, Vec<_>) = candidates.partition(|one| one.is_group());
    let ids = |all: Vec<&'a Candidate>| all.into_iter().map(|one| one.id.as_str()).collect();
    (ids(people), ids(groups))
}

/// The display names of an answer. Without one, the id is shown.
#[derive(Default, Deserialize)]
pub(crate) struct Names {
    pub(crate) people: BTreeMap<String, String>,
    pub(crate) groups: BTreeMap<String, String>,
}

impl Names {
    /// The names of these people, as far as the visitor may read them.
    pub(crate) async fn of_people(visitor: &Visitor, ids: &[&str]) -> Names {
        let mut names = Names::default();
        names.look_up(visitor, ids, &[]).await;
        names
    }

    /// Adds the missing names of these people and groups, as far as the visitor may read them. One read gets at most [`NAMES_MAX`] of each.
    pub(crate) async fn look_up(&mut self, visitor: &Visitor, people: &[&str], groups: &[&str]) {
        let people = unknown(&self.people, people);
        let groups = unknown(&self.groups, groups);
        if people.is_empty() && groups.is_empty() {
            return;
        }
        let body = json!({ "people": people, "groups": groups });
        if let Ok(found) = visitor.api.post::<Names>("/v1/names", &body, None).await {
            self.people.extend(found.people);
            self.groups.extend(found.groups);
        }
    }

    pub(crate) fn person(&self, id: &str) -> String {
        self.people.get(id).map_or(id, String::as_str).to_owned()
    }

    pub(crate) fn candidate(&self, candidate: &Candidate) -> String {
        if candidate.is_group() {
            let name = self.groups.get(&candidate.id);
            return name.unwrap_or(&candidate.id).clone();
        }
        self.person(&candidate.id)
    }

    /// The owner of a task and the person they act for, or its candidates.
    pub(crate) fn holder(
        &self,
        owner: Option<&str>,
        other: Option<&str>,
        candidates: &[Candidate],
        w: Words,
    ) -> String {
        match (owner, other) {
            (Some(owner), Some(other)) => {
                let (owner, other) = (self.person(owner), self.person(other));
                w.say("holder-for", &[("owner", &owner), ("other", &other)])
            }
            (Some(owner), None) => self.person(owner),
            (None, _) => {
                let candidates = candidates.iter().map(|one| self.candidate(one));
                candidates.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// The ids without a name so far, each once.
fn unknown<'a>(known: &BTreeMap<String, String>, ids: &[&'a str]) -> BTreeSet<&'a str> {
    let unknown = ids.iter().copied().filter(|id| !known.contains_key(*id));
    let unknown: BTreeSet<_> = unknown.collect();
    unknown.into_iter().take(NAMES_MAX).collect()
}

/// A priority as a badge shows it.
pub(crate) struct Badge {
    pub(crate) text: String,
    pub(crate) is_high: bool,
}

impl Badge {
    /// None for the lowest priority if it has no name.
    pub(crate) fn of(priority: i16, name: Option<&str>, w: Words) -> Option<Badge> {
        let text = match name {
            Some(name) => name.to_owned(),
            None if priority == 0 => return None,
            None => w.with("priority-number", "number", &priority.to_string()),
        };
        let is_high = priority >= HIGH;
        Some(Badge { text, is_high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unknown_name_is_asked_for_once_and_a_bounded_number_of_them() {
        let known = BTreeMap::from([("dora".to_owned(), "Dora".to_owned())]);
        let requested = unknown(&known, &["sam", "dora", "eve", "sam"]);
        assert_eq!(requested.into_iter().collect::<Vec<_>>(), ["eve", "sam"]);
        let many: Vec<_> = (0..=NAMES_MAX).map(|number| number.to_string()).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let requested = unknown(&known, &many);
        assert_eq!(requested.len(), NAMES_MAX);
    }
}
