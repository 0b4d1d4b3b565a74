//! What only the graph as a whole shows: every state can be reached, an end can be reached from every
//! state, and a join has branches to join.
//!
//! States are walked by index over the declared edges; ends that do not exist are skipped here, since
//! [`super::shape`] names them.

use std::collections::BTreeMap;

use super::Problem;
use super::names::shown;
use crate::domain::graph::{Graph, StateKind};

/// Checks what is reachable from where.
pub(super) fn check(graph: &Graph, problems: &mut Vec<Problem>) {
    let ways = Ways::new(graph);
    unreachable(graph, &ways, problems);
    endless(graph, &ways, problems);
    joins(graph, &ways, problems);
}

/// The graph's edges between indices of its states.
struct Ways<'a> {
    /// Of states declared twice, the first.
    index: BTreeMap<&'a str, usize>,
    onward: Vec<Vec<usize>>,
    back: Vec<Vec<usize>>,
}

impl<'a> Ways<'a> {
    fn new(graph: &'a Graph) -> Ways<'a> {
        let mut index = BTreeMap::new();
        for (position, state) in graph.states.iter().enumerate() {
            index.entry(state.name.as_str()).or_insert(position);
        }
        let mut ways = Ways {
            index,
            onward: vec![Vec::new(); graph.states.len()],
            back: vec![Vec::new(); graph.states.len()],
        };
        for transition in &graph.transitions {
            let Some(from) = ways.of(&transition.source) else {
                continue;
            };
            for to in ways.all_of(&transition.targets) {
                ways.onward[from].push(to);
                ways.back[to].push(from);
            }
        }
        ways
    }

    fn of(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    fn all_of(&self, names: &[String]) -> Vec<usize> {
        names.iter().filter_map(|name| self.of(name)).collect()
    }
}

/// Which states the walk from `starts` meets, the starts among them. It does not go on past `wall`.
fn met(
    edges: &[Vec<usize>],
    starts: impl IntoIterator<Item = usize>,
    wall: Option<usize>,
) -> Vec<bool> {
    let mut met = vec![false; edges.len()];
    let mut open: Vec<usize> = starts.into_iter().collect();
    while let Some(state) = open.pop() {
        if !met[state] {
            met[state] = true;
            if Some(state) != wall {
                open.extend(&edges[state]);
            }
        }
    }
    met
}

fn unreachable(graph: &Graph, ways: &Ways<'_>, problems: &mut Vec<Problem>) {
    let Some(initial) = ways.of(&graph.initial) else {
        return;
    };
    let reached = met(&ways.onward, [initial], None);
    for (name, position) in &ways.index {
        if !reached[*position] {
            problems.push(Problem::new(
                "unreachable",
                shown(name),
                format!(
                    "no way leads here from the initial state `{}`; add a transition to it, or leave \
                     the state out",
                    shown(&graph.initial)
                ),
            ));
        }
    }
}

fn endless(graph: &Graph, ways: &Ways<'_>, problems: &mut Vec<Problem>) {
    let is_end = |position: &usize| matches!(graph.states[*position].kind, StateKind::Terminal(_));
    let ends: Vec<usize> = ways.index.values().copied().filter(is_end).collect();
    if ends.is_empty() {
        problems.push(Problem::new(
            "no_terminal",
            "/states",
            "no state is terminal, so no instance could ever end; declare one with an outcome",
        ));
        return;
    }
    let ending = met(&ways.back, ends, None);
    for (name, position) in &ways.index {
        // A state without any way out is named by the shape already.
        if !ending[*position] && !ways.onward[*position].is_empty() {
            problems.push(Problem::new(
                "no_way_to_end",
                shown(name),
                "no way leads from here to a terminal state; add a transition that gets there",
            ));
        }
    }
}

/// A join waits for the branches of a fork: from two targets of one transition a way must lead to it,
/// without passing the fork again.
fn joins(graph: &Graph, ways: &Ways<'_>, problems: &mut Vec<Problem>) {
    let mut joined = vec![false; graph.states.len()];
    for transition in graph
        .transitions
        .iter()
        .filter(|fork| fork.targets.len() > 1)
    {
        let source = ways.of(&transition.source);
        let mut branches = ways.all_of(&transition.targets);
        branches.sort_unstable();
        branches.dedup();
        let mut arrivals = vec![0_usize; graph.states.len()];
        for branch in branches {
            for (position, reached) in met(&ways.onward, [branch], source).into_iter().enumerate() {
                arrivals[position] += usize::from(reached);
            }
        }
        for (position, count) in arrivals.into_iter().enumerate() {
            joined[position] |= count > 1;
        }
    }
    for (name, position) in &ways.index {
        // An initial join is named by the shape already.
        if graph.states[*position].join && !joined[*position] && *name != graph.initial {
            problems.push(Problem::new(
                "join_outside_fork",
                shown(name),
                "no transition leads here by two of its targets, so there is nothing to join; fork \
                 before it, or make it no join",
            ));
        }
    }
}
