//! A JSON document as a tree whose numbers keep their text.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

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
            Node::String(text) => write_string(f, text),
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
                    write_string(f, name)?;
                    write!(f, ":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn write_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            control if control < ' ' => write!(f, "\\u{:04x}", u32::from(control))?,
            other => f.write_char(other)?,
        }
    }
    f.write_char('"')
}
