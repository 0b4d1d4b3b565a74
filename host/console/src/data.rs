//! The parts of the API's answers about instances that pages show.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use wrkflw_core::json::Node;

use crate::names::{Candidate, Names};

/// JSON of the API on several lines. A `serde_json` value would round its numbers.
pub(crate) fn pretty(json: &RawValue) -> String {
    let tree = Node::parse(json.get()).ok();
    let pretty = tree.and_then(|tree| serde_json::to_string_pretty(&tree).ok());
    pretty.unwrap_or_else(|| json.get().to_owned())
}

/// The beginning of a text that is longer than so many characters.
pub(crate) fn beginning(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Instance {
    pub(crate) id: Uuid,
    pub(crate) definition_key: String,
    pub(crate) definition_version: u32,
    pub(crate) status: String,
    pub(crate) outcome: Option<String>,
    pub(crate) entity_type: String,
    pub(crate) entity_id: String,
    pub(crate) initiator: String,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) cancelled: Option<Reason>,
    pub(crate) suspended: Option<Reason>,
    pub(crate) states: Vec<State>,
    pub(crate) data: Box<RawValue>,
    pub(crate) title: Option<String>,
    pub(crate) summary: Option<String>,
    #[serde(default)]
    pub(crate) priority: i16,
    pub(crate) priority_name: Option<String>,
    pub(crate) next_due_at: Option<Timestamp>,
    pub(crate) predecessor_id: Option<Uuid>,
    pub(crate) parent_id: Option<Uuid>,
    #[serde(default)]
    pub(crate) ahead: Vec<Ahead>,
    #[serde(default)]
    people: BTreeMap<String, String>,
    #[serde(default)]
    groups: BTreeMap<String, String>,
}

impl Instance {
    pub(crate) fn names(&self) -> Names {
        Names {
            people: self.people.clone(),
            groups: self.groups.clone(),
        }
    }

    /// The definition and its version.
    pub(crate) fn flow(&self) -> String {
        format!("{} {}", self.definition_key, self.definition_version)
    }
}

/// Why and by whom something was stopped.
#[derive(Deserialize)]
pub(crate) struct Reason {
    #[serde(default)]
    pub(crate) by: Option<String>,
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct State {
    pub(crate) id: Uuid,
    /// The name in the flow.
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) description: String,
    /// A short answer to a command has none, and no page shows one of it.
    #[serde(default)]
    pub(crate) entered_at: Timestamp,
    pub(crate) due_at: Option<Timestamp>,
    #[serde(default)]
    pub(crate) needed: u32,
    pub(crate) key: Option<String>,
    pub(crate) unassignable_since: Option<Timestamp>,
    /// The owners of its tasks, or their last owners.
    #[serde(default)]
    pub(crate) owners: Vec<String>,
    #[serde(default)]
    pub(crate) tasks: Vec<Task>,
    #[serde(default)]
    pub(crate) left: Option<Left>,
    #[serde(default)]
    pub(crate) plans: Vec<Plan>,
}

impl State {
    /// To whom its tasks are or were offered, open or not; each once.
    pub(crate) fn offered_to(&self) -> impl Iterator<Item = &Candidate> {
        let mut seen = BTreeSet::new();
        let candidates = self.tasks.iter().flat_map(|task| &task.candidates);
        candidates.filter(move |one| seen.insert((&one.kind, &one.id)))
    }

    /// The owners or candidates of its open tasks, each once.
    pub(crate) fn waits_for(&self, names: &Names) -> Vec<String> {
        let open = self.tasks.iter().filter(|task| task.is_open());
        let people = open.flat_map(|task| {
            if let Some(owner) = &task.owner {
                return vec![names.person(owner)];
            }
            let candidates = task.candidates.iter();
            candidates.map(|one| names.candidate(one)).collect()
        });
        let mut people: Vec<_> = people.collect();
        people.sort();
        people.dedup();
        people
    }
}

#[derive(Deserialize)]
pub(crate) struct Left {
    pub(crate) at: Timestamp,
    /// None if it is a decision that is hidden.
    pub(crate) trigger: Option<String>,
    pub(crate) actor: Option<String>,
}

/// A comment on an instance.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Comment {
    pub(crate) actor: Option<String>,
    pub(crate) comment: Option<String>,
    #[serde(default)]
    pub(crate) mentions: Vec<String>,
    pub(crate) created_at: Timestamp,
}

/// Why the flow chose a way.
#[derive(Deserialize)]
pub(crate) struct Plan {
    #[serde(default)]
    pub(crate) notes: Vec<Note>,
}

#[derive(Deserialize)]
pub(crate) struct Note {
    pub(crate) message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    pub(crate) id: Uuid,
    pub(crate) label: String,
    pub(crate) status: String,
    pub(crate) owner: Option<String>,
    #[serde(default)]
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) suspended: Option<Reason>,
    pub(crate) ownership: Option<Ownership>,
    pub(crate) decision: Option<Decision>,
}

impl Task {
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.status.as_str(), "PENDING" | "CLAIMED")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ownership {
    pub(crate) on_behalf_of: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Decision {
    pub(crate) outcome: String,
    pub(crate) actor: String,
    pub(crate) on_behalf_of: Option<String>,
    pub(crate) comment: Option<String>,
    pub(crate) decided_at: Timestamp,
}

/// A state that may still come.
#[derive(Deserialize)]
pub(crate) struct Ahead {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) certain: bool,
}

#[derive(Deserialize)]
pub(crate) struct History {
    pub(crate) data: Vec<State>,
    #[serde(default)]
    pub(crate) comments: Vec<Comment>,
}

#[derive(Deserialize)]
pub(crate) struct Actions {
    pub(crate) actions: Vec<Action>,
}

/// One possible action, with the reason if it is refused.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Action {
    pub(crate) action: String,
    #[serde(default)]
    pub(crate) task_id: Option<Uuid>,
    #[serde(default)]
    pub(crate) outcome: Option<String>,
    #[serde(default)]
    pub(crate) trigger: Option<String>,
    #[serde(default)]
    pub(crate) title: Option<String>,
    pub(crate) allowed: bool,
    #[serde(default)]
    pub(crate) refusal: Option<Refusal>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// A task with the outcomes by which it may be decided.
#[derive(Deserialize)]
pub(crate) struct TaskDetail {
    pub(crate) outcomes: Vec<Outcome>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    pub(crate) outcome: String,
    pub(crate) title: String,
    pub(crate) comment: String,
    pub(crate) description: Option<String>,
    pub(crate) condition: Option<String>,
    pub(crate) input: Option<Value>,
}

/// The answer to a command, as far as the page shows it.
#[derive(Deserialize)]
pub(crate) struct Done {
    pub(crate) result: String,
    pub(crate) instance: After,
}

#[derive(Deserialize)]
pub(crate) struct After {
    pub(crate) status: String,
    pub(crate) outcome: Option<String>,
    #[serde(default)]
    pub(crate) states: Vec<State>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A caller who may not read instances gets short answers, also to dry runs.
    #[test]
    fn a_short_answer_to_a_command_is_read() {
        let answer = json!({
            "result": "started", "dryRun": true,
            "instance": {
                "id": Uuid::nil(), "definitionKey": "plan", "definitionVersion": 1, "status": "RUNNING", "outcome": null, "revision": 1,
                "states": [{
                    "id": Uuid::nil(), "name": "Review",
                    "tasks": [{ "id": Uuid::nil(), "label": "Review", "status": "PENDING", "owner": null }],
                }],
            },
        });
        let done: Done = serde_json::from_value(answer).expect("an answer");
        assert_eq!(done.instance.states[0].name, "Review");
    }

    #[test]
    fn json_is_shown_with_its_digits() {
        let read = |text: &str| serde_json::from_str::<Box<RawValue>>(text).expect("JSON");
        assert_eq!(
            pretty(&read(r#"{"limit":50000.000000000000000001}"#)),
            "{\n  \"limit\": 50000.000000000000000001\n}"
        );
        // Deeper than the host writes.
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        assert_eq!(pretty(&read(&deep)), deep);
    }
}
