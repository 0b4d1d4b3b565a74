//! Service states: what a call may say, and what follows from a reply, a failure or a report that comes too late.

use std::cell::RefCell;
use std::rc::Rc;

use super::deadlines::after;
use super::migration::{migrate, unfit};
use super::script::{Script, enter, fault, json, rejection, start};
use super::waits::kinds;
use crate::actor::Actor;
use crate::answer::{
    Assignment, Deadline, Due, Next, OverdueAction, Plan, Reason, Refusal, ServiceCall, Since,
    Target, Work,
};
use crate::check::samples::{self, way_by as way};
use crate::command::Command;
use crate::event::Event;
use crate::execution::{ExecutionError, Outcome, TIMEOUT_SECONDS_MAX};
use crate::graph::{FiredBy, Graph, StateKind};
use crate::ids::StateId;
use crate::instance::{CallResult, Status};
use crate::question::{Occurrence, Source};
use crate::rejection::Rejection;

/// `Score` calls a service; `Manual` is the fallback. `LATE` ends the call.
fn graph() -> Graph {
    let state = |name: &str, kind| samples::state(name, name, kind);
    let mut scored = way("Score", "SCORED", FiredBy::Reply, &["Done", "Manual"]);
    scored.input = Some(json(
        r#"{"type":"object","properties":{"score":{"type":"number"}},"required":["score"]}"#,
    ));
    Graph {
        initial: "Score".into(),
        states: vec![
            state("Score", StateKind::Service),
            state("Manual", StateKind::Task),
            state("Done", StateKind::Terminal("DONE".into())),
        ],
        transitions: vec![
            scored,
            way("Score", "UNSCORED", FiredBy::Failure, &["Manual"]),
            way("Score", "LATE", FiredBy::Deadline, &["Manual"]),
            way("Score", "SKIPPED", FiredBy::Signal, &["Manual"]),
            way("Manual", "GO", FiredBy::Decision, &["Done"]),
        ],
        ..Graph::default()
    }
}

fn call() -> ServiceCall {
    ServiceCall {
        service: "scorer".into(),
        request: r#"{"b": 1, "a": 2.50}"#.into(),
        timeout: 30,
        retries: vec![10, 60],
        on_reply: "SCORED".into(),
        on_failure: "UNSCORED".into(),
        deadlines: vec![],
        subscriptions: vec![],
    }
}

type Seen = Rc<RefCell<Vec<Occurrence>>>;

/// Calls the service, and goes on as `plan` says. Also returns the occurrences that `transition` is told.
fn calling(call: ServiceCall, plan: impl Fn(&Occurrence) -> Plan + 'static) -> (Script, Seen) {
    answering(call, move |occurrence| Ok(plan(occurrence)))
}

/// The same, with a plan that may be a refusal.
fn answering(
    call: ServiceCall,
    plan: impl Fn(&Occurrence) -> Result<Plan, Refusal> + 'static,
) -> (Script, Seen) {
    let seen = Seen::default();
    let noted = seen.clone();
    let script = Script::new()
        .drawn(graph())
        .entering(move |entries| {
            let work = |state: &str| match state {
                "Score" => Work::Service(call.clone()),
                _ => Work::Task(super::script::offers(&["crew"])),
            };
            Ok(entries.iter().map(|entry| work(&entry.state)).collect())
        })
        .planning_for(move |occurrence, _, _| {
            noted.borrow_mut().push(occurrence.clone());
            plan(occurrence)
        });
    (script, seen)
}

fn too_early() -> Refusal {
    Refusal::NotNow(Reason {
        code: "too_early".into(),
        message: "later".into(),
    })
}

/// A reply leads to the end, everything else to the manual fallback.
fn usual(occurrence: &Occurrence) -> Plan {
    match occurrence.trigger.as_str() {
        "SCORED" | "GO" => enter(&["Done"]),
        _ => enter(&["Manual"]),
    }
}

fn answered(script: &Script, state: StateId, output: &str) -> Command {
    Command::ServiceAnswered {
        instance: script.instance().id,
        state,
        attempts: 2,
        output: json(output),
        model: Some("scorer".into()),
        model_version: Some("2026-11".into()),
    }
}

fn failed(script: &Script, state: StateId) -> Command {
    Command::ServiceFailed {
        instance: script.instance().id,
        state,
        attempts: 3,
        error: "the service answered 500".into(),
    }
}

fn state(script: &Script) -> StateId {
    script.instance().active[0].id
}

fn report(script: &mut Script, command: &Command) -> Result<Outcome, ExecutionError> {
    script.run_as(&Actor::host(), command)
}

#[test]
fn a_state_instance_has_the_call_that_was_asked_for() {
    let (script, _) = calling(call(), usual);
    let mut script = script;
    let outcome = script.run("ann", &start()).expect("a start");
    assert_eq!(
        kinds(&outcome),
        ["FLOW_STARTED", "STATE_ENTERED", "SERVICE_REQUESTED"]
    );
    let open = script.instance().active[0].open_call().expect("a call");
    assert_eq!(open.request, json(r#"{"a":2.50,"b":1}"#));
    assert_eq!(
        (open.service.as_str(), open.timeout, &open.retries[..]),
        ("scorer", 30, &[10, 60][..])
    );
}

#[test]
fn a_reply_fires_its_trigger_and_says_who_answered() {
    let (script, seen) = calling(call(), usual);
    let mut script = script.started();
    let state = state(&script);
    let command = answered(&script, state, r#"{"score":0.5}"#);
    let outcome = report(&mut script, &command).expect("a reply");
    assert_eq!(
        kinds(&outcome),
        [
            "SERVICE_ANSWERED",
            "STATE_TRANSITIONED",
            "STATE_ENTERED",
            "FLOW_COMPLETED"
        ]
    );
    let result = CallResult {
        attempts: 2,
        error: None,
        model: Some("scorer".into()),
        model_version: Some("2026-11".into()),
    };
    let [occurrence] = &seen.borrow()[..] else {
        panic!("asked once")
    };
    assert_eq!(occurrence.input, json(r#"{"score":0.5}"#));
    let expected = Source::Service {
        service: "scorer".into(),
        result: result.clone(),
    };
    assert_eq!(occurrence.source, expected);
    let past = &script.instance().past[0].state;
    let kept = past.call.as_ref().and_then(|call| call.result.clone());
    assert_eq!(kept, Some(result));
    assert_eq!(script.asked, ["start", "enter", "transition"]);
}

#[test]
fn the_failure_of_the_last_attempt_fires_the_other_trigger() {
    let (script, seen) = calling(call(), usual);
    let mut script = script.started();
    let command = failed(&script, state(&script));
    let outcome = report(&mut script, &command).expect("a failure");
    assert_eq!(
        kinds(&outcome)[..2],
        ["SERVICE_FAILED", "STATE_TRANSITIONED"]
    );
    let occurrence = seen.borrow()[0].clone();
    assert_eq!(
        (occurrence.trigger.as_str(), occurrence.input.as_str()),
        ("UNSCORED", "{}")
    );
    assert!(
        matches!(&occurrence.source, Source::Service { result: CallResult { attempts: 3, error: Some(error), .. }, .. }
            if error == "the service answered 500"),
        "{occurrence:?}"
    );
    assert_eq!(script.instance().active[0].name, "Manual");
}

#[test]
fn a_reply_that_does_not_fit_changes_nothing() {
    let (script, seen) = calling(call(), usual);
    let mut script = script.started();
    let state = state(&script);
    let before = script.instance().clone();
    let long = format!(r#"{{"score":1,"why":"{}"}}"#, "x".repeat(64 << 10));
    for (output, field) in [
        (r#"{"score":"high"}"#, "/input/score"),
        ("{}", "/input/score"),
        ("7", "/output"),
        (long.as_str(), "/output"),
    ] {
        let command = answered(&script, state, output);
        match rejection(report(&mut script, &command)) {
            Rejection::Invalid(violations) => {
                assert_eq!(
                    violations[0].field,
                    field,
                    "{}",
                    &output[..output.len().min(20)]
                );
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(*script.instance(), before);
    assert!(seen.borrow().is_empty());
}

#[test]
fn a_repeated_report_changes_nothing() {
    let (script, seen) = calling(call(), |_| Plan::default());
    let mut script = script.started();
    let state = state(&script);
    let command = answered(&script, state, r#"{"score":1}"#);
    report(&mut script, &command).expect("a reply, and the state goes on for its signal");
    for again in [command, failed(&script, state)] {
        let outcome = report(&mut script, &again).expect("a repetition");
        assert_eq!(outcome.events, []);
    }
    assert_eq!(seen.borrow().len(), 1);
}

#[test]
fn a_state_goes_on_only_while_something_may_move_it() {
    let (script, _) = calling(call(), |_| Plan::default());
    let mut script = script.started();
    script.redraw(|graph| {
        graph
            .transitions
            .retain(|way| !way.by.contains(&FiredBy::Signal));
    });
    let command = answered(&script, state(&script), r#"{"score":1}"#);
    let message = fault(report(&mut script, &command));
    assert!(
        message.contains("nothing left that could move it"),
        "{message}"
    );
    // While the call is open, it may still move the state.
    let spawning = |occurrence: &Occurrence| match occurrence.trigger.as_str() {
        "LATE" => Plan {
            next: Next::Spawn(vec![Target::new("Manual")]),
            ..Plan::default()
        },
        _ => enter(&["Done"]),
    };
    let late = Deadline {
        when: Due::After(60),
        since: Since::Created,
        repeat: None,
        action: OverdueAction::Fire("LATE".into()),
    };
    let call = ServiceCall {
        deadlines: vec![late],
        ..call()
    };
    let (script, _) = calling(call, spawning);
    let mut script = script.started();
    let open = script.instance().active[0].deadlines[0].clone();
    script.at(100);
    let command = Command::Deadline {
        instance: script.instance().id,
        deadline: open.id,
        due_at: open.due_at.expect("it counts"),
    };
    report(&mut script, &command).expect("a deadline");
    let active = &script.instance().active;
    assert!(active.iter().any(|one| one.open_call().is_some()) && active.len() == 2);
}

#[test]
fn a_reply_that_comes_too_late_is_recorded_and_dropped() {
    let (script, seen) = calling(call(), usual);
    let mut script = script.started();
    let state = state(&script);
    let signal = Command::Signal {
        instance: script.instance().id,
        trigger: "SKIPPED".into(),
        id: "s-1".into(),
        input: json("{}"),
        correlation: None,
        state: None,
    };
    script.run("ann", &signal).expect("a signal");
    let count = seen.borrow().len();
    let command = answered(&script, state, r#"{"score":1}"#);
    let outcome = report(&mut script, &command).expect("a late reply");
    assert!(
        matches!(&outcome.events[..], [Event::TriggerRefused { state: of, trigger, code, .. }]
            if (*of, trigger.as_str(), code.as_str()) == (state, "SCORED", "too_late")),
        "{:?}",
        outcome.events
    );
    let command = failed(&script, state);
    let outcome = report(&mut script, &command).expect("a late failure");
    assert_eq!(outcome.events, []);
    assert_eq!(seen.borrow().len(), count);
    let cancel = Command::Cancel {
        instance: script.instance().id,
        reason: "over".into(),
    };
    script.run("ann", &cancel).expect("a cancellation");
    let command = answered(&script, state, r#"{"score":1}"#);
    let ended = rejection(report(&mut script, &command));
    assert!(matches!(ended, Rejection::Ended { .. }), "{ended:?}");
}

#[test]
fn a_refused_reply_is_recorded_and_the_call_is_over() {
    let (script, _) = answering(call(), |_| Err(too_early()));
    let mut script = script.started();
    let command = answered(&script, state(&script), r#"{"score":1}"#);
    let outcome = report(&mut script, &command).expect("a reply");
    assert_eq!(kinds(&outcome), ["SERVICE_ANSWERED", "TRIGGER_REFUSED"]);
    let state_instance = &script.instance().active[0];
    assert!(state_instance.call.is_some() && state_instance.open_call().is_none());
}

#[test]
fn a_suspended_instance_takes_no_report() {
    let (script, _) = calling(call(), usual);
    let mut script = script.started();
    let instance = script.instance().id;
    let reason = "audit".to_owned();
    let suspend = Command::Suspend { instance, reason };
    script.run("ann", &suspend).expect("a suspension");
    let command = answered(&script, state(&script), r#"{"score":1}"#);
    let refused = rejection(report(&mut script, &command));
    assert!(
        matches!(refused, Rejection::Suspended { .. }),
        "{refused:?}"
    );
    script
        .run("ann", &Command::Resume { instance })
        .expect("a resumption");
    report(&mut script, &command).expect("a reply");
    assert!(matches!(script.instance().status, Status::Completed { .. }));
}

#[test]
fn a_migration_keeps_the_call_if_its_triggers_stay() {
    let (script, _) = calling(call(), usual);
    let mut kept = script.followed_by(|_| ()).started();
    migrate(&mut kept, &[]).expect("a migration");
    let command = answered(&kept, state(&kept), r#"{"score":1}"#);
    report(&mut kept, &command).expect("a reply");
    assert!(matches!(kept.instance().status, Status::Completed { .. }));

    let (script, _) = calling(call(), usual);
    let renamed = |graph: &mut Graph| {
        for way in &mut graph.transitions {
            way.trigger = way.trigger.replace("SCORED", "RATED");
        }
    };
    let mut lost = script.followed_by(renamed).started();
    let unknown = "/states/Score unknown_trigger";
    assert_eq!(unfit(&mut lost, &[]), [unknown, unknown]);
}

/// The flow has refused the reply, so only a signal moves the state.
#[test]
fn a_migration_needs_what_moves_the_state_once_its_call_is_over() {
    let refused = |change: fn(&mut Graph)| {
        let (script, _) = answering(call(), |_| Err(too_early()));
        let mut script = script.followed_by(change).started();
        let command = answered(&script, state(&script), r#"{"score":1}"#);
        report(&mut script, &command).expect("a refusal on record");
        script
    };
    migrate(&mut refused(|_| ()), &[]).expect("the signal moves it");
    let mut lost = refused(|graph| graph.transitions.retain(|way| way.trigger != "SKIPPED"));
    assert_eq!(unfit(&mut lost, &[]), ["/states/Score nothing_moves_it"]);
}

#[test]
fn a_call_within_its_bounds_is_made_and_no_other() {
    let change = |change: fn(&mut ServiceCall)| {
        let mut call = call();
        change(&mut call);
        let (mut script, _) = calling(call, usual);
        script.run("ann", &start())
    };
    for (wrong, words) in [
        (
            (|call| call.service = "a b".into()) as fn(&mut ServiceCall),
            "no name of a service",
        ),
        (|call| call.request = "{".into(), "the request to a service"),
        (
            |call| call.request = format!("\"{}\"", "x".repeat(64 << 10)),
            "longer than 65536 bytes",
        ),
        (|call| call.timeout = 0, "1 to 120 seconds, not 0"),
        (
            |call| call.timeout = TIMEOUT_SECONDS_MAX + 1,
            "1 to 120 seconds, not 121",
        ),
        (
            |call| call.retries = vec![1; 11],
            "10 times at most, not 11",
        ),
        (|call| call.retries = vec![10, 0], "seconds, not 0"),
        (
            |call| call.retries = vec![7 * 24 * 60 * 60 + 1],
            "1 to 604800 seconds, not 604801",
        ),
        (
            |call| call.on_reply = "UNSCORED".into(),
            "declared for no reply there",
        ),
        (
            |call| call.on_failure = "NOWHERE".into(),
            "declared for no failure there",
        ),
        (
            |call| call.deadlines = vec![after(60, OverdueAction::Remind)],
            "reminds, and the state has no tasks",
        ),
        (
            |call| call.deadlines = vec![after(60, OverdueAction::Escalate)],
            "escalates, and the state has no tasks",
        ),
        (
            |call| call.deadlines = vec![after(60, OverdueAction::Release)],
            "releases, and the state has no tasks",
        ),
    ] {
        let message = fault(change(wrong));
        assert!(message.contains(words), "{message}");
    }
    for allowed in [
        (|call| call.timeout = TIMEOUT_SECONDS_MAX) as fn(&mut ServiceCall),
        |call| call.retries = vec![7 * 24 * 60 * 60; 10],
        |call| call.retries = vec![],
        |call| call.request = "null".into(),
        |call| call.deadlines = vec![after(60, OverdueAction::Cancel("too late".into()))],
    ] {
        change(allowed).expect("a start");
    }
}

#[test]
fn work_of_another_kind_is_a_fault() {
    let (script, _) = calling(call(), usual);
    let mut script = script.entering(|_| Ok(vec![Work::Task(Assignment::default())]));
    let message = fault(script.run("ann", &start()));
    assert!(message.contains("Score is a service state"), "{message}");
}
