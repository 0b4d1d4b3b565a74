//! Every event, written and read back.

use uuid::Uuid;

use super::*;
use crate::answer::{AttributeValue, Note};
use crate::ids::ForkId;
use crate::instance::{ChildInstance, Decision, Delegation, Ownership, Suspension, TaskStatus};

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

fn deadlines() -> Vec<OpenDeadline> {
    vec![OpenDeadline {
        id: DeadlineId(Uuid::from_u128(9)),
        due_at: Some(Timestamp::UNIX_EPOCH),
        since_claim: None,
        repeat: None,
        action: OverdueAction::Fire("LATE".into()),
        count: 1,
    }]
}

fn state_instance() -> StateInstance {
    StateInstance {
        predecessors: vec![StateId(Uuid::from_u128(2))],
        entered_trigger: Some("GO".into()),
        caller: Some("ann".into()),
        needed: 2,
        exclude: vec!["bob".into()],
        priority: 3,
        deadlines: deadlines(),
        forks: vec![ForkId(Uuid::from_u128(7))],
        children: vec![ChildInstance {
            id: InstanceId(Uuid::from_u128(8)),
            key: "check".into(),
            entity: Entity {
                kind: "order".into(),
                id: "7".into(),
            },
            data: json(r#"{"amount":1.50}"#),
            on_end: Some("CHECKED".into()),
            detached: false,
            outcome: None,
            version: None,
        }],
        ..StateInstance::new(StateId(Uuid::from_u128(1)), "Review", Timestamp::UNIX_EPOCH)
    }
}

fn tasks() -> Vec<Task> {
    let at = Timestamp::from_millisecond(1_250).expect("a time");
    let decision = Decision {
        outcome: "GO".into(),
        actor: "ann".into(),
        on_behalf_of: None,
        comment: None,
        input: json(r#"{"amount":1e2}"#),
        decided_at: at,
    };
    let owner = || "ann".to_owned();
    let statuses = [
        TaskStatus::Pending,
        TaskStatus::Claimed {
            owner: owner(),
            claimed_at: at,
            ownership: Ownership::default(),
        },
        TaskStatus::Claimed {
            owner: owner(),
            claimed_at: at,
            ownership: Ownership {
                assigned: true,
                allocated: true,
                on_behalf_of: Some("eve".into()),
                delegations: vec![Delegation {
                    from: "bob".into(),
                    to: "ann".into(),
                    reason: "away".into(),
                    at,
                }],
            },
        },
        TaskStatus::Completed {
            owner: owner(),
            claimed_at: at,
            decision,
        },
        TaskStatus::Cancelled {
            owner: None,
            cancelled_at: at,
            reason: Some("nobody_eligible".into()),
        },
    ];
    let task = |status| Task {
        id: TaskId(Uuid::from_u128(3)),
        label: "Look".into(),
        candidates: vec![Candidate::Group("crew".into())],
        created_at: at,
        due_at: Some(at),
        deadlines: deadlines(),
        suspended: Some(Suspension {
            by: "ann".into(),
            at,
            reason: None,
            until: Some(at),
        }),
        status,
    };
    statuses.map(task).into()
}

fn data() -> Json {
    json(r#"{"amount":1.50,"big":123456789012345678901234567890,"small":1e2}"#)
}

fn attributes() -> Vec<Attribute> {
    let attributes = [
        ("a", Some(AttributeValue::Decimal("-0.10".into()))),
        ("b", Some(AttributeValue::Bytes(vec![0, 255]))),
        ("c", Some(AttributeValue::Timestamp(Timestamp::UNIX_EPOCH))),
        ("d", None),
    ];
    attributes
        .map(|(name, value)| Attribute {
            name: name.into(),
            value,
        })
        .into()
}

fn of_flows() -> Vec<Event> {
    vec![
        Event::FlowStarted {
            definition: VersionRef {
                key: "subflows".into(),
                version: 3,
            },
            entity: Entity {
                kind: "errand".into(),
                id: "1".into(),
            },
            initiator: "ann".into(),
            requesters: vec!["ann".into()],
            predecessor: Some(InstanceId(Uuid::from_u128(4))),
            parent: None,
            data: data(),
            title: Some("Errand 1".into()),
            summary: None,
            sole: true,
            observers: Some(vec!["auditors".to_owned()]),
        },
        Event::FlowRetitled {
            title: None,
            summary: Some("To the bank".into()),
            previous_title: Some("An errand".into()),
            previous_summary: Some("To the shop".into()),
        },
        Event::FlowCompleted {
            outcome: "DONE".into(),
        },
        Event::FlowCancelled {
            reason: "late".into(),
            deadline: Some(DeadlineId(Uuid::from_u128(9))),
            state: Some(StateId(Uuid::from_u128(1))),
        },
        Event::Custom {
            name: "paid".into(),
            data: data(),
        },
    ]
}

fn of_states() -> Vec<Event> {
    let (state, trigger) = (state_instance().id, || "GO".to_owned());
    let (from, to) = ("Review".to_owned(), vec!["Done".to_owned()]);
    vec![
        Event::StateEntered {
            state: state_instance(),
            blind: true,
        },
        Event::StateTransitioned {
            state,
            from,
            trigger: trigger(),
            to,
            data: Some(data()),
            attributes: attributes(),
            previous: Vec::new(),
            notes: vec![Note {
                code: "so".into(),
                message: "so it is".into(),
                detail: Some(data()),
            }],
        },
        Event::StateContinued {
            state,
            trigger: trigger(),
            to: vec![],
            data: None,
            attributes: vec![],
            previous: Vec::new(),
            notes: vec![],
            blind: true,
        },
        Event::StateCancelled {
            state,
            name: "Review".into(),
            trigger: trigger(),
            blind: true,
        },
    ]
}

fn of_tasks() -> Vec<Event> {
    let (task, state) = (TaskId(Uuid::from_u128(3)), state_instance().id);
    let state_name = || "Review".to_owned();
    let mut events = vec![
        Event::TaskClaimed {
            task,
            state,
            owner: "ann".into(),
            on_behalf_of: None,
            deadlines: deadlines(),
        },
        Event::TaskSuspended {
            task,
            state,
            reason: Some("a holiday".into()),
            until: Some(Timestamp::UNIX_EPOCH),
        },
        Event::TaskSuspended {
            task,
            state,
            reason: None,
            until: None,
        },
        Event::TaskResumed { task, state },
        Event::TaskReleased {
            task,
            state,
            owner: "ann".into(),
            reason: None,
            message: None,
            blind: false,
        },
        Event::DecisionRecorded {
            task,
            state,
            state_name: state_name(),
            outcome: "GO".into(),
            on_behalf_of: Some("bob".into()),
            comment: Some("well".into()),
            input: data(),
            blind: false,
        },
        Event::TaskCancelled {
            task,
            state,
            reason: None,
        },
    ];
    let created = |task| Event::TaskCreated {
        state,
        state_name: state_name(),
        task,
    };
    events.extend(tasks().into_iter().map(created));
    events
}

#[test]
fn every_event_comes_back_as_it_was_written() {
    for event in [of_flows(), of_states(), of_tasks()].concat() {
        let payload = Json::of(&event);
        let back: Event = serde_json::from_str(payload.as_str())
            .unwrap_or_else(|error| panic!("{payload}: {error}"));
        assert_eq!(back, event);
        assert_eq!(Json::of(&back), payload);
    }
}

#[test]
fn a_payload_that_lacks_something_is_refused_by_its_name() {
    for (payload, message) in [
        (
            r#"{"type":"FLOW_COMPLETED"}"#,
            "the member outcome is missing",
        ),
        (
            r#"{"type":"TASK_CANCELLED","task":"00000000-0000-0000-0000-000000000003","state":7}"#,
            "the member state: invalid type",
        ),
        (
            r#"{"type":"TASK_EATEN"}"#,
            "TASK_EATEN is no event of this host",
        ),
    ] {
        let error = serde_json::from_str::<Event>(payload)
            .expect_err(payload)
            .to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn bytes_are_base64_as_in_searches() {
    let value = AttributeValue::Bytes(vec![0, 255]);
    let text = Json::of(&value).to_string();
    assert_eq!(text, r#"{"type":"bytes","value":"AP8="}"#);
    assert_eq!(
        serde_json::from_str::<AttributeValue>(&text).expect("a value"),
        value
    );
}
