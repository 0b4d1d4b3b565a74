//! Calls with data and names that the flow does not know, as after a migration to another version. Each answer must be a fault
//! that names the problem, never work.

use serde_json::json;

use super::*;
use crate::{NoConfig, Omitted, Reason, Waiting};

crate::states! { enum State { Draft, Wait, Done } }
crate::triggers! { enum Trigger { Submit, Called } }
use State::{Done, Draft, Wait};
use Trigger::{Called, Submit};

#[derive(serde::Deserialize, serde::Serialize)]
struct Paper {
    pages: u32,
}

struct Papers;

impl Flow for Papers {
    type Config = NoConfig;
    type Data = Paper;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Draft)
            .own_work(Draft, "Draft", |s| s.on(Submit, Wait))
            .wait(Wait, "Wait", |s| s.on(Called, Done))
            .terminal(Done, "DONE")
    }

    fn wait(facts: &Facts<Self>, _: State) -> Result<Waiting, Refusal> {
        assert!(facts.data.pages > 0);
        Ok(Waiting::for_signals())
    }
}

fn snapshot(state: &str, data: &serde_json::Value) -> wire::Snapshot {
    let now = "2026-01-05T09:00:00.000Z";
    let active = wire::StateInstance {
        id: "s1".into(),
        name: state.into(),
        entered_at: now.into(),
        due_at: None,
        predecessors: vec![],
        key: None,
        data: None,
        needed: 1,
        tasks: vec![],
        children: vec![],
    };
    wire::Snapshot {
        now: now.into(),
        config: "{}".into(),
        instance: wire::Instance {
            id: "i1".into(),
            tenant: "main".into(),
            key: "papers".into(),
            version: 2,
            revision: 1,
            entity_type: "paper".into(),
            entity_id: "1".into(),
            initiator: "ann".into(),
            requesters: vec!["ann".into()],
            started_at: now.into(),
            predecessor: None,
            parent: None,
            data: data.to_string(),
            attributes: vec![],
        },
        active: vec![active],
        waiting: vec![],
        past: vec![],
        deciders: vec![],
        omitted: Omitted {
            texts: 0,
            states: 0,
        },
        extensions: vec![],
    }
}

fn entries(state: &str) -> Vec<wire::Entry> {
    vec![wire::Entry {
        state_instance: "s1".into(),
        state: state.into(),
        cause: EntryCause::Migrated,
    }]
}

fn signal(trigger: &str) -> wire::Event {
    let actor = wire::Actor {
        id: "ann".into(),
        groups: vec![],
        permissions: vec![],
        on_behalf_of: None,
    };
    wire::Event {
        state_instance: "s1".into(),
        trigger: trigger.into(),
        source: wire::EventSource::Signal(wire::ReceivedSignal {
            actor,
            id: "1".into(),
            correlation: None,
            received_at: "2026-01-05T09:00:00.000Z".into(),
        }),
        input: "{}".into(),
    }
}

/// The code and message of an answer that is a fault.
fn faulted<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> (String, String) {
    match answer {
        Err(Refusal::Fault(Reason { code, message })) => (code, message),
        other => panic!("no fault: {other:?}"),
    }
}

#[test]
fn unreadable_data_is_a_fault_except_for_a_start() {
    let unread = || snapshot("Wait", &json!({ "pages": "many" }));
    for (code, message) in [
        faulted(Logic::<Papers>::transition(unread(), signal("CALLED"))),
        faulted(Logic::<Papers>::enter(unread(), entries("Wait"))),
    ] {
        assert_eq!(code, "unreadable");
        assert!(message.contains("/pages"), "{message}");
    }
    let ann = wire::Actor {
        id: "ann".into(),
        groups: vec![],
        permissions: vec![],
        on_behalf_of: None,
    };
    let Err(Refusal::Invalid(found)) = Logic::<Papers>::start(unread(), ann) else {
        panic!("not invalid");
    };
    assert_eq!(found[0].field, "/data/pages");
}

#[test]
fn a_state_or_trigger_of_another_version_is_a_fault() {
    let data = json!({ "pages": 3 });
    let known = snapshot("Wait", &data);
    let (code, message) = faulted(Logic::<Papers>::enter(known.clone(), entries("Archive")));
    assert_eq!(code, "unknown_state");
    assert!(message.contains("Archive"), "{message}");
    let (code, _) = faulted(Logic::<Papers>::enter(known.clone(), entries("Done")));
    assert_eq!(code, "no_work");
    let (code, _) = faulted(Logic::<Papers>::transition(
        known.clone(),
        signal("ARCHIVE"),
    ));
    assert_eq!(code, "unknown_trigger");
    let gone = snapshot("Archive", &data);
    let (code, _) = faulted(Logic::<Papers>::transition(gone, signal("CALLED")));
    assert_eq!(code, "unknown_state");
    let works = Logic::<Papers>::enter(known, entries("Wait")).expect("an answer");
    assert!(matches!(works[..], [wire::Work::Wait(_)]));
}
