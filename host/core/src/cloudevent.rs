//! An audit entry as a CloudEvents 1.0 event.
//!
//! Kafka, the HTTP feed and webhooks publish the events that are built here, in structured mode (one JSON document) or in
//! binary mode (attributes as headers, data as value). The data includes what consumers would otherwise have to look up:
//! definition, entity, revision, actor, and the names and titles of the state and the task.

use std::borrow::Cow;
use std::fmt::Write;

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::checkpoint::{self, Checkpoint};
use super::event::{About, CUSTOM, EventContext, is_blind, published, type_suffix};
use super::event_schema::SCHEMA_VERSION;
use super::ids::{InstanceId, VersionRef};
use super::instance::Entity;
use super::json::{Json, JsonError, Member, Node, members};
use super::notification::Notification;

/// A public audit entry, joined with the instance and the tenant that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicEntry {
    /// The tenant's public name.
    pub tenant: String,
    pub instance: InstanceId,
    /// The id of the entry and of the event. Consumers recognise duplicates by it.
    pub id: Uuid,
    /// The audit type, such as `TASK_CLAIMED`.
    pub kind: String,
    /// The stored JSON text.
    pub payload: String,
    /// Counts the instance's public events from 1, without gaps.
    pub event_seq: u64,
    pub occurred_at: Timestamp,
    /// None for the host itself.
    pub actor: Option<String>,
    pub definition: VersionRef,
    pub entity: Entity,
    pub traceparent: Option<String>,
    pub revision: u32,
    /// The content of the event that the entry does not have.
    pub context: EventContext,
}

/// The entry or checkpoint that an outbox row refers to.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all rows refer to entries"
)]
pub enum Public {
    Entry(PublicEntry),
    Checkpoint(Checkpoint),
}

impl Public {
    /// When it happened.
    pub fn at(&self) -> Timestamp {
        match self {
            Public::Entry(entry) => entry.occurred_at,
            Public::Checkpoint(checkpoint) => checkpoint.signed_at,
        }
    }
}

/// The operator's settings for names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    /// The prefix of every event type.
    pub prefix: String,
    /// The base URL of `/schemas/...`, without a slash at the end.
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
    /// The CloudEvents type: the operator's prefix and this name.
    pub fn event_type(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.prefix)
    }

    /// The URL of the JSON Schema of a type, with the version of the schema.
    pub fn schema_url(&self, event_type: &str) -> String {
        format!("{}/schemas/v{SCHEMA_VERSION}/{event_type}.json", self.base)
    }
}

/// One event. [`CloudEvent::structured`] and [`CloudEvent::binary_headers`] render it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudEvent {
    /// Also the Kafka key, so that the events of one instance keep their order.
    pub instance: InstanceId,
    pub data: Json,
    /// All but `datacontenttype`, which binary mode spells differently.
    attributes: Vec<(&'static str, String)>,
}

/// The name of a test's type below the operator's prefix.
pub const TEST: &str = "webhook.test";

/// The JSON Schema (2020-12) of a test's data.
pub fn test_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": TEST,
        "description": "Somebody tries the receiver of a webhook. Nothing happened.",
        "type": "object",
        "required": ["subscriptionId"],
        "properties": {"subscriptionId": {"type": "string", "format": "uuid", "description": "The subscription."}},
    })
}

/// The media type of every event's data.
pub const DATA_CONTENT_TYPE: &str = "application/json";
/// The media type of a structured event.
pub const STRUCTURED_CONTENT_TYPE: &str = "application/cloudevents+json; charset=UTF-8";

impl CloudEvent {
    /// Fails only on a damaged entry, whose payload is not JSON.
    pub fn of(entry: &PublicEntry, naming: &Naming) -> Result<CloudEvent, JsonError> {
        let event_type = naming.event_type(&suffix_of(entry)?);
        let mut attributes = attributes(entry, entry.id, &event_type, naming);
        attributes.push(("sequence", format!("{:020}", entry.event_seq)));
        attributes.extend(origin(entry));
        let (own, about) = published(&entry.kind, &entry.payload, &entry.context)?;
        Ok(CloudEvent {
            instance: entry.instance,
            data: data(entry, &about, own),
            attributes,
        })
    }

    /// The event of an entry or checkpoint. Fails only on a damaged entry.
    pub fn public(public: &Public, naming: &Naming) -> Result<CloudEvent, JsonError> {
        match public {
            Public::Entry(entry) => CloudEvent::of(entry, naming),
            Public::Checkpoint(checkpoint) => Ok(CloudEvent::signed(checkpoint, naming)),
        }
    }

    /// The event of a tenant's checkpoint. It belongs to no instance, so its key is the nil UUID. Its sequence counts checkpoints.
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

    /// The event of one recipient's notification. It has no sequence, because the instance counts only entries. Fails only on
    /// a damaged entry.
    pub fn notification(
        notification: &Notification,
        entry: &PublicEntry,
        naming: &Naming,
    ) -> Result<CloudEvent, JsonError> {
        let event_type = naming.event_type(&notification.kind.suffix());
        let recipient = &notification.recipient;
        let about = json!({
            "notificationId": notification.id,
            "kind": notification.kind.name(),
            "recipient": {"type": recipient.kind(), "id": recipient.id()},
            "eventId": notification.event,
            "dueAt": notification.due_at,
        });
        let mut attributes = attributes(entry, notification.id, &event_type, naming);
        attributes.extend(origin(entry));
        let about = Json::of(&about);
        let mut own = members(about.as_str())?;
        own.retain(|(_, value)| value != "null");
        let (_, about) = published(&entry.kind, &entry.payload, &entry.context)?;
        Ok(CloudEvent {
            instance: entry.instance,
            data: data(entry, &about, own),
            attributes,
        })
    }

    /// A message by which somebody tries the receiver of a subscription. It belongs to no instance.
    pub fn test(
        tenant: &str,
        subscription: Uuid,
        id: Uuid,
        at: Timestamp,
        naming: &Naming,
    ) -> CloudEvent {
        let event_type = naming.event_type(TEST);
        let source = format!("{}/subscriptions/{subscription}", tenant_path(tenant));
        let attributes = vec![
            ("specversion", "1.0".to_owned()),
            ("id", id.to_string()),
            ("source", source),
            ("type", event_type.clone()),
            ("subject", subscription.to_string()),
            ("time", at.to_string()),
            ("dataschema", naming.schema_url(&event_type)),
        ];
        CloudEvent {
            instance: InstanceId(Uuid::nil()),
            data: Json::of(&json!({ "subscriptionId": subscription })),
            attributes,
        }
    }

    /// Whether it is a tenant's checkpoint, not an event of an instance.
    pub fn is_checkpoint(&self) -> bool {
        self.instance.0.is_nil()
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
        let texts = self.attributes.iter();
        let texts = texts.map(|(name, value)| (*name, Cow::Owned(Json::string(value))));
        let content_type = Json::string(DATA_CONTENT_TYPE);
        let rest = [
            ("datacontenttype", Cow::Owned(content_type)),
            ("data", Cow::Borrowed(self.data.as_str())),
        ];
        let mut members: Vec<(&str, Cow<'_, str>)> = texts.chain(rest).collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        Json::of_members(members.iter().map(|(name, value)| (*name, &**value)))
    }
}

/// The name of an entry's type without the operator's prefix. Fails only on a damaged entry.
pub fn suffix_of(entry: &PublicEntry) -> Result<String, JsonError> {
    // Only for an event that a flow publishes, the payload has the name.
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

/// The `source` attribute. It names the instance, since `sequence` is counted per source.
fn source(tenant: &str, instance: InstanceId) -> String {
    format!("{}/instances/{instance}", tenant_path(tenant))
}

/// A tenant's name, percent-encoded, as the first segment of a path.
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

/// The attributes that identify the event and its instance.
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

/// The attributes of the actor and the request.
fn origin(entry: &PublicEntry) -> Vec<(&'static str, String)> {
    let mut attributes = match &entry.actor {
        Some(_) if is_blind(&entry.kind, &entry.payload) => {
            vec![("authtype", "unknown".to_owned())]
        }
        Some(actor) => vec![("authtype", "user".to_owned()), ("authid", actor.clone())],
        None => vec![("authtype", "system".to_owned())],
    };
    if let Some(traceparent) = &entry.traceparent {
        attributes.push(("traceparent", traceparent.clone()));
    }
    attributes
}

/// An event's own members with those of [`context`]. An own member replaces one of the context.
fn data(entry: &PublicEntry, about: &About, mut own: Vec<Member<'_>>) -> Json {
    for (name, value) in context(entry, about) {
        if own.iter().all(|(held, _)| held != name) {
            own.push((Cow::Borrowed(name), Cow::Owned(value)));
        }
    }
    own.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Json::of_members(own.iter().map(|(name, value)| (&**name, &**value)))
}

/// The members that consumers would otherwise have to look up, as canonical text.
fn context(entry: &PublicEntry, about: &About) -> Vec<(&'static str, String)> {
    let (definition, entity, context) = (&entry.definition, &entry.entity, &entry.context);
    let is_hidden = is_blind(&entry.kind, &entry.payload);
    let state_name = about.state_name.as_deref();
    let state_title = state_name.and_then(|name| context.definition.state_title(name));
    let texts = [
        ("actor", entry.actor.as_deref().filter(|_| !is_hidden)),
        ("definitionKey", Some(definition.key.as_str())),
        ("definitionTitle", context.definition.title.as_deref()),
        ("entityId", Some(entity.id.as_str())),
        ("entityType", Some(entity.kind.as_str())),
        ("instanceSummary", context.labels.summary.as_deref()),
        ("instanceTitle", context.labels.title.as_deref()),
        ("stateName", state_name),
        ("stateTitle", state_title),
        ("taskTitle", about.task_title.as_deref()),
    ];
    let ids = [
        ("instanceId", Some(entry.instance.0)),
        ("stateId", about.state),
        ("taskId", about.task),
    ];
    let counts = [
        ("definitionVersion", definition.version),
        ("revision", entry.revision),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(name, text)| Some((name, Json::string(text?))));
    let ids = ids
        .into_iter()
        .filter_map(|(name, id)| Some((name, format!("\"{}\"", id?))));
    let counts = counts.map(|(name, count)| (name, count.to_string()));
    texts.chain(ids).chain(counts).collect()
}

#[cfg(test)]
mod tests;
