//! The changes of each step of an instance to its data: the values before and after. It folds only the events that carry data.

use std::collections::HashMap;

use super::event::{Event, changed_pointers};
use super::ids::StateId;
use super::json::{Json, Node};

/// A value of the data that differs after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataChange {
    /// JSON Pointer; empty for the whole data.
    pub pointer: String,
    /// None if there was none.
    pub before: Option<Json>,
    /// None if there is none any more.
    pub after: Option<Json>,
}

/// The changes of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataStep {
    /// None for the start.
    pub trigger: Option<String>,
    /// The name of the state in which it happened; none for the start.
    pub state: Option<String>,
    /// The state in which it happened, if it follows a decision that is hidden until the state ends.
    pub blind: Option<StateId>,
    pub changes: Vec<DataChange>,
}

/// The data after the events that were taken.
#[derive(Debug, Clone, Default)]
pub struct DataHistory {
    /// None before the start.
    data: Option<Node>,
    /// The names of the states that were entered, as an event may have the id alone.
    names: HashMap<StateId, String>,
}

impl DataHistory {
    /// Takes the next event. None if it changes nothing of the data.
    pub fn take(&mut self, event: Event) -> Option<DataStep> {
        let (patch, trigger, state, blind) = match event {
            Event::StateEntered { state, .. } => {
                self.names.insert(state.id, state.name);
                return None;
            }
            Event::FlowStarted { data, .. } => {
                let changes = self.start(data.node());
                return step(None, None, changes);
            }
            Event::StateTransitioned {
                data,
                trigger,
                from,
                ..
            } => (data?, Some(trigger), Some(from), None),
            Event::StateContinued {
                data,
                trigger,
                state,
                blind,
                ..
            } => {
                let name = self.names.get(&state).cloned();
                (data?, Some(trigger), name, blind.then_some(state))
            }
            _ => return None,
        };
        let changes = self.merge(patch.node());
        let step = step(trigger, state, changes)?;
        Some(DataStep { blind, ..step })
    }

    /// Takes the data of the start unchanged: in it, a null is a value.
    fn start(&mut self, data: Node) -> Vec<DataChange> {
        let pointers = changed_pointers(&data);
        self.replace(pointers, data)
    }

    /// Merges a patch as an instance does.
    fn merge(&mut self, patch: Node) -> Vec<DataChange> {
        let old = self.data.clone().unwrap_or(Node::Null);
        let pointers = changed_pointers(&patch).into_iter();
        let mut pointers: Vec<_> = pointers.map(|pointer| replaced(&old, pointer)).collect();
        pointers.dedup();
        self.replace(pointers, old.merge(patch))
    }

    fn replace(&mut self, pointers: Vec<String>, data: Node) -> Vec<DataChange> {
        let old = self.data.as_ref();
        let change = |pointer: String| DataChange {
            before: old.and_then(|data| value_at(data, &pointer)),
            after: value_at(&data, &pointer),
            pointer,
        };
        let changes = pointers.into_iter().map(change);
        let changes = changes
            .filter(|change| change.before != change.after)
            .collect();
        self.data = Some(data);
        changes
    }
}

/// None without a change.
fn step(
    trigger: Option<String>,
    state: Option<String>,
    changes: Vec<DataChange>,
) -> Option<DataStep> {
    (!changes.is_empty()).then_some(DataStep {
        trigger,
        state,
        blind: None,
        changes,
    })
}

/// The pointer, or its beginning that leads to a value that is not an object: the patch replaces that value as a whole.
fn replaced(data: &Node, mut pointer: String) -> String {
    let mut value = data;
    let mut end = 0;
    for segment in pointer.split('/').skip(1) {
        let Node::Object(members) = value else {
            // Without data there is nothing to replace.
            if end > 0 {
                pointer.truncate(end);
            }
            return pointer;
        };
        let Some(member) = members.get(&unescaped(segment)) else {
            return pointer;
        };
        (value, end) = (member, end + 1 + segment.len());
    }
    pointer
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// The value at a pointer. Patches change only members of objects, so pointers lead only through objects.
fn value_at(data: &Node, pointer: &str) -> Option<Json> {
    let mut value = data;
    for segment in pointer.split('/').skip(1) {
        let Node::Object(members) = value else {
            return None;
        };
        value = members.get(&unescaped(segment))?;
    }
    Some(Json::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).expect("JSON")
    }

    fn changed(
        history: &mut DataHistory,
        patch: &str,
    ) -> Vec<(String, Option<String>, Option<String>)> {
        let text = |value: Option<Json>| value.map(|value| value.as_str().to_owned());
        let patch = json(patch).node();
        let changes = match history.data {
            None => history.start(patch),
            Some(_) => history.merge(patch),
        };
        let changes = changes.into_iter();
        changes
            .map(|one| (one.pointer, text(one.before), text(one.after)))
            .collect()
    }

    fn change(
        pointer: &str,
        before: Option<&str>,
        after: Option<&str>,
    ) -> (String, Option<String>, Option<String>) {
        (
            pointer.to_owned(),
            before.map(str::to_owned),
            after.map(str::to_owned),
        )
    }

    #[test]
    fn each_change_has_the_value_before_and_after() {
        let mut history = DataHistory::default();
        assert_eq!(
            changed(
                &mut history,
                r#"{"sum":1.50,"of":{"a/b":[1,2]},"why":null}"#
            ),
            [
                change("/of/a~1b", None, Some("[1,2]")),
                change("/sum", None, Some("1.50")),
                // The start keeps a null.
                change("/why", None, Some("null")),
            ]
        );
        assert_eq!(
            changed(&mut history, r#"{"why":"x"}"#),
            [change("/why", Some("null"), Some("\"x\""))]
        );
        // The same value again is no change. A null removes the member.
        assert_eq!(
            changed(&mut history, r#"{"sum":1.50,"of":{"a/b":null,"c":"x"}}"#),
            [
                change("/of/a~1b", Some("[1,2]"), None),
                change("/of/c", None, Some("\"x\"")),
            ]
        );
        assert_eq!(
            changed(&mut history, r#"{"of":{"c":"y"}}"#),
            [change("/of/c", Some("\"x\""), Some("\"y\""))]
        );
        assert_eq!(changed(&mut history, "{}"), []);
        // A value that becomes an object is replaced as a whole.
        assert_eq!(
            changed(&mut history, r#"{"sum":{"net":1,"tax":2}}"#),
            [change("/sum", Some("1.50"), Some(r#"{"net":1,"tax":2}"#))]
        );
    }

    #[test]
    fn more_changes_than_pointers_are_told_by_what_contains_them() {
        let mut history = DataHistory::default();
        changed(&mut history, r#"{"lines":{"m0":0}}"#);
        let many: Vec<_> = (0..200).map(|number| format!(r#""m{number}":1"#)).collect();
        let patch = format!(r#"{{"lines":{{{}}}}}"#, many.join(","));
        let changes = changed(&mut history, &patch);
        assert_eq!(changes.len(), 1);
        assert_eq!(
            (changes[0].0.as_str(), changes[0].1.as_deref()),
            ("/lines", Some(r#"{"m0":0}"#))
        );
    }
}
