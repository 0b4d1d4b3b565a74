//! What consumers may rely on: one table of the members of every public event's data, and the JSON Schema of each.
//!
//! Members are only ever added, so the schemas leave room for others. The table stands beside the event
//! vocabulary; the tests below hold every event against it, in both directions.

mod table;

use serde_json::{Map, Value, json};

use self::table::CONTEXT;
use super::event::{CUSTOM, type_suffix};

pub use table::EVENT_TYPES;

/// The public face of one audit type.
#[derive(Debug, Clone, Copy)]
pub struct EventType {
    /// The audit type.
    pub kind: &'static str,
    pub summary: &'static str,
    members: &'static [Member],
}

#[derive(Debug, Clone, Copy)]
struct Member {
    name: &'static str,
    shape: Shape,
    presence: Presence,
    about: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Id,
    Ids,
    Text,
    Texts,
    Time,
    Count,
    Anything,
    Record(&'static [Member]),
    Records(&'static [Member]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Always,
    /// Always there, `null` if there is none.
    OrNull,
    Sometimes,
}

use Presence::{OrNull, Sometimes};
use Shape::{Anything, Count, Id, Ids, Record, Records, Text, Texts, Time};

const fn member(
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

impl EventType {
    /// The public type of this name below the operator's prefix; every `custom.` name is the same to the table.
    pub fn by_suffix(suffix: &str) -> Option<&'static EventType> {
        let is_custom = suffix
            .strip_prefix("custom.")
            .is_some_and(|name| !name.is_empty());
        EVENT_TYPES.iter().find(|event_type| match event_type.kind {
            CUSTOM => is_custom,
            kind => type_suffix(kind, None) == suffix,
        })
    }

    /// The name below the prefix, `custom.{name}` for what flows name themselves.
    pub fn suffix(&self) -> String {
        type_suffix(self.kind, (self.kind == CUSTOM).then_some("{name}"))
    }

    /// The JSON Schema (2020-12) of the event's data.
    pub fn schema(&self) -> Value {
        let members: Vec<&Member> = self.members.iter().chain(CONTEXT).collect();
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.suffix(),
            "description": self.summary,
        });
        if let (Some(schema), Value::Object(record)) = (schema.as_object_mut(), record(&members)) {
            schema.extend(record);
        }
        schema
    }
}

fn record(members: &[&Member]) -> Value {
    let required: Vec<&str> = members
        .iter()
        .filter(|member| member.presence != Sometimes)
        .map(|member| member.name)
        .collect();
    let properties: Map<String, Value> = members
        .iter()
        .map(|member| (member.name.to_owned(), member.schema()))
        .collect();
    json!({"type": "object", "required": required, "properties": properties})
}

impl Member {
    fn schema(&self) -> Value {
        let mut schema = self.shape.schema();
        if self.presence == OrNull {
            schema = json!({"anyOf": [schema, {"type": "null"}]});
        }
        schema["description"] = json!(self.about);
        schema
    }
}

impl Shape {
    fn schema(self) -> Value {
        match self {
            Id => json!({"type": "string", "format": "uuid"}),
            Ids => json!({"type": "array", "items": Id.schema()}),
            Text => json!({"type": "string"}),
            Texts => json!({"type": "array", "items": Text.schema()}),
            Time => json!({"type": "string", "format": "date-time"}),
            Count => json!({"type": "integer", "minimum": 0}),
            Anything => json!({}),
            Record(members) => record(&members.iter().collect::<Vec<_>>()),
            Records(members) => json!({"type": "array", "items": Record(members).schema()}),
        }
    }
}

#[cfg(test)]
mod tests;
