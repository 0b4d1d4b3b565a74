//! The AsyncAPI 3 document of the events, made from the same table as their schemas.
//!
//! It has a channel for each topic and one message per event type.

use serde_json::{Map, Value, json};

use wrkflw_core::checkpoint;
use wrkflw_core::cloudevent::{DATA_CONTENT_TYPE, Naming, TEST, test_schema};
use wrkflw_core::event_schema::{EventType, public_types};
use wrkflw_core::notification;

/// The JSON Schema of one type, by its name below the operator's prefix, such as `task.claimed`.
pub fn schema(type_suffix: &str) -> Option<Value> {
    let of_event = EventType::by_suffix(type_suffix).map(EventType::schema);
    let of_checkpoint = || (type_suffix == checkpoint::EVENT).then(checkpoint::schema);
    let of_test = || (type_suffix == TEST).then(test_schema);
    of_event
        .or_else(|| notification::schema(type_suffix))
        .or_else(of_checkpoint)
        .or_else(of_test)
}

/// The Kafka topics.
#[derive(Debug, Clone)]
pub struct Topics {
    pub events: String,
    pub checkpoints: String,
}

impl From<&str> for Topics {
    fn from(events: &str) -> Topics {
        Topics {
            events: events.to_owned(),
            checkpoints: checkpoint::topic_beside(events),
        }
    }
}

/// The names of all types below the operator's prefix, with their meanings, sorted by name.
pub fn types() -> Vec<(String, String)> {
    let of_events = public_types().map(|event| (event.suffix(), event.summary().to_owned()));
    let others = notification::KINDS
        .into_iter()
        .map(notification::Kind::suffix)
        .chain([checkpoint::EVENT, TEST].map(str::to_owned));
    let others = others.filter_map(|suffix| {
        let about = schema(&suffix)?["description"].as_str()?.to_owned();
        Some((suffix, about))
    });
    let mut all: Vec<_> = of_events.chain(others).collect();
    all.sort_unstable();
    all
}

/// The whole document.
pub fn document(naming: &Naming, topics: &Topics) -> Value {
    let mut channel_messages = Map::new();
    let mut messages = Map::new();
    for event_type in public_types() {
        let name = message_name(event_type);
        channel_messages.insert(
            name.clone(),
            json!({"$ref": format!("#/components/messages/{name}")}),
        );
        messages.insert(name, message(event_type, naming));
    }
    messages.insert(checkpoint::EVENT.to_owned(), of_checkpoints(naming));
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "wrkflw events",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "CloudEvents 1.0 about workflow instances, delivered at least once, in order per instance. Events \
                with the same id are duplicates. The sequence counts an instance's events; only an event that an operator \
                discarded leaves a gap. Members are only ever added.",
        },
        "defaultContentType": DATA_CONTENT_TYPE,
        "channels": {
            "events": {
                "address": topics.events,
                "description": "Every public event; the key of a record is its instance's id.",
                "messages": channel_messages,
                "bindings": {"kafka": {"topic": topics.events}},
            },
            "checkpoints": {
                "address": topics.checkpoints,
                "description": "The signed checkpoints of the audit of all tenants, all with the same key.",
                "messages": {(checkpoint::EVENT): {"$ref": format!("#/components/messages/{}", checkpoint::EVENT)}},
                "bindings": {"kafka": {"topic": topics.checkpoints}},
            },
        },
        "operations": {
            "publishEvents": {"action": "send", "channel": {"$ref": "#/channels/events"}},
            "publishCheckpoints": {"action": "send", "channel": {"$ref": "#/channels/checkpoints"}},
        },
        "components": {
            "messages": messages,
            "messageTraits": {"cloudEvent": {"headers": headers()}},
        },
    })
}

/// Reference tokens must not have braces, so a flow's own events share the name `custom`.
fn message_name(event_type: &EventType) -> String {
    event_type.suffix().trim_end_matches(".{name}").to_owned()
}

fn message(event_type: &EventType, naming: &Naming) -> Value {
    described(
        &event_type.suffix(),
        event_type.summary(),
        event_type.schema(),
        naming,
    )
}

fn of_checkpoints(naming: &Naming) -> Value {
    let summary = "A tenant's audit has a new signed root. The key is the nil UUID, the source is `/{tenant}/audit`.";
    described(checkpoint::EVENT, summary, checkpoint::schema(), naming)
}

fn described(suffix: &str, summary: &str, schema: Value, naming: &Naming) -> Value {
    json!({
        "name": naming.event_type(suffix),
        "summary": summary,
        "contentType": DATA_CONTENT_TYPE,
        "traits": [{"$ref": "#/components/messageTraits/cloudEvent"}],
        "payload": {
            "schemaFormat": "application/schema+json;version=2020-12",
            "schema": schema,
        },
        "bindings": {"kafka": {"key": {"type": "string", "format": "uuid"}}},
    })
}

/// The headers of the Kafka binding's binary mode.
fn headers() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    json!({
        "type": "object",
        "required": [
            "content-type", "ce_specversion", "ce_id", "ce_source", "ce_type", "ce_subject", "ce_time", "ce_dataschema",
            "ce_partitionkey", "ce_sequence", "ce_authtype",
        ],
        "properties": {
            "content-type": {"const": DATA_CONTENT_TYPE},
            "ce_specversion": {"const": "1.0"},
            "ce_id": text("The event's id. Events with the same id are duplicates."),
            "ce_source": text("`/{tenant}/instances/{id}`, the scope of the sequence."),
            "ce_type": text("The operator's prefix and the message's name."),
            "ce_subject": text("The instance's id."),
            "ce_time": {"type": "string", "format": "date-time", "description": "When it happened."},
            "ce_dataschema": {"type": "string", "format": "uri", "description": "URL of the data's schema."},
            "ce_partitionkey": text("The instance's id, also the record's key."),
            "ce_sequence": {"type": "string", "pattern": "^[0-9]{20}$", "description": "Counts from 1. Only a discarded event leaves a gap."},
            "ce_traceparent": text("The W3C trace context of the request that caused it."),
            "ce_authtype": {"enum": ["user", "system", "unknown"], "description": "Whether a person or the host itself acted; `unknown` where a blind decision is hidden."},
            "ce_authid": text("Who acted."),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Value {
        let naming = Naming {
            prefix: "org.example".into(),
            base: "https://flows.example.org".into(),
        };
        document(&naming, &"flows".into())
    }

    #[test]
    fn every_type_is_a_message_of_the_channel() {
        let document = example();
        assert_eq!(document["channels"]["events"]["address"], "flows");
        assert_eq!(
            document["channels"]["checkpoints"]["address"],
            "flows.checkpoints"
        );
        let messages = document["components"]["messages"]
            .as_object()
            .expect("messages");
        assert_eq!(messages.len(), public_types().count() + 1);
        assert_eq!(
            messages["audit.checkpoint"]["name"],
            "org.example.audit.checkpoint"
        );
        assert_eq!(messages["task.claimed"]["name"], "org.example.task.claimed");
        assert_eq!(messages["custom"]["name"], "org.example.custom.{name}");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = example();
        let mut open = vec![&document];
        let mut references = 0;
        while let Some(value) = open.pop() {
            if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
                let pointer = reference
                    .strip_prefix('#')
                    .expect("a reference within the document");
                assert!(document.pointer(pointer).is_some(), "{reference}");
                references += 1;
            }
            open.extend(value.as_array().into_iter().flatten());
            open.extend(
                value
                    .as_object()
                    .into_iter()
                    .flat_map(|members| members.values()),
            );
        }
        assert_eq!(references, 2 + 2 * (public_types().count() + 1));
    }

    #[test]
    fn the_headers_are_those_that_events_carry() {
        use wrkflw_core::cloudevent::{CloudEvent, PublicEntry};
        let entry = PublicEntry {
            tenant: "acme".into(),
            instance: wrkflw_core::ids::InstanceId(uuid::Uuid::from_u128(1)),
            id: uuid::Uuid::from_u128(2),
            kind: "FLOW_COMPLETED".into(),
            payload: r#"{"outcome":"APPROVED","type":"FLOW_COMPLETED"}"#.into(),
            event_seq: 1,
            occurred_at: jiff::Timestamp::UNIX_EPOCH,
            actor: Some("ada".into()),
            definition: wrkflw_core::ids::VersionRef {
                key: "approval".into(),
                version: 1,
            },
            entity: wrkflw_core::instance::Entity {
                kind: "invoice".into(),
                id: "i".into(),
            },
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            revision: 1,
            context: wrkflw_core::event::EventContext::default(),
        };
        let event = CloudEvent::of(&entry, &Naming::default()).expect("a sound entry");
        let headers: Map<String, Value> = event
            .binary_headers()
            .map(|(name, value)| (name, Value::from(value)))
            .collect();
        let schema = super::headers();
        let mut names: Vec<&String> = headers.keys().collect();
        let mut documented: Vec<&String> = schema["properties"]
            .as_object()
            .expect("properties")
            .keys()
            .collect();
        names.sort();
        documented.sort();
        assert_eq!(names, documented);
        assert!(jsonschema::is_valid(&schema, &Value::Object(headers)));
    }
}
