//! The JSON Schema of every public event's data.
//!
//! [`crate::event`] declares the events, names their public members and documents them. This module has the schemas of the
//! member types. Within a [version](SCHEMA_VERSION) members are only ever added, so the schemas allow unknown members. Tests check
//! that every event satisfies its schema and that every member of a schema occurs.

mod records;

use serde_json::{Map, Value, json};

use self::records::{CONTEXT, STATE, TASK};
use super::event::reasons::{CANCELLATIONS, ESCALATIONS, RELEASES, STEPS};
use super::event::{CUSTOM, DECLARED, type_suffix};
use super::stored::member_name;

pub(crate) use records::MemberType;

/// The version of all schemas, a part of their URLs. It rises when a member is removed or changes its name or meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// The dialect of all schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of one audit type.
#[derive(Debug, Clone, Copy)]
pub struct EventType {
    /// The audit type.
    pub kind: &'static str,
    pub(crate) is_public: bool,
    pub(crate) summary: &'static str,
    /// None for a member that is not public.
    pub(crate) members: &'static [Option<Member>],
    /// All fields, also those that are not public.
    pub(crate) fields: &'static [(&'static str, Presence)],
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    /// The name of the field, which is in camel case in stored JSON.
    field: &'static str,
    /// The name for consumers.
    name: &'static str,
    shape: Shape,
    presence: Presence,
    about: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Id,
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    Time,
    Count,
    Anything,
    /// None for a member that is not public.
    Record(&'static [Option<Member>]),
    /// The members of a record that are members of the record around it.
    Flattened(&'static [Member]),
    List(&'static Shape),
    /// JSON Pointers to what a merge patch changes.
    Pointers,
    /// The fields of an input that the definition declares public.
    Input,
    /// The number of a definition version.
    Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Always,
    /// Always stored, as `null` if there is none. Then it is absent for consumers.
    OrNull,
    Sometimes,
}

use Presence::{Always, Sometimes};
use Shape::{
    Anything, Count, Flattened, Id, Input, List, OneOf, Pointers, Record, Text, Time, Version,
};

/// The declared member that is stored under this name.
pub(crate) fn declared<'m>(members: &'m [Option<Member>], stored: &str) -> Option<&'m Member> {
    members
        .iter()
        .flatten()
        .find_map(|member| match member.shape {
            Flattened(members) => members.iter().find(|member| member.is_stored_as(stored)),
            _ => member.is_stored_as(stored).then_some(member),
        })
}

/// Every public type, in the order of declaration.
pub fn public_types() -> impl Iterator<Item = &'static EventType> {
    DECLARED.iter().filter(|event_type| event_type.is_public)
}

impl EventType {
    /// Whether an event of this audit type has the field.
    pub(crate) fn has_field(kind: &str, field: &str) -> bool {
        let mut of_kind = DECLARED.iter().filter(|event_type| event_type.kind == kind);
        of_kind.any(|event_type| event_type.fields.iter().any(|(name, _)| *name == field))
    }

    /// The public type of this audit type.
    pub(crate) fn public(kind: &str) -> Option<&'static EventType> {
        public_types().find(|event_type| event_type.kind == kind)
    }

    /// Whether its events always, sometimes or never have this field.
    fn presence(&self, field: &str) -> Option<Presence> {
        let found = self.fields.iter().find(|(held, _)| *held == field);
        found.map(|(_, presence)| *presence)
    }

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
        let own: Vec<Member> = self.members.iter().flatten().copied().collect();
        let context = CONTEXT.iter().copied().chain(self.subjects());
        let is_own = |member: &Member| own.iter().any(|held| held.name == member.name);
        let context: Vec<Member> = context.filter(|member| !is_own(member)).collect();
        let members = own.iter().chain(&context);
        let mut schema = json!({
            "$schema": DIALECT,
            "title": self.suffix(),
            "description": self.summary(),
        });
        if let (Some(schema), Value::Object(record)) = (schema.as_object_mut(), record(members)) {
            schema.extend(record);
        }
        schema
    }
}

/// The schema of an event that no entry declares: its own properties and those of the context. `required` are own ones.
pub(crate) fn with_context(title: &str, description: &str, own: Value, required: &[&str]) -> Value {
    let subjects = [STATE, TASK].concat();
    let optional = subjects.into_iter().map(|member| Member {
        presence: Sometimes,
        ..member
    });
    let context: Vec<Member> = CONTEXT.iter().copied().chain(optional).collect();
    let mut schema = record(context.iter());
    if let (Some(Value::Array(all)), own) = (schema.get_mut("required"), required) {
        all.extend(own.iter().map(|name| json!(name)));
    }
    if let (Some(Value::Object(all)), Value::Object(own)) = (schema.get_mut("properties"), own) {
        all.extend(own);
    }
    schema["$schema"] = json!(DIALECT);
    schema["title"] = json!(title);
    schema["description"] = json!(description);
    schema
}

impl EventType {
    /// The members that identify the state and the task of an event, if it has them.
    fn subjects(&self) -> impl Iterator<Item = Member> {
        let of = |field, members: &'static [Member]| {
            let presence = self.presence(field);
            let identified = |member: &Member| Member {
                presence: match presence {
                    Some(Always) if member.shape.is_id() => Always,
                    _ => Sometimes,
                },
                ..*member
            };
            let known = presence.is_some() && self.kind != CUSTOM;
            let members: Vec<Member> = members.iter().map(identified).collect();
            known.then_some(members).into_iter().flatten()
        };
        of("state", STATE).chain(of("task", TASK))
    }
}

fn record<'m>(members: impl Iterator<Item = &'m Member>) -> Value {
    let members: Vec<&Member> = members
        .flat_map(|member| match member.shape {
            Flattened(members) => members.iter().collect(),
            _ => vec![member],
        })
        .collect();
    let required: Vec<&str> = members
        .iter()
        .filter(|member| !member.may_be_absent())
        .map(|member| member.name)
        .collect();
    let properties: Map<String, Value> = members
        .iter()
        .map(|member| (member.name.to_owned(), member.schema()))
        .collect();
    json!({"type": "object", "required": required, "properties": properties})
}

impl Member {
    /// A member that is stored under the first name and published under the second.
    pub(crate) const fn new(
        (field, name): (&'static str, &'static str),
        shape: Shape,
        presence: Presence,
        about: &'static str,
    ) -> Member {
        Member {
            field,
            name,
            shape,
            presence,
            about,
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether an event without a value leaves the member out.
    pub(crate) fn may_be_absent(&self) -> bool {
        self.presence != Always || matches!(self.shape, Input)
    }

    fn is_stored_as(&self, stored: &str) -> bool {
        self.field == stored || member_name(self.field) == stored
    }

    fn schema(&self) -> Value {
        let mut schema = self.shape.schema();
        let more = match self.shape {
            Pointers => " JSON Pointers to what changed in the data.",
            Input => " Only the fields that the definition declares public.",
            _ => "",
        };
        schema["description"] = json!(format!("{}{more}", self.about.trim()));
        schema
    }
}

impl Shape {
    pub(crate) const CANCELLATION: Shape = OneOf(CANCELLATIONS);
    pub(crate) const ESCALATION: Shape = OneOf(ESCALATIONS);
    pub(crate) const RELEASE: Shape = OneOf(RELEASES);
    pub(crate) const STEP: Shape = OneOf(STEPS);

    fn is_id(self) -> bool {
        matches!(self, Id)
    }

    fn schema(self) -> Value {
        match self {
            Id => json!({"type": "string", "format": "uuid"}),
            Text => json!({"type": "string"}),
            OneOf(values) => json!({"type": "string", "enum": values}),
            Time => json!({"type": "string", "format": "date-time"}),
            Count | Version => json!({"type": "integer", "minimum": 0}),
            Pointers => {
                json!({"type": "array", "items": {"type": "string", "format": "json-pointer"}})
            }
            Input => json!({"type": "object"}),
            Anything => json!({}),
            Record(members) => record(members.iter().flatten()),
            Flattened(members) => record(members.iter()),
            // A list whose elements may be anything may itself be anything.
            List(Anything) => Anything.schema(),
            List(shape) => json!({"type": "array", "items": shape.schema()}),
        }
    }
}

#[cfg(test)]
mod tests;
