//! A JSON document as a tree that keeps the text of numbers, and the parser for it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::{self, Write};

use serde::{Serialize, Serializer};

use super::canonical::write_string;
use super::reader::{PathSegment, Reader};
use super::{COMPOSED_DEPTH_MAX, JsonError, raw};

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

impl Serialize for Node {
    /// With the text of numbers, unlike a `serde_json` value.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Null => serializer.serialize_unit(),
            Node::Bool(flag) => serializer.serialize_bool(*flag),
            Node::Number(text) => raw(text, serializer),
            Node::String(text) => serializer.serialize_str(text),
            Node::Array(items) => serializer.collect_seq(items),
            Node::Object(members) => serializer.collect_map(members),
        }
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

/// Parses JSON text. It accepts and refuses the same as `canonical`.
pub(super) fn parse(text: &str, depth_max: usize) -> Result<Node, JsonError> {
    let mut reader = Reader::new(text, depth_max);
    let node = value(&mut reader)?;
    reader.end()?;
    Ok(node)
}

fn value(reader: &mut Reader<'_>) -> Result<Node, JsonError> {
    match reader.next() {
        Some(b'{') => object(reader),
        Some(b'[') => array(reader),
        Some(b'"') => Ok(Node::String(reader.string()?.into_owned())),
        Some(b'-' | b'0'..=b'9') => Ok(Node::Number(reader.number()?.to_owned())),
        _ => Ok(match reader.word()? {
            "true" => Node::Bool(true),
            "false" => Node::Bool(false),
            _ => Node::Null,
        }),
    }
}

fn array(reader: &mut Reader<'_>) -> Result<Node, JsonError> {
    reader.open()?;
    let mut items = Vec::new();
    while !reader.closes(b']', items.is_empty())? {
        reader.enter(PathSegment::Index(items.len()));
        items.push(value(reader)?);
        reader.leave();
    }
    Ok(Node::Array(items))
}

fn object(reader: &mut Reader<'_>) -> Result<Node, JsonError> {
    reader.open()?;
    let mut members = BTreeMap::new();
    while !reader.closes(b'}', members.is_empty())? {
        let name = reader.name()?;
        reader.enter(PathSegment::Name(name.clone()));
        let Entry::Vacant(member) = members.entry(name.into_owned()) else {
            return Err(reader.error_before("a member named twice"));
        };
        reader.colon()?;
        member.insert(value(reader)?);
        reader.leave();
    }
    Ok(Node::Object(members))
}
