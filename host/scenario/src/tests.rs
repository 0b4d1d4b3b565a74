//! Scenarios of a small flow in this process: which pass, at which step others fail, and which files are refused.

use std::collections::BTreeSet;

use wrkflw_core::answer::{
    Assignment, Deadline, Due, Next, Offer, OverdueAction, Plan, Principal, ServiceCall, Since,
    Target, Work,
};
use wrkflw_core::check::samples::{document_approval, state, way_by};
use wrkflw_core::graph::{FiredBy, Graph, StateKind};
use wrkflw_core::ids::VersionRef;
use wrkflw_core::instance::Instance;
use wrkflw_core::json::{Json, Node};
use wrkflw_core::question::{Answer, Facts, Question};
use wrkflw_core::scenario::{Logic, version};
use wrkflw_core::version::Version;

use super::{SCHEMA, Scenario, play};
use crate::seen::seen;
use crate::step::Step;

/// Follows the graph: each trigger leads to its first target. Each task has a reminder after a day.
struct Reviews(Graph);

impl Logic for Reviews {
    fn answer(&mut self, facts: &Facts<'_>, question: &Question) -> Result<Answer, String> {
        Ok(match question {
            Question::Start(_) => Answer::Start(Ok(())),
            Question::Transition(occurrence) => {
                let mut active = facts.instance.active.iter();
                let state = active.find(|state| state.id.to_string() == occurrence.state_instance);
                let state = state.ok_or("no state")?;
                let mut ways = self.0.leaving(&state.name);
                let way = ways.find(|way| way.trigger == occurrence.trigger);
                let target = &way.ok_or("no way")?.targets[0];
                Answer::Transition(Ok(Plan {
                    next: Next::Enter(vec![Target::new(target)]),
                    ..Plan::default()
                }))
            }
            Question::Enter(entries) => {
                let works = entries.iter().map(|entry| match entry.state.as_str() {
                    "Score" => Work::Service(call()),
                    state => Work::Task(assignment(state, facts)),
                });
                Answer::Enter(Ok(works.collect()))
            }
        })
    }
}

fn call() -> ServiceCall {
    ServiceCall {
        service: "scorer".into(),
        request: "{}".into(),
        timeout: 5,
        retries: vec![1, 2],
        on_reply: "SCORED".into(),
        on_failure: "UNSCORED".into(),
        deadlines: vec![],
        subscriptions: vec![],
    }
}

fn assignment(state: &str, facts: &Facts<'_>) -> Assignment {
    let (label, whom) = match state {
        "Submitted" => ("First review", Principal::Group("reviewers".into())),
        "FinalReview" => ("Final review", Principal::Group("approvers".into())),
        _ => ("Rework", Principal::User(facts.instance.initiator.clone())),
    };
    let remind = Deadline {
        when: Due::After(24 * 60 * 60),
        since: Since::Created,
        repeat: None,
        action: OverdueAction::Remind,
    };
    Assignment {
        offers: vec![Offer {
            label: label.into(),
            candidates: vec![whom],
            ..Offer::default()
        }],
        needed: 1,
        deadlines: vec![remind],
        ..Assignment::default()
    }
}

fn reviews() -> Version {
    let reference = VersionRef {
        key: "reviews".into(),
        version: 1,
    };
    version(reference, Json::empty(), document_approval()).expect("a sound graph")
}

/// The failure of a scenario with these steps.
fn failure(steps: &str) -> Option<String> {
    let text = format!(
        "groups: {{ authors: [ann], reviewers: [rob, rita], approvers: [amy] }}\nsteps:\n{steps}"
    );
    let scenario = match Scenario::read(&text) {
        Ok(scenario) => scenario,
        Err(problems) => panic!("{problems:?}: {text}"),
    };
    let played = play(&scenario, &reviews(), &mut Reviews(document_approval()));
    played.err().map(|failure| failure.to_string())
}

#[test]
fn a_scenario_passes_if_each_step_is_as_expected() {
    let steps = r#"
  - start: {}
    by: amy
    expect: { refused: not_an_initiator }
  - decide: APPROVE
    by: rob
    expect: { refused: not_started }
  - start: { title: Budget }
    by: ann
    entity: document/7
    expect: { status: RUNNING, outcome: null, states: Submitted, data: { title: Budget } }
  - claim: true
    by: rob
    expect: { tasks: [{ label: First review, owner: rob, for: { group: reviewers } }] }
  - release: First review
    by: rob
    expect: { tasks: [{ owner: null }] }
  - claim: true
    by: rob
  - delegate: true
    by: rob
    to: rita
    expect: { tasks: [{ owner: rita }] }
  - resolve: true
    by: rita
  - wait: 23h
    expect: { events: [] }
  - wait: 1 hour
    expect: { events: [TASK_REMINDED] }
  - suspend: Not now.
    by: op
    expect: { status: SUSPENDED, reason: Not now. }
  - resume: true
    by: op
  - absence: { person: rob, substitute: sue }
  - leave: { reviewers: [rob] }
    expect: { tasks: [{ owner: null }] }
  - join: { reviewers: [sue] }
  - decide: APPROVE
    by: sue
    at: "2026-01-06T12:00:00Z"
    expect:
      states: [FinalReview]
      tasks: [{ label: Final review, due: "2026-01-07T12:00:00Z" }]
  - expect: { states: FinalReview }
  - cancel: Too late.
    by: op
    expect: { status: CANCELLED, reason: Too late., states: [], tasks: [], events: [FLOW_CANCELLED] }
"#;
    assert_eq!(failure(steps), None);
}

#[test]
fn a_substitute_decides_for_whom_the_step_names() {
    let steps = |for_whom: &str| {
        format!(
            "  - {{ start: {{}}, by: ann }}\n  - absence: {{ person: rob, substitute: sue, until: \"2026-01-06T00:00:00Z\" }}\n  \
             - {{ decide: APPROVE, by: sue, {for_whom} expect: {{ states: FinalReview }} }}\n"
        )
    };
    assert_eq!(failure(&steps("for: rob,")), None);
    assert_eq!(failure(&steps("")), None);
    let other = failure(&steps("for: rita,")).expect("nobody stands in for rita");
    assert!(other.contains("own_task"), "{other}");
    let late = failure(&steps("at: \"2026-01-07T00:00:00Z\",")).expect("rob is back");
    assert!(late.contains("not_a_candidate"), "{late}");
}

#[test]
fn a_substitute_claims_for_whom_the_step_names() {
    let steps = |claims: &[(&str, &str)]| {
        let away = "  - { start: {}, by: ann }\n  - absence: { person: rob, substitute: sue }\n"
            .to_owned();
        claims.iter().fold(away, |steps, (by, for_whom)| {
            format!(
                "{steps}  - {{ claim: true, by: {by}, {for_whom} expect: {{ tasks: [{{ owner: {by} }}] }} }}\n"
            )
        })
    };
    assert_eq!(failure(&steps(&[("sue", "")])), None);
    let twice = [("sue", "for: rob,"), ("sue", "for: rob,")];
    assert_eq!(failure(&steps(&twice)), None);
    for other in [("sue", "for: rita,"), ("rita", "for: rob,")] {
        let failed = failure(&steps(&[other])).expect("they claim for somebody else");
        assert!(failed.contains("own_task"), "{other:?}: {failed}");
    }
}

#[test]
fn a_substitute_loses_the_task_when_the_absence_ends() {
    let steps = r#"
  - { start: {}, by: ann }
  - absence: { person: rob, substitute: sue, from: "2026-01-05T10:00:00Z", until: "2026-01-06T00:00:00Z" }
  - { claim: true, by: sue, expect: { refused: not_a_candidate } }
  - { claim: true, by: sue, at: "2026-01-05T10:00:00Z" }
  - { wait: 13h, expect: { tasks: [{ owner: sue }] } }
  - { wait: 1h, expect: { tasks: [{ owner: null }], events: [TASK_RELEASED] } }
  - { decide: APPROVE, by: sue, expect: { refused: not_a_candidate } }
  - { decide: APPROVE, by: rita, expect: { states: FinalReview } }
"#;
    assert_eq!(failure(steps), None);
}

#[test]
fn it_fails_at_the_first_step_that_is_not_as_expected() {
    let start = "  - { start: {}, by: ann }\n";
    for (step, words) in [
        (
            "{ decide: APPROVE, by: rob, expect: { states: Approved } }",
            r#"step 2, decide APPROVE by rob
  states: expected "Approved", got ["FinalReview"]"#,
        ),
        (
            "{ decide: APPROVE, by: amy }",
            "step 2, decide APPROVE by amy\n  refused: expected nothing, got [{\"code\":\"not_a_candidate\"",
        ),
        (
            "{ decide: APPROVE, by: amy }",
            "hint: these tasks are open: {\"due\":\"2026-01-06T09:00:00Z\",\"for\":[{\"group\":\"reviewers\"}]",
        ),
        (
            "{ decide: APPROVE, by: rob, expect: { refused: own_request } }",
            r#"refused: expected "own_request", got no refusal"#,
        ),
        (
            "{ decide: NONSENSE, by: rob, expect: { refused: own_request } }",
            r#"[{"code":"unknown_outcome","field":"/outcome""#,
        ),
        ("{ decide: APPROVE, by: rob, in: FinalReview }", "no_task"),
        (
            "{ wait: 1 day, expect: { events: [TASK_ESCALATED] } }",
            "events: expected",
        ),
        ("{ child: other, outcome: DONE }", "unknown_child"),
    ] {
        let message = failure(&format!("{start}  - {step}\n")).expect(step);
        assert!(message.contains(words), "{step}: {message}");
    }
}

/// The failure of a scenario of this graph.
fn played(graph: &Graph, steps: &str) -> Option<String> {
    let reference = VersionRef {
        key: "drawn".into(),
        version: 1,
    };
    let text =
        format!("groups: {{ reviewers: [rob] }}\nsteps:\n  - start: {{}}\n    by: ann\n{steps}");
    let scenario = Scenario::read(&text).expect("a scenario");
    let flow = version(reference, Json::empty(), graph.clone()).expect("a sound graph");
    let played = play(&scenario, &flow, &mut Reviews(graph.clone()));
    played.err().map(|failure| failure.to_string())
}

#[test]
fn a_signal_counts_once_under_its_id() {
    let graph = Graph {
        initial: "Submitted".into(),
        states: vec![
            state("Submitted", "Submitted", StateKind::Task),
            state("FinalReview", "Final review", StateKind::Task),
            state("Done", "Done", StateKind::Terminal("DONE".into())),
        ],
        transitions: vec![
            way_by("Submitted", "APPROVE", FiredBy::Decision, &["Done"]),
            way_by("Submitted", "PAID", FiredBy::Signal, &["FinalReview"]),
            way_by("FinalReview", "APPROVE", FiredBy::Decision, &["Done"]),
            way_by("FinalReview", "PAID", FiredBy::Signal, &["Done"]),
        ],
        ..Graph::default()
    };
    let begins = r#"
  - { signal: PAID, by: shop, id: "1", in: Done, expect: { refused: nobody_waits } }
  - { signal: PAID, by: shop, id: "1", input: { sum: 1 }, expect: { states: FinalReview } }
  - { signal: PAID, by: shop, id: "1", input: { sum: 1 }, expect: { states: FinalReview } }
  - { signal: PAID, by: shop, id: "1", input: { sum: 2 }, expect: { refused: signal_id_reused } }
"#;
    // These count: from another sender, sent to all, without an id, after 60 days.
    for other in [
        r#"{ signal: PAID, by: bank, id: "1", expect: { outcome: DONE } }"#,
        r#"{ signal: PAID, by: shop, id: "1", in: FinalReview, expect: { outcome: DONE } }"#,
        "{ signal: PAID, by: shop, input: { sum: 1 }, expect: { outcome: DONE } }",
        r#"{ signal: PAID, by: shop, id: "1", at: "2026-03-07T09:00:00Z", expect: { outcome: DONE } }"#,
    ] {
        assert_eq!(
            played(&graph, &format!("{begins}  - {other}\n")),
            None,
            "{other}"
        );
    }
}

#[test]
fn a_service_answers_or_fails() {
    let mut scored = way_by("Score", "SCORED", FiredBy::Reply, &["Done"]);
    let schema = r#"{"type":"object","required":["score"]}"#;
    scored.input = Some(Json::parse(schema).expect("JSON"));
    let graph = Graph {
        initial: "Score".into(),
        states: vec![
            state("Score", "Score", StateKind::Service),
            state("Submitted", "By hand", StateKind::Task),
            state("Done", "Done", StateKind::Terminal("DONE".into())),
        ],
        transitions: vec![
            scored,
            way_by("Score", "UNSCORED", FiredBy::Failure, &["Submitted"]),
            way_by("Submitted", "ENTER", FiredBy::Decision, &["Done"]),
        ],
        ..Graph::default()
    };
    let played = |steps: &str| played(&graph, steps);
    let answers = "
  - service: scorer
    input: { other: 1 }
    expect: { refused: { code: required, field: /input/score } }
  - service: other
    expect: { refused: unknown_call }
  - service: scorer
    input: { score: 1 }
    model: length
    modelVersion: '1'
    expect: { outcome: DONE, events: [SERVICE_ANSWERED] }
";
    assert_eq!(played(answers), None);
    let fails = "
  - service: scorer
    error: the service answered 503
    expect: { states: Submitted, events: [SERVICE_FAILED] }
  - decide: ENTER
    by: rob
    expect: { outcome: DONE }
";
    assert_eq!(played(fails), None);
    let both = "
steps: [{ start: {}, by: ann }, { service: scorer, input: {}, error: down }]";
    let problems = Scenario::read(both).expect_err("a reply and a failure");
    assert!(
        problems
            .iter()
            .any(|one| one.to_string().contains("/error")),
        "{problems:?}"
    );
}

#[test]
fn what_is_no_scenario_is_refused_with_line_and_field() {
    for (text, problem) in [
        ("steps: []", "1: /steps: this has less than 1"),
        ("name: x", "1: /steps: this is required"),
        ("- a", "1: "),
        ("groups: { a: b }", "1: /groups/a: "),
        (
            "now: monday\nsteps: [{ wait: 1h }]",
            "1: /now: write a time",
        ),
    ] {
        assert_problem(text, problem);
    }
    for (step, problem) in [
        ("comand: x", "2: /steps/0/comand: this is not expected"),
        ("start: {}", "2: /steps/0/by: `start` needs `by`"),
        (
            "by: ann",
            "2: /steps/0: say what happens: one of start, decide",
        ),
        (
            "{ start: {}, decide: X }",
            "2: /steps/0: a step has one action, but this one has start, decide",
        ),
        (
            "wait: 1h\n    by: a",
            "3: /steps/0/by: `by` cannot be used with `wait`",
        ),
        (
            "wait: soon",
            "2: /steps/0/wait: write a time such as `3 days`",
        ),
        ("wait: 20 years", "2: /steps/0/wait: "),
        ("wait: 3660 days 1m", "2: /steps/0/wait: "),
        ("wait: -1 day", "2: /steps/0/wait: "),
        ("at: noon", "2: /steps/0/at: write a time such as 2026"),
        ("claim: false\n    by: a", "2: /steps/0/claim: "),
        ("{ start: {}, by: a, entity: x }", "2: /steps/0/entity: "),
        (
            "{ at: x, decide: X, by: a }",
            "2: /steps/0/at: write a time",
        ),
        (
            "expect:\n      state: A",
            "3: /steps/0/expect/state: this is not",
        ),
        (
            "expect: { tasks: [{ x: a }] }",
            "2: /steps/0/expect/tasks/0/x: ",
        ),
    ] {
        assert_problem(&format!("steps:\n  - {step}\n"), problem);
    }
    let long = "#".repeat(super::file::SCENARIO_BYTES_MAX + 1);
    assert_problem(&long, "1: the file is longer");
}

#[track_caller]
fn assert_problem(text: &str, begins: &str) {
    let problems = Scenario::read(text).expect_err("it is no scenario");
    let mut messages = problems.iter().map(ToString::to_string);
    assert!(
        messages.any(|message| message.starts_with(begins)),
        "{problems:?}"
    );
}

#[test]
fn the_schema_names_the_members_that_are_read() {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).expect("JSON");
    let members = |at: &str| {
        let members = schema.pointer(at).and_then(serde_json::Value::as_object);
        members.expect(at).keys().cloned().collect::<Vec<_>>()
    };
    for name in members("/$defs/step/properties") {
        // One of these values has the type of the member. A member that `Step` does not read would be lost.
        let values = [
            r#""2026-01-05T09:00:00Z""#,
            "{}",
            "true",
            "1",
            r#"["a"]"#,
            r#"{"person":"a","substitute":"b"}"#,
        ];
        let read = values.iter().any(|value| {
            let step = serde_json::from_str::<Step>(&format!("{{\"{name}\":{value}}}"));
            let again = step
                .ok()
                .map(|step| serde_json::to_value(step).expect("JSON"));
            again.is_some_and(|again| again.get(&name).is_some())
        });
        assert!(read, "{name}");
    }
    // No instance has both an outcome and a reason.
    let ends = [
        r#"{"name":"COMPLETED","outcome":"DONE","at":"2026-01-05T09:00:00Z"}"#,
        r#"{"name":"CANCELLED","reason":"withdrawn","by":"ann","at":"2026-01-05T09:00:00Z"}"#,
    ];
    let seen: BTreeSet<String> = ends.into_iter().flat_map(seen_members).collect();
    let expected = BTreeSet::from_iter(members("/$defs/expect/properties"));
    assert_eq!(seen, expected);
}

/// The members of what a step sees of an instance with this status.
fn seen_members(status: &str) -> Vec<String> {
    let (id, at) = (
        "00000000-0000-0000-0000-000000000001",
        "2026-01-05T08:00:00Z",
    );
    let instance = format!(
        r#"{{
            "id": "{id}", "definition": {{ "key": "drawn", "version": 1 }}, "revision": 2,
            "entity": {{ "type": "document", "id": "1" }}, "initiator": "ann", "requesters": ["ann"], "status": {status},
            "startedAt": "{at}", "updatedAt": "{at}", "predecessor": null, "parent": null, "data": {{}},
            "labels": {{ "title": "A plan", "summary": "Of a house" }}, "attributes": {{}}, "active": [], "waiting": [], "past": []
        }}"#
    );
    let instance: Instance = serde_json::from_str(&instance).expect("an instance");
    match seen(Some(&instance), &[], &[]) {
        Node::Object(members) => members.into_keys().collect(),
        other => panic!("{other} is no object"),
    }
}
