//! People, groups and priorities as pages name them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::api::segment;
use crate::language::Words;
use crate::session::Visitor;

/// A priority from which a badge is loud.
const HIGH: i16 = 50;

/// A person or a group that may take a task.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Candidate {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) id: String,
}

/// The display names of an answer. Without one, the id is shown.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) people: BTreeMap<String, String>,
    pub(crate) groups: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl Names {
    /// The names of at most `most` of these people, as far as the visitor may read them.
    pub(crate) async fn of_people(visitor: &Visitor, ids: &[&str], most: usize) -> Names {
        let mut names = Names::default();
        let ids: BTreeSet<_> = ids.iter().collect();
        for id in ids.into_iter().take(most) {
            let person = Candidate {
                kind: "user".to_owned(),
                id: (*id).to_owned(),
            };
            names.look_up(&person, visitor).await;
        }
        names
    }

    /// Looks up the name of a person or group, as far as the visitor may read it. False if it was known.
    pub(crate) async fn look_up(&mut self, candidate: &Candidate, visitor: &Visitor) -> bool {
        let (path, known) = match candidate.kind.as_str() {
            "group" => ("groups", &mut self.groups),
            _ => ("people", &mut self.people),
        };
        if known.contains_key(&candidate.id) {
            return false;
        }
        let path = format!("/v1/{path}/{}", segment(&candidate.id));
        if let Ok(Named { name }) = visitor.api.get(&path).await {
            known.insert(candidate.id.clone(), name);
        }
        true
    }

    pub(crate) fn person(&self, id: &str) -> String {
        self.people.get(id).map_or(id, String::as_str).to_owned()
    }

    pub(crate) fn candidate(&self, candidate: &Candidate) -> String {
        let groups = &self.groups;
        match candidate.kind.as_str() {
            "group" => groups
                .get(&candidate.id)
                .map_or(&candidate.id, |name| name)
                .clone(),
            _ => self.person(&candidate.id),
        }
    }

    /// Who has a task, for whom, or to whom it is offered.
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

/// A priority as a badge shows it.
pub(crate) struct Badge {
    pub(crate) text: String,
    pub(crate) is_high: bool,
}

impl Badge {
    /// None for the lowest priority without a name: it says nothing.
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
