//! Canonical JSON text.
//!
//! A replay must show flow logic the same bytes as the original command, and the audit chain covers bytes. So JSON is
//! converted to canonical form at the boundary: members sorted by name, no white space, the text of numbers kept. That
//! text is stored, hashed and passed on. This module refuses text that PostgreSQL or another reader would refuse or read
//! differently, and names its JSON Pointer: NUL, lone surrogates, a member named twice, a name that a reader reserves.

mod canonical;
mod members;
mod node;
mod reader;
mod whole;
mod writer;

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use members::{Member, members};
pub use node::Node;
pub use whole::whole;

/// How deep arrays and objects may nest in external documents.
pub const DEPTH_MAX: usize = 64;
/// How deep they may nest in documents of the host that contain external ones, such as payloads and evidence. Other
/// parsers stop at 128.
const COMPOSED_DEPTH_MAX: usize = DEPTH_MAX + 32;
/// The struct name under which `serde_json`'s `RawValue` serialises text that is JSON already. To create a `RawValue`
/// itself, the text would have to be parsed again.
const RAW: &str = "$serde_json::private::RawValue";

/// A JSON text in canonical form.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Json(Box<str>);

/// Why a text is not JSON that can be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} at {}", if pointer.is_empty() { "the top" } else { pointer })]
pub struct JsonError {
    /// JSON Pointer to the value concerned.
    pub pointer: String,
    pub detail: String,
    /// Line and column at which reading stopped, from 1, if that is the place to correct.
    pub place: Option<(usize, usize)>,
}

/// A name as a segment of a JSON Pointer.
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl JsonError {
    /// The error with its place in the text.
    pub fn located(&self) -> String {
        match self.place {
            Some((line, column)) => format!("{} (line {line}, column {column})", self.detail),
            None => self.to_string(),
        }
    }
}

impl Json {
    /// Converts an external text to canonical form.
    pub fn parse(text: &str) -> Result<Json, JsonError> {
        canonical::canonical(text, DEPTH_MAX).map(|text| Json(text.into()))
    }

    /// Parses a text that the host wrote. Fails only on a damaged text.
    pub fn stored(text: &str) -> Result<Json, JsonError> {
        canonical::canonical(text, COMPOSED_DEPTH_MAX).map(|text| Json(text.into()))
    }

    /// The empty object.
    pub fn empty() -> Json {
        Json("{}".into())
    }

    /// Takes a text that this type wrote earlier, such as one from the store, without a check.
    pub fn from_canonical(text: impl Into<Box<str>>) -> Json {
        Json(text.into())
    }

    /// Serialises a value. It must satisfy the rules of [`Json::parse`], except that it may nest a few levels deeper; panics
    /// otherwise.
    pub fn of(value: &impl Serialize) -> Json {
        let text = writer::write(value);
        Json(text.expect("our own types have a canonical form"))
    }

    /// An object of these members. If two have the same name, the later one wins.
    pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
        let members: BTreeMap<&str, Json> = members.into_iter().collect();
        let mut text = String::from("{");
        for (index, (name, value)) in members.iter().enumerate() {
            text.push_str(if index > 0 { "," } else { "" });
            canonical::write_string(&mut text, name).expect("writing to a string");
            text.push(':');
            text.push_str(value.as_str());
        }
        text.push('}');
        Json(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// The text as a tree.
    pub fn node(&self) -> Node {
        node::parse(&self.0, COMPOSED_DEPTH_MAX).expect("canonical text parses")
    }

    /// The text as a `serde_json` value, for libraries that need one. Numbers may lose digits.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).expect("canonical text parses")
    }

    /// This document with `patch` merged into it (JSON Merge Patch, RFC 7396).
    #[must_use]
    pub fn merged(&self, patch: &Json) -> Json {
        Json::from(&self.node().merge(patch.node()))
    }
}

impl From<&Node> for Json {
    fn from(node: &Node) -> Json {
        let mut text = String::new();
        node.write(&mut text).expect("writing to a string");
        Json(text.into())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        raw(&self.0, serializer)
    }
}

/// Serialises a text that is JSON already.
fn raw<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let mut raw = serializer.serialize_struct(RAW, 1)?;
    raw.serialize_field(RAW, text)?;
    raw.end()
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        let raw = <Box<serde_json::value::RawValue>>::deserialize(deserializer)?;
        Json::parse(raw.get()).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
pub(crate) mod tests;
