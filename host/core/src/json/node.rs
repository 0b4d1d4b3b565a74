//! A JSON document as a tree that keeps the text of numbers.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::parse::parse;
use super::{COMPOSED_DEPTH_MAX, JsonError};

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
    /// Parses a text that the host wrote.
    pub fn parse(text: &str) -> Result<Node, JsonError> {
        parse(text, COMPOSED_DEPTH_MAX)
    }

    /// Merges `patch` into this value (RFC 7396): a null member of the patch removes the member.
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
        self.write(f)
    }
}

impl Node {
    /// Writes the canonical text.
    pub(super) fn write(&self, out: &mut impl Write) -> fmt::Result {
        match self {
            Node::Null => out.write_str("null"),
            Node::Bool(true) => out.write_str("true"),
            Node::Bool(false) => out.write_str("false"),
            Node::Number(text) => out.write_str(text),
            Node::String(text) => write_string(out, text),
            Node::Array(items) => {
                out.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.write_char(',')?;
                    }
                    item.write(out)?;
                }
                out.write_char(']')
            }
            Node::Object(members) => {
                out.write_char('{')?;
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.write_char(',')?;
                    }
                    write_string(out, name)?;
                    out.write_char(':')?;
                    value.write(out)?;
                }
                out.write_char('}')
            }
        }
    }
}

/// Writes `text` as a canonical JSON string.
pub(super) fn write_string(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    if is_plain(text) {
        out.write_str(text)?;
        return out.write_char('"');
    }
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if !is_special(byte) {
            continue;
        }
        out.write_str(&text[plain..at])?;
        plain = at + 1;
        match byte {
            b'"' => out.write_str("\\\"")?,
            b'\\' => out.write_str("\\\\")?,
            b'\n' => out.write_str("\\n")?,
            b'\r' => out.write_str("\\r")?,
            b'\t' => out.write_str("\\t")?,
            control => write!(out, "\\u{control:04x}")?,
        }
    }
    out.write_str(&text[plain..])?;
    out.write_char('"')
}

/// Whether a JSON string of this text needs no escapes. Written so that the compiler vectorises it.
pub(super) fn is_plain(text: &str) -> bool {
    !text
        .bytes()
        .fold(false, |found, byte| found | is_special(byte))
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..b' ')
}
