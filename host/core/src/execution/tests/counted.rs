//! Joins that wait for a count of branches.

use proptest::prelude::*;

use super::script::{Script, end_branch, enter, offers};
use crate::check::samples::{self, way};
use crate::command::Command;
use crate::event::Event;
use crate::execution::Outcome;
use crate::graph::{Graph, Join, State, StateKind};
use crate::ids::TaskId;
use crate::instance::{Instance, Status};
use crate::json::Json;
use crate::question::Occurrence;

const NAMES: [&str; 5] = ["A", "B", "C", "D", "E"];

/// `Begin` forks into the first `branches` of [`NAMES`]; GO leads from each of them to `Meet`, and END ends it. The branches
/// of an inner fork, into `Inner` twice by INNER, meet in `Meet` too.
fn graph(branches: usize, join: Join) -> Graph {
    let state = |name: &&str| State {
        join: if *name == "Meet" { join } else { Join::None },
        ..samples::state(name, name, StateKind::Task)
    };
    let names = &NAMES[..branches];
    let others = ["Begin", "Inner", "Meet"];
    let mut states: Vec<_> = others.iter().chain(names).map(state).collect();
    states.push(samples::state(
        "Done",
        "Done",
        StateKind::Terminal("DONE".into()),
    ));
    let mut transitions = vec![
        way("Begin", "GO", names),
        way("Inner", "GO", &["Meet"]),
        way("Meet", "GO", &["Done"]),
    ];
    for name in names {
        transitions.push(way(name, "GO", &["Meet"]));
        transitions.push(way(name, "END", &["Meet"]));
        transitions.push(way(name, "INNER", &["Inner"]));
    }
    Graph {
        initial: "Begin".into(),
        states,
        transitions,
        initiators: vec![],
        ..samples::document_approval()
    }
}

fn forked(branches: usize, join: Join) -> Script {
    let names = &NAMES[..branches];
    let plan = move |occurrence: &Occurrence, state: &str, _: &Instance| {
        Ok(match (occurrence.trigger.as_str(), state) {
            ("END", _) => end_branch(),
            ("INNER", _) => enter(&["Inner"]),
            (_, "Begin") => enter(names),
            (_, "Meet") => enter(&["Done"]),
            _ => enter(&["Meet"]),
        })
    };
    let mut script = Script::new()
        .drawn(graph(branches, join))
        .assigning(|_| offers(&["crew"]))
        .planning_for(plan)
        .started();
    step(&mut script, "Begin", "GO");
    script
}

fn open(script: &Script, state: &str) -> TaskId {
    let mut active = script.instance().active.iter();
    let found = active.find(|state_instance| state_instance.name == state);
    found.unwrap_or_else(|| panic!("{state} is active")).tasks[0].id
}

fn step(script: &mut Script, state: &str, outcome: &str) -> Outcome {
    let task = open(script, state);
    script.claim(task);
    let command = Command::Decide {
        task,
        outcome: outcome.into(),
        comment: None,
        input: Json::empty(),
    };
    script.run("bob", &command).expect("a decision")
}

fn active(script: &Script) -> Vec<&str> {
    let active = script.instance().active.iter();
    active.map(|state| state.name.as_str()).collect()
}

fn cancelled(outcome: &Outcome) -> Vec<(&str, &str)> {
    let events = outcome.events.iter();
    let cancelled = events.filter_map(|event| match event {
        Event::StateCancelled { name, trigger, .. } => Some((name.as_str(), trigger.as_str())),
        _ => None,
    });
    cancelled.collect()
}

#[test]
fn two_of_three_are_enough_and_the_third_is_cancelled() {
    let mut script = forked(3, Join::Count(2));
    let first = step(&mut script, "B", "GO");
    assert_eq!(
        (cancelled(&first), active(&script)),
        (vec![], vec!["A", "C"])
    );
    let task = open(&script, "A");
    let second = step(&mut script, "C", "GO");
    assert_eq!(cancelled(&second), [("A", "GO")]);
    assert!(second.events.iter().any(|event| {
        matches!(event, Event::TaskCancelled { task: gone, .. } if *gone == task)
    }));
    assert_eq!(active(&script), ["Meet"]);
    let meet = &script.instance().active[0];
    assert_eq!((meet.predecessors.len(), meet.forks.len()), (2, 0));
    assert!(script.instance().waiting.is_empty());
    step(&mut script, "Meet", "GO");
    assert!(matches!(script.instance().status, Status::Completed { .. }));
}

#[test]
fn fewer_are_enough_when_the_others_have_ended() {
    let mut script = forked(3, Join::Count(3));
    step(&mut script, "A", "END");
    step(&mut script, "B", "GO");
    assert_eq!(active(&script), ["C"]);
    let last = step(&mut script, "C", "GO");
    assert_eq!((cancelled(&last), active(&script)), (vec![], vec!["Meet"]));
}

/// The join of an inner fork counts the branches of that fork.
#[test]
fn what_runs_inside_a_branch_is_cancelled_with_it() {
    let mut script = forked(3, Join::Count(2));
    step(&mut script, "A", "INNER");
    step(&mut script, "B", "GO");
    let last = step(&mut script, "C", "GO");
    assert_eq!(cancelled(&last), [("Inner", "GO")]);
    assert_eq!(active(&script), ["Meet"]);
}

proptest! {
    /// In any order, with any branches that end: the join begins once, with as many branches as it waits for or as all that
    /// were left, and nothing is left beside it.
    #[test]
    fn a_counted_join_begins_once(
        (branches, count) in (2..=5usize).prop_flat_map(|branches| (Just(branches), 1..=5u32)),
        order in Just(NAMES.to_vec()).prop_shuffle(),
        ends in prop::collection::vec(prop::bool::weighted(0.3), 5),
    ) {
        let mut script = forked(branches, Join::Count(count));
        let (mut arrived, mut left) = (0, branches);
        for (name, is_end) in order.into_iter().zip(ends) {
            if !NAMES[..branches].contains(&name) {
                continue;
            }
            // The last branch of an instance does not end.
            let is_end = is_end && left > 1;
            step(&mut script, name, if is_end { "END" } else { "GO" });
            left -= 1;
            arrived += u32::from(!is_end);
            let begins = arrived == count || left == 0;
            prop_assert_eq!(active(&script) == ["Meet"], begins);
            if begins {
                break;
            }
        }
        let meet = &script.instance().active[0];
        prop_assert_eq!(meet.predecessors.len(), arrived as usize);
        prop_assert!(script.instance().waiting.is_empty());
    }
}
