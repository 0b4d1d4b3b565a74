//! Writes a scenario as YAML, in the order in which a person would.

use wrkflw_core::json::Node;

use crate::yaml::is_unclear;

/// Members in the order in which they are written; others follow by name.
const ORDER: &[&str] = &[
    "name",
    "definition",
    "config",
    "now",
    "groups",
    "managers",
    "permissions",
    "absences",
    "calendars",
    "steps",
    "start",
    "decide",
    "claim",
    "release",
    "delegate",
    "resolve",
    "reassign",
    "reset",
    "suspendTask",
    "resumeTask",
    "signal",
    "child",
    "service",
    "join",
    "leave",
    "manager",
    "absence",
    "cancel",
    "suspend",
    "resume",
    "at",
    "by",
    "to",
    "for",
    "task",
    "label",
    "in",
    "item",
];
/// The last one.
const LAST: &str = "expect";
/// A value that fits into this many characters is written in one line.
const LINE_CHARS_MAX: usize = 88;
/// Values of the file itself and of its steps are written member by member.
const BLOCKS: usize = 3;

/// The text of an object.
pub(crate) fn yaml(node: &Node) -> String {
    let mut text = String::new();
    write(node, 0, 0, &mut text);
    text
}

fn write(node: &Node, indent: usize, depth: usize, text: &mut String) {
    let pad = " ".repeat(indent);
    match node {
        Node::Object(members) if !members.is_empty() => {
            for (index, name) in ordered(members.keys()).into_iter().enumerate() {
                if index > 0 {
                    text.push_str(&pad);
                }
                text.push_str(&scalar(name));
                text.push(':');
                value(&members[name], indent, depth, text);
            }
        }
        Node::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(&pad);
                }
                text.push_str("- ");
                let is_short = depth >= BLOCKS && inline(item).chars().count() <= LINE_CHARS_MAX;
                if is_short || !is_block(item) {
                    text.push_str(&inline(item));
                    text.push('\n');
                } else {
                    write(item, indent + 2, depth + 1, text);
                }
            }
        }
        other => {
            text.push_str(&inline(other));
            text.push('\n');
        }
    }
}

/// Writes the value behind a name and its colon.
fn value(node: &Node, indent: usize, depth: usize, text: &mut String) {
    let short = inline(node);
    let is_short = depth > 0 && indent + short.chars().count() <= LINE_CHARS_MAX;
    if is_short || !is_block(node) {
        text.push(' ');
        text.push_str(&short);
        text.push('\n');
        return;
    }
    text.push('\n');
    text.push_str(&" ".repeat(indent + 2));
    write(node, indent + 2, depth + 1, text);
}

fn is_block(node: &Node) -> bool {
    match node {
        Node::Object(members) => !members.is_empty(),
        Node::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn ordered<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut names: Vec<_> = names.collect();
    let place = |name: &str| match name {
        LAST => usize::MAX,
        name => ORDER
            .iter()
            .position(|one| *one == name)
            .unwrap_or(ORDER.len()),
    };
    names.sort_by_key(|name| place(name));
    names
}

/// The value in one line.
fn inline(node: &Node) -> String {
    match node {
        Node::Array(items) => {
            let items: Vec<_> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Node::Object(members) if members.is_empty() => "{}".to_owned(),
        Node::Object(members) => {
            let names = ordered(members.keys()).into_iter();
            let all: Vec<_> = names
                .map(|name| format!("{}: {}", scalar(name), inline(&members[name])))
                .collect();
            format!("{{ {} }}", all.join(", "))
        }
        Node::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// A text, in quotes if a reader could take it for something else.
fn scalar(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '/');
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(is_word)
        && !text.ends_with(' ');
    let is_taken = matches!(
        text.to_ascii_lowercase().as_str(),
        "null" | "true" | "false"
    );
    if is_plain && !is_taken && !is_unclear(text) {
        text.to_owned()
    } else {
        Node::String(text.to_owned()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::Document;

    #[test]
    fn what_is_written_is_read_again() {
        for json in [
            r#"{"name":"A: b","steps":[{"by":"ann","expect":{"states":["A"],"tasks":[{"for":[{"group":"g"}],"label":"L"}]},"start":{}}]}"#,
            r#"{"a":{"b":{"c":[1,2.50,null,true,"no","1","","x y"," x","Ünï","2026-01-05"]}}}"#,
            r##"{"a":"one\ntwo","b":"# no","c":"a, b","d":"{","e":[[],{}],"f":"true","-":"- x"}"##,
        ] {
            let node = Node::parse(json).expect("JSON");
            let text = yaml(&node);
            let again = Document::read(&text).unwrap_or_else(|error| panic!("{error:?}: {text}"));
            assert_eq!(again.node, node, "{text}");
        }
    }

    #[test]
    fn steps_begin_with_what_happens_and_end_with_what_is_expected() {
        let node =
            Node::parse(r#"{"steps":[{"by":"ann","decide":"OK","expect":{"outcome":"DONE"}}]}"#);
        let text = yaml(&node.expect("JSON"));
        assert_eq!(
            text,
            "steps:\n  - decide: OK\n    by: ann\n    expect: { outcome: DONE }\n"
        );
    }
}
