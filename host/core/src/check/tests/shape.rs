//! Problems of a state or transition with its neighbours, and of lists of states.

use super::*;
use crate::check::inputs::{INPUT_BYTES_MAX, SIGNAL_INPUTS_MAX};
use crate::check::shape::WAYS_MAX;

#[test]
fn terminal_states_have_an_outcome_and_no_way_out() {
    only(
        &changed(|g| g.states[3].kind = StateKind::Terminal(String::new())),
        "outcome_missing",
        "Approved",
    );
    only(
        &changed(|g| g.states[3].kind = StateKind::Terminal("well done".into())),
        "outcome_malformed",
        "Approved",
    );
    only(
        &changed(|g| {
            g.transitions
                .push(way("Approved", "REOPEN", &["Submitted"]));
        }),
        "terminal_left",
        "Approved/REOPEN",
    );
}

#[test]
fn a_trigger_is_fired_by_what_its_state_has() {
    use FiredBy::{Child, Deadline, Decision, Entry, Failure, Reply, Signal};
    let all = [Decision, Signal, Deadline, Reply, Failure, Child, Entry];
    for (kind, allowed) in [
        (TASK, &[Decision, Signal, Deadline][..]),
        (StateKind::Service, &[Reply, Failure, Signal, Deadline]),
        (StateKind::Router, &[Entry]),
        (StateKind::Wait, &[Signal, Deadline, Child]),
    ] {
        for by in all {
            let problems = check(&with(kind.clone(), &[by]));
            let refused = found(&problems).contains(&("source_not_of_kind", "Extra/LEAVE"));
            assert_eq!(refused, !allowed.contains(&by), "{} by {by:?}", kind.name());
        }
    }
    only(&with(TASK, &[]), "sources_missing", "Extra/LEAVE");
    only(
        &with(TASK, &[Decision, Decision]),
        "source_repeated",
        "Extra/LEAVE",
    );
    only(
        &with(StateKind::Service, &[Reply]),
        "service_unanswered",
        "Extra",
    );
}

#[test]
fn a_router_has_one_transition() {
    assert_eq!(check(&with(StateKind::Router, &[FiredBy::Entry])), []);
    let mut graph = with(StateKind::Router, &[FiredBy::Entry]);
    graph.transitions.push(Transition {
        by: vec![FiredBy::Entry],
        ..way("Extra", "OTHER", &["Submitted"])
    });
    only(&graph, "router_ways", "Extra");
}

#[test]
fn only_tasks_are_own_work() {
    let mut graph = with(StateKind::Wait, &[FiredBy::Signal]);
    graph.states.last_mut().expect("Extra").own_work = true;
    only(&graph, "own_work_without_task", "Extra");
}

/// `Submitted` forks into `Left` and `Right`; `Meet` is the join.
pub(super) fn forked(right: &str) -> Graph {
    changed(|graph| {
        for name in ["Left", "Right", "Meet"] {
            graph.states.push(state(name, name, TASK));
        }
        graph.states.last_mut().expect("Meet").join = Join::All;
        graph
            .transitions
            .push(way("Submitted", "FORK", &["Left", "Right"]));
        graph.transitions.push(way("Left", "DONE", &["Meet"]));
        graph.transitions.push(way("Right", "DONE", &[right]));
        graph.transitions.push(way("Meet", "DONE", &["Approved"]));
    })
}

#[test]
fn a_join_is_reached_by_branches_of_any_origin() {
    assert_eq!(check(&forked("Meet")), []);
    // DONE may let `Meet` be reached by a branch beside `Left`, which goes on.
    assert_eq!(check(&forked("Approved")), []);
}

#[test]
fn a_join_waits_for_a_possible_count() {
    for (count, is_possible) in [(0, false), (1, true), (200, true), (201, false)] {
        let mut graph = forked("Meet");
        graph.states.last_mut().expect("Meet").join = Join::Count(count);
        if is_possible {
            assert_eq!(check(&graph), []);
        } else {
            only(&graph, "join_count", "Meet");
        }
    }
}

#[test]
fn a_rule_for_comments_needs_a_decision_and_a_schema_a_sender() {
    let drawn = |by| with(StateKind::Wait, by);
    let mut graph = drawn(&[FiredBy::Signal]);
    let way = graph.transitions.last_mut().expect("a transition");
    way.input = Some(Json::empty());
    assert_eq!(check(&graph), []);
    let way = graph.transitions.last_mut().expect("a transition");
    way.comment = CommentRule::Required;
    let place = format!("{}/{}", way.source, way.trigger);
    only(&graph, "comment_without_decision", &place);
    let mut graph = drawn(&[FiredBy::Deadline]);
    graph.transitions.last_mut().expect("a transition").input = Some(Json::empty());
    only(&graph, "input_without_sender", &place);
}

#[test]
fn input_schemas_are_valid_and_bounded() {
    let text = |length| format!(r#"{{"title":"{}"}}"#, "x".repeat(length));
    let schema = |text: &str| Some(Json::parse(text).expect("JSON"));
    only(
        &changed(|g| g.transitions[0].input = schema(r#"{"type":"thing"}"#)),
        "input_schema_invalid",
        "Submitted/APPROVE",
    );
    only(
        &changed(|g| g.transitions[0].input = schema(&text(INPUT_BYTES_MAX))),
        "too_large",
        "Submitted/APPROVE",
    );
    let many = changed(|g| {
        for number in 0..20 {
            let mut more = way("Submitted", &format!("MORE_{number}"), &["Approved"]);
            more.input = schema(&text(14_000));
            g.transitions.push(more);
        }
    });
    only(&many, "too_large", "/transitions");
}

#[test]
fn the_schemas_of_one_signal_are_few() {
    let drawn = |count: usize, kinds: usize| {
        changed(|graph| {
            for number in 0..count {
                let name = format!("S{number}");
                graph.states.push(state(&name, &name, StateKind::Wait));
                let mut call = way(&name, "CALL", &["Approved"]);
                call.by = vec![FiredBy::Signal];
                call.input = Some(
                    Json::parse(&format!(r#"{{"maxProperties":{}}}"#, number % kinds))
                        .expect("JSON"),
                );
                graph.transitions.push(call);
                graph.transitions[0].targets.push(name);
            }
        })
    };
    assert_eq!(check(&drawn(15, SIGNAL_INPUTS_MAX)), []);
    only(
        &drawn(15, SIGNAL_INPUTS_MAX + 1),
        "too_many_inputs",
        "/transitions",
    );
}

#[test]
fn few_transitions_leave_one_state() {
    let drawn = |count: usize| {
        changed(|graph| {
            let already = graph.leaving("Submitted").count();
            for number in already..count {
                let trigger = format!("MORE_{number}");
                graph
                    .transitions
                    .push(way("Submitted", &trigger, &["Approved"]));
            }
        })
    };
    assert_eq!(check(&drawn(WAYS_MAX)), []);
    only(&drawn(WAYS_MAX + 1), "too_many_ways", "Submitted");
}

#[test]
fn a_terminal_state_joins_nothing() {
    only(
        &changed(|g| {
            g.states[3].join = Join::All;
            g.transitions[2].targets.push("ReworkRequested".into());
            g.transitions
                .push(way("ReworkRequested", "ACCEPT", &["Approved"]));
        }),
        "terminal_join",
        "Approved",
    );
}

fn separate(list: &[&str]) -> Graph {
    changed(|g| g.separate = vec![list.iter().map(ToString::to_string).collect()])
}

#[test]
fn separate_states_are_tasks_in_which_others_decide() {
    assert_eq!(check(&separate(&["Submitted", "FinalReview"])), []);
    for (list, code) in [
        (&["Submitted"][..], "separate_too_short"),
        (&[], "separate_too_short"),
        (&["Submitted", "Submitted"], "separate_repeated"),
        (&["Submitted", "Elsewhere"], "separate_missing"),
        (&["Submitted", "Approved"], "separate_without_task"),
        (&["Submitted", "ReworkRequested"], "separate_own_work"),
    ] {
        only(&separate(list), code, "/separate/0");
    }
}

#[test]
fn lists_of_separate_states_are_bounded() {
    let list = vec!["Submitted".to_owned(), "FinalReview".to_owned()];
    let many = |count| changed(|g| g.separate = vec![list.clone(); count]);
    assert_eq!(check(&many(SEPARATE_MAX)), []);
    only(&many(SEPARATE_MAX + 1), "too_large", "/separate");
    let long = changed(|g| g.separate = vec![vec!["Submitted".to_owned(); STATES_MAX + 1]]);
    only(&long, "too_large", "/separate/0");
}
