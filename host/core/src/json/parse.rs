//! Parses JSON text into a [`Node`].

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::reader::{Reader, Step};
use super::{JsonError, Node};

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
        reader.enter(Step::Index(items.len()));
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
        reader.enter(Step::Name(name.clone()));
        let Entry::Vacant(member) = members.entry(name.into_owned()) else {
            return Err(reader.error("a member named twice"));
        };
        reader.colon()?;
        member.insert(value(reader)?);
        reader.leave();
    }
    Ok(Node::Object(members))
}
