//! The JSON Schema of every public event's data.
//!
//! [`crate::event`] declares the events and documents their members. This module has the schemas of the member types. Members
//! are only ever added, so the schemas allow unknown members. Tests check that every event satisfies its schema and that every
//! member of a schema occurs.

mod records;

use serde_json::{Map, Value, json};

use self::records::CONTEXT;
use super::event::{CUSTOM, DECLARED, type_suffix};
use super::stored::member_name;

pub(crate) use records::MemberType;

/// The schema of one audit type.
#[derive(Debug, Clone, Copy)]
pub struct EventType {
    /// The audit type.
    pub kind: &'static str,
    pub(crate) is_public: bool,
    pub(crate) summary: &'static str,
    /// None for a hidden member.
    pub(crate) members: &'static [Option<Member>],
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    /// The name of the field, which is in camel case in JSON.
    name: &'static str,
    shape: Shape,
    presence: Presence,
    about: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Id,
    Text,
    Time,
    Count,
    Anything,
    /// None for a hidden member.
    Record(&'static [Option<Member>]),
    /// The members of a record that are members of the record around it.
    Flattened(&'static [Member]),
    List(&'static Shape),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Always,
    /// Always there, `null` if there is none.
    OrNull,
    Sometimes,
}

use Presence::{OrNull, Sometimes};
use Shape::{Anything, Count, Flattened, Id, List, Record, Text, Time};

pub(crate) const fn member(
    name: &'static str,
    shape: Shape,
    presence: Presence,
    about: &'static str,
) -> Member {
    Member {
        name,
        shape,
        presence,
        about,
    }
}

/// Every public type, in the order of declaration.
pub fn public_types() -> impl Iterator<Item = &'static EventType> {
    DECLARED.iter().filter(|event_type| event_type.is_public)
}

impl EventType {
    /// The public type of this name without the operator's prefix. All `custom.` names have the same type.
    pub fn by_suffix(suffix: &str) -> Option<&'static EventType> {
        let is_custom = suffix
            .strip_prefix("custom.")
            .is_some_and(|name| !name.is_empty());
        public_types().find(|event_type| match event_type.kind {
            CUSTOM => is_custom,
            kind => type_suffix(kind, None) == suffix,
        })
    }

    /// The name without the operator's prefix; `custom.{name}` for events that flows publish.
    pub fn suffix(&self) -> String {
        type_suffix(self.kind, (self.kind == CUSTOM).then_some("{name}"))
    }

    /// What the event means, in one sentence.
    pub fn summary(&self) -> &'static str {
        self.summary.trim()
    }

    /// The JSON Schema (2020-12) of the event's data.
    pub fn schema(&self) -> Value {
        let members = self.members.iter().flatten().chain(CONTEXT);
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.suffix(),
            "description": self.summary(),
        });
        if let (Some(schema), Value::Object(record)) = (schema.as_object_mut(), record(members)) {
            schema.extend(record);
        }
        schema
    }
}

fn record<'m>(members: impl Iterator<Item = &'m Member>) -> Value {
    let members: Vec<&Member> = members
        .flat_map(|member| match member.shape {
            Flattened(members) => members.iter().collect(),
            _ => vec![member],
        })
        .collect();
    let required: Vec<String> = members
        .iter()
        .filter(|member| member.presence != Sometimes)
        .map(|member| member_name(member.name))
        .collect();
    let properties: Map<String, Value> = members
        .iter()
        .map(|member| (member_name(member.name), member.schema()))
        .collect();
    json!({"type": "object", "required": required, "properties": properties})
}

impl Member {
    fn schema(&self) -> Value {
        let mut schema = self.shape.schema();
        if self.presence == OrNull {
            schema = json!({"anyOf": [schema, {"type": "null"}]});
        }
        schema["description"] = json!(self.about.trim());
        schema
    }
}

impl Shape {
    fn schema(self) -> Value {
        match self {
            Id => json!({"type": "string", "format": "uuid"}),
            Text => json!({"type": "string"}),
            Time => json!({"type": "string", "format": "date-time"}),
            Count => json!({"type": "integer", "minimum": 0}),
            Anything => json!({}),
            Record(members) => record(members.iter().flatten()),
            Flattened(members) => record(members.iter()),
            // A list of elements without a schema has none either.
            List(Anything) => Anything.schema(),
            List(shape) => json!({"type": "array", "items": shape.schema()}),
        }
    }
}

#[cfg(test)]
mod tests;
