//! An audit entry as a CloudEvents 1.0 event.
//!
//! Kafka, the HTTP feed and webhooks publish the events that are built here, in structured mode (one JSON document) or in
//! binary mode (attributes as headers, data as value). The data includes what consumers would otherwise have to look up:
//! definition, entity, revision, actor.

use std::borrow::Cow;
use std::fmt::Write;

use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::checkpoint::{self, Checkpoint};
use super::event::{CUSTOM, is_blind, public_view, type_suffix};
use super::ids::{InstanceId, VersionRef};
use super::instance::Entity;
use super::json::{Json, JsonError, Member, Node, members};
use super::notification::Notification;
use super::template::Labels;

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
}

/// What an outbox row refers to.
#[derive(Debug, Clone, PartialEq)]
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

    /// The URL of the JSON Schema of a type.
    pub fn schema_url(&self, event_type: &str) -> String {
        format!("{}/schemas/{event_type}.json", self.base)
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
        Ok(CloudEvent {
            instance: entry.instance,
            data: data(entry, &public_view(&entry.kind, &entry.payload)?)?,
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

    /// The event of a tenant's checkpoint. It belongs to no instance, so its key is the nil UUID; the sequence counts
    /// checkpoints.
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

    /// The event of one recipient's notification, with the title and the summary that the instance has now. It has no sequence,
    /// since the instance counts only entries.
    pub fn notification(
        notification: &Notification,
        entry: &PublicEntry,
        labels: &Labels,
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
            "instanceTitle": labels.title,
            "instanceSummary": labels.summary,
        });
        let mut attributes = attributes(entry, notification.id, &event_type, naming);
        attributes.extend(origin(entry));
        let about = Json::of(&about);
        let mut own = members(about.as_str()).expect("canonical text parses");
        own.retain(|(_, value)| value != "null");
        CloudEvent {
            instance: entry.instance,
            data: data(entry, &own).expect("canonical text parses"),
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
    // Only the name of an event that a flow publishes is in the payload.
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

/// An event's own members merged with those of [`context`]. Fails only on a damaged entry.
fn data(entry: &PublicEntry, own: &[Member<'_>]) -> Result<Json, JsonError> {
    let context = context(entry);
    let mut all: Vec<(&str, Cow<'_, str>)> = Vec::with_capacity(own.len() + context.len());
    let mut own = own.iter().peekable();
    for (name, value) in &context {
        while let Some((before, kept)) = own.next_if(|(held, _)| &**held < *name) {
            all.push((before, Cow::Borrowed(kept)));
        }
        let value = match own.next_if(|(held, _)| held == name) {
            None => Cow::Borrowed(value.as_str()),
            // A member in both is merged if both values are objects.
            Some((_, held)) => {
                let merged = Node::parse(held)?.merge(Node::parse(value)?);
                Cow::Owned(merged.to_string())
            }
        };
        all.push((*name, value));
    }
    all.extend(own.map(|(name, value)| (&**name, Cow::Borrowed(&**value))));
    let all = all.iter().map(|(name, value)| (*name, &**value));
    Ok(Json::of_members(all))
}

/// The members that consumers would otherwise have to look up, as canonical text, sorted by name.
fn context(entry: &PublicEntry) -> Vec<(&'static str, String)> {
    let (definition, entity) = (&entry.definition, &entry.entity);
    let key = Json::string(&definition.key);
    let (kind, id) = (Json::string(&entity.kind), Json::string(&entity.id));
    let mut context = Vec::with_capacity(5);
    let is_hidden = is_blind(&entry.kind, &entry.payload);
    if let Some(actor) = entry.actor.as_ref().filter(|_| !is_hidden) {
        context.push(("actor", Json::string(actor)));
    }
    context.extend([
        (
            "definition",
            format!(r#"{{"key":{key},"version":{}}}"#, definition.version),
        ),
        ("entity", format!(r#"{{"id":{id},"type":{kind}}}"#)),
        ("instance", format!("\"{}\"", entry.instance)),
        ("revision", entry.revision.to_string()),
    ]);
    context
}

#[cfg(test)]
mod tests;
