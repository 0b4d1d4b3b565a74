//! The work in states that are entered: one question for all of them, and what a refusal of it undoes.

use super::deadlines::{after, due, graph, late, open, pass};
use super::script::{Script, enter, fault, offers, rejection};
use super::waits::signals;
use crate::answer::{OverdueAction, Reason, Refusal, Violation, Work};
use crate::check::samples;
use crate::event::Event;
use crate::graph::{FiredBy, Graph, StateKind, Transition};
use crate::question::{Entry, EntryCause};
use crate::rejection::Rejection;

fn reason() -> Reason {
    Reason {
        code: "not_here".into(),
        message: "Nothing is done here.".into(),
    }
}

fn task() -> Work {
    Work::Task(offers(&["crew"]))
}

/// All states but `Review` are of no use: their work is refused.
fn refusing(refusal: Refusal) -> impl Fn(&[Entry]) -> Result<Vec<Work>, Refusal> {
    move |entries| match entries {
        [entry] if entry.state == "Review" => Ok(vec![task()]),
        _ => Err(refusal.clone()),
    }
}

#[test]
fn one_question_is_asked_for_all_states_that_a_plan_enters() {
    let mut script = Script::new()
        .planning(|state, _| {
            Ok(match state {
                "Review" => enter(&["Other", "Hop", "Rework"]),
                _ => enter(&["Review"]),
            })
        })
        .entering(|entries| {
            let causes = entries.iter().map(|entry| &entry.cause);
            assert!(causes.clone().all(|cause| *cause == EntryCause::Entered));
            let own = |entry: &Entry| match entry.state.as_str() {
                "Rework" => Work::Task(offers(&[])),
                _ => task(),
            };
            Ok(entries.iter().map(own).collect())
        })
        .claimed();
    script.asked.clear();
    script.go().expect("a fork");
    // The router is asked where to go after the work of the plan's other states has begun.
    assert_eq!(script.asked, ["transition", "enter", "transition", "enter"]);
    let active = script.instance().active.iter();
    let names: Vec<_> = active.map(|state| state.name.as_str()).collect();
    assert_eq!(names, ["Other", "Rework", "Review"]);
}

#[test]
fn each_state_gets_work_of_its_kind() {
    let answers: [(Vec<Work>, &str); 3] = [
        (
            vec![],
            "enter: the work in 1 states was asked for, and the answer has 0",
        ),
        (
            vec![task(), task()],
            "enter: the work in 1 states was asked for, and the answer has 2",
        ),
        (
            vec![Work::Wait(signals())],
            "enter: Other is a task state, and its work is of another kind",
        ),
    ];
    for (works, message) in answers {
        let mut script = Script::new()
            .planning(|_, _| Ok(enter(&["Other"])))
            .entering(move |entries| match entries {
                [entry] if entry.state == "Review" => Ok(vec![task()]),
                _ => Ok(works.clone()),
            })
            .claimed();
        assert_eq!(fault(script.go()), message);
    }
}

#[test]
fn a_refusal_of_the_work_is_the_callers_answer() {
    let violations = vec![Violation {
        expected: None,
        field: "/input".into(),
        code: "unfit".into(),
        message: "It does not fit.".into(),
    }];
    for (refusal, expected) in [
        (Refusal::Denied(reason()), Rejection::Forbidden(reason())),
        (Refusal::NotNow(reason()), Rejection::RefusedNow(reason())),
        (
            Refusal::Invalid(violations.clone()),
            Rejection::Invalid(violations),
        ),
    ] {
        let mut script = Script::new()
            .planning(|_, _| Ok(enter(&["Other"])))
            .entering(refusing(refusal))
            .claimed();
        let before = script.instance().clone();
        assert_eq!(rejection(script.go()), expected);
        assert_eq!(*script.instance(), before);
    }
    let mut script = Script::new()
        .planning(|_, _| Ok(enter(&["Other"])))
        .entering(refusing(Refusal::Fault(reason())))
        .claimed();
    assert_eq!(
        fault(script.go()),
        "enter: Nothing is done here. (not_here)"
    );
}

/// `LATE` leads from `Review` over a router, so that much has happened when the work is refused.
fn overdue() -> Graph {
    let mut graph = graph();
    let hop = samples::state("Hop", "Hop", StateKind::Router);
    graph.states.push(hop);
    graph.transitions.push(Transition {
        source: "Hop".into(),
        trigger: "ON".into(),
        targets: vec!["Other".into()],
        by: vec![FiredBy::Entry],
        ..Transition::default()
    });
    for way in &mut graph.transitions {
        way.targets.push("Hop".into());
    }
    graph
}

#[test]
fn what_follows_from_a_deadline_is_undone_if_its_work_is_refused() {
    for (refusal, code) in [
        (Refusal::NotNow(reason()), "not_here"),
        (Refusal::Denied(reason()), "not_here"),
        (
            Refusal::Invalid(vec![Violation {
                expected: None,
                field: "/data/x".into(),
                code: "unfit".into(),
                message: "It does not fit.".into(),
            }]),
            "unfit",
        ),
    ] {
        let refused = refusing(refusal);
        let mut script = Script::new()
            .drawn(overdue())
            .planning(|state, _| {
                Ok(match state {
                    "Hop" => enter(&["Other"]),
                    _ => enter(&["Hop"]),
                })
            })
            .entering(move |entries| {
                let mut works = refused(entries)?;
                if let [Work::Task(assignment)] = &mut works[..] {
                    assignment.deadlines = vec![after(60, late())];
                }
                Ok(works)
            })
            .started();
        let before = script.instance().active.clone();
        let events = pass(&mut script, 0, 61);
        let [
            _,
            Event::TriggerRefused {
                trigger,
                code: told,
                ..
            },
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!((trigger.as_str(), told.as_str()), ("LATE", code));
        let after = &script.instance().active;
        assert_eq!(
            (&after[0].id, &after[0].tasks),
            (&before[0].id, &before[0].tasks)
        );
        assert_eq!(after.len(), 1);
    }
}

#[test]
fn the_escalation_of_overdue_work_cannot_be_refused() {
    let mut script = Script::new()
        .drawn(graph())
        .entering(|entries| {
            if matches!(entries[0].cause, EntryCause::Overdue { .. }) {
                return Err(Refusal::NotNow(reason()));
            }
            let mut assignment = offers(&["crew"]);
            assignment.deadlines = vec![after(60, OverdueAction::Escalate)];
            Ok(vec![Work::Task(assignment)])
        })
        .started();
    let deadline = open(script.instance())[0].2.clone();
    script.at(61);
    assert_eq!(
        fault(due(&mut script, deadline.id, deadline.due_at)),
        "enter: the escalation of overdue work in Review is refused: Nothing is done here. (not_here)"
    );
}
