//! Checks each state and transition with its neighbours. Transitions begin and end at declared states. The kind of a state
//! allows the sources that fire its transitions. Every state except terminal ones has a transition.
//!
//! [`super::paths`] checks longer paths.

use std::collections::BTreeSet;

use super::Problem;
use super::names::{place, shown};
use crate::graph::{FiredBy, Graph, Join, State, StateKind, Transition};
use crate::shown::BRANCHES_MAX;

/// Transitions from one state. Each task of a list shows the transitions that a decision fires.
pub(super) const WAYS_MAX: usize = 50;

/// Checks each state and each transition against its neighbours.
pub(super) fn check(graph: &Graph, problems: &mut Vec<Problem>) {
    initial(graph, problems);
    for state in &graph.states {
        ways_out(graph, state, problems);
        flags(state, problems);
    }
    for transition in &graph.transitions {
        ends(graph, transition, problems);
        sources(graph, transition, problems);
    }
    for (place, list) in graph.separate.iter().enumerate() {
        separate(graph, &format!("/separate/{place}"), list, problems);
    }
}

/// A list of separate states names at least two states, each once. People other than the requesters decide in each of them.
fn separate(graph: &Graph, at: &str, list: &[String], problems: &mut Vec<Problem>) {
    if list.len() < 2 {
        problems.push(Problem::new(
            "separate_too_short",
            at,
            "a list with fewer than two states has no effect; name the others",
        ));
    }
    let mut seen = BTreeSet::new();
    for name in list {
        let shown = shown(name);
        let (code, message) = match graph.state(name) {
            _ if !seen.insert(name) => (
                "separate_repeated",
                format!("the state `{shown}` is named twice; name it once"),
            ),
            None => (
                "separate_missing",
                format!("the state `{shown}` is not declared; declare it or name another"),
            ),
            Some(state) if state.kind != StateKind::Task => (
                "separate_without_task",
                format!(
                    "`{shown}` is a {} state and nobody decides in it; name task states",
                    state.kind.name()
                ),
            ),
            Some(state) if state.own_work => (
                "separate_own_work",
                format!(
                    "`{shown}` is the initiators' own work, and they decide in no other state; leave it out"
                ),
            ),
            Some(_) => continue,
        };
        problems.push(Problem::new(code, at, message));
    }
}

/// The sources that may fire the triggers of a state of this kind.
fn sources_of(kind: &StateKind) -> &'static [FiredBy] {
    match kind {
        StateKind::Task => &[FiredBy::Decision, FiredBy::Signal, FiredBy::Deadline],
        StateKind::Service => &[
            FiredBy::Signal,
            FiredBy::Deadline,
            FiredBy::Reply,
            FiredBy::Failure,
        ],
        StateKind::Router => &[FiredBy::Entry],
        StateKind::Wait => &[FiredBy::Signal, FiredBy::Deadline, FiredBy::Child],
        StateKind::Terminal(_) => &[],
    }
}

fn source_name(by: FiredBy) -> &'static str {
    match by {
        FiredBy::Decision => "decision",
        FiredBy::Signal => "signal",
        FiredBy::Deadline => "deadline",
        FiredBy::Reply => "reply",
        FiredBy::Failure => "failure",
        FiredBy::Child => "child",
        FiredBy::Entry => "entry",
    }
}

fn initial(graph: &Graph, problems: &mut Vec<Problem>) {
    let Some(state) = graph.state(&graph.initial) else {
        problems.push(Problem::new(
            "initial_missing",
            "/initial",
            format!(
                "the initial state `{}` is not declared; name one of the states",
                shown(&graph.initial)
            ),
        ));
        return;
    };
    if let StateKind::Terminal(_) = state.kind {
        problems.push(Problem::new(
            "initial_terminal",
            shown(&state.name),
            "an instance would end when it starts; name another initial state",
        ));
    }
    if state.join.is_join() {
        problems.push(Problem::new(
            "initial_join",
            shown(&state.name),
            "no branch leads to the start of an instance, so it cannot be a join; put a state before it",
        ));
    }
}

fn ways_out(graph: &Graph, state: &State, problems: &mut Vec<Problem>) {
    let at = shown(&state.name);
    let ways = graph.leaving(&state.name).count();
    if ways > WAYS_MAX {
        problems.push(Problem::new(
            "too_many_ways",
            &at,
            format!("{ways} transitions leave this state; at most {WAYS_MAX} are allowed"),
        ));
    }
    match state.kind {
        StateKind::Terminal(_) => {
            for transition in graph.leaving(&state.name) {
                problems.push(Problem::new(
                    "terminal_left",
                    place(&transition.source, &transition.trigger),
                    "an instance ends here; remove the transition, or make the state another kind than \
                     terminal",
                ));
            }
        }
        StateKind::Task | StateKind::Service | StateKind::Router | StateKind::Wait if ways == 0 => problems.push(Problem::new(
            "no_way_out",
            at,
            "no transition leaves this state; add one, or make it terminal with an outcome",
        )),
        StateKind::Router if ways != 1 => problems.push(Problem::new(
            "router_ways",
            at,
            format!(
                "a router has exactly one transition, this one has {ways}; declare the ways as targets of \
                 one transition"
            ),
        )),
        StateKind::Service => {
            for by in [FiredBy::Reply, FiredBy::Failure] {
                if !graph.leads(&state.name, by) {
                    problems.push(Problem::new(
                        "service_unanswered",
                        &at,
                        format!(
                            "no trigger of this service state is fired by {}; declare where it leads",
                            source_name(by)
                        ),
                    ));
                }
            }
        }
        StateKind::Task | StateKind::Router | StateKind::Wait => {}
    }
}

fn flags(state: &State, problems: &mut Vec<Problem>) {
    let kind = state.kind.name();
    if state.own_work && state.kind != StateKind::Task {
        problems.push(Problem::new(
            "own_work_without_task",
            shown(&state.name),
            format!("only a task state can be its initiators' own work; this is a {kind} state"),
        ));
    }
    if let Join::Count(count) = state.join
        && !(1..=BRANCHES_MAX).contains(&(count as usize))
    {
        problems.push(Problem::new(
            "join_count",
            shown(&state.name),
            format!(
                "a join waits for 1 to {BRANCHES_MAX} branches, not for {count}; or for all of them"
            ),
        ));
    }
    if state.join.is_join() && matches!(state.kind, StateKind::Terminal(_)) {
        problems.push(Problem::new(
            "terminal_join",
            shown(&state.name),
            "a terminal state ends the other branches instead of waiting for them; join in a router \
             before it",
        ));
    }
}

fn ends(graph: &Graph, transition: &Transition, problems: &mut Vec<Problem>) {
    let at = place(&transition.source, &transition.trigger);
    if graph.state(&transition.source).is_none() {
        problems.push(Problem::new(
            "source_missing",
            &at,
            format!(
                "the transition leaves `{}`, which is not declared; declare the state or name another",
                shown(&transition.source)
            ),
        ));
    }
    if transition.targets.is_empty() {
        problems.push(Problem::new(
            "targets_missing",
            &at,
            "the transition leads nowhere; name at least one target",
        ));
    }
    let mut seen = BTreeSet::new();
    for target in &transition.targets {
        if !seen.insert(target) {
            problems.push(Problem::new(
                "target_repeated",
                &at,
                format!(
                    "the target `{}` is named twice; name it once",
                    shown(target)
                ),
            ));
        } else if graph.state(target).is_none() {
            problems.push(Problem::new(
                "target_missing",
                &at,
                format!(
                    "the target `{}` is not declared; declare the state or name another",
                    shown(target)
                ),
            ));
        }
    }
}

fn sources(graph: &Graph, transition: &Transition, problems: &mut Vec<Problem>) {
    let at = place(&transition.source, &transition.trigger);
    if transition.by.is_empty() {
        problems.push(Problem::new(
            "sources_missing",
            &at,
            "no source fires this trigger; name one, such as a decision",
        ));
    }
    let Some(state) = graph.state(&transition.source) else {
        return;
    };
    if let StateKind::Terminal(_) = state.kind {
        return;
    }
    let allowed = sources_of(&state.kind);
    let mut seen = BTreeSet::new();
    for by in &transition.by {
        if !seen.insert(by) {
            problems.push(Problem::new(
                "source_repeated",
                &at,
                format!("`{}` is named twice; name it once", source_name(*by)),
            ));
        } else if !allowed.contains(by) {
            let names: Vec<_> = allowed.iter().map(|by| source_name(*by)).collect();
            problems.push(Problem::new(
                "source_not_of_kind",
                &at,
                format!(
                    "a {} state has no {} that could fire this trigger; it has {}",
                    state.kind.name(),
                    source_name(*by),
                    names.join(", ")
                ),
            ));
        }
    }
}
