//! The states that an instance may still reach, by its declared graph alone. A timeline shows them as ahead.
//!
//! Only flow logic knows which path an instance takes. So each state has its minimum distance in transitions, and whether every
//! path to an end leads through it.

use std::collections::{HashMap, VecDeque};

use super::graph::{Graph, State, StateKind};

/// A state that may still be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateAhead<'g> {
    pub state: &'g State,
    /// The fewest transitions that lead to it from an active state.
    pub transitions: u32,
    /// Whether, from some active state, every path to an end leads through it.
    pub certain: bool,
}

/// The states ahead of these active ones: the nearest first, then in their declared order. An active state is among them if a
/// transition may lead back to it.
pub fn ahead<'g>(graph: &'g Graph, active: &[&str]) -> Vec<StateAhead<'g>> {
    let ways = Ways::of(graph);
    let active: Vec<usize> = active.iter().filter_map(|name| ways.place(name)).collect();
    let ends = ways.with_an_end(None);
    let mut steps: Vec<_> = ways
        .distances(&active)
        .into_iter()
        .enumerate()
        .filter_map(|(place, distance)| Some((place, distance?)))
        .map(|(place, transitions)| {
            let without = ways.with_an_end(Some(place));
            let certain = active.iter().any(|from| {
                // A path that leads back to an active state begins behind that state.
                let passes = |next: &usize| *next == place || !without[*next];
                ends[*from] && !ways.next[*from].is_empty() && ways.next[*from].iter().all(passes)
            });
            StateAhead {
                state: &graph.states[place],
                transitions,
                certain,
            }
        })
        .collect();
    steps.sort_by_key(|step| step.transitions);
    steps
}

/// The transitions of a graph between places in its list of states.
struct Ways<'g> {
    graph: &'g Graph,
    places: HashMap<&'g str, usize>,
    next: Vec<Vec<usize>>,
    previous: Vec<Vec<usize>>,
}

impl<'g> Ways<'g> {
    fn of(graph: &'g Graph) -> Ways<'g> {
        let states = graph.states.iter().enumerate();
        let places: HashMap<_, _> = states
            .map(|(at, state)| (state.name.as_str(), at))
            .collect();
        let mut ways = Ways {
            graph,
            next: vec![Vec::new(); graph.states.len()],
            previous: vec![Vec::new(); graph.states.len()],
            places,
        };
        for way in &graph.transitions {
            let Some(source) = ways.place(&way.source) else {
                continue;
            };
            for target in way
                .targets
                .iter()
                .filter_map(|name| ways.places.get(name.as_str()))
            {
                ways.next[source].push(*target);
                ways.previous[*target].push(source);
            }
        }
        ways
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The fewest transitions, at least one, from one of these states to each state; none if no path leads there.
    fn distances(&self, from: &[usize]) -> Vec<Option<u32>> {
        let mut found = vec![None; self.next.len()];
        let mut queue: VecDeque<_> = from.iter().map(|place| (*place, 0)).collect();
        while let Some((place, distance)) = queue.pop_front() {
            for next in &self.next[place] {
                if found[*next].is_none() {
                    found[*next] = Some(distance + 1);
                    queue.push_back((*next, distance + 1));
                }
            }
        }
        found
    }

    /// For each state, whether an end can be reached from it without passing the state at `without`.
    fn with_an_end(&self, without: Option<usize>) -> Vec<bool> {
        let is_end = |place: &usize| {
            matches!(self.graph.states[*place].kind, StateKind::Terminal(_))
                && Some(*place) != without
        };
        let mut queue: Vec<usize> = (0..self.next.len()).filter(is_end).collect();
        let mut found = vec![false; self.next.len()];
        for end in &queue {
            found[*end] = true;
        }
        while let Some(place) = queue.pop() {
            for previous in &self.previous[place] {
                if Some(*previous) != without && !found[*previous] {
                    found[*previous] = true;
                    queue.push(*previous);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
