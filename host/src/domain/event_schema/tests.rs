//! Every event against the schema of its type: nothing undocumented, nothing promised in vain.

use jiff::Timestamp;
use uuid::Uuid;

use super::*;
use crate::domain::answer::{Attribute, AttributeValue, Principal};
use crate::domain::cloudevent::{CloudEvent, Naming, PublicEntry};
use crate::domain::event::{Effects, Event};
use crate::domain::ids::{InstanceId, StateId, TaskId, VersionRef};
use crate::domain::instance::{Entity, StateInstance, Task, TaskStatus};
use crate::domain::json::Json;

const STATE: StateId = StateId(Uuid::from_u128(3));
const TASK_ID: TaskId = TaskId(Uuid::from_u128(4));

/// One event of each variant. A new variant does not compile until it says which comes after it.
fn next(event: Option<&Event>) -> Option<Event> {
    let Some(event) = event else {
        return Some(started());
    };
    let (task, state) = (TASK_ID, STATE);
    Some(match event {
        Event::FlowStarted { .. } => Event::StateEntered { state: stay() },
        Event::StateEntered { .. } => Event::TaskCreated {
            state,
            state_name: "Review".into(),
            task: open_task(),
        },
        Event::TaskCreated { .. } => Event::TaskClaimed {
            task,
            state,
            owner: "ada".into(),
        },
        Event::TaskClaimed { .. } => Event::TaskReleased {
            task,
            state,
            owner: "ada".into(),
        },
        Event::TaskReleased { .. } => Event::DecisionRecorded {
            task,
            state,
            state_name: "Review".into(),
            outcome: "APPROVE".into(),
            on_behalf_of: None,
            comment: Some("fine".into()),
            input: Json::empty(),
        },
        Event::DecisionRecorded { .. } => Event::TaskCancelled { task, state },
        Event::TaskCancelled { .. } => Event::StateTransitioned {
            state,
            from: "Review".into(),
            trigger: "APPROVE".into(),
            to: vec!["Approved".into()],
            effects: effects(),
        },
        Event::StateTransitioned { .. } => Event::StateContinued {
            state,
            trigger: "REMIND".into(),
            effects: effects(),
        },
        Event::StateContinued { .. } => Event::StateCancelled {
            state,
            name: "Review".into(),
            trigger: "APPROVE".into(),
        },
        Event::StateCancelled { .. } => Event::FlowCompleted {
            outcome: "APPROVED".into(),
        },
        Event::FlowCompleted { .. } => Event::FlowCancelled {
            reason: "withdrawn".into(),
        },
        Event::FlowCancelled { .. } => Event::Custom {
            name: "stamped".into(),
            data: Json::empty(),
        },
        Event::Custom { .. } => return None,
    })
}

fn started() -> Event {
    Event::FlowStarted {
        definition: VersionRef {
            key: "approval".into(),
            version: 3,
        },
        entity: Entity {
            kind: "invoice".into(),
            id: "i-1".into(),
        },
        initiator: "ada".into(),
        requesters: vec!["ada".into()],
        predecessor: None,
        parent: Some(InstanceId(Uuid::from_u128(9))),
        data: Json::empty(),
    }
}

fn stay() -> StateInstance {
    StateInstance {
        id: STATE,
        name: "Review".into(),
        entered_at: Timestamp::UNIX_EPOCH,
        due_at: Some(Timestamp::UNIX_EPOCH),
        predecessors: vec![STATE],
        entered_by: None,
        caller: None,
        needed: 1,
        exclude: vec!["bob".into()],
        fallback: None,
        priority: 5,
        tasks: Vec::new(),
    }
}

fn open_task() -> Task {
    Task {
        id: TASK_ID,
        label: "Review it".into(),
        candidates: vec![
            Principal::User("bob".into()),
            Principal::Group("reviewers".into()),
        ],
        form: None,
        created_at: Timestamp::UNIX_EPOCH,
        status: TaskStatus::Pending,
    }
}

fn effects() -> Effects {
    Effects {
        data: Some(Json::empty()),
        attributes: vec![
            Attribute {
                name: "sum".into(),
                value: Some(AttributeValue::Decimal("1.50".into())),
            },
            Attribute {
                name: "gone".into(),
                value: None,
            },
        ],
        notes: vec!["small sums need one approval".into()],
    }
}

fn data(event: &Event) -> (String, Value) {
    let entry = PublicEntry {
        tenant: "acme".into(),
        instance: InstanceId(Uuid::from_u128(1)),
        id: Uuid::from_u128(2),
        kind: event.kind().into(),
        payload: Json::of(event).to_string(),
        event_seq: 1,
        occurred_at: Timestamp::UNIX_EPOCH,
        actor: Some("ada".into()),
        definition: VersionRef {
            key: "approval".into(),
            version: 3,
        },
        entity: Entity {
            kind: "invoice".into(),
            id: "i-1".into(),
        },
        traceparent: None,
        revision: 1,
    };
    let event = CloudEvent::of(&entry, &Naming::default()).expect("a sound entry");
    let suffix = event
        .attribute("type")
        .and_then(|name| name.strip_prefix("dev.wrkflw."))
        .expect("a type");
    (suffix.to_owned(), event.data.value())
}

/// The same schema without room for members that the table does not name.
fn closed(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) => {
            for value in members.values_mut() {
                *value = closed(value.take());
            }
            if members.contains_key("properties") {
                members.insert("additionalProperties".into(), json!(false));
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = closed(item.take());
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    schema
}

#[test]
fn every_public_event_is_documented_to_the_last_member() {
    let mut kinds = Vec::new();
    let mut last = None;
    while let Some(event) = next(last.as_ref()) {
        if event.is_public() {
            let (suffix, data) = data(&event);
            let event_type =
                EventType::by_suffix(&suffix).unwrap_or_else(|| panic!("{suffix} has no schema"));
            assert_eq!(event_type.kind, event.kind());
            let schema = closed(event_type.schema());
            jsonschema::meta::validate(&schema).expect("a sound schema");
            let validator = jsonschema::options()
                .should_validate_formats(true)
                .build(&schema)
                .expect("a sound schema");
            let errors: Vec<String> = validator
                .iter_errors(&data)
                .map(|error| error.to_string())
                .collect();
            assert!(errors.is_empty(), "{suffix}: {errors:?} in {data}");
            kinds.push(event_type.kind);
        } else {
            assert!(
                EVENT_TYPES
                    .iter()
                    .all(|event_type| event_type.kind != event.kind())
            );
        }
        last = Some(event);
    }
    let table: Vec<&str> = EVENT_TYPES
        .iter()
        .map(|event_type| event_type.kind)
        .collect();
    assert_eq!(
        kinds, table,
        "the table names each public event once, in the order of the vocabulary"
    );
}

#[test]
fn an_event_that_lacks_a_member_is_refused() {
    let (suffix, mut data) = data(&Event::FlowCompleted {
        outcome: "APPROVED".into(),
    });
    let schema = EventType::by_suffix(&suffix).expect("documented").schema();
    assert!(jsonschema::is_valid(&schema, &data));
    data["more"] = json!("members may be added");
    assert!(jsonschema::is_valid(&schema, &data));
    data.as_object_mut().expect("an object").remove("outcome");
    assert!(!jsonschema::is_valid(&schema, &data));
}

#[test]
fn types_are_found_by_their_public_names() {
    assert_eq!(
        EventType::by_suffix("decision.recorded").map(|found| found.kind),
        Some("DECISION_RECORDED")
    );
    assert_eq!(
        EventType::by_suffix("custom.anything.at-all").map(|found| found.kind),
        Some(CUSTOM)
    );
    for unknown in [
        "custom",
        "custom.",
        "task",
        "task.eaten",
        "state.continued",
        "",
    ] {
        assert!(EventType::by_suffix(unknown).is_none(), "{unknown}");
    }
}
