//! What wait states may wait for, who takes a signal, and what becomes of children's ends.

use super::script::{Script, decide, enter, fault, forbidden, json, person, rejection};
use crate::domain::actor::Actor;
use crate::domain::answer::{
    Child, Deadline, Due, OverdueAction, Plan, Reason, Verdict, Violation, Waiting,
};
use crate::domain::command::{Command, Lineage};
use crate::domain::event::Event;
use crate::domain::graph::{FiredBy, Graph, State, StateKind, Transition};
use crate::domain::ids::InstanceId;
use crate::domain::instance::{CHILD_NOT_STARTED, Entity, Status};
use crate::domain::json::Json;
use crate::domain::question::{Occurrence, Source};
use crate::domain::rejection::Rejection;
use crate::domain::turn::{EARLY_MAX, Outcome, TurnError};

/// `Desk` leads on GO to any wait state. `Wait` takes everything, `Deaf` is meant to be asked without `keep_early`,
/// `Idle` is moved by children alone.
fn graph() -> Graph {
    let state = |name: &str, kind| State {
        name: name.into(),
        title: name.into(),
        kind,
        join: false,
        own_work: false,
    };
    let way = |source: &str, trigger: &str, by, targets: &[&str]| Transition {
        source: source.into(),
        trigger: trigger.into(),
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        by: vec![by],
        permission: None,
    };
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
        data_schema: None,
        attributes: vec![],
    }
}

fn child(key: &str, on_end: Option<&str>) -> Child {
    Child {
        key: key.into(),
        entity_type: "errand".into(),
        entity_id: key.into(),
        data: r#"{"b": 1, "a": 2.50}"#.into(),
        on_end: on_end.map(str::to_owned),
    }
}

fn signals() -> Waiting {
    Waiting {
        deadlines: vec![],
        correlation: None,
        keep_early: false,
        children: vec![],
    }
}

fn early() -> Waiting {
    Waiting {
        keep_early: true,
        ..signals()
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
        repeat: None,
        action,
    }
}

/// GO leads from the desk to `to`, everything else to the end.
fn script(to: &'static str, wait: impl Fn(&str) -> Waiting + 'static) -> Script {
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

fn signal(script: &Script, trigger: &str, id: &str) -> Command {
    Command::Signal {
        instance: script.instance().id,
        trigger: trigger.into(),
        id: id.into(),
        input: json(r#"{"amount":1.50}"#),
    }
}

fn send(script: &mut Script, trigger: &str, id: &str) -> Result<Outcome, TurnError> {
    let command = signal(script, trigger, id);
    script.run("sam", &command)
}

fn kinds(outcome: &Outcome) -> Vec<&'static str> {
    outcome.events.iter().map(Event::kind).collect()
}

fn ended(script: &Script, child: InstanceId, outcome: &str) -> Command {
    Command::ChildEnded {
        instance: script.instance().id,
        child,
        outcome: outcome.into(),
        data: json(r#"{"result":7}"#),
        reason: None,
    }
}

fn is_done(script: &Script) -> bool {
    matches!(&script.instance().status, Status::Completed { outcome, .. } if outcome == "DONE")
}

#[test]
fn a_stay_that_waits_has_what_was_said() {
    let mut script = script("Wait", |_| Waiting {
        deadlines: vec![deadline(OverdueAction::Fire("LATE".into()))],
        correlation: Some("order 7".into()),
        keep_early: true,
        children: vec![child("b", Some("ENDED")), child("a", None)],
    });
    let outcome = script.go().expect("a wait");
    assert_eq!(
        outcome.events.last().map(Event::kind),
        Some("STATE_ENTERED")
    );
    let stay = &script.instance().active[0];
    assert_eq!(stay.correlation.as_deref(), Some("order 7"));
    assert!(stay.keep_early && stay.tasks.is_empty());
    assert_eq!(stay.due_at, Some(stay.deadlines[0].due_at));
    let keys: Vec<_> = stay
        .children
        .iter()
        .map(|child| child.key.as_str())
        .collect();
    assert_eq!(keys, ["b", "a"]);
    assert_ne!(stay.children[0].id, stay.children[1].id);
    assert_eq!(stay.children[0].data.as_str(), r#"{"a":2.50,"b":1}"#);
}

#[test]
fn what_cannot_be_waited_for_is_the_flows_fault() {
    let long = "x".repeat(201);
    let many = (0..21).map(|number| child(&format!("k{number}"), Some("ENDED")));
    let with = |change: &dyn Fn(&mut Child)| {
        let mut one = child("k", Some("ENDED"));
        change(&mut one);
        children(vec![one])
    };
    let fires = |trigger: &str| Waiting {
        deadlines: vec![deadline(OverdueAction::Fire(trigger.into()))],
        ..signals()
    };
    let named = |correlation: &str| Waiting {
        correlation: Some(correlation.into()),
        ..signals()
    };
    let large = format!("\"{}\"", "x".repeat(65_536));
    for (state, waiting, says) in [
        ("Idle", signals(), "waits for nothing that could move it"),
        (
            "Idle",
            children(vec![child("k", None)]),
            "waits for nothing",
        ),
        (
            "Idle",
            Waiting {
                deadlines: vec![deadline(OverdueAction::Remind)],
                ..signals()
            },
            "waits for nothing",
        ),
        ("Wait", fires("PAID"), "declared for no deadline"),
        ("Wait", named(""), "a correlation is empty"),
        ("Wait", named(&long), "a correlation is longer than 200"),
        (
            "Wait",
            children(many.collect()),
            "starts 20 instances at most, not 21",
        ),
        (
            "Wait",
            children(vec![child("k", None), child("k", None)]),
            "twice",
        ),
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
            with(&|child| child.entity_id = long.clone()),
            "the entity id",
        ),
        (
            "Wait",
            with(&|child| child.data = "{".into()),
            "the data of a child has",
        ),
        (
            "Wait",
            with(&|child| child.data = large.clone()),
            "longer than 65536 bytes",
        ),
        (
            "Wait",
            with(&|child| child.on_end = Some("PAID".into())),
            "declared for no child",
        ),
        (
            "Wait",
            with(&|child| child.on_end = Some("NO".into())),
            "declared for no child",
        ),
    ] {
        let mut script = script(state, move |_| waiting.clone());
        let message = fault(script.go());
        assert!(
            message.starts_with("wait: ") && message.contains(says),
            "{message}"
        );
    }
}

#[test]
fn a_signal_moves_the_oldest_stay_that_takes_it() {
    let mut script = script("Wait", |_| signals());
    script.go().expect("a wait");
    let outcome = send(&mut script, "PAID", "1").expect("a signal");
    assert_eq!(
        kinds(&outcome),
        [
            "SIGNAL_RECEIVED",
            "STATE_TRANSITIONED",
            "STATE_ENTERED",
            "FLOW_COMPLETED"
        ]
    );
    assert!(matches!(&outcome.events[0],
        Event::SignalReceived { state: Some(_), sender, .. } if sender.id == "sam"));
    let late = rejection(send(&mut script, "PAID", "2"));
    assert!(matches!(late, Rejection::Ended { .. }), "{late:?}");
}

/// A requester may take the request back: that is a signal, never a decision.
#[test]
fn requesters_signal_and_no_signal_decides() {
    let mut script = script("Wait", |_| signals());
    let command = signal(&script, "GO", "1");
    let refused = rejection(script.run("ann", &command));
    assert!(matches!(&refused, Rejection::Invalid(violations)
        if violations[0].code == "unknown_signal" && violations[0].message.ends_with("PAID, SEALED, WITHDRAW")));
    let command = signal(&script, "WITHDRAW", "1");
    let outcome = script.run("ann", &command).expect("a withdrawal");
    assert!(kinds(&outcome).contains(&"TASK_CANCELLED") && is_done(&script));
}

#[test]
fn signals_need_an_id_and_the_permission_of_their_way() {
    let mut script = script("Wait", |_| signals());
    script.go().expect("a wait");
    for id in [String::new(), "x".repeat(201), "a\0b".into()] {
        let refused = rejection(send(&mut script, "PAID", &id));
        assert!(matches!(refused, Rejection::Invalid(_)), "{refused:?}");
    }
    assert_eq!(
        forbidden(send(&mut script, "SEALED", "1")),
        "permission_missing"
    );
    let sealer = Actor {
        permissions: vec!["errand:seal".into()],
        ..person("sue")
    };
    let command = signal(&script, "SEALED", "1");
    script.run_as(&sealer, &command).expect("a seal");
    assert!(is_done(&script));
}

#[test]
fn the_guard_judges_a_signal_by_its_sender() {
    let guard = |occurrence: &Occurrence| match &occurrence.source {
        Source::Signal(actor) if actor.id == "sam" => Verdict::Deny(Reason {
            code: "not_you".into(),
            message: "somebody else".into(),
        }),
        _ => Verdict::Allow,
    };
    let mut script = script("Wait", |_| signals()).guarding(guard);
    script.go().expect("a wait");
    assert_eq!(forbidden(send(&mut script, "PAID", "1")), "not_you");
    let command = signal(&script, "PAID", "1");
    script.run("sue", &command).expect("a signal");
}

#[test]
fn early_signals_are_kept_for_those_who_count_them() {
    let mut script = script("Wait", |_| early());
    let outcome = send(&mut script, "PAID", "1").expect("a signal");
    assert_eq!(kinds(&outcome), ["SIGNAL_RECEIVED"]);
    assert_eq!(script.instance().early.len(), 1);
    let outcome = script.go().expect("a wait");
    let kinds = kinds(&outcome);
    let (entered, rest) = kinds.split_at(kinds.len() - 4);
    assert_eq!(entered.last(), Some(&"STATE_ENTERED"));
    assert_eq!(
        rest,
        [
            "SIGNAL_TAKEN",
            "STATE_TRANSITIONED",
            "STATE_ENTERED",
            "FLOW_COMPLETED"
        ]
    );
    assert!(script.instance().early.is_empty() && is_done(&script));
}

#[test]
fn early_signals_are_dropped_by_those_who_do_not() {
    let mut script = script("Deaf", |_| signals());
    send(&mut script, "PAID", "1").expect("a signal");
    send(&mut script, "SEALED", "2").expect("a signal");
    let outcome = script.go().expect("a wait");
    assert_eq!(kinds(&outcome).last(), Some(&"SIGNAL_TAKEN"));
    // What the state does not take is not its to drop.
    let kept: Vec<_> = script
        .instance()
        .early
        .iter()
        .map(|signal| signal.id.as_str())
        .collect();
    assert_eq!(kept, ["2"]);
    assert_eq!(script.instance().active[0].name, "Deaf");
}

/// Judged with the sender's standing at the sending; a refused one does not keep the next from counting.
#[test]
fn a_refused_early_signal_is_recorded_and_the_next_is_tried() {
    let guard = |occurrence: &Occurrence| match &occurrence.source {
        Source::Signal(actor) if actor.id == "mal" => Verdict::Invalid(vec![Violation {
            field: "/amount".into(),
            code: "too_little".into(),
            message: "pay more".into(),
        }]),
        _ => Verdict::Allow,
    };
    let mut script = script("Wait", |_| early()).guarding(guard);
    for (sender, trigger, id) in [
        ("sam", "SEALED", "0"),
        ("mal", "PAID", "1"),
        ("sam", "PAID", "2"),
        ("sam", "PAID", "3"),
    ] {
        let command = signal(&script, trigger, id);
        script.run(sender, &command).expect("a signal");
    }
    let outcome = script.go().expect("a wait");
    let refused: Vec<_> = outcome
        .events
        .iter()
        .filter_map(|event| match event {
            Event::TriggerRefused { code, .. } => Some(code.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(refused, ["permission_missing", "too_little"]);
    assert!(is_done(&script));
    let left: Vec<_> = script
        .instance()
        .early
        .iter()
        .map(|signal| signal.id.as_str())
        .collect();
    assert_eq!(left, ["3"]);
}

#[test]
fn so_many_early_signals_are_kept_and_no_more() {
    let mut script = script("Wait", |_| early());
    for number in 0..EARLY_MAX {
        send(&mut script, "PAID", &number.to_string()).expect("a signal");
    }
    let full = rejection(send(&mut script, "PAID", "one more"));
    assert_eq!(full.code(), "limit_reached");
    // One that moves something needs no place.
    send(&mut script, "WITHDRAW", "now").expect("a signal");
    assert!(is_done(&script));
}

#[test]
fn a_plan_that_refuses_an_early_signal_leaves_the_state_waiting() {
    let script = Script::new().drawn(graph()).waiting(|_| early());
    let mut script = script
        .planning(|from, _| match from {
            "Desk" => Ok(enter(&["Wait"])),
            _ => Err(Reason {
                code: "not_yet".into(),
                message: "later".into(),
            }),
        })
        .claimed();
    send(&mut script, "PAID", "1").expect("a signal");
    let outcome = script.go().expect("a wait");
    assert_eq!(kinds(&outcome).last(), Some(&"TRIGGER_REFUSED"));
    assert_eq!(script.instance().active[0].name, "Wait");
    // Whoever sends one now is told.
    let refused = rejection(send(&mut script, "PAID", "2"));
    assert!(matches!(refused, Rejection::Refused(_)), "{refused:?}");
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
            let stay = &instance.active[0];
            let known = stay.children.iter().find(|child| child.key == *key);
            assert_eq!(
                known.and_then(|child| child.outcome.as_ref()),
                Some(outcome)
            );
            let waits = stay
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
            _ => Err(Reason {
                code: "no".into(),
                message: "not so".into(),
            }),
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
    let mut script = Script::new().guarding(|occurrence| match &occurrence.source {
        Source::Start(actor) => {
            assert_eq!((actor.id.as_str(), &actor.groups[..]), ("ann", &[][..]));
            Verdict::Allow
        }
        _ => Verdict::Allow,
    });
    let lineage = Lineage {
        id: Some(InstanceId(uuid::Uuid::from_u128(77))),
        initiator: Some("ann".into()),
        predecessor: None,
        parent: Some(InstanceId(uuid::Uuid::from_u128(7))),
        requesters: vec!["ann".into(), "bob".into()],
    };
    let command = Command::Start {
        definition: "errands".into(),
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
