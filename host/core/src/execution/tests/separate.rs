//! Separation of duties between states, which the graph declares.

use std::cell::RefCell;
use std::rc::Rc;

use super::deadlines::{after, pass};
use super::directory::TestDirectory;
use super::ownership::released;
use super::script::{Script, decide, enter, forbidden, offers, person, rejection, substitute};
use crate::answer::{Assignment, Offer, OverdueAction, Plan, Principal};
use crate::check::samples::{self, way};
use crate::command::Command;
use crate::event::Event;
use crate::event::reasons::LOST_ELIGIBILITY;
use crate::graph::{FiredBy, Graph, StateKind, Transition};
use crate::ids::TaskId;
use crate::instance::{StateInstance, TaskStatus};
use crate::rejection::Rejection;

/// `Begin` leads to `Legal`, `Tax` or both; nobody decides in both of these.
fn graph() -> Graph {
    let state = |name: &str, kind| samples::state(name, name, kind);
    Graph {
        initial: "Begin".into(),
        states: vec![
            state("Begin", StateKind::Task),
            state("Legal", StateKind::Task),
            state("Tax", StateKind::Task),
            state("Done", StateKind::Terminal("DONE".into())),
        ],
        transitions: vec![
            way("Begin", "GO", &["Legal", "Tax"]),
            way("Legal", "GO", &["Tax"]),
            way("Legal", "AGAIN", &["Legal"]),
            way("Tax", "GO", &["Done"]),
            Transition {
                by: vec![FiredBy::Deadline],
                ..way("Tax", "LATE", &["Done"])
            },
        ],
        separate: vec![vec!["Legal".into(), "Tax".into()]],
        ..Graph::default()
    }
}

/// `ann` has started it, and `zoe` has decided that these states follow.
fn leading_to(states: &'static [&str], assign: impl Fn(&str) -> Assignment + 'static) -> Script {
    let mut script = Script::new()
        .drawn(graph())
        .assigning(assign)
        .planning_for(move |occurrence, state, _| {
            Ok(match (state, occurrence.trigger.as_str()) {
                ("Begin", _) => enter(states),
                ("Legal", "GO") => enter(&["Tax"]),
                ("Legal", _) => enter(&["Legal"]),
                _ => enter(&["Done"]),
            })
        })
        .started();
    let first = script.task(0);
    script.run("zoe", &decide(first, "GO")).expect("a decision");
    script
}

fn one_after_the_other() -> Script {
    leading_to(&["Legal"], |_| offers(&["crew"]))
}

fn side_by_side() -> Script {
    leading_to(&["Legal", "Tax"], |_| offers(&["crew"]))
}

fn in_state<'a>(script: &'a Script, name: &str) -> &'a StateInstance {
    let mut active = script.instance().active.iter();
    active
        .find(|state| state.name == name)
        .expect("an active state")
}

fn task_in(script: &Script, name: &str) -> TaskId {
    in_state(script, name).tasks[0].id
}

fn claim(task: TaskId) -> Command {
    Command::Claim { task }
}

#[test]
fn who_decided_in_one_state_works_in_no_separate_one() {
    let mut script = one_after_the_other();
    let legal = script.task(0);
    script.run("bob", &decide(legal, "GO")).expect("a decision");
    assert_eq!(in_state(&script, "Tax").exclude, ["bob"]);
    let tax = script.task(0);
    let refused = rejection(script.run("bob", &decide(tax, "GO")));
    let Rejection::Forbidden(reason) = &refused else {
        panic!("not forbidden: {refused:?}")
    };
    assert_eq!(
        (reason.code.as_str(), reason.message.as_str()),
        (
            "decided_elsewhere",
            "bob decided in Legal, and nobody decides in both Legal and Tax"
        )
    );
    assert_eq!(
        forbidden(script.run("bob", &claim(tax))),
        "decided_elsewhere"
    );
    script.run("cid", &decide(tax, "GO")).expect("the end");
}

#[test]
fn nor_in_work_that_escalates() {
    let mut script = leading_to(&["Legal"], |state| {
        let mut assignment = offers(&["crew"]);
        if state == "Tax" {
            assignment.deadlines = vec![after(60, OverdueAction::Escalate)];
        }
        assignment
    });
    let legal = script.task(0);
    script.run("bob", &decide(legal, "GO")).expect("a decision");
    let escalated = pass(&mut script, 0, 100);
    assert!(
        escalated
            .iter()
            .any(|event| matches!(event, Event::StateReassigned { .. }))
    );
    assert_eq!(in_state(&script, "Tax").exclude, ["bob"]);
}

#[test]
fn nor_through_a_substitute_a_delegate_or_an_operator() {
    let mut script = one_after_the_other();
    let legal = script.task(0);
    script.run("bob", &decide(legal, "GO")).expect("a decision");
    let tax = script.task(0);
    let stands_in = substitute("sub", &["bob"]);
    assert_eq!(
        forbidden(script.run_as(&stands_in, &claim(tax))),
        "decided_elsewhere"
    );
    let mut through_bob = substitute("sub", &["dan"]);
    through_bob.stands_in_for[0].via = vec!["bob".into()];
    assert_eq!(
        forbidden(script.run_as(&through_bob, &claim(tax))),
        "not_a_candidate"
    );
    script.run("cid", &claim(tax)).expect("a claim");
    let to_bob = Command::Delegate {
        task: tax,
        to: "bob".into(),
        reason: "busy".into(),
    };
    assert_eq!(forbidden(script.run("cid", &to_bob)), "decided_elsewhere");
    let mut operator = person("root");
    operator.permissions = vec!["task:assign".into()];
    let to_bob = Command::Reassign {
        task: tax,
        to: "bob".into(),
        reason: "busy".into(),
    };
    assert_eq!(
        forbidden(script.run_as(&operator, &to_bob)),
        "decided_elsewhere"
    );
}

#[test]
fn who_was_acted_for_has_decided_like_who_acted() {
    let mut script = one_after_the_other();
    let legal = script.task(0);
    script
        .run_as(&substitute("sub", &["bob"]), &decide(legal, "GO"))
        .expect("a decision");
    assert_eq!(in_state(&script, "Tax").exclude, ["bob", "sub"]);
    let tax = script.task(0);
    for person in ["bob", "sub"] {
        let refused = script.run(person, &decide(tax, "GO"));
        assert_eq!(forbidden(refused), "decided_elsewhere");
    }
}

#[test]
fn in_the_same_state_a_person_decides_again() {
    let mut script = one_after_the_other();
    for trigger in ["AGAIN", "AGAIN", "GO"] {
        let legal = script.task(0);
        script
            .run("bob", &decide(legal, trigger))
            .expect("a decision");
    }
    assert_eq!(in_state(&script, "Tax").exclude, ["bob"]);
}

#[test]
fn a_state_beside_it_loses_who_decides() {
    let mut script = side_by_side();
    let (legal, tax) = (task_in(&script, "Legal"), task_in(&script, "Tax"));
    script.run("bob", &claim(tax)).expect("a claim");
    let outcome = script
        .run("bob", &decide(legal, "AGAIN"))
        .expect("a decision");
    assert_eq!(
        released(&outcome.events),
        Some((tax, "bob", Some(LOST_ELIGIBILITY)))
    );
    assert_eq!(in_state(&script, "Tax").exclude, ["bob"]);
    assert_eq!(
        forbidden(script.run("bob", &claim(tax))),
        "decided_elsewhere"
    );
    script.run("cid", &decide(tax, "GO")).expect("another one");
}

#[test]
fn a_task_in_the_name_of_who_decided_is_released_too() {
    let mut script = side_by_side();
    let (legal, tax) = (task_in(&script, "Legal"), task_in(&script, "Tax"));
    let (sub, other) = (substitute("sub", &["bob"]), substitute("other", &["bob"]));
    script.run_as(&sub, &claim(tax)).expect("a claim");
    script
        .run_as(&other, &decide(legal, "AGAIN"))
        .expect("a decision");
    let state = in_state(&script, "Tax");
    assert!(matches!(state.tasks[0].status, TaskStatus::Pending));
    assert_eq!(state.exclude, ["bob", "other"]);
}

/// An escalation may make new tasks there.
#[test]
fn a_state_without_open_work_excludes_too() {
    let mut script = Script::new()
        .drawn(graph())
        .assigning(|state| {
            let mut assignment = offers(&["crew"]);
            if state == "Tax" {
                let late = OverdueAction::Fire("LATE".into());
                assignment.deadlines = vec![after(600, OverdueAction::Escalate), after(900, late)];
            }
            assignment
        })
        .planning_for(|_, state, _| {
            Ok(match state {
                "Begin" => enter(&["Legal", "Tax"]),
                "Tax" => Plan::default(),
                _ => enter(&["Legal"]),
            })
        })
        .started();
    let first = script.task(0);
    script.run("zoe", &decide(first, "GO")).expect("a decision");
    let (legal, tax) = (task_in(&script, "Legal"), task_in(&script, "Tax"));
    script.run("cid", &decide(tax, "GO")).expect("a decision");
    script
        .run("bob", &decide(legal, "AGAIN"))
        .expect("a decision");
    assert_eq!(in_state(&script, "Tax").exclude, ["bob"]);
    assert_eq!(in_state(&script, "Legal").exclude, ["cid"]);
    let exclusions = |script: &mut Script, task| {
        let outcome = script.run("bob", &decide(task, "AGAIN")).expect("another");
        let events = outcome.events.iter();
        events
            .filter(|event| matches!(event, Event::StateReassigned { .. }))
            .count()
    };
    let again = task_in(&script, "Legal");
    assert_eq!(exclusions(&mut script, again), 0, "bob is excluded already");
}

/// What the flow itself excludes stays, and everybody is named once.
#[test]
fn the_flows_own_exclusions_are_kept() {
    let mut script = leading_to(&["Legal"], |state| {
        let mut assignment = offers(&["crew"]);
        if state == "Tax" {
            assignment.exclude = vec!["eve".into(), "bob".into()];
        }
        assignment
    });
    let legal = script.task(0);
    script.run("bob", &decide(legal, "GO")).expect("a decision");
    assert_eq!(in_state(&script, "Tax").exclude, ["eve", "bob"]);
}

/// The flow need not know who is left: work for somebody who may not do it is open to its candidates, and to the fallbacks.
#[test]
fn work_is_given_to_nobody_who_may_not_do_it() {
    let given = |state: &str| Assignment {
        offers: vec![Offer {
            label: "work".into(),
            candidates: vec![Principal::User("bob".into())],
            owner: (state == "Tax").then(|| "bob".into()),
            ..Offer::default()
        }],
        needed: 1,
        fallback: Some("bench".into()),
        ..Assignment::default()
    };
    let directory = Rc::new(RefCell::new(TestDirectory::new()));
    let mut script = Script::new()
        .drawn(graph())
        .living_in(&directory)
        .assigning(move |state| match state {
            "Begin" => offers(&["crew"]),
            _ => given(state),
        })
        .planning_for(|_, state, _| {
            Ok(match state {
                "Begin" => enter(&["Legal"]),
                _ => enter(&["Tax"]),
            })
        })
        .started();
    let first = script.task(0);
    script.run("zoe", &decide(first, "GO")).expect("a decision");
    let legal = script.task(0);
    let outcome = script.run("bob", &decide(legal, "GO")).expect("a decision");
    let task = &in_state(&script, "Tax").tasks[0];
    assert!(matches!(task.status, TaskStatus::Pending));
    assert!(
        outcome
            .events
            .iter()
            .any(|event| matches!(event, Event::TaskRerouted { step, .. } if step == "fallback"))
    );
}
