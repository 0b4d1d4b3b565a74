//! Every event against the schema of its type: every member is documented, and every documented member occurs.

use jiff::Timestamp;
use uuid::Uuid;

use super::*;
use crate::actor::Actor;
use crate::answer::{Attribute, AttributeValue, Note, OverdueAction, Share, SignalSubscription};
use crate::cloudevent::{CloudEvent, Naming, PublicEntry};
use crate::event::reasons::{CANCELLATIONS, ESCALATIONS, RELEASES, STEPS, of_release};
use crate::event::{DefinitionTexts, Disclosed, Event, EventContext};
use crate::graph::{Graph, Join, State, StateKind, Transition};
use crate::ids::{DeadlineId, ForkId, InstanceId, StateId, TaskId, VersionRef};
use crate::instance::{
    CallResult, Candidate, Entity, OpenCall, OpenDeadline, StateInstance, Suspension, Task,
    TaskStatus,
};
use crate::json::Json;
use crate::template::Labels;

const STATE: StateId = StateId(Uuid::from_u128(3));
const DEADLINE: DeadlineId = DeadlineId(Uuid::from_u128(5));
const TASK_ID: TaskId = TaskId(Uuid::from_u128(4));

/// One event of each variant. A new variant does not compile until it says which comes after it.
#[expect(clippy::too_many_lines, reason = "one arm a variant")]
fn next(event: Option<&Event>) -> Option<Event> {
    let Some(event) = event else {
        return Some(started());
    };
    let (task, state) = (TASK_ID, STATE);
    Some(match event {
        Event::FlowStarted { .. } => Event::StateEntered {
            state: state_instance(),
            blind: false,
        },
        Event::StateEntered { .. } => Event::TaskCreated {
            state,
            state_name: "Review".into(),
            task: open_task(),
        },
        Event::TaskCreated { .. } => Event::TaskClaimed {
            task,
            state,
            owner: "ada".into(),
            on_behalf_of: Some("eve".into()),
            deadlines: deadlines(),
        },
        Event::TaskClaimed { .. } => Event::TaskReleased {
            task,
            state,
            owner: "ada".into(),
            reason: Some("overdue".into()),
            message: Some("it is overdue".into()),
            blind: false,
        },
        Event::TaskReleased { .. } => Event::TaskDelegated {
            task,
            state,
            from: "ada".into(),
            to: "bob".into(),
            reason: "on holiday".into(),
        },
        Event::TaskDelegated { .. } => Event::TaskResolved {
            task,
            state,
            from: "bob".into(),
            to: "ada".into(),
        },
        Event::TaskResolved { .. } => Event::TaskReassigned {
            task,
            state,
            previous: None,
            to: "bob".into(),
            reason: "faster".into(),
            deadlines: deadlines(),
        },
        Event::TaskReassigned { .. } => Event::TaskReset {
            task,
            state,
            owner: "bob".into(),
            reason: "stuck".into(),
        },
        Event::TaskReset { .. } => Event::TaskSuspended {
            task,
            state,
            reason: Some("a holiday".into()),
            until: Some(Timestamp::UNIX_EPOCH),
        },
        Event::TaskSuspended { .. } => Event::TaskResumed { task, state },
        Event::TaskResumed { .. } => Event::TaskRerouted {
            task,
            state,
            step: "manager".into(),
            candidates: people(),
            previous: people(),
        },
        Event::TaskRerouted { .. } => Event::DecisionRecorded {
            task,
            state,
            state_name: "Review".into(),
            outcome: "APPROVE".into(),
            on_behalf_of: None,
            comment: Some("fine".into()),
            input: Json::parse(r#"{"budget":12,"salary":9}"#).expect("an input"),
            blind: false,
        },
        Event::DecisionRecorded { .. } => Event::StateDisclosed {
            state,
            name: "Review".into(),
            decisions: vec![Disclosed {
                task,
                outcome: "APPROVE".into(),
                actor: "ada".into(),
                on_behalf_of: Some("eve".into()),
                comment: None,
                decided_at: Timestamp::UNIX_EPOCH,
            }],
        },
        Event::StateDisclosed { .. } => Event::TaskCancelled {
            task,
            state,
            reason: Some("nobody_eligible".into()),
        },
        Event::TaskCancelled { .. } => Event::DeadlinePassed {
            deadline: DEADLINE,
            state,
            task: Some(task),
            action: OverdueAction::Fire("LATE".into()),
            due_at: Timestamp::UNIX_EPOCH,
            count: 1,
            late: 3,
            next: None,
        },
        Event::DeadlinePassed { .. } => Event::TaskReminded {
            state,
            task: None,
            recipients: people(),
            due_at: Timestamp::UNIX_EPOCH,
            count: 1,
        },
        Event::TaskReminded { .. } => Event::TaskEscalated {
            state,
            task: Some(task),
            from: people(),
            reason: "overdue".into(),
            to: people(),
            due_at: Some(Timestamp::UNIX_EPOCH),
            count: Some(2),
        },
        Event::TaskEscalated { .. } => Event::StateReassigned {
            state,
            needed: 2,
            share: state_instance().share,
            exclude: vec!["bob".into()],
            fallback: None,
            priority: 9,
            priority_name: Some("urgent".into()),
            deadlines: Some(deadlines()),
            subscriptions: Some(subscriptions()),
        },
        Event::StateReassigned { .. } => Event::StateUnassignable {
            state,
            name: "Review".into(),
        },
        Event::StateUnassignable { .. } => Event::StateAssignable {
            state,
            name: "Review".into(),
        },
        Event::StateAssignable { .. } => Event::BranchArrived {
            state: state_instance(),
        },
        Event::BranchArrived { .. } => Event::SignalReceived {
            id: "s-1".into(),
            trigger: "PAID".into(),
            state: None,
            input: Json::empty(),
            sender: Actor::host(),
        },
        Event::SignalReceived { .. } => Event::SignalTaken {
            id: "s-1".into(),
            state,
            older: Some(1),
        },
        Event::SignalTaken { .. } => Event::ChildEnded {
            state,
            child: InstanceId(Uuid::from_u128(8)),
            version: Some(1),
            outcome: "NOT_STARTED".into(),
            reason: Some("there is no such definition".into()),
        },
        Event::ChildEnded { .. } => Event::ServiceRequested {
            state,
            service: "scorer".into(),
        },
        Event::ServiceRequested { .. } => Event::ServiceAnswered {
            state,
            service: "scorer".into(),
            result: CallResult {
                attempts: 2,
                error: None,
                model: Some("scorer".into()),
                model_version: Some("3".into()),
            },
        },
        Event::ServiceAnswered { .. } => Event::ServiceFailed {
            state,
            service: "scorer".into(),
            result: CallResult {
                attempts: 3,
                error: Some("the service answered 500".into()),
                model: None,
                model_version: None,
            },
        },
        Event::ServiceFailed { .. } => Event::TriggerRefused {
            state,
            trigger: "LATE".into(),
            code: "too_early".into(),
            message: "not yet".into(),
        },
        Event::TriggerRefused { .. } => Event::StateTransitioned {
            state,
            from: "Review".into(),
            trigger: "APPROVE".into(),
            to: vec!["Approved".into()],
            data: Some(Json::empty()),
            attributes: attributes(),
            previous: attributes(),
            notes: notes(),
        },
        Event::StateTransitioned { .. } => Event::StateContinued {
            state,
            trigger: "REMIND".into(),
            to: vec!["Reminder".into()],
            data: Some(Json::empty()),
            attributes: attributes(),
            previous: attributes(),
            notes: notes(),
            blind: false,
        },
        Event::StateContinued { .. } => Event::StateCancelled {
            state,
            name: "Review".into(),
            trigger: "APPROVE".into(),
            blind: false,
        },
        Event::StateCancelled { .. } => Event::FlowCompleted {
            outcome: "APPROVED".into(),
        },
        Event::FlowCompleted { .. } => Event::FlowCancelled {
            reason: "withdrawn".into(),
            deadline: Some(DEADLINE),
            state: Some(state),
        },
        Event::FlowCancelled { .. } => Event::FlowSuspended {
            reason: "a strike".into(),
        },
        Event::FlowSuspended { .. } => Event::FlowResumed {},
        Event::FlowResumed {} => Event::FlowRestarted {
            predecessor: InstanceId(Uuid::from_u128(7)),
        },
        Event::FlowRestarted { .. } => Event::FlowMigrated {
            previous: reference(2),
            definition: reference(3),
            states: [("Review".to_owned(), "Check".to_owned())].into(),
            sole: true,
            observers: Some(vec!["auditors".to_owned()]),
        },
        Event::FlowMigrated { .. } => Event::FlowRetitled {
            title: Some("Invoice i-1".into()),
            summary: Some("12 EUR".into()),
            previous_title: Some("An errand".into()),
            previous_summary: Some("To the shop".into()),
        },
        Event::FlowRetitled { .. } => Event::FlowCommented {
            comment: "Where is the receipt?".into(),
            mentions: vec!["bob".into()],
        },
        Event::FlowCommented { .. } => Event::Custom {
            name: "stamped".into(),
            data: Json::empty(),
        },
        Event::Custom { .. } => return None,
    })
}

fn people() -> Vec<Candidate> {
    vec![
        Candidate::User("bob".into()),
        Candidate::Group("crew".into()),
        Candidate::Member {
            person: "cid".into(),
            group: "crew".into(),
        },
    ]
}

fn reference(version: u32) -> VersionRef {
    VersionRef {
        key: "approval".into(),
        version,
    }
}

fn deadlines() -> Vec<OpenDeadline> {
    vec![OpenDeadline {
        id: DEADLINE,
        due_at: Some(Timestamp::UNIX_EPOCH),
        since_claim: None,
        repeat: Some(60),
        action: OverdueAction::Remind,
        count: 0,
    }]
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
        title: Some("Invoice".into()),
        summary: Some("No sum yet".into()),
        sole: true,
        observers: Some(vec!["auditors".to_owned()]),
    }
}

fn subscriptions() -> Vec<SignalSubscription> {
    vec![SignalSubscription {
        trigger: "PAID".into(),
        correlation: Some("order-7".into()),
        buffered: true,
    }]
}

fn state_instance() -> StateInstance {
    StateInstance {
        due_at: Some(Timestamp::UNIX_EPOCH),
        predecessors: vec![STATE],
        exclude: vec!["bob".into()],
        priority: 5,
        forks: vec![ForkId(STATE.0)],
        choices: 1,
        deadlines: deadlines(),
        subscriptions: subscriptions(),
        key: Some("line-1".into()),
        data: Some(Json::empty()),
        priority_name: Some("high".into()),
        share: Some(Share {
            numerator: 2,
            denominator: 3,
            exceeded: false,
        }),
        blind: true,
        call: Some(OpenCall {
            service: "scorer".into(),
            request: Json::empty(),
            timeout: 30,
            retries: vec![10],
            on_reply: "SCORED".into(),
            on_failure: "UNSCORED".into(),
            result: None,
        }),
        ..StateInstance::new(STATE, "Review", Timestamp::UNIX_EPOCH)
    }
}

fn open_task() -> Task {
    Task {
        id: TASK_ID,
        label: "Review it".into(),
        candidates: vec![
            Candidate::User("bob".into()),
            Candidate::Group("reviewers".into()),
        ],
        created_at: Timestamp::UNIX_EPOCH,
        due_at: Some(Timestamp::UNIX_EPOCH),
        deadlines: deadlines(),
        suspended: Some(Suspension {
            by: "ann".into(),
            at: Timestamp::UNIX_EPOCH,
            reason: Some("a holiday".into()),
            until: Some(Timestamp::UNIX_EPOCH),
        }),
        status: TaskStatus::Pending,
    }
}

fn attributes() -> Vec<Attribute> {
    vec![
        Attribute {
            name: "sum".into(),
            value: Some(AttributeValue::Decimal("1.50".into())),
        },
        Attribute {
            name: "gone".into(),
            value: None,
        },
    ]
}

fn notes() -> Vec<Note> {
    vec![Note {
        code: "small".into(),
        message: "Small sums need one approval.".into(),
        detail: Some(Json::empty()),
    }]
}

fn context() -> EventContext {
    let input = r#"{"properties":{"budget":{"x-public":true},"salary":{}}}"#;
    let graph = Graph {
        title: "Approval".into(),
        states: vec![State {
            name: "Review".into(),
            title: "Review of the invoice".into(),
            description: String::new(),
            kind: StateKind::Task,
            join: Join::None,
            own_work: false,
        }],
        transitions: vec![Transition {
            source: "Review".into(),
            trigger: "APPROVE".into(),
            input: Some(Json::parse(input).expect("a schema")),
            ..Transition::default()
        }],
        ..Graph::default()
    };
    EventContext {
        labels: Labels {
            title: Some("Invoice i-1".into()),
            summary: Some("12 EUR".into()),
        },
        state_name: Some("Review".into()),
        task_title: Some("Review it".into()),
        definition: DefinitionTexts::of(&graph).into(),
    }
}

fn entry(event: &Event) -> PublicEntry {
    PublicEntry {
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
        context: context(),
    }
}

fn data(event: &Event) -> (String, Value) {
    let event = CloudEvent::of(&entry(event), &Naming::default()).expect("a sound entry");
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
            assert!(public_types().all(|event_type| event_type.kind != event.kind()));
        }
        last = Some(event);
    }
    let table: Vec<&str> = public_types().map(|event_type| event_type.kind).collect();
    assert_eq!(
        kinds, table,
        "the table names each public event once, in the order of the vocabulary"
    );
}

/// The names of all members, at any depth.
fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                found.push(name.clone());
                names(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The same value with one more member in every object.
fn with_more(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter();
            let mut members: Map<String, Value> = members
                .map(|(name, value)| (name, with_more(value)))
                .collect();
            members.insert("zzInternal".into(), json!("kept inside"));
            Value::Object(members)
        }
        Value::Array(items) => items.into_iter().map(with_more).collect(),
        other => other,
    }
}

#[test]
fn a_new_member_is_not_public_by_itself() {
    let mut last = None;
    while let Some(event) = next(last.as_ref()) {
        if event.is_public() {
            // Public as they are: what a flow publishes itself, and the names of renamed states.
            let is_free = matches!(event, Event::Custom { .. } | Event::FlowMigrated { .. });
            let entry = entry(&event);
            let payload: Value = serde_json::from_str(&entry.payload).expect("JSON");
            let more = PublicEntry {
                payload: Json::of(&with_more(payload)).to_string(),
                ..entry.clone()
            };
            let of = |entry: &PublicEntry| {
                let event = CloudEvent::of(entry, &Naming::default());
                event.expect("a sound entry").data.value()
            };
            let mut found = Vec::new();
            names(&of(&more), &mut found);
            let (now, before) = (of(&more), of(&entry));
            assert!(
                is_free
                    || !found.iter().any(|name| name == "zzInternal")
                        && without_pointers(now) == without_pointers(before),
                "{}: {found:?}",
                event.kind()
            );
        }
        last = Some(event);
    }
}

/// The pointers tell of every member of the data.
fn without_pointers(mut data: Value) -> Value {
    data.as_object_mut()
        .expect("an object")
        .remove("dataPointers");
    data
}

#[test]
fn internals_are_not_public() {
    for event in [
        Event::StateEntered {
            state: state_instance(),
            blind: false,
        },
        Event::TaskCreated {
            state: STATE,
            state_name: "Review".into(),
            task: open_task(),
        },
        started(),
    ] {
        let mut found = Vec::new();
        names(&data(&event).1, &mut found);
        for internal in [
            "forks",
            "choices",
            "tasks",
            "data",
            "children",
            "exclude",
            "fallback",
            "deadlines",
        ] {
            assert!(
                !found.iter().any(|name| name == internal),
                "{internal} of {}",
                event.kind()
            );
        }
    }
}

#[test]
fn an_input_tells_only_the_fields_that_the_definition_declares_public() {
    let decided = |outcome: &str, blind| {
        data(&Event::DecisionRecorded {
            task: TASK_ID,
            state: STATE,
            state_name: "Review".into(),
            outcome: outcome.into(),
            on_behalf_of: None,
            comment: None,
            input: Json::parse(r#"{"budget":12,"salary":9}"#).expect("an input"),
            blind,
        })
        .1
    };
    assert_eq!(decided("APPROVE", false)["input"], json!({"budget": 12}));
    assert_eq!(decided("APPROVE", true).get("input"), None);
    assert_eq!(decided("REJECT", false).get("input"), None);
}

#[test]
fn a_change_tells_its_pointers_and_the_values_before() {
    let changed = |patch: &str| {
        data(&Event::StateContinued {
            state: STATE,
            trigger: "GO".into(),
            to: vec![],
            data: Some(Json::parse(patch).expect("a patch")),
            attributes: attributes(),
            previous: attributes()[..1].to_vec(),
            notes: vec![],
            blind: false,
        })
        .1
    };
    let payload = changed(r#"{"a":{"b/c":1,"d":null},"e":[1],"f":{}}"#);
    let pointers = json!(["/a/b~1c", "/a/d", "/e", "/f"]);
    assert_eq!(payload["dataPointers"], pointers);
    assert_eq!(payload["attributes"][1], json!({"name": "gone"}));
    let sum = json!([{"name": "sum", "value": {"type": "decimal", "value": "1.50"}}]);
    assert_eq!(payload["previousAttributes"], sum);
    let wide: Map<String, Value> = (0..60)
        .map(|number| (format!("m{number}"), json!({"x": 1, "y": 2})))
        .collect();
    let payload = changed(&json!({"wide": wide}).to_string());
    assert_eq!(payload["dataPointers"], json!(["/wide"]));
    let whole: Map<String, Value> = (0..200)
        .map(|number| (format!("m{number}"), json!(1)))
        .collect();
    assert_eq!(
        changed(&Value::Object(whole).to_string())["dataPointers"],
        json!([""])
    );
    assert_eq!(changed("{}")["dataPointers"], json!([]));
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
        "state.reassigned",
        "",
    ] {
        assert!(EventType::by_suffix(unknown).is_none(), "{unknown}");
    }
}

#[test]
fn every_event_reads_back_as_it_was_written() {
    let mut last = None;
    while let Some(event) = next(last.as_ref()) {
        let text = Json::of(&event).to_string();
        let back: Event = serde_json::from_str(&text).expect("an event of this host");
        assert_eq!(back, event, "{text}");
        last = Some(event);
    }
}

/// Every value of an enumeration of the core is one of the schemas, and no other.
#[test]
fn enumerations_are_those_of_their_types() {
    let kind_of = |value: Value| value["type"].as_str().expect("a type").to_owned();
    let candidates = [
        Candidate::User("a".into()),
        Candidate::Group("a".into()),
        Candidate::Member {
            person: "a".into(),
            group: "b".into(),
        },
    ];
    let all = candidates.map(|candidate| match candidate {
        // A new kind is to be listed above, too.
        Candidate::User(_) | Candidate::Group(_) | Candidate::Member { .. } => {
            kind_of(serde_json::to_value(candidate).expect("JSON"))
        }
    });
    assert_eq!(all, records::CANDIDATES);
    let values = [
        AttributeValue::Text("a".into()),
        AttributeValue::Boolean(true),
        AttributeValue::Decimal("1".into()),
        AttributeValue::Float(1.0),
        AttributeValue::Timestamp(Timestamp::UNIX_EPOCH),
        AttributeValue::Bytes(vec![1]),
    ];
    let all = values.map(|value| match value {
        AttributeValue::Text(_)
        | AttributeValue::Boolean(_)
        | AttributeValue::Decimal(_)
        | AttributeValue::Float(_)
        | AttributeValue::Timestamp(_)
        | AttributeValue::Bytes(_) => kind_of(serde_json::to_value(value).expect("JSON")),
    });
    assert_eq!(all, records::VALUES);
    for (suffix, member, values) in [
        ("task.escalated", "/reason", ESCALATIONS),
        ("task.cancelled", "/reason", CANCELLATIONS),
        ("task.released", "/reason", RELEASES),
        ("task.rerouted", "/step", STEPS),
        (
            "task.rerouted",
            "/candidates/items/properties/type",
            records::CANDIDATES,
        ),
    ] {
        let schema = EventType::by_suffix(suffix).expect("a type").schema();
        let of = schema["properties"].pointer(member).expect("a member");
        assert_eq!(of["enum"], json!(values), "{suffix} {member}");
    }
    assert!(RELEASES.iter().all(|reason| of_release(reason).is_some()));
}
