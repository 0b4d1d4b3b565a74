//! The public face of an audit entry: a CloudEvents 1.0 event.
//!
//! Kafka and the HTTP feed tell the same story because both render what is built here: attributes and data from
//! one entry, in structured mode (one JSON document) or in binary mode (attributes as headers, data as value).
//! The data repeats what consumers would otherwise have to look up: definition, entity, revision, actor.
//! Nothing here knows how the bytes travel.

use std::fmt::Write;

use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::checkpoint::{self, Checkpoint};
use super::event::{CUSTOM, public_view, type_suffix};
use super::ids::{InstanceId, VersionRef};
use super::instance::Entity;
use super::json::{Json, JsonError, Node};
use super::notification::Notification;

/// A public audit entry, joined with the instance and the tenant that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicEntry {
    /// The tenant's public name.
    pub tenant: String,
    pub instance: InstanceId,
    /// Of the entry, and so of the event: what consumers recognise duplicates by.
    pub id: Uuid,
    /// The audit type, such as `TASK_CLAIMED`.
    pub kind: String,
    /// The stored JSON text.
    pub payload: String,
    /// Counts the instance's public events from 1, without gaps.
    pub event_seq: u64,
    pub occurred_at: Timestamp,
    /// None for what the host did by itself.
    pub actor: Option<String>,
    pub definition: VersionRef,
    pub entity: Entity,
    pub traceparent: Option<String>,
    pub revision: u32,
}

/// What an outbox row points at.
#[derive(Debug, Clone, PartialEq)]
pub enum Public {
    Entry(PublicEntry),
    Checkpoint(Checkpoint),
}

impl Public {
    /// When it came to be.
    pub fn at(&self) -> Timestamp {
        match self {
            Public::Entry(entry) => entry.occurred_at,
            Public::Checkpoint(checkpoint) => checkpoint.signed_at,
        }
    }
}

/// What operators choose about names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    /// Before every event type.
    pub prefix: String,
    /// Where `/schemas/...` is served, without a slash at the end.
    pub base: String,
}

impl Default for Naming {
    fn default() -> Naming {
        Naming {
            prefix: "dev.wrkflw".into(),
            base: "http://localhost:8080".into(),
        }
    }
}

impl Naming {
    /// The CloudEvents type below the operator's prefix.
    pub fn event_type(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.prefix)
    }

    /// Where the JSON Schema of a type is found.
    pub fn schema_url(&self, event_type: &str) -> String {
        format!("{}/schemas/{event_type}.json", self.base)
    }
}

/// One event, ready to be rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudEvent {
    /// Also the key that keeps the events of one instance in order.
    pub instance: InstanceId,
    pub data: Json,
    /// All but `datacontenttype`, which binary mode spells differently.
    attributes: Vec<(&'static str, String)>,
}

/// The media type of every event's data.
pub const DATA_CONTENT_TYPE: &str = "application/json";
/// The media type of a structured event.
pub const STRUCTURED_CONTENT_TYPE: &str = "application/cloudevents+json; charset=UTF-8";

impl CloudEvent {
    /// Fails only on an entry whose payload is no JSON, that is, on a damaged one.
    pub fn of(entry: &PublicEntry, naming: &Naming) -> Result<CloudEvent, JsonError> {
        let payload = Node::parse(&entry.payload)?;
        let event_type = naming.event_type(&suffix(&entry.kind, &payload));
        let mut attributes = attributes(entry, entry.id, &event_type, naming);
        attributes.push(("sequence", format!("{:020}", entry.event_seq)));
        attributes.extend(origin(entry));
        Ok(CloudEvent {
            instance: entry.instance,
            data: data(entry, public_view(&entry.kind, payload)),
            attributes,
        })
    }

    /// The event of what an outbox row points at. Fails only on a damaged entry.
    pub fn public(public: &Public, naming: &Naming) -> Result<CloudEvent, JsonError> {
        match public {
            Public::Entry(entry) => CloudEvent::of(entry, naming),
            Public::Checkpoint(checkpoint) => Ok(CloudEvent::signed(checkpoint, naming)),
        }
    }

    /// A tenant's checkpoint. It is of no instance, so its key is the nil UUID; the sequence counts checkpoints.
    fn signed(checkpoint: &Checkpoint, naming: &Naming) -> CloudEvent {
        let instance = InstanceId(Uuid::nil());
        let event_type = naming.event_type(checkpoint::EVENT);
        let attributes = vec![
            ("specversion", "1.0".to_owned()),
            ("id", checkpoint.event_id().to_string()),
            (
                "source",
                format!("{}/audit", tenant_path(&checkpoint.tenant)),
            ),
            ("type", event_type.clone()),
            ("subject", checkpoint.tenant.clone()),
            ("time", checkpoint.signed_at.to_string()),
            ("dataschema", naming.schema_url(&event_type)),
            ("partitionkey", instance.to_string()),
            ("sequence", format!("{:020}", checkpoint.number)),
            ("authtype", "system".to_owned()),
        ];
        CloudEvent {
            instance,
            data: Json::of(checkpoint),
            attributes,
        }
    }

    /// One recipient's notification of an entry. It has no sequence: the instance counts the entry itself.
    pub fn telling(
        notification: &Notification,
        entry: &PublicEntry,
        naming: &Naming,
    ) -> CloudEvent {
        let event_type = naming.event_type(&notification.kind.suffix());
        let recipient = &notification.recipient;
        let about = json!({
            "notification": notification.id,
            "kind": notification.kind.name(),
            "recipient": {"type": recipient.kind(), "id": recipient.id()},
            "event": notification.event,
            "state": notification.state,
            "task": notification.task,
            "dueAt": notification.due_at,
        });
        let mut attributes = attributes(entry, notification.id, &event_type, naming);
        attributes.extend(origin(entry));
        // Merged into nothing, so that members without a value are left out.
        let about = Node::Null.merge(Json::of(&about).node());
        CloudEvent {
            instance: entry.instance,
            data: data(entry, about),
            attributes,
        }
    }

    /// The value of a context attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(held, _)| *held == name)
            .map(|(_, value)| value.as_str())
    }

    /// The headers of the Kafka binding's binary mode; the value of the record is the data.
    pub fn binary_headers(&self) -> impl Iterator<Item = (String, &str)> {
        std::iter::once(("content-type".to_owned(), DATA_CONTENT_TYPE)).chain(
            self.attributes
                .iter()
                .map(|(name, value)| (format!("ce_{name}"), value.as_str())),
        )
    }

    /// The whole event as one JSON document.
    pub fn structured(&self) -> Json {
        let texts = self.attributes.iter().map(|(name, value)| {
            let value = Node::String(value.clone());
            (*name, Json::from(&value))
        });
        let content_type = Json::from(&Node::String(DATA_CONTENT_TYPE.into()));
        Json::object(texts.chain([
            ("datacontenttype", content_type),
            ("data", self.data.clone()),
        ]))
    }
}

/// The name of an entry's type below the operator's prefix. Fails only on a damaged entry.
pub fn suffix_of(entry: &PublicEntry) -> Result<String, JsonError> {
    // Only flows name events of their own; of all others the payload says nothing more.
    let payload = match entry.kind.as_str() {
        CUSTOM => Node::parse(&entry.payload)?,
        _ => Node::Null,
    };
    Ok(suffix(&entry.kind, &payload))
}

fn suffix(kind: &str, payload: &Node) -> String {
    let custom_name = match payload {
        Node::Object(members) if kind == CUSTOM => match members.get("name") {
            Some(Node::String(name)) => Some(name.as_str()),
            _ => None,
        },
        _ => None,
    };
    type_suffix(kind, custom_name)
}

/// `sequence` counts within it, so it names the instance.
fn source(tenant: &str, instance: InstanceId) -> String {
    format!("{}/instances/{instance}", tenant_path(tenant))
}

/// A tenant's name as the first part of a path.
fn tenant_path(tenant: &str) -> String {
    let mut source = String::from("/");
    for byte in tenant.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            source.push(char::from(byte));
        } else {
            write!(source, "%{byte:02X}").expect("writing to a string");
        }
    }
    source
}

/// The attributes that say what happened to which instance.
fn attributes(
    entry: &PublicEntry,
    id: Uuid,
    event_type: &str,
    naming: &Naming,
) -> Vec<(&'static str, String)> {
    vec![
        ("specversion", "1.0".to_owned()),
        ("id", id.to_string()),
        ("source", source(&entry.tenant, entry.instance)),
        ("type", event_type.to_owned()),
        ("subject", entry.instance.to_string()),
        ("time", entry.occurred_at.to_string()),
        ("dataschema", naming.schema_url(event_type)),
        ("partitionkey", entry.instance.to_string()),
    ]
}

/// The attributes that say by whom, and in which request.
fn origin(entry: &PublicEntry) -> Vec<(&'static str, String)> {
    let mut attributes = match &entry.actor {
        Some(actor) => vec![("authtype", "user".to_owned()), ("authid", actor.clone())],
        None => vec![("authtype", "system".to_owned())],
    };
    if let Some(traceparent) = &entry.traceparent {
        attributes.push(("traceparent", traceparent.clone()));
    }
    attributes
}

/// What an event says of itself, with what consumers would otherwise have to look up.
fn data(entry: &PublicEntry, own: Node) -> Json {
    let (definition, entity) = (&entry.definition, &entry.entity);
    let mut context = vec![
        ("instance", text(entry.instance.to_string())),
        ("revision", number(entry.revision)),
        (
            "definition",
            object([
                ("key", text(definition.key.clone())),
                ("version", number(definition.version)),
            ]),
        ),
        (
            "entity",
            object([
                ("type", text(entity.kind.clone())),
                ("id", text(entity.id.clone())),
            ]),
        ),
    ];
    if let Some(actor) = &entry.actor {
        context.push(("actor", text(actor.clone())));
    }
    Json::from(&own.merge(object(context)))
}

fn text(text: String) -> Node {
    Node::String(text)
}

fn number(number: u32) -> Node {
    Node::Number(number.to_string())
}

fn object(members: impl IntoIterator<Item = (&'static str, Node)>) -> Node {
    let named = |(name, value): (&str, _)| (name.to_owned(), value);
    Node::Object(members.into_iter().map(named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: &str, payload: &str) -> PublicEntry {
        PublicEntry {
            tenant: "acme & co".into(),
            instance: InstanceId(Uuid::from_u128(1)),
            id: Uuid::from_u128(2),
            kind: kind.into(),
            payload: payload.into(),
            event_seq: 7,
            occurred_at: "2026-01-02T03:04:05.000678Z".parse().expect("a timestamp"),
            actor: Some("ada".into()),
            definition: VersionRef {
                key: "approval".into(),
                version: 3,
            },
            entity: Entity {
                kind: "invoice".into(),
                id: "i-1".into(),
            },
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            revision: 4,
        }
    }

    fn event(entry: &PublicEntry) -> CloudEvent {
        CloudEvent::of(entry, &Naming::default()).expect("a sound payload")
    }

    #[test]
    fn structured_mode_is_one_document_with_all_attributes() {
        let claimed = entry(
            "TASK_CLAIMED",
            r#"{"type":"TASK_CLAIMED","task":"t","state":"s","owner":"ada"}"#,
        );
        let expected = json!({
            "specversion": "1.0",
            "id": "00000000-0000-0000-0000-000000000002",
            "source": "/acme%20%26%20co/instances/00000000-0000-0000-0000-000000000001",
            "type": "dev.wrkflw.task.claimed",
            "subject": "00000000-0000-0000-0000-000000000001",
            "time": "2026-01-02T03:04:05.000678Z",
            "datacontenttype": "application/json",
            "dataschema": "http://localhost:8080/schemas/dev.wrkflw.task.claimed.json",
            "partitionkey": "00000000-0000-0000-0000-000000000001",
            "sequence": "00000000000000000007",
            "authtype": "user",
            "authid": "ada",
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "data": {
                "task": "t", "state": "s", "owner": "ada", "actor": "ada", "revision": 4,
                "instance": "00000000-0000-0000-0000-000000000001",
                "definition": {"key": "approval", "version": 3},
                "entity": {"type": "invoice", "id": "i-1"},
            },
        });
        assert_eq!(event(&claimed).structured().value(), expected);
    }

    #[test]
    fn binary_mode_has_a_header_for_each_attribute_and_none_for_the_content_type() {
        let mut completed = entry(
            "FLOW_COMPLETED",
            r#"{"type":"FLOW_COMPLETED","outcome":"APPROVED"}"#,
        );
        completed.actor = None;
        completed.traceparent = None;
        let event = event(&completed);
        let headers: Vec<(String, &str)> = event.binary_headers().collect();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "content-type",
                "ce_specversion",
                "ce_id",
                "ce_source",
                "ce_type",
                "ce_subject",
                "ce_time",
                "ce_dataschema",
                "ce_partitionkey",
                "ce_sequence",
                "ce_authtype",
            ]
        );
        assert_eq!(headers[0].1, "application/json");
        assert_eq!(event.attribute("authtype"), Some("system"));
    }

    #[test]
    fn a_flows_own_event_is_named_by_it_and_keeps_its_data_to_the_letter() {
        let custom = entry(
            CUSTOM,
            r#"{"type":"CUSTOM","name":"stamped","data":{"sum":1e2}}"#,
        );
        let event = event(&custom);
        assert_eq!(event.attribute("type"), Some("dev.wrkflw.custom.stamped"));
        assert!(
            event.data.as_str().contains(r#""data":{"sum":1e2}"#),
            "{}",
            event.data
        );
    }

    #[test]
    fn what_is_confidential_stays_behind() {
        let decided = entry(
            "DECISION_RECORDED",
            r#"{"type":"DECISION_RECORDED","task":"t","input":{"salary":1},"outcome":"APPROVE"}"#,
        );
        assert!(!event(&decided).structured().as_str().contains("salary"));
        let started = entry(
            "FLOW_STARTED",
            r#"{"type":"FLOW_STARTED","data":{"salary":1}}"#,
        );
        assert!(!event(&started).structured().as_str().contains("salary"));
    }

    #[test]
    fn a_notification_is_an_event_that_its_schema_describes() {
        let created = entry(
            "TASK_CREATED",
            r#"{"state":"00000000-0000-0000-0000-000000000007","task":{"candidates":[{"id":"ben","type":"user"}]}}"#,
        );
        let told = crate::domain::notification::of(&created, &[]).expect("a sound payload");
        let event = CloudEvent::telling(&told[0], &created, &Naming::default());
        let structured = event.structured().value();
        assert_eq!(structured["type"], "dev.wrkflw.notification.assigned");
        assert_eq!(structured["id"], told[0].id.to_string());
        assert_eq!(event.attribute("sequence"), None);
        assert_eq!(structured["data"].get("task"), None);
        assert_eq!(
            structured["data"]["recipient"],
            json!({"type": "user", "id": "ben"})
        );
        let schema =
            crate::domain::notification::schema("notification.assigned").expect("a schema");
        assert!(
            jsonschema::is_valid(&schema, &structured["data"]),
            "{structured}"
        );
        assert_eq!(
            crate::domain::notification::schema("notification.other"),
            None
        );
    }

    #[test]
    fn a_damaged_payload_is_an_error_and_no_panic() {
        assert!(CloudEvent::of(&entry("TASK_CLAIMED", "{"), &Naming::default()).is_err());
    }
}
