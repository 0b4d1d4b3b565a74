//! Checks of the graph as a whole: every state can be reached, and a terminal state can be reached from every state. This
//! module cannot know whether a join has branches to join: any trigger may let a branch begin beside a state that goes on.
//!
//! Edges to undeclared states are skipped, since [`super::shape`] reports them.

use std::collections::BTreeMap;

use super::Problem;
use super::names::shown;
use crate::graph::{Graph, StateKind};

/// Checks which states are reachable.
pub(super) fn check(graph: &Graph, problems: &mut Vec<Problem>) {
    let edges = Edges::new(graph);
    unreachable(graph, &edges, problems);
    endless(graph, &edges, problems);
}

/// The graph's edges between indices of its states.
struct Edges<'a> {
    /// By name; the first one, if a state is declared twice.
    index: BTreeMap<&'a str, usize>,
    onward: Vec<Vec<usize>>,
    back: Vec<Vec<usize>>,
}

impl<'a> Edges<'a> {
    fn new(graph: &'a Graph) -> Edges<'a> {
        let mut index = BTreeMap::new();
        for (position, state) in graph.states.iter().enumerate() {
            index.entry(state.name.as_str()).or_insert(position);
        }
        let mut edges = Edges {
            index,
            onward: vec![Vec::new(); graph.states.len()],
            back: vec![Vec::new(); graph.states.len()],
        };
        for transition in &graph.transitions {
            let Some(from) = edges.of(&transition.source) else {
                continue;
            };
            for to in edges.all_of(&transition.targets) {
                edges.onward[from].push(to);
                edges.back[to].push(from);
            }
        }
        edges
    }

    fn of(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    fn all_of(&self, names: &[String]) -> Vec<usize> {
        names.iter().filter_map(|name| self.of(name)).collect()
    }
}

/// The states reachable from `starts`, the starts included.
fn reachable(edges: &[Vec<usize>], starts: impl IntoIterator<Item = usize>) -> Vec<bool> {
    let mut reachable = vec![false; edges.len()];
    let mut open: Vec<usize> = starts.into_iter().collect();
    while let Some(state) = open.pop() {
        if !reachable[state] {
            reachable[state] = true;
            open.extend(&edges[state]);
        }
    }
    reachable
}

fn unreachable(graph: &Graph, edges: &Edges<'_>, problems: &mut Vec<Problem>) {
    let Some(initial) = edges.of(&graph.initial) else {
        return;
    };
    let reached = reachable(&edges.onward, [initial]);
    for (name, position) in &edges.index {
        if !reached[*position] {
            problems.push(Problem::new(
                "unreachable",
                shown(name),
                format!(
                    "no path leads here from the initial state `{}`; add a transition to it, or remove \
                     the state",
                    shown(&graph.initial)
                ),
            ));
        }
    }
}

fn endless(graph: &Graph, edges: &Edges<'_>, problems: &mut Vec<Problem>) {
    let is_end = |position: &usize| matches!(graph.states[*position].kind, StateKind::Terminal(_));
    let ends: Vec<usize> = edges.index.values().copied().filter(is_end).collect();
    if ends.is_empty() {
        problems.push(Problem::new(
            "no_terminal",
            "/states",
            "no state is terminal, so no instance could ever end; declare one with an outcome",
        ));
        return;
    }
    let ending = reachable(&edges.back, ends);
    for (name, position) in &edges.index {
        // `shape` has already reported a state without transitions.
        if !ending[*position] && !edges.onward[*position].is_empty() {
            problems.push(Problem::new(
                "no_way_to_end",
                shown(name),
                "no path leads from here to a terminal state; add a transition",
            ));
        }
    }
}
