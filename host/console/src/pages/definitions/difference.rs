//! The differences between two versions of a definition: states and transitions by their names, and settings by their place,
//! instead of lines of text.

use std::collections::BTreeMap;

use wrkflw_core::json::Node;

use crate::data::beginning;

/// Changes that a page shows; more are only counted.
const CHANGES_MAX: usize = 200;
/// Characters of a value that a page shows.
const VALUE_CHARS_MAX: usize = 300;

/// The differences.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) groups: Vec<Group>,
    /// How many changes are not listed.
    pub(super) more: usize,
}

/// The changes of one kind of things. The name is the end of a text's id: `states`, `transitions`, `flow` or `config`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) changes: Vec<Change>,
}

/// Something that was added, removed or changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// `added`, `removed` or `changed`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
}

/// A value before and after. None if there was none.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

type Things<'a> = BTreeMap<String, &'a Node>;

/// Compares the graphs and configs of two versions as JSON. Numbers are compared by their digits.
pub(super) fn of(before: (&str, &str), after: (&str, &str)) -> Difference {
    let parsed = |text: &str| Node::parse(text).unwrap_or(Node::Null);
    let (old, old_config) = (&parsed(before.0), &parsed(before.1));
    let (new, new_config) = (&parsed(after.0), &parsed(after.1));
    let groups = [
        (
            "states",
            compared(&listed(old, "states", state), &listed(new, "states", state)),
        ),
        (
            "transitions",
            compared(
                &listed(old, "transitions", transition),
                &listed(new, "transitions", transition),
            ),
        ),
        ("flow", compared(&rest(old), &rest(new))),
        (
            "config",
            compared(&members(old_config), &members(new_config)),
        ),
    ];
    let mut left = CHANGES_MAX;
    let mut difference = Difference::default();
    for (name, mut changes) in groups {
        difference.more += changes.len().saturating_sub(left);
        changes.truncate(left);
        left -= changes.len();
        if !changes.is_empty() {
            difference.groups.push(Group { name, changes });
        }
    }
    difference
}

fn state(state: &Node) -> String {
    text(member(state, "name"))
}

/// A transition is known by the state that it leaves and its trigger.
fn transition(way: &Node) -> String {
    let text = |name: &str| text(member(way, name));
    format!("{} · {}", text("source"), text("trigger"))
}

/// A member; null if there is none.
fn member<'a>(of: &'a Node, name: &str) -> &'a Node {
    static NONE: Node = Node::Null;
    match of {
        Node::Object(members) => members.get(name).unwrap_or(&NONE),
        _ => &NONE,
    }
}

/// The things of a list by their names.
fn listed<'a>(graph: &'a Node, list: &str, name: fn(&Node) -> String) -> Things<'a> {
    let Node::Array(things) = member(graph, list) else {
        return Things::new();
    };
    things.iter().map(|one| (name(one), one)).collect()
}

fn members(value: &Node) -> Things<'_> {
    let Node::Object(members) = value else {
        return Things::new();
    };
    members
        .iter()
        .map(|(name, member)| (name.clone(), member))
        .collect()
}

/// The other declarations of a graph.
fn rest(graph: &Node) -> Things<'_> {
    let mut members = members(graph);
    members.retain(|name, _| name != "states" && name != "transitions");
    members
}

fn compared(before: &Things<'_>, after: &Things<'_>) -> Vec<Change> {
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let change = |name: &String| {
        let (old, new) = (before.get(name), after.get(name));
        let kind = match (old, new) {
            (None, _) => "added",
            (_, None) => "removed",
            _ if old == new => return None,
            _ => "changed",
        };
        Some(Change {
            kind,
            name: name.clone(),
            fields: fields(old.copied(), new.copied()),
        })
    };
    names.into_iter().filter_map(change).collect()
}

/// The values that differ, by their places within the thing. Those without a value on both sides are left out.
fn fields(before: Option<&Node>, after: Option<&Node>) -> Vec<Field> {
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    let sides = [(before, &mut old), (after, &mut new)];
    for (value, leaves) in sides {
        if let Some(value) = value {
            collect(value, "", leaves);
        }
    }
    let mut names: Vec<_> = old.keys().chain(new.keys()).cloned().collect();
    names.sort();
    names.dedup();
    let field = |name: String| {
        let (before, after) = (old.remove(&name), new.remove(&name));
        let differs = before != after;
        differs.then_some(Field {
            name,
            before,
            after,
        })
    };
    names.into_iter().filter_map(field).collect()
}

/// The values of a thing by their places. A list of plain values counts as one value, because its order is easy to see.
fn collect(value: &Node, place: &str, leaves: &mut BTreeMap<String, String>) {
    let within = |name: &str| match place {
        "" => name.to_owned(),
        place => format!("{place}.{name}"),
    };
    match value {
        Node::Object(members) => {
            for (name, member) in members {
                collect(member, &within(name), leaves);
            }
        }
        Node::Array(items) if items.iter().any(is_nested) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, &within(&at.to_string()), leaves);
            }
        }
        Node::Array(items) => {
            let items: Vec<_> = items.iter().map(text).collect();
            let shown = items.join(", ");
            if !shown.is_empty() {
                leaves.insert(place.to_owned(), beginning(&shown, VALUE_CHARS_MAX));
            }
        }
        Node::Null => {}
        Node::String(empty) if empty.is_empty() => {}
        plain => {
            leaves.insert(place.to_owned(), beginning(&text(plain), VALUE_CHARS_MAX));
        }
    }
}

fn is_nested(value: &Node) -> bool {
    matches!(value, Node::Object(_) | Node::Array(_))
}

fn text(value: &Node) -> String {
    match value {
        Node::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(before: (&Value, &Value), after: (&Value, &Value)) -> Difference {
        let texts = |(graph, config): (&Value, &Value)| (graph.to_string(), config.to_string());
        let (before, after) = (texts(before), texts(after));
        super::of((&before.0, &before.1), (&after.0, &after.1))
    }

    fn graph() -> Value {
        json!({
            "title": "Approval",
            "states": [
                { "name": "review", "title": "Review", "kind": { "type": "task" } },
                { "name": "done", "title": "Done", "kind": { "type": "terminal", "outcome": "APPROVED" } },
            ],
            "transitions": [{ "source": "review", "trigger": "APPROVE", "targets": ["done"], "title": "" }],
        })
    }

    fn changes<'a>(difference: &'a Difference, group: &str) -> Vec<(&'a str, &'a str)> {
        let groups = difference.groups.iter().filter(|one| one.name == group);
        let changes = groups.flat_map(|one| &one.changes);
        changes.map(|one| (one.kind, one.name.as_str())).collect()
    }

    #[test]
    fn equal_versions_differ_in_nothing_whatever_the_order_of_states() {
        let mut turned = graph();
        turned["states"].as_array_mut().expect("a list").reverse();
        let difference = of((&graph(), &json!({})), (&turned, &json!({})));
        assert_eq!(difference, Difference::default());
    }

    #[test]
    fn states_and_transitions_are_known_by_their_names() {
        let mut new = graph();
        new["title"] = json!("Approval of plans");
        new["reads"] = json!(["groups"]);
        new["states"][0]["title"] = json!("First review");
        new["states"][1]["name"] = json!("closed");
        new["transitions"][0]["targets"] = json!(["done", "closed"]);
        let config = (
            json!({ "deadlines": { "review": "PT1H" } }),
            json!({ "deadlines": { "review": "PT2H" }, "quorum": 2 }),
        );
        let difference = of((&graph(), &config.0), (&new, &config.1));
        let expected = [
            ("added", "closed"),
            ("removed", "done"),
            ("changed", "review"),
        ];
        assert_eq!(changes(&difference, "states"), expected);
        assert_eq!(
            changes(&difference, "transitions"),
            [("changed", "review · APPROVE")]
        );
        assert_eq!(
            changes(&difference, "flow"),
            [("added", "reads"), ("changed", "title")]
        );
        assert_eq!(
            changes(&difference, "config"),
            [("changed", "deadlines"), ("added", "quorum")]
        );
        let field = |name: &str, before: &str, after: &str| Field {
            name: name.to_owned(),
            before: Some(before.to_owned()),
            after: Some(after.to_owned()),
        };
        assert_eq!(
            difference.groups[1].changes[0].fields,
            [field("targets", "done", "done, closed")]
        );
        assert_eq!(
            difference.groups[3].changes[0].fields,
            [field("review", "PT1H", "PT2H")]
        );
    }

    #[test]
    fn numbers_differ_by_their_digits() {
        let configs = [
            r#"{"limit":50000}"#,
            r#"{"limit":50000.000000000000000001}"#,
        ];
        let difference = super::of(("{}", configs[0]), ("{}", configs[1]));
        assert_eq!(changes(&difference, "config"), [("changed", "limit")]);
        let field = &difference.groups[0].changes[0].fields[0];
        assert_eq!(field.after.as_deref(), Some("50000.000000000000000001"));
    }

    #[test]
    fn long_values_and_many_changes_are_bounded() {
        let many: serde_json::Map<_, _> = (0..CHANGES_MAX + 3)
            .map(|number| (format!("m{number}"), json!("x".repeat(VALUE_CHARS_MAX + 9))))
            .collect();
        let difference = of((&graph(), &json!({})), (&graph(), &Value::Object(many)));
        assert_eq!(difference.more, 3);
        assert_eq!(difference.groups[0].changes.len(), CHANGES_MAX);
        let shown = difference.groups[0].changes[0].fields[0].after.as_deref();
        assert_eq!(
            shown.map(|text| text.chars().count()),
            Some(VALUE_CHARS_MAX + 1)
        );
    }
}
