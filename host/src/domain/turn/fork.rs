//! Forks and joins: which branches belong together, and when all of them have come.
//!
//! A plan that enters several states opens a fork; every stay knows the forks around it. A branch that comes to a join
//! waits there until every other branch of the innermost fork has come to a join or ended. Then the join begins, and
//! the fork is closed; when branches wait in several joins, the foremost of them begin and stay inside the fork.
//!
//! A plan may also choose a single one of several targets. Whether that choice was a fork with one branch or a mere
//! turn of the way shows at the join: nobody else of the fork around it can come there, so it waits for nobody.

use std::collections::BTreeSet;

use super::{Turn, TurnError};
use crate::domain::event::Event;
use crate::domain::graph::Graph;
use crate::domain::ids::{ForkId, StateId};
use crate::domain::instance::StateInstance;

/// How many forks may lie inside each other.
pub(super) const FORKS_MAX: usize = 16;

impl Turn<'_> {
    /// The forks and choices around the branches that a stay moves on to.
    pub(super) fn branches(
        &mut self,
        from: StateId,
        trigger: &str,
        count: usize,
    ) -> (Vec<ForkId>, u32) {
        let stay = self.stay_of(from);
        let (mut forks, mut choices) = (stay.forks.clone(), stay.choices);
        let graph = &self.context.version.graph;
        let declared = graph.transition(&stay.name, trigger);
        if count > 1 {
            forks.push(ForkId((self.ids)()));
        } else if declared.is_some_and(|declared| declared.targets.len() > 1) {
            choices |= 1 << forks.len();
        }
        (forks, choices)
    }

    /// A branch comes to a join.
    pub(super) fn arrive(&mut self, arriving: StateInstance) {
        let known = self
            .instance
            .waiting
            .iter()
            .find(|waiting| waiting.name == arriving.name && waiting.forks == arriving.forks);
        let state = match known {
            None => arriving,
            Some(waiting) => {
                let mut waiting = waiting.clone();
                let new = arriving.predecessors.into_iter();
                waiting.predecessors.extend(
                    new.filter(|id| !known.is_some_and(|known| known.predecessors.contains(id))),
                );
                waiting.choices |= arriving.choices;
                // The last branch to come is the one that brings the join about.
                waiting.entered_by = arriving.entered_by;
                waiting.caller = arriving.caller;
                waiting
            }
        };
        self.emit(Event::BranchArrived { state });
    }

    /// Begins the next join that waits for nobody, if there is one.
    pub(super) fn begin_joins(&mut self) -> Result<bool, TurnError> {
        if self.beginning.is_empty() {
            self.beginning = self.complete().into();
        }
        let Some((id, closes)) = self.beginning.pop_front() else {
            return Ok(false);
        };
        // One that began with it may have cancelled it.
        let waiting = self.instance.waiting.iter().find(|stay| stay.id == id);
        if let Some(mut stay) = waiting.cloned() {
            stay.entered_at = self.context.now;
            if closes {
                // Which of the two was joined, the fork or a choice inside it, is not known: the way further on may
                // hold the join of the other, so the choice is remembered one fork further out.
                let chosen = stay.choices >> stay.forks.len() != 0;
                stay.choices &= (1 << stay.forks.len()) - 1;
                if stay.forks.pop().is_some() && chosen {
                    stay.choices |= 1 << stay.forks.len();
                }
            }
            self.begin_stay(stay)?;
        }
        Ok(true)
    }

    /// The joins that wait for nobody any more, and whether they close their fork.
    fn complete(&self) -> Vec<(StateId, bool)> {
        let waiting = &self.instance.waiting;
        // Inner forks close before outer ones.
        let Some(innermost) = waiting
            .iter()
            .filter(|stay| self.live(&stay.forks).is_empty())
            .max_by_key(|stay| stay.forks.len())
        else {
            return self.unreachable().into_iter().collect();
        };
        let forward = Forward::of(&self.context.version.graph);
        let together: Vec<_> = waiting
            .iter()
            .filter(|stay| stay.forks == innermost.forks)
            .collect();
        let foremost: Vec<_> = together
            .iter()
            .filter(|stay| {
                let mut others = together.iter().filter(|other| other.id != stay.id);
                !others.any(|other| forward.leads(&other.name, &stay.name))
            })
            .collect();
        let closes = together.len() == 1;
        foremost.into_iter().map(|stay| (stay.id, closes)).collect()
    }

    /// A join to which a single branch was led by choice, and to which no other branch of its fork can come.
    fn unreachable(&self) -> Option<(StateId, bool)> {
        let waiting = &self.instance.waiting;
        let chosen = |stay: &&StateInstance| stay.choices & (1 << stay.forks.len()) != 0;
        let mut candidates = waiting.iter().filter(chosen).peekable();
        candidates.peek()?;
        let forward = Forward::of(&self.context.version.graph);
        candidates
            .find(|stay| {
                let live = self.live(&stay.forks);
                let others = waiting
                    .iter()
                    .filter(|other| other.id != stay.id && other.forks.starts_with(&stay.forks));
                !live
                    .into_iter()
                    .chain(others)
                    .any(|other| forward.leads(&other.name, &stay.name))
            })
            .map(|stay| (stay.id, false))
    }

    /// The branches inside these forks that have neither come to a join nor ended.
    fn live(&self, forks: &[ForkId]) -> Vec<&StateInstance> {
        let inside = |stay: &&StateInstance| stay.forks.starts_with(forks);
        let inner = self
            .instance
            .waiting
            .iter()
            .filter(|stay| stay.forks.len() > forks.len());
        self.instance
            .active
            .iter()
            .chain(inner)
            .filter(inside)
            .collect()
    }
}

/// Which state leads to which, without the ways that lead back.
struct Forward<'a> {
    edges: Vec<(&'a str, &'a str)>,
}

impl<'a> Forward<'a> {
    fn of(graph: &'a Graph) -> Forward<'a> {
        let mut forward = Forward { edges: Vec::new() };
        let mut done = BTreeSet::new();
        // Depth first, by hand: a graph may be deeper than a stack. Each step holds a state and the ways still to go.
        let ways = |name: &'a str| -> Vec<&'a str> {
            let targets = graph.leaving(name).flat_map(|way| &way.targets);
            targets.map(String::as_str).collect()
        };
        let mut path = vec![(graph.initial.as_str(), ways(&graph.initial))];
        while let Some((state, left)) = path.last_mut() {
            let state = *state;
            let Some(target) = left.pop() else {
                done.insert(state);
                path.pop();
                continue;
            };
            if path.iter().any(|(above, _)| *above == target) {
                continue;
            }
            forward.edges.push((state, target));
            if !done.contains(target) {
                path.push((target, ways(target)));
            }
        }
        forward
    }

    /// Whether a branch in `from` may come to `to`; a branch in `to` itself has come.
    fn leads(&self, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(state) = open.pop() {
            for (_, target) in self.edges.iter().filter(|(source, _)| *source == state) {
                if *target == to {
                    return true;
                }
                if seen.insert(target) {
                    open.push(target);
                }
            }
        }
        false
    }
}
