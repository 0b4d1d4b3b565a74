//! Illegal sequences of events, and the order of past state instances.

use uuid::Uuid;

use super::*;
use crate::ids::{TaskId, VersionRef};
use crate::instance::{Entity, StateInstance, Task, TaskStatus};
use crate::json::Json;

fn at(second: i64) -> Stamp<'static> {
    let at = Timestamp::from_second(second).expect("a time");
    Stamp {
        instance: InstanceId(Uuid::from_u128(1)),
        revision: 1,
        at,
        actor: Some("ann"),
    }
}

fn start() -> Event {
    Event::FlowStarted {
        definition: VersionRef {
            key: "subflows".into(),
            version: 1,
        },
        entity: Entity {
            kind: "errand".into(),
            id: "1".into(),
        },
        initiator: "ann".into(),
        requesters: vec!["ann".into()],
        predecessor: None,
        parent: None,
        data: Json::empty(),
        title: None,
        summary: None,
        sole: false,
        observers: None,
    }
}

fn state(number: u128) -> StateId {
    StateId(Uuid::from_u128(number))
}

fn task(number: u128) -> TaskId {
    TaskId(Uuid::from_u128(number))
}

fn entered(number: u128) -> Event {
    Event::StateEntered {
        state: StateInstance::new(state(number), &format!("S{number}"), Timestamp::UNIX_EPOCH),
        blind: false,
    }
}

fn created(number: u128, of: u128) -> Event {
    let task = Task {
        id: task(number),
        label: "work".into(),
        candidates: vec![],
        created_at: Timestamp::UNIX_EPOCH,
        due_at: None,
        deadlines: vec![],
        suspended: None,
        status: TaskStatus::Pending,
    };
    Event::TaskCreated {
        state: state(of),
        state_name: format!("S{of}"),
        task,
    }
}

fn left(number: u128) -> Event {
    let from = format!("S{number}");
    Event::StateTransitioned {
        state: state(number),
        from,
        trigger: "GO".into(),
        to: vec![],
        data: None,
        attributes: vec![],
        previous: Vec::new(),
        notes: vec![],
    }
}

fn fold(events: &[Event]) -> Result<Instance, IllegalEvent> {
    let mut instance = None;
    for event in events {
        instance = Some(apply(instance, event, at(1))?);
    }
    Ok(instance.expect("events"))
}

#[test]
fn what_cannot_have_happened_is_refused() {
    let decided = Event::DecisionRecorded {
        task: task(9),
        state: state(2),
        state_name: "S2".into(),
        outcome: "GO".into(),
        on_behalf_of: None,
        comment: None,
        input: Json::empty(),
        blind: false,
    };
    let claimed = Event::TaskClaimed {
        task: task(9),
        state: state(2),
        owner: "bob".into(),
        on_behalf_of: None,
        deadlines: vec![],
    };
    let cancelled = Event::FlowCancelled {
        reason: "late".into(),
        deadline: None,
        state: None,
    };
    let (nine, two) = (task(9), state(2));
    for (events, message) in [
        (
            vec![entered(2)],
            "STATE_ENTERED cannot follow here: the instance has not started".to_owned(),
        ),
        (
            vec![start(), start()],
            "FLOW_STARTED cannot follow here: the instance has started".to_owned(),
        ),
        (
            vec![start(), left(2)],
            format!("STATE_TRANSITIONED cannot follow here: state {two} is not active"),
        ),
        (
            vec![start(), created(9, 2)],
            format!("TASK_CREATED cannot follow here: state {two} is not active"),
        ),
        (
            vec![start(), entered(2), claimed.clone()],
            format!("TASK_CLAIMED cannot follow here: task {nine} is not open"),
        ),
        (
            vec![start(), entered(2), created(9, 2), decided],
            format!("DECISION_RECORDED cannot follow here: task {nine} has no owner"),
        ),
        (
            vec![start(), entered(2), created(9, 2), left(2)],
            format!("STATE_TRANSITIONED cannot follow here: task {nine} is still open"),
        ),
        (
            vec![start(), entered(2), created(9, 2), cancelled.clone()],
            format!("FLOW_CANCELLED cannot follow here: task {nine} is still open"),
        ),
    ] {
        assert_eq!(fold(&events).expect_err(&message).to_string(), message);
    }
}

#[test]
fn no_event_follows_the_end() {
    for end in [
        Event::FlowCompleted {
            outcome: "DONE".into(),
        },
        Event::FlowCancelled {
            reason: "late".into(),
            deadline: None,
            state: None,
        },
    ] {
        let ended = fold(&[start(), entered(2), end.clone()]).expect("an end");
        let custom = Event::Custom {
            name: "paid".into(),
            data: Json::empty(),
        };
        for event in [entered(3), left(2), created(9, 2), custom, end] {
            let error = apply(Some(ended.clone()), &event, at(2)).expect_err("after the end");
            assert!(
                error.to_string().ends_with("the instance has ended"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_cancelled_flow_says_who_cancelled_it() {
    let running = fold(&[start()]).expect("a start");
    let host = Stamp {
        actor: None,
        ..at(2)
    };
    let late = Event::FlowCancelled {
        reason: "late".into(),
        deadline: None,
        state: None,
    };
    let by = |stamp| match apply(Some(running.clone()), &late, stamp)
        .expect("an end")
        .status
    {
        Status::Cancelled { by, .. } => by,
        other => panic!("{other:?}"),
    };
    assert_eq!(by(at(2)), at(2).actor.expect("an actor"));
    assert_eq!(by(host), crate::actor::HOST);
}

#[test]
fn stays_left_at_once_are_past_in_the_order_of_entering() {
    let end = Event::FlowCompleted {
        outcome: "DONE".into(),
    };
    let ended = fold(&[start(), entered(2), entered(3), entered(4), left(3), end]).expect("an end");
    let past: Vec<_> = ended.past.iter().map(|past| past.state.id).collect();
    assert_eq!(past, [state(2), state(3), state(4)]);
    // Those left earlier come first, whenever they were entered.
    let running = fold(&[start(), entered(2), entered(3), left(3)]).expect("a branch less");
    let ended = apply(Some(running), &left(2), at(2)).expect("none left");
    let past: Vec<_> = ended.past.iter().map(|past| past.state.id).collect();
    assert_eq!(past, [state(3), state(2)]);
}
