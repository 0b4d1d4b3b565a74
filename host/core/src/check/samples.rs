//! Graphs for tests: the approval of a document, and random ones, many of which are valid.

use proptest::prelude::*;

use crate::graph::{
    AttributeDeclaration, AttributeType, FiredBy, Graph, Join, State, StateKind, Transition,
};

/// Submitted, then final review, with a rework loop: the sample flow of this repository.
pub fn document_approval() -> Graph {
    let mut rework = state("ReworkRequested", "Rework requested", StateKind::Task);
    rework.own_work = true;
    Graph {
        initial: "Submitted".into(),
        initiators: vec!["authors".into()],
        states: vec![
            state("Submitted", "First review", StateKind::Task),
            state("FinalReview", "Final review", StateKind::Task),
            rework,
            state(
                "Approved",
                "Approved",
                StateKind::Terminal("APPROVED".into()),
            ),
            state(
                "Rejected",
                "Rejected",
                StateKind::Terminal("REJECTED".into()),
            ),
        ],
        transitions: vec![
            way("Submitted", "APPROVE", &["FinalReview"]),
            way("Submitted", "REJECT", &["ReworkRequested"]),
            way("FinalReview", "APPROVE", &["Approved"]),
            way("FinalReview", "REJECT", &["ReworkRequested"]),
            way("ReworkRequested", "SUBMIT", &["Submitted"]),
            way("ReworkRequested", "ABANDON", &["Rejected"]),
        ],
        attributes: vec![AttributeDeclaration {
            name: "title".into(),
            kind: AttributeType::Text,
        }],
        ..Graph::default()
    }
}

/// A state without flags.
pub fn state(name: &str, title: &str, kind: StateKind) -> State {
    State {
        name: name.into(),
        title: title.into(),
        description: String::new(),
        kind,
        join: Join::None,
        own_work: false,
    }
}

/// A transition fired by a decision.
pub fn way(source: &str, trigger: &str, targets: &[&str]) -> Transition {
    way_by(source, trigger, FiredBy::Decision, targets)
}

/// A transition fired by one source.
pub fn way_by(source: &str, trigger: &str, by: FiredBy, targets: &[&str]) -> Transition {
    Transition {
        source: source.into(),
        trigger: trigger.into(),
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        by: vec![by],
        ..Transition::default()
    }
}

/// Sound graphs of 2 to `states_max` states: each state leads to the next, the last is terminal, and
/// up to `extra` more transitions lead to any states, their source included.
pub fn sound(states_max: usize, extra: usize) -> impl Strategy<Value = Graph> {
    let title = prop_oneof![
        Just("Review".to_owned()),
        "[A-Za-z<&\"'เขอ字]{1,12}( [a-z]{1,14}){0,6}",
    ];
    (2..=states_max).prop_flat_map(move |count| {
        let titles = prop::collection::vec(title.clone(), count);
        let targets = prop::collection::btree_set(0..count, 1..=count.min(4));
        let extras = prop::collection::vec((0..count - 1, targets), 0..=extra);
        (titles, extras).prop_map(move |(titles, extras)| {
            let name = |position: usize| format!("S{position}");
            let mut graph = document_approval();
            graph.initial = name(0);
            graph.states.clear();
            graph.transitions.clear();
            for (position, title) in titles.iter().enumerate() {
                let kind = if position + 1 == count {
                    StateKind::Terminal("DONE".into())
                } else {
                    graph
                        .transitions
                        .push(way(&name(position), "NEXT", &[&name(position + 1)]));
                    StateKind::Task
                };
                graph.states.push(state(&name(position), title, kind));
            }
            for (index, (source, targets)) in extras.iter().enumerate() {
                let mut extra = way(&name(*source), &format!("TO_{index}"), &[]);
                extra.targets = targets.iter().map(|target| name(*target)).collect();
                graph.transitions.push(extra);
            }
            graph
        })
    })
}

/// Graphs of any shape, with so few names that their states are often connected.
pub fn any() -> impl Strategy<Value = Graph> {
    let name = || prop::sample::select(vec!["A", "B", "C", "D", "", "b d", "\u{202e}"]);
    let kind = prop_oneof![
        4 => Just(StateKind::Task),
        1 => Just(StateKind::Service),
        1 => Just(StateKind::Router),
        1 => Just(StateKind::Wait),
        3 => Just(StateKind::Terminal("DONE".into())),
        1 => Just(StateKind::Terminal(String::new())),
    ];
    let by = prop::sample::subsequence(
        vec![
            FiredBy::Decision,
            FiredBy::Reply,
            FiredBy::Child,
            FiredBy::Entry,
        ],
        0..3,
    );
    let state = (
        name(),
        kind,
        prop_oneof![8 => Just(Join::None), 1 => Just(Join::All), 1 => (0..3u32).prop_map(Join::Count)],
        prop::bool::weighted(0.1),
    )
        .prop_map(|(name, kind, join, own_work)| State {
            join,
            own_work,
            ..state(name, "Title", kind)
        });
    let by = prop_oneof![3 => Just(vec![FiredBy::Decision]), 1 => by];
    let way = (name(), "[AB]", prop::collection::vec(name(), 0..3), by).prop_map(
        |(source, trigger, targets, by)| Transition {
            by,
            ..way(source, &trigger, &targets)
        },
    );
    let states = prop::collection::vec(state, 0..6);
    let ways = prop::collection::vec(way, 0..9);
    (name(), states, ways).prop_map(|(initial, states, transitions)| Graph {
        initial: initial.into(),
        states,
        transitions,
        ..document_approval()
    })
}
