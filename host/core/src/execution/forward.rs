//! Reachability between states, by the edges of the graph without back edges.

use std::collections::HashMap;

use crate::graph::Graph;

/// The states ahead of each state, computed once.
pub(super) struct Forward<'g> {
    places: HashMap<&'g str, usize>,
    ahead: Vec<Places>,
}

/// A set of places in the list of states.
#[derive(Clone)]
struct Places(Vec<u64>);

impl Places {
    fn none(count: usize) -> Places {
        Places(vec![0; count.div_ceil(64)])
    }

    fn insert(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn has(&self, place: usize) -> bool {
        self.0[place / 64] & (1 << (place % 64)) != 0
    }

    fn extend(&mut self, others: &Places) {
        for (word, other) in self.0.iter_mut().zip(&others.0) {
            *word |= other;
        }
    }
}

impl<'g> Forward<'g> {
    pub(super) fn of(graph: &'g Graph) -> Forward<'g> {
        let count = graph.states.len();
        let names = graph.states.iter().map(|state| state.name.as_str());
        let places: HashMap<_, _> = names.zip(0..).collect();
        let mut ahead = vec![Places::none(count); count];
        if let Some(initial) = places.get(graph.initial.as_str()) {
            search(*initial, targets(graph, &places), &mut ahead);
        }
        Forward { places, ahead }
    }

    /// Whether a branch in `from` may reach `to`; false for a branch that is in `to`.
    pub(super) fn leads(&self, from: &str, to: &str) -> bool {
        let place = |name: &str| self.places.get(name).copied();
        let ways = place(from).zip(place(to));
        ways.is_some_and(|(from, to)| self.ahead[from].has(to))
    }
}

/// The targets of each state, in the order in which they are declared.
fn targets(graph: &Graph, places: &HashMap<&str, usize>) -> Vec<Vec<usize>> {
    let place = |name: &String| places.get(name.as_str()).copied();
    let mut targets = vec![Vec::new(); graph.states.len()];
    for way in &graph.transitions {
        if let Some(source) = place(&way.source) {
            targets[source].extend(way.targets.iter().filter_map(place));
        }
    }
    targets
}

/// Depth-first search with an explicit stack, since a graph may be deep. An edge to a state on the path is a back edge. So the
/// order of the search decides which edges are back edges: the last target of a state comes first.
fn search(initial: usize, mut left: Vec<Vec<usize>>, ahead: &mut [Places]) {
    let mut is_on_path = vec![false; left.len()];
    let mut is_done = vec![false; left.len()];
    let mut path = vec![initial];
    is_on_path[initial] = true;
    while let Some(&state) = path.last() {
        match left[state].pop() {
            // An edge to a state that is known to be ahead adds nothing.
            Some(target) if is_on_path[target] || ahead[state].has(target) => {}
            Some(target) => {
                ahead[state].insert(target);
                if is_done[target] {
                    reach(ahead, state, target);
                } else {
                    is_on_path[target] = true;
                    path.push(target);
                }
            }
            None => {
                path.pop();
                is_on_path[state] = false;
                is_done[state] = true;
                if let Some(&above) = path.last() {
                    reach(ahead, above, state);
                }
            }
        }
    }
}

/// All states ahead of `next` are ahead of `state`, too.
fn reach(ahead: &mut [Places], state: usize, next: usize) {
    let beyond = ahead[next].clone();
    ahead[state].extend(&beyond);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;
    use crate::check::samples::{document_approval, state, way};
    use crate::graph::StateKind;

    /// States named by their numbers, of which the first is initial, with these ways.
    fn graph(states: usize, ways: &[(usize, Vec<usize>)]) -> Graph {
        let named = |number: usize| state(&number.to_string(), "Title", StateKind::Task);
        let drawn = |(from, to): &(usize, Vec<usize>)| {
            let to: Vec<_> = to.iter().map(usize::to_string).collect();
            let to: Vec<_> = to.iter().map(String::as_str).collect();
            way(&from.to_string(), "GO", &to)
        };
        Graph {
            initial: "0".to_owned(),
            states: (0..states).map(named).collect(),
            transitions: ways.iter().map(drawn).collect(),
            ..document_approval()
        }
    }

    /// The forward edges, found by a recursive search.
    fn visit(
        graph: &Graph,
        state: &str,
        path: &mut Vec<String>,
        edges: &mut BTreeSet<(String, String)>,
        done: &mut BTreeSet<String>,
    ) {
        path.push(state.to_owned());
        let targets: Vec<_> = graph.leaving(state).flat_map(|way| &way.targets).collect();
        for target in targets.into_iter().rev() {
            if path.contains(target) {
                continue;
            }
            edges.insert((state.to_owned(), target.clone()));
            if !done.contains(target) {
                visit(graph, target, path, edges, done);
            }
        }
        path.pop();
        done.insert(state.to_owned());
    }

    /// Whether a walk along these edges leads from one state to the other.
    fn walks(edges: &BTreeSet<(String, String)>, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(state) = open.pop() {
            for (_, target) in edges.iter().filter(|(source, _)| source == state) {
                if target == to {
                    return true;
                }
                if seen.insert(target) {
                    open.push(target);
                }
            }
        }
        false
    }

    proptest! {
        #[test]
        fn a_state_leads_where_a_walk_along_forward_edges_leads(
            ways in prop::collection::vec((0..9_usize, prop::collection::vec(0..9_usize, 1..4)), 0..20),
        ) {
            let graph = graph(9, &ways);
            let mut edges = BTreeSet::new();
            visit(&graph, "0", &mut Vec::new(), &mut edges, &mut BTreeSet::new());
            let forward = Forward::of(&graph);
            for (from, to) in (0..81).map(|pair| (pair / 9, pair % 9)) {
                let (from, to) = (from.to_string(), to.to_string());
                prop_assert_eq!(
                    forward.leads(&from, &to),
                    walks(&edges, &from, &to),
                    "{} to {} of {:?}", from, to, ways
                );
            }
        }
    }

    /// 80 joins behind a fork, in front of a chain with as many transitions as a graph may have. A search for each pair took
    /// 95 seconds in an unoptimised build.
    #[test]
    fn many_joins_in_front_of_many_ways_are_compared_at_once() {
        const JOINS: usize = 80;
        const STATES: usize = 140;
        let mut ways = vec![(0, (1..=JOINS).collect())];
        ways.extend((1..=JOINS).map(|join| (join, vec![JOINS + 1])));
        for link in JOINS + 1..STATES {
            let next: Vec<_> = (link + 1..STATES).take(20).collect();
            ways.extend(std::iter::repeat_n((link, next), 15));
        }
        let graph = graph(STATES, &ways);
        let begun = Instant::now();
        let forward = Forward::of(&graph);
        for from in 1..=JOINS {
            for to in 1..=JOINS {
                assert!(!forward.leads(&from.to_string(), &to.to_string()));
            }
            assert!(forward.leads(&from.to_string(), "139"));
        }
        assert!(
            begun.elapsed() < Duration::from_secs(1),
            "{:?}",
            begun.elapsed()
        );
    }
}
