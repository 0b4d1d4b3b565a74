//! What differs between two versions of a definition: states and transitions by their names, and settings by their place, rather
//! than lines of text.

use std::collections::BTreeMap;

use serde_json::Value;

/// Changes that a page shows; more are only counted.
const CHANGES_MAX: usize = 200;
/// Characters of a value that a page shows.
const VALUE_CHARS_MAX: usize = 300;

/// What differs.
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

type Things<'a> = BTreeMap<String, &'a Value>;

/// Compares the graphs and configs of two versions.
pub(super) fn of(before: (&Value, &Value), after: (&Value, &Value)) -> Difference {
    let ((old, old_config), (new, new_config)) = (before, after);
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

fn state(state: &Value) -> String {
    text(&state["name"])
}

/// A transition is known by the state that it leaves and its trigger.
fn transition(way: &Value) -> String {
    format!("{} · {}", text(&way["source"]), text(&way["trigger"]))
}

/// The things of a list by their names.
fn listed<'a>(graph: &'a Value, list: &str, name: fn(&Value) -> String) -> Things<'a> {
    let things = graph[list].as_array().into_iter().flatten();
    things.map(|one| (name(one), one)).collect()
}

fn members(value: &Value) -> Things<'_> {
    let members = value.as_object().into_iter().flatten();
    members
        .map(|(name, member)| (name.clone(), member))
        .collect()
}

/// What else a graph declares.
fn rest(graph: &Value) -> Things<'_> {
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
fn fields(before: Option<&Value>, after: Option<&Value>) -> Vec<Field> {
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

/// The values of a thing by their places. Lists of plain values are one value, as their order is seen at a glance.
fn collect(value: &Value, place: &str, leaves: &mut BTreeMap<String, String>) {
    let within = |name: &str| match place {
        "" => name.to_owned(),
        place => format!("{place}.{name}"),
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                collect(member, &within(name), leaves);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, &within(&at.to_string()), leaves);
            }
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(text).collect();
            let shown = items.join(", ");
            if !shown.is_empty() {
                leaves.insert(place.to_owned(), short(&shown));
            }
        }
        Value::Null => {}
        Value::String(empty) if empty.is_empty() => {}
        plain => {
            leaves.insert(place.to_owned(), short(&text(plain)));
        }
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn short(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
