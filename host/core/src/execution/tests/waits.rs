//! What wait states may wait for, and the ends of children. `signals` tests which state instance takes a signal.

use super::script::{Script, decide, enter, fault, forbidden, json};
use crate::actor::Actor;
use crate::answer::{
    Child, Deadline, Due, OverdueAction, Plan, Reason, Refusal, SignalSubscription, Since, Waiting,
};
use crate::check::samples::{self, way_by as way};
use crate::command::{Command, Lineage};
use crate::event::Event;
use crate::execution::Outcome;
use crate::graph::{FiredBy, Graph, StateKind};
use crate::ids::InstanceId;
use crate::instance::{CHILD_NOT_STARTED, Entity, Status};
use crate::json::Json;
use crate::question::{Occurrence, Source};

/// `Fixture` leads on GO to any wait state. `Wait` takes everything, `Deaf` subscribes to nothing,
/// `Idle` is moved by children alone.
pub(super) fn graph() -> Graph {
    let state = |name: &str, kind| samples::state(name, name, kind);
    let mut sealed = way("Wait", "SEALED", FiredBy::Signal, &["Done"]);
    sealed.permission = Some("errand:seal".into());
    Graph {
        initial: "Desk".into(),
        initiators: vec!["crew".into()],
        states: vec![
            state("Desk", StateKind::Task),
            state("Wait", StateKind::Wait),
            state("Deaf", StateKind::Wait),
            state("Idle", StateKind::Wait),
            state("Done", StateKind::Terminal("DONE".into())),
        ],
        transitions: vec![
            way("Desk", "GO", FiredBy::Decision, &["Wait", "Deaf", "Idle"]),
            way("Desk", "WITHDRAW", FiredBy::Signal, &["Done"]),
            way("Wait", "PAID", FiredBy::Signal, &["Done"]),
            sealed,
            way("Wait", "ENDED", FiredBy::Child, &["Done"]),
            way("Wait", "LATE", FiredBy::Deadline, &["Done"]),
            way("Deaf", "PAID", FiredBy::Signal, &["Done"]),
            way("Idle", "ENDED", FiredBy::Child, &["Done"]),
        ],
        ..Graph::default()
    }
}

fn child(key: &str, on_end: Option<&str>) -> Child {
    Child {
        key: key.into(),
        entity_type: "errand".into(),
        entity_id: key.into(),
        data: r#"{"b": 1, "a": 2.50}"#.into(),
        on_end: on_end.map(str::to_owned),
        detached: false,
    }
}

pub(super) fn signals() -> Waiting {
    Waiting {
        deadlines: vec![],
        subscriptions: vec![],
        children: vec![],
    }
}

pub(super) fn subscription(
    trigger: &str,
    correlation: Option<&str>,
    buffered: bool,
) -> SignalSubscription {
    SignalSubscription {
        trigger: trigger.into(),
        correlation: correlation.map(str::to_owned),
        buffered,
    }
}

fn children(children: Vec<Child>) -> Waiting {
    Waiting {
        children,
        ..signals()
    }
}

fn deadline(action: OverdueAction) -> Deadline {
    Deadline {
        when: Due::After(60),
        since: Since::Created,
        repeat: None,
        action,
    }
}

/// GO leads from the desk to `to`, everything else to the end.
pub(super) fn script(to: &'static str, wait: impl Fn(&str) -> Waiting + 'static) -> Script {
    let plan = move |occurrence: &Occurrence, _: &str, _: &_| {
        let next = if occurrence.trigger == "GO" {
            to
        } else {
            "Done"
        };
        Ok(enter(&[next]))
    };
    let script = Script::new().drawn(graph()).waiting(wait);
    script.planning_for(plan).claimed()
}

pub(super) fn kinds(outcome: &Outcome) -> Vec<&'static str> {
    outcome.events.iter().map(Event::kind).collect()
}

fn ended(script: &Script, child: InstanceId, outcome: &str) -> Command {
    Command::ChildEnded {
        instance: script.instance().id,
        child,
        version: Some(1),
        outcome: outcome.into(),
        data: json(r#"{"result":7}"#),
        reason: None,
    }
}

pub(super) fn is_done(script: &Script) -> bool {
    matches!(&script.instance().status, Status::Completed { outcome, .. } if outcome == "DONE")
}

#[test]
fn a_state_instance_that_waits_has_what_was_said() {
    let mut script = script("Wait", |_| Waiting {
        deadlines: vec![deadline(OverdueAction::Fire("LATE".into()))],
        subscriptions: vec![subscription("PAID", Some("order 7"), true)],
        children: vec![child("b", Some("ENDED")), child("a", None)],
    });
    let outcome = script.go().expect("a wait");
    assert_eq!(
        outcome.events.last().map(Event::kind),
        Some("STATE_ENTERED")
    );
    let state_instance = &script.instance().active[0];
    let subscribed = [subscription("PAID", Some("order 7"), true)];
    assert_eq!(state_instance.subscriptions, subscribed);
    assert!(state_instance.tasks.is_empty());
    assert_eq!(state_instance.due_at, state_instance.deadlines[0].due_at);
    let keys: Vec<_> = state_instance
        .children
        .iter()
        .map(|child| child.key.as_str())
        .collect();
    assert_eq!(keys, ["b", "a"]);
    assert_ne!(state_instance.children[0].id, state_instance.children[1].id);
    assert_eq!(
        state_instance.children[0].data.as_str(),
        r#"{"a":2.50,"b":1}"#
    );
}

/// Each is refused with the first words of `wait`, and these.
#[track_caller]
fn refused(cases: impl IntoIterator<Item = (&'static str, Waiting, &'static str)>) {
    for (state, waiting, says) in cases {
        let mut script = script(state, move |_| waiting.clone());
        let message = fault(script.go());
        assert!(
            message.starts_with("enter: ") && message.contains(says),
            "{message}"
        );
    }
}

#[test]
fn a_wait_that_nothing_could_end_is_the_flows_fault() {
    let fires = |action| Waiting {
        deadlines: vec![deadline(action)],
        ..signals()
    };
    let named = |correlation: &str| Waiting {
        subscriptions: vec![subscription("PAID", Some(correlation), false)],
        ..signals()
    };
    let nothing = "waits for nothing that could move it";
    refused([
        ("Idle", signals(), nothing),
        ("Idle", children(vec![child("k", None)]), nothing),
        (
            "Wait",
            fires(OverdueAction::Remind),
            "reminds, and the state has no tasks",
        ),
        (
            "Wait",
            fires(OverdueAction::Escalate),
            "escalates, and the state has no tasks",
        ),
        (
            "Wait",
            fires(OverdueAction::Release),
            "releases, and the state has no tasks",
        ),
        (
            "Wait",
            fires(OverdueAction::Fire("PAID".into())),
            "declared for no deadline",
        ),
        ("Wait", named(""), "a correlation key is empty"),
        (
            "Wait",
            named(&"x".repeat(201)),
            "a correlation key is longer than 200",
        ),
        (
            "Wait",
            named("cafe\u{301}"),
            "a correlation key is not in Unicode's normal form C",
        ),
    ]);
}

#[test]
fn children_that_could_not_be_are_the_flows_fault() {
    let long = "x".repeat(201);
    let large = format!("\"{}\"", "x".repeat(65_536));
    let many = (0..21).map(|number| child(&format!("k{number}"), Some("ENDED")));
    let with = |change: &dyn Fn(&mut Child)| {
        let mut one = child("k", Some("ENDED"));
        change(&mut one);
        children(vec![one])
    };
    let ends = |trigger: &str| children(vec![child("k", Some(trigger))]);
    let twice = children(vec![child("k", None), child("k", None)]);
    refused([
        (
            "Wait",
            children(many.collect()),
            "starts 20 instances at most, not 21",
        ),
        ("Wait", twice, "twice"),
        (
            "Wait",
            with(&|child| child.key = "No Key".into()),
            "no key of a definition",
        ),
        (
            "Wait",
            with(&|child| child.entity_type.clear()),
            "the entity type",
        ),
        (
            "Wait",
            with(&|child| child.entity_id = "a\nb".into()),
            "the entity id",
        ),
        (
            "Wait",
            with(&|child| child.entity_id.clone_from(&long)),
            "the entity id",
        ),
        (
            "Wait",
            with(&|child| child.entity_type = "cafe\u{301}".into()),
            "the entity type of a child k is not: in Unicode's normal form C",
        ),
        (
            "Wait",
            with(&|child| child.data = "{".into()),
            "the data of a child has",
        ),
        (
            "Wait",
            with(&|child| child.data.clone_from(&large)),
            "longer than 65536 bytes",
        ),
        (
            "Wait",
            with(&|child| child.data = "[]".into()),
            "the data of a child is no JSON object",
        ),
        ("Wait", ends("PAID"), "declared for no child"),
        ("Wait", ends("NO"), "declared for no child"),
    ]);
}

#[test]
fn a_childs_end_fires_once() {
    let script = Script::new().drawn(graph());
    let script = script.waiting(|_| {
        children(vec![
            child("a", Some("ENDED")),
            child("b", Some("ENDED")),
            child("c", None),
        ])
    });
    let mut script = script
        .planning_for(|occurrence, from, instance| {
            if from == "Desk" {
                return Ok(enter(&["Wait"]));
            }
            let Source::Child { key, outcome, .. } = &occurrence.source else {
                panic!("only children move it");
            };
            assert_eq!(occurrence.input.as_str(), r#"{"result":7}"#);
            let state_instance = &instance.active[0];
            let known = state_instance
                .children
                .iter()
                .find(|child| child.key == *key);
            assert_eq!(
                known.and_then(|child| child.outcome.as_ref()),
                Some(outcome)
            );
            let waits = state_instance
                .children
                .iter()
                .any(|child| child.on_end.is_some() && child.outcome.is_none());
            Ok(if waits {
                Plan::default()
            } else {
                enter(&["Done"])
            })
        })
        .claimed();
    script.go().expect("a wait");
    let ids: Vec<_> = script.instance().active[0]
        .children
        .iter()
        .map(|child| child.id)
        .collect();
    let run = |script: &mut Script, child, outcome| {
        let command = ended(script, child, outcome);
        script.run_as(&Actor::host(), &command).expect("an end")
    };
    let outcome = run(&mut script, ids[0], "FINE");
    assert_eq!(kinds(&outcome), ["CHILD_ENDED", "STATE_CONTINUED"]);
    assert_eq!(run(&mut script, ids[0], "FINE").events, []);
    assert_eq!(
        run(&mut script, InstanceId(uuid::Uuid::nil()), "FINE").events,
        []
    );
    assert_eq!(kinds(&run(&mut script, ids[2], "ODD")), ["CHILD_ENDED"]);
    run(&mut script, ids[1], CHILD_NOT_STARTED);
    assert!(is_done(&script));
    assert_eq!(run(&mut script, ids[1], "FINE").events, []);
}

#[test]
fn a_refused_end_is_recorded() {
    let script = Script::new().drawn(graph());
    let mut script = script
        .waiting(|_| children(vec![child("a", Some("ENDED"))]))
        .planning(|from, _| match from {
            "Desk" => Ok(enter(&["Wait"])),
            _ => Err(Refusal::NotNow(Reason {
                code: "no".into(),
                message: "not so".into(),
            })),
        })
        .claimed();
    script.go().expect("a wait");
    let command = ended(&script, script.instance().active[0].children[0].id, "FINE");
    let outcome = script.run_as(&Actor::host(), &command).expect("an end");
    assert_eq!(kinds(&outcome), ["CHILD_ENDED", "TRIGGER_REFUSED"]);
}

/// The host starts a child for its parent's initiator, whom flow logic sees without groups.
#[test]
fn a_child_has_its_parents_requesters_and_no_borrowed_standing() {
    let mut script = Script::new().starting(|by| {
        assert_eq!((by.id.as_str(), &by.groups[..]), ("ann", &[][..]));
        Ok(())
    });
    let lineage = Lineage {
        id: Some(InstanceId(uuid::Uuid::from_u128(77))),
        initiator: Some("ann".into()),
        predecessor: None,
        parent: Some(InstanceId(uuid::Uuid::from_u128(7))),
        requesters: vec!["ann".into(), "bob".into()],
    };
    let command = Command::Start {
        definition: "subflows".into(),
        entity: Entity {
            kind: "errand".into(),
            id: "1".into(),
        },
        data: json(r#"{"title":"A part"}"#),
        lineage: Some(Box::new(lineage)),
    };
    let outcome = script.run_as(&Actor::host(), &command).expect("a start");
    let instance = script.instance();
    assert_eq!(instance.id.0.as_u128(), 77);
    assert_eq!(instance.requesters, ["ann", "bob"]);
    assert_eq!(instance.active[0].caller, None);
    assert!(matches!(
        &outcome.events[0],
        Event::FlowStarted {
            parent: Some(_),
            ..
        }
    ));
    let task = script.task(0);
    assert_eq!(
        forbidden(script.run("bob", &Command::Claim { task })),
        "own_request"
    );
    script
        .run("cat", &Command::Claim { task })
        .expect("a claim");
    script.run("cat", &decide(task, "GO")).expect("a decision");
    assert_eq!(instance_data(&script), r#"{"title":"A part"}"#);
}

fn instance_data(script: &Script) -> &str {
    let data: &Json = &script.instance().data;
    data.as_str()
}
