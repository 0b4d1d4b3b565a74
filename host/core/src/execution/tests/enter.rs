//! The work in states that are entered: one question for all of them, and what a refusal of it undoes.

use super::deadlines::{after, due, every, graph, kinds, late, open, pass};
use super::migration::migrate;
use super::script::{Script, enter, fault, offers, rejection, start};
use super::waits::signals;
use crate::answer::{Assignment, Deadline, OverdueAction, Plan, Reason, Refusal, Violation, Work};
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
                code: refusal,
                ..
            },
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!((trigger.as_str(), refusal.as_str()), ("LATE", code));
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

/// Nobody decides in `Review`: only LATE leads on.
fn undecided(graph: &mut Graph) {
    let is_decided = |way: &Transition| way.by.contains(&FiredBy::Decision);
    let ways = &mut graph.transitions;
    ways.retain(|way| way.source != "Review" || !is_decided(way));
}

/// Work with these deadlines of the state and of its task.
fn timed(of_state: &[Deadline], of_task: &[Deadline]) -> Assignment {
    let mut assignment = offers(&["crew"]);
    assignment.deadlines = of_state.to_vec();
    assignment.offers[0].deadlines = of_task.to_vec();
    assignment
}

const STUCK: &str = "enter: Review offers work that nothing could move on: no decision and no signal is declared, no deadline \
                     fires or cancels";

#[test]
fn work_that_nothing_could_move_is_the_flows_fault() {
    let mut drawn = graph();
    undecided(&mut drawn);
    let mut called = drawn.clone();
    let call = samples::way_by("Review", "CALL", FiredBy::Signal, &["Done"]);
    called.transitions.push(call);
    let started = |graph: &Graph, assignment: Assignment| {
        let script = Script::new().drawn(graph.clone());
        let mut script = script.assigning(move |_| assignment.clone());
        script.run("ann", &start())
    };
    let on = |action: OverdueAction| [after(60, action)];
    let idle = timed(&on(OverdueAction::Remind), &on(OverdueAction::Escalate));
    for assignment in [timed(&[], &[]), idle] {
        assert_eq!(fault(started(&drawn, assignment.clone())), STUCK);
        for movable in [&called, &graph()] {
            started(movable, assignment.clone()).expect("a start");
        }
    }
    let cancel = OverdueAction::Cancel("too late".into());
    for assignment in [
        timed(&on(late()), &[]),
        timed(&[], &on(late())),
        timed(&on(cancel), &[]),
    ] {
        started(&drawn, assignment).expect("a start");
    }
}

/// The deadlines of the version that is left go with it.
#[test]
fn a_migration_to_work_that_nothing_could_move_is_the_flows_fault() {
    for again in [vec![], vec![after(60, late())]] {
        let is_movable = !again.is_empty();
        let assign = move |_: &str, cause: &EntryCause| match cause {
            EntryCause::Migrated => timed(&again, &[]),
            _ => timed(&[after(60, late())], &[]),
        };
        let script = Script::new().drawn(graph()).assigning_for(assign);
        let mut script = script.followed_by(undecided).started();
        let before = script.instance().clone();
        let migrated = migrate(&mut script, &[]);
        if is_movable {
            assert_eq!(
                migrated.expect("a migration").instance.definition.version,
                2
            );
        } else {
            assert_eq!(fault(migrated), STUCK);
            assert_eq!(*script.instance(), before);
        }
    }
}

/// A deadline that has fired for the last time moves nothing any more, and open tasks that nobody decides do not either.
#[test]
fn a_state_whose_tasks_nobody_decides_does_not_go_on() {
    let once = after(60, late());
    let again = every(60, once.clone());
    for (assignment, goes_on) in [
        (timed(std::slice::from_ref(&once), &[]), false),
        (timed(&[], &[once]), false),
        (timed(std::slice::from_ref(&again), &[]), true),
        (timed(&[], &[again]), true),
    ] {
        let mut drawn = graph();
        undecided(&mut drawn);
        let script = Script::new().drawn(drawn);
        let script = script.planning(|_, _| Ok(Plan::default()));
        let mut script = script.assigning(move |_| assignment.clone()).started();
        let deadline = open(script.instance())[0].2.clone();
        script.at(61);
        let passed = due(&mut script, deadline.id, deadline.due_at);
        if goes_on {
            let events = passed.expect("it passes").events;
            assert!(kinds(&events).contains(&"STATE_CONTINUED"), "{events:?}");
        } else {
            let expected = "transition: Review goes on with nothing left that could move it";
            assert_eq!(fault(passed), expected);
        }
    }
}
