//! A JSON document as a tree whose numbers keep their text.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::tree::write_string;

/// One JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Null,
    Bool(bool),
    /// As it was written.
    Number(String),
    String(String),
    Array(Vec<Node>),
    Object(BTreeMap<String, Node>),
}

impl Node {
    /// Merges `patch` into this value (RFC 7396): members that are null there are removed here.
    #[must_use]
    pub fn merge(self, patch: Node) -> Node {
        let Node::Object(changes) = patch else {
            return patch;
        };
        let mut members = match self {
            Node::Object(members) => members,
            Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Array(_) => {
                BTreeMap::new()
            }
        };
        for (name, change) in changes {
            if change == Node::Null {
                members.remove(&name);
            } else {
                let old = members.remove(&name).unwrap_or(Node::Null);
                members.insert(name, old.merge(change));
            }
        }
        Node::Object(members)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Null => f.write_str("null"),
            Node::Bool(value) => write!(f, "{value}"),
            Node::Number(text) => f.write_str(text),
            Node::String(text) => f.write_str(&quoted(text)),
            Node::Array(items) => {
                f.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        f.write_char(',')?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_char(']')
            }
            Node::Object(members) => {
                f.write_char('{')?;
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        f.write_char(',')?;
                    }
                    f.write_str(&quoted(name))?;
                    write!(f, ":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn quoted(string: &str) -> String {
    let mut text = String::with_capacity(string.len() + 2);
    write_string(&mut text, string);
    text
}
