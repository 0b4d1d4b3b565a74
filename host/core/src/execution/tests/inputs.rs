//! What transitions say of their input: the schema of decisions and signals, and the rule for comments.

use super::script::{Script, enter, json, offers, rejection};
use super::waits;
use crate::answer::{Violation, Waiting};
use crate::check::samples;
use crate::command::Command;
use crate::event::Event;
use crate::graph::{CommentRule, FiredBy, Graph, State, StateKind, Transition};
use crate::instance::{Instance, Status};
use crate::question::Occurrence;
use crate::rejection::Rejection;

const PAGES: &str =
    r#"{"type":"object","properties":{"pages":{"type":"integer"}},"required":["pages"]}"#;
const TEXT: &str =
    r#"{"type":"object","properties":{"pages":{"type":"string"}},"required":["pages"]}"#;

/// `Review` takes GO with pages and a comment, BACK without a comment, STOP with either, and the signal CALL with pages. `Hold`
/// takes CALL with a text.
fn graph() -> Graph {
    let task = |name: &str| samples::state(name, name, StateKind::Task);
    let with = |way: Transition, schema: &str, comment| Transition {
        input: Some(json(schema)),
        comment,
        ..way
    };
    let call = |source: &str| samples::way_by(source, "CALL", FiredBy::Signal, &["Done"]);
    Graph {
        initial: "Review".into(),
        states: vec![
            task("Review"),
            samples::state("Hold", "Hold", StateKind::Wait),
            State {
                kind: StateKind::Terminal("DONE".into()),
                ..task("Done")
            },
        ],
        transitions: vec![
            with(
                samples::way("Review", "GO", &["Done"]),
                PAGES,
                CommentRule::Required,
            ),
            Transition {
                comment: CommentRule::None,
                ..samples::way("Review", "BACK", &["Hold"])
            },
            samples::way("Review", "STOP", &["Done"]),
            with(call("Hold"), TEXT, CommentRule::Optional),
        ],
        initiators: vec![],
        ..samples::document_approval()
    }
}

fn script(graph: Graph) -> Script {
    let mut script = Script::new().drawn(graph);
    script = script.assigning(|_| offers(&["crew"]));
    let plan = |occurrence: &Occurrence, _: &str, _: &Instance| {
        Ok(match occurrence.trigger.as_str() {
            "BACK" => enter(&["Hold"]),
            _ => enter(&["Done"]),
        })
    };
    script
        .planning_for(plan)
        .waiting(|_| Waiting {
            subscriptions: vec![waits::subscription("CALL", None, true)],
            ..waits::signals()
        })
        .claimed()
}

fn decide(script: &Script, outcome: &str, comment: Option<&str>, input: &str) -> Command {
    Command::Decide {
        task: script.task(0),
        outcome: outcome.into(),
        comment: comment.map(str::to_owned),
        input: json(input),
    }
}

fn signal(script: &Script, id: &str, input: &str) -> Command {
    Command::Signal {
        instance: script.instance().id,
        trigger: "CALL".into(),
        id: id.into(),
        input: json(input),
        correlation: None,
        state: None,
    }
}

/// The fields and codes of the violations for which the command is refused.
fn refused(script: &mut Script, command: &Command) -> Vec<(String, String)> {
    let Rejection::Invalid(violations) = rejection(script.run("bob", command)) else {
        panic!("invalid")
    };
    let parts = |violation: Violation| (violation.field, violation.code);
    violations.into_iter().map(parts).collect()
}

#[test]
fn a_decision_is_refused_with_all_that_its_transition_misses() {
    let mut script = script(graph());
    for (comment, input, expected) in [
        (Some("Fine."), r#"{"pages":"two"}"#, vec!["/input/pages"]),
        (Some("Fine."), "{}", vec!["/input/pages"]),
        (Some("Fine."), "7", vec!["/input"]),
        (None, r#"{"pages":2}"#, vec!["/comment"]),
        (Some(" \n"), r#"{"pages":2}"#, vec!["/comment"]),
        (None, "{}", vec!["/comment", "/input/pages"]),
    ] {
        let command = decide(&script, "GO", comment, input);
        let fields = refused(&mut script, &command).into_iter();
        let fields: Vec<_> = fields.map(|(field, _)| field).collect();
        assert_eq!(fields, expected, "{comment:?} {input}");
    }
    let command = decide(&script, "GO", Some("Fine."), r#"{"pages":2}"#);
    script.run("bob", &command).expect("a decision");
}

#[test]
fn a_transition_that_takes_no_comment_refuses_one() {
    let mut script = script(graph());
    let command = decide(&script, "BACK", Some("Why not"), "{}");
    assert_eq!(
        refused(&mut script, &command),
        [("/comment".to_owned(), "not_taken".to_owned())]
    );
    let command = decide(&script, "BACK", Some(" "), "{}");
    script
        .run("bob", &command)
        .expect("a blank comment is none");
}

#[test]
fn a_transition_without_rules_takes_anything() {
    let mut script = script(graph());
    let command = decide(&script, "STOP", None, r#"{"pages":"two"}"#);
    script.run("bob", &command).expect("a decision");
}

#[test]
fn a_signal_satisfies_the_schema_of_the_state_that_takes_it() {
    let mut script = script(graph());
    let command = decide(&script, "BACK", None, "{}");
    script.run("bob", &command).expect("a decision");
    let command = signal(&script, "one", r#"{"pages":2}"#);
    let fields = refused(&mut script, &command);
    assert_eq!(fields[0].0, "/input/pages");
    let command = signal(&script, "two", r#"{"pages":"two"}"#);
    script.run("bob", &command).expect("a signal");
    assert!(matches!(script.instance().status, Status::Completed { .. }));
}

/// Two states take the trigger with different schemas. Until one of them is active, either payload is buffered, and one that
/// neither takes is refused.
#[test]
fn a_buffered_signal_is_checked_twice() {
    let mut drawn = graph();
    let mut other = drawn.transitions[3].clone();
    other.source = "Other".into();
    other.input = Some(json(PAGES));
    drawn.transitions.push(other);
    drawn
        .states
        .push(samples::state("Other", "Other", StateKind::Wait));
    let mut script = script(drawn);
    let command = signal(&script, "neither", r#"{"pages":true}"#);
    assert_eq!(refused(&mut script, &command)[0].0, "/input/pages");
    for (id, input) in [
        ("for-other", r#"{"pages":2}"#),
        ("mine", r#"{"pages":"x"}"#),
    ] {
        let command = signal(&script, id, input);
        script.run("bob", &command).expect("a buffered signal");
    }
    let command = decide(&script, "BACK", None, "{}");
    let outcome = script.run("bob", &command).expect("a decision");
    let refusals = outcome.events.iter().filter_map(|event| match event {
        Event::TriggerRefused { trigger, code, .. } => Some((trigger.as_str(), code.as_str())),
        _ => None,
    });
    assert_eq!(refusals.count(), 1, "{:?}", outcome.events);
    assert!(matches!(script.instance().status, Status::Completed { .. }));
}
