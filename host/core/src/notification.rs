//! The recipients of notifications: a pure function from a public entry to its notifications.
//!
//! The id of a notification is derived from the event and the recipient, so a notifier that reads an entry twice creates the
//! same notification. An entry of an older host may lack members: recipients that cannot be read from it are skipped.
//! Delivery is elsewhere.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::cloudevent::PublicEntry;
use super::event_schema::with_context;
use super::ids::InstanceId;
use super::json::{Json, JsonError};

/// Why somebody is notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// There is new work for the recipient.
    AssignmentCreated,
    /// An instance that the recipient requested ended, was suspended or was resumed.
    StatusChanged,
    /// A comment mentions the recipient.
    Mention,
    /// The recipient's work is due.
    TimeoutWarning,
    /// The recipient's work was escalated to others, or the work of others to the recipient.
    Escalation,
}

/// All kinds.
pub const KINDS: [Kind; 5] = [
    Kind::AssignmentCreated,
    Kind::StatusChanged,
    Kind::Mention,
    Kind::TimeoutWarning,
    Kind::Escalation,
];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::AssignmentCreated => "ASSIGNMENT_CREATED",
            Kind::StatusChanged => "STATUS_CHANGED",
            Kind::Mention => "MENTION",
            Kind::TimeoutWarning => "TIMEOUT_WARNING",
            Kind::Escalation => "ESCALATION",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Kind> {
        KINDS.into_iter().find(|kind| kind.name() == name)
    }

    /// The name of its CloudEvents type without the operator's prefix.
    pub fn suffix(self) -> String {
        format!("notification.{}", self.name().to_ascii_lowercase())
    }
}

/// The audit types that cause notifications. If nobody subscribes to events, no other entries need to be read.
pub const EVENT_TYPES: [&str; 12] = [
    "TASK_CREATED",
    "TASK_REROUTED",
    "TASK_REASSIGNED",
    "TASK_DELEGATED",
    "TASK_RESOLVED",
    "TASK_REMINDED",
    "TASK_ESCALATED",
    "FLOW_COMPLETED",
    "FLOW_CANCELLED",
    "FLOW_SUSPENDED",
    "FLOW_RESUMED",
    "FLOW_COMMENTED",
];

/// Who is notified. A group gets one notification, for everybody who is a member when they read it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recipient {
    User(String),
    Group(String),
}

impl Recipient {
    pub fn kind(&self) -> &'static str {
        match self {
            Recipient::User(_) => "user",
            Recipient::Group(_) => "group",
        }
    }

    pub fn id(&self) -> &str {
        match self {
            Recipient::User(id) | Recipient::Group(id) => id,
        }
    }

    /// Reads `{"type": "user", "id": "ada"}` or a person's id alone. None for an empty id or an unknown type.
    fn of(value: &Value) -> Option<Recipient> {
        let id = value.as_str().or_else(|| value["id"].as_str())?.to_owned();
        if id.is_empty() {
            return None;
        }
        match value["type"].as_str().unwrap_or("user") {
            "user" | "member" => Some(Recipient::User(id)),
            "group" => Some(Recipient::Group(id)),
            _ => None,
        }
    }
}

/// The notification of one recipient about one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub id: Uuid,
    pub kind: Kind,
    pub recipient: Recipient,
    pub instance: InstanceId,
    pub state: Option<Uuid>,
    pub task: Option<Uuid>,
    /// The event that it is about.
    pub event: Uuid,
    pub due_at: Option<Timestamp>,
    /// When the event happened.
    pub at: Timestamp,
}

/// The notifications of an entry, one per recipient. Fails only on a damaged entry, whose payload is not JSON.
pub fn of(entry: &PublicEntry, requesters: &[String]) -> Result<Vec<Notification>, JsonError> {
    let payload = Json::stored(&entry.payload)?.value();
    let Some((kind, mut recipients)) = recipients(&entry.kind, &payload, requesters) else {
        return Ok(Vec::new());
    };
    if let (Kind::StatusChanged | Kind::Mention, Some(actor)) = (kind, &entry.actor) {
        // The actor knows of the event already.
        recipients.remove(&Recipient::User(actor.clone()));
    }
    let task = &payload["task"];
    let due_at = [&payload["dueAt"], &task["dueAt"]];
    let due_at = due_at.into_iter().find_map(Value::as_str);
    let notify = |recipient: Recipient| Notification {
        id: id(entry.id, kind, &recipient),
        kind,
        recipient,
        instance: entry.instance,
        state: uuid(&payload["state"]),
        task: uuid(task).or_else(|| uuid(&task["id"])),
        event: entry.id,
        due_at: due_at.and_then(|text| text.parse().ok()),
        at: entry.occurred_at,
    };
    Ok(recipients.into_iter().map(notify).collect())
}

fn uuid(value: &Value) -> Option<Uuid> {
    value.as_str()?.parse().ok()
}

/// The kind of the notification of an event, and who gets it. None if nobody is notified.
fn recipients(
    kind: &str,
    payload: &Value,
    requesters: &[String],
) -> Option<(Kind, BTreeSet<Recipient>)> {
    let all = |values: &Value| -> BTreeSet<Recipient> {
        let values = values
            .as_array()
            .map_or(std::slice::from_ref(values), Vec::as_slice);
        values.iter().filter_map(Recipient::of).collect()
    };
    let (kind, recipients) = match kind {
        "TASK_CREATED" => match &payload["task"]["owner"] {
            Value::Null => (Kind::AssignmentCreated, all(&payload["task"]["candidates"])),
            owner => (Kind::AssignmentCreated, all(owner)),
        },
        // An escalation has notified them before.
        "TASK_REROUTED" if payload["step"] == "manager" || payload["step"] == "fallback" => {
            return None;
        }
        "TASK_REROUTED" => (Kind::AssignmentCreated, all(&payload["candidates"])),
        "TASK_REASSIGNED" | "TASK_DELEGATED" | "TASK_RESOLVED" => {
            (Kind::AssignmentCreated, all(&payload["to"]))
        }
        "TASK_REMINDED" => (Kind::TimeoutWarning, all(&payload["recipients"])),
        "TASK_ESCALATED" => {
            let (from, to) = (all(&payload["from"]), all(&payload["to"]));
            // People who keep the work are not notified that others get it, too.
            let notified = if to.is_empty() {
                from
            } else {
                to.difference(&from).cloned().collect()
            };
            (Kind::Escalation, notified)
        }
        "FLOW_COMPLETED" | "FLOW_CANCELLED" | "FLOW_SUSPENDED" | "FLOW_RESUMED" => {
            let requesters = requesters.iter().cloned().map(Recipient::User);
            (Kind::StatusChanged, requesters.collect())
        }
        "FLOW_COMMENTED" => (Kind::Mention, all(&payload["mentions"])),
        _ => return None,
    };
    Some((kind, recipients))
}

/// The id for an event and recipient. It begins with the event's time, as all ids of the host do.
fn id(event: Uuid, kind: Kind, recipient: &Recipient) -> Uuid {
    const TIME_BYTES: usize = 6;
    let mut hasher = Sha256::new();
    hasher.update(event.as_bytes());
    for part in [kind.name(), recipient.kind(), recipient.id()] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let digest: [u8; 32] = hasher.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[..TIME_BYTES].copy_from_slice(&event.as_bytes()[..TIME_BYTES]);
    // Version 8: a custom format (RFC 9562).
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Uuid::from_bytes(bytes)
}

/// The JSON Schema of a notification's data in webhooks, by its type name without the operator's prefix.
pub fn schema(suffix: &str) -> Option<Value> {
    let kind = KINDS.into_iter().find(|kind| kind.suffix() == suffix)?;
    let id = |about: &str| json!({"type": "string", "format": "uuid", "description": about});
    let own = json!({
        "notificationId": id("The notification."),
        "kind": {"const": kind.name(), "description": "Why somebody is notified."},
        "recipient": {
            "type": "object",
            "required": ["type", "id"],
            "properties": {"type": {"enum": ["user", "group"]}, "id": {"type": "string"}},
            "description": "Who is notified.",
        },
        "eventId": id("The event that it is about."),
        "dueAt": {"type": "string", "format": "date-time", "description": "When the work is due."},
    });
    let required = ["notificationId", "kind", "recipient", "eventId"];
    let about = "A person or group is notified of an event.";
    Some(with_context(suffix, about, own, &required))
}

#[cfg(test)]
mod tests;
