//! What flow logic may answer. Plain data, not yet believed: [`super::turn`] checks it first.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::json::Json;

/// May this happen?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "verdict", content = "because")]
pub enum Verdict {
    Allow,
    /// This actor may not, now or ever.
    Deny(Reason),
    /// The data or the input does not permit it yet.
    Invalid(Vec<Violation>),
}

/// A stable code for programs, and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub code: String,
    pub message: String,
}

/// What is wrong with one field of the data or the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// JSON Pointer (RFC 6901).
    pub field: String,
    pub code: String,
    pub message: String,
}

/// What follows from an event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// None: the state goes on. An empty list: this branch ends.
    pub enter: Option<Vec<String>>,
    /// Other active or waiting states to cancel, by the text of their ids.
    pub cancel: Vec<String>,
    /// JSON Merge Patch (RFC 7396) for the instance's data; not canonical yet.
    pub data: Option<String>,
    pub attributes: Vec<Attribute>,
    pub publish: Vec<PublishedEvent>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    pub name: String,
    /// None removes it.
    pub value: Option<AttributeValue>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", content = "value")]
pub enum AttributeValue {
    Text(String),
    Boolean(bool),
    /// Exact, in decimal notation.
    Decimal(String),
    /// Finite.
    Float(f64),
    Timestamp(Timestamp),
    /// As JSON: base64 with padding (RFC 4648).
    Bytes(#[serde(with = "base64_text")] Vec<u8>),
}

mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(de::Error::custom)
    }
}

/// An event of the flow's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedEvent {
    pub name: String,
    /// Not canonical yet.
    pub data: String,
}

/// Who works on a state.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    pub offers: Vec<Offer>,
    /// Decisions of one outcome that the state asks for.
    pub needed: u32,
    /// People who must not decide.
    pub exclude: Vec<String>,
    /// The group that gets the work when nobody else is left.
    pub fallback: Option<String>,
    pub priority: u8,
    pub deadlines: Vec<Deadline>,
}

/// One task to be made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    pub label: String,
    pub candidates: Vec<Principal>,
    /// Owned from the start.
    pub owner: Option<String>,
    /// JSON Schema 2020-12 of what the decider fills in; not canonical yet.
    pub form: Option<String>,
    pub deadlines: Vec<Deadline>,
}

/// Whom an offer is made to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", content = "id")]
pub enum Principal {
    User(String),
    Group(String),
    ManagerOf(String),
}

impl Principal {
    /// Whether a person with these groups is meant.
    pub fn includes(&self, person: &str, groups: &[String]) -> bool {
        match self {
            Principal::User(id) => id == person,
            Principal::Group(id) => groups.contains(id),
            // Resolved to a person before anybody can be a candidate.
            Principal::ManagerOf(_) => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deadline {
    pub when: Due,
    /// Seconds between repetitions.
    pub repeat: Option<u32>,
    pub action: OverdueAction,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Due {
    /// Seconds from now.
    After(u32),
    /// Seconds of working time by a calendar of the tenant's.
    Working {
        seconds: u32,
        calendar: String,
    },
    At(Timestamp),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OverdueAction {
    Remind,
    /// Ask `assign` again.
    Escalate,
    /// Take the task back from its owner.
    Release,
    Fire(String),
}

/// What a service state asks, and of whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceCall {
    pub service: String,
    pub request: Json,
    /// Seconds.
    pub timeout: u32,
    /// Seconds of pause before each further attempt.
    pub retries: Vec<u32>,
    pub on_reply: String,
    pub on_failure: String,
    pub deadlines: Vec<Deadline>,
}

/// What a wait state waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub deadlines: Vec<Deadline>,
    pub correlation: Option<String>,
    pub keep_early: bool,
    pub children: Vec<Child>,
}

/// An instance to start as a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    pub key: String,
    pub entity_type: String,
    pub entity_id: String,
    /// Not canonical yet.
    pub data: String,
    pub on_end: Option<String>,
}
