//! Compares the expectations of a step with what followed.
//!
//! An object has at least the members that are expected. A list has exactly the expected items, in any order; of events, notes
//! and published events, it has at least these.

use std::fmt;

use wrkflw_core::json::{Json, Node};

/// Expectations in the form of the file. The schema says which members there are.
pub(crate) type Expect = Json;

/// Lists of which a step names only some items, with the member that a plain text stands for.
const AT_LEAST: [(&str, &str); 3] = [("events", "type"), ("publishes", "name"), ("notes", "code")];
/// The shown length of a value.
const SHOWN_CHARS_MAX: usize = 600;

/// Something that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What it is about, such as `states` or `data/amount`.
    pub at: String,
    pub expected: String,
    pub got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { at, expected, got } = self;
        write!(f, "{at}: expected {expected}, got {got}")
    }
}

/// The differences between the expectations and what followed. `seen` has a member for each expectation.
pub(crate) fn differences(expected: Option<&Expect>, seen: &Node) -> Vec<Difference> {
    let expected = expected.map(Json::node);
    let refusals = member(seen, "refused").map_or(&[] as &[Node], items);
    let wanted = expected.as_ref().and_then(|node| member(node, "refused"));
    let mut found = Vec::new();
    match wanted {
        None if !refusals.is_empty() => found.push(Difference {
            at: "refused".to_owned(),
            expected: "nothing".to_owned(),
            got: shown(&Node::Array(refusals.to_vec())),
        }),
        Some(wanted) if !refusals.iter().any(|one| fits(&named(wanted, "code"), one)) => {
            found.push(Difference {
                at: "refused".to_owned(),
                expected: shown(wanted),
                got: if refusals.is_empty() {
                    "no refusal".to_owned()
                } else {
                    shown(&Node::Array(refusals.to_vec()))
                },
            });
        }
        _ => {}
    }
    let Some(Node::Object(members)) = &expected else {
        return found;
    };
    for (name, wanted) in members.iter().filter(|(name, _)| *name != "refused") {
        let got = member(seen, name).unwrap_or(&Node::Null);
        if let Some((_, text)) = AT_LEAST.iter().find(|(list, _)| list == name) {
            let wanted = listed(wanted, text);
            if !matched(&wanted, items(got)) {
                found.push(difference(name, &Node::Array(wanted), got));
            }
        } else if name == "tasks" {
            let wanted = Node::Array(listed(wanted, "label"));
            if !fits(&wanted, got) {
                found.push(difference(name, &wanted, got));
            }
        } else {
            compare(name, wanted, got, &mut found);
        }
    }
    found
}

/// Adds the differences at the deepest place.
fn compare(at: &str, wanted: &Node, got: &Node, found: &mut Vec<Difference>) {
    match (wanted, got) {
        (Node::Object(wanted), Node::Object(_)) => {
            for (name, wanted) in wanted {
                let at = format!("{at}/{name}");
                let got = member(got, name).unwrap_or(&Node::Null);
                compare(&at, wanted, got, found);
            }
        }
        _ if fits(wanted, got) => {}
        _ => found.push(difference(at, wanted, got)),
    }
}

fn difference(at: &str, wanted: &Node, got: &Node) -> Difference {
    Difference {
        at: at.to_owned(),
        expected: shown(wanted),
        got: shown(got),
    }
}

/// Whether a value is as expected. One expected value stands for a list of it.
fn fits(wanted: &Node, got: &Node) -> bool {
    match (wanted, got) {
        (Node::Object(members), Node::Object(_)) => members.iter().all(|(name, wanted)| {
            let got = member(got, name).unwrap_or(&Node::Null);
            fits(wanted, got)
        }),
        (Node::Array(wanted), Node::Array(got)) => {
            wanted.len() == got.len() && matched(wanted, got)
        }
        (Node::Null, Node::Array(got)) => got.is_empty(),
        (wanted, Node::Array(got)) => matches!(&got[..], [got] if fits(wanted, got)),
        (Node::Number(wanted), Node::Number(got)) => same_number(wanted, got),
        (wanted, got) => wanted == got,
    }
}

/// Whether each expected item has an item of its own that fits it.
fn matched(wanted: &[Node], got: &[Node]) -> bool {
    let mut taken = vec![None; got.len()];
    (0..wanted.len()).all(|one| {
        let mut tried = vec![false; got.len()];
        place(one, (wanted, got), &mut taken, &mut tried)
    })
}

/// Finds an item for the expected one. If another expected one has it already, finds a different item for that one.
fn place(
    one: usize,
    lists: (&[Node], &[Node]),
    taken: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    let (wanted, got) = lists;
    for at in 0..got.len() {
        if tried[at] || !fits(&wanted[one], &got[at]) {
            continue;
        }
        tried[at] = true;
        if taken[at].is_none_or(|other| place(other, lists, taken, tried)) {
            taken[at] = Some(one);
            return true;
        }
    }
    false
}

/// Numbers of up to this many characters are compared by value, longer ones digit by digit.
const EXACT_CHARS_MAX: usize = 15;

fn same_number(one: &str, other: &str) -> bool {
    let is_short = one.len() <= EXACT_CHARS_MAX && other.len() <= EXACT_CHARS_MAX;
    let value = |text: &str| text.parse::<f64>().ok();
    one == other || (is_short && value(one).is_some() && value(one) == value(other))
}

/// A plain text stands for an object with this member.
fn named(node: &Node, name: &str) -> Node {
    match node {
        Node::String(_) => Node::Object([(name.to_owned(), node.clone())].into()),
        other => other.clone(),
    }
}

fn listed(node: &Node, name: &str) -> Vec<Node> {
    match node {
        Node::Array(items) => items.iter().map(|item| named(item, name)).collect(),
        Node::Null => Vec::new(),
        other => vec![named(other, name)],
    }
}

fn items(node: &Node) -> &[Node] {
    match node {
        Node::Array(items) => items,
        _ => &[],
    }
}

fn member<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    match node {
        Node::Object(members) => members.get(name),
        _ => None,
    }
}

fn shown(node: &Node) -> String {
    let text = node.to_string();
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => text,
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(expected: &str, seen: &str) -> Vec<String> {
        let expected = Json::parse(expected).expect("JSON");
        let seen = Node::parse(seen).expect("JSON");
        let all = differences(Some(&expected), &seen).into_iter();
        all.map(|difference| difference.to_string()).collect()
    }

    #[test]
    fn what_is_expected_is_there_and_more_may_be() {
        for (expected, seen) in [
            (r#"{"states":"A"}"#, r#"{"states":["A"]}"#),
            (r#"{"states":["B","A"]}"#, r#"{"states":["A","B"]}"#),
            (r#"{"states":[]}"#, r#"{"states":[]}"#),
            (r#"{"data":{"a":1.50}}"#, r#"{"data":{"a":1.5,"b":2}}"#),
            (r#"{"data":{"a":null}}"#, r#"{"data":{}}"#),
            (r#"{"outcome":null}"#, "{}"),
            (
                r#"{"tasks":["T"]}"#,
                r#"{"tasks":[{"label":"T","for":["ann"]}]}"#,
            ),
            (
                r#"{"tasks":[{"for":"ann"},{}]}"#,
                r#"{"tasks":[{"for":["ann"]},{"for":["bob"]}]}"#,
            ),
            // The first expected task fits both tasks, so it must leave the other expected one its only task.
            (
                r#"{"tasks":[{"label":"T"},{"for":"ann"}]}"#,
                r#"{"tasks":[{"label":"T","for":["ann"]},{"label":"T","for":["bob"]}]}"#,
            ),
            (
                r#"{"events":["A"]}"#,
                r#"{"events":[{"type":"B"},{"type":"A"}]}"#,
            ),
            (
                r#"{"refused":"no"}"#,
                r#"{"refused":[{"code":"no","message":"No."}]}"#,
            ),
            (
                r#"{"refused":{"field":"/a"}}"#,
                r#"{"refused":[{"code":"x","field":"/b"},{"code":"y","field":"/a"}]}"#,
            ),
        ] {
            assert_eq!(found(expected, seen), [""; 0], "{expected}");
        }
    }

    #[test]
    fn a_difference_names_its_place_and_both_values() {
        for (expected, seen, words) in [
            (
                r#"{"states":"A"}"#,
                r#"{"states":["B"]}"#,
                r#"states: expected "A", got ["B"]"#,
            ),
            (
                r#"{"states":"A"}"#,
                r#"{"states":["A","B"]}"#,
                r#"states: expected "A", got ["A","B"]"#,
            ),
            (
                r#"{"states":["A","A"]}"#,
                r#"{"states":["A","B"]}"#,
                r#"states: expected ["A","A"], got ["A","B"]"#,
            ),
            (
                r#"{"data":{"a":{"b":1}}}"#,
                r#"{"data":{"a":{"b":2}}}"#,
                "data/a/b: expected 1, got 2",
            ),
            (
                r#"{"data":{"a":50000.000000000000000001}}"#,
                r#"{"data":{"a":50000}}"#,
                "data/a: expected 50000.000000000000000001, got 50000",
            ),
            (
                r#"{"refused":"no"}"#,
                "{}",
                r#"refused: expected "no", got no refusal"#,
            ),
            (
                "{}",
                r#"{"refused":[{"code":"no"}]}"#,
                r#"refused: expected nothing, got [{"code":"no"}]"#,
            ),
            (
                r#"{"notes":["a","a"]}"#,
                r#"{"notes":[{"code":"a"}]}"#,
                r#"notes: expected [{"code":"a"},{"code":"a"}], got [{"code":"a"}]"#,
            ),
        ] {
            assert_eq!(found(expected, seen), [words], "{expected}");
        }
    }
}
