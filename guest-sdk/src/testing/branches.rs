//! Forks and joins in a scenario: which stays belong to which fork, and which joins begin.
//!
//! A branch at a join waits until every other branch of the innermost fork has come to a join or ended.
//! Inner forks close first; of several joins in one fork the foremost begin, still inside it. A branch
//! that was led by choice to a join where none of the others can come waits for none of them.

use std::collections::BTreeSet;

use super::outcome::Entered;
use super::scenario::Scenario;
use crate::bindings::wrkflw::flow::types::Definition;
use crate::{Flow, StateInstance};

/// Where a stay stands among the forks of its instance.
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    /// The forks around it, the innermost last.
    pub(super) forks: Vec<u32>,
    /// How many forks were around it whenever one of several targets was chosen on the way to it.
    chosen: BTreeSet<usize>,
}

impl Branch {
    /// The branches that a plan opens, or the one that goes on.
    pub(super) fn onward(mut self, fork: Option<u32>, chosen: bool) -> Self {
        if fork.is_none() && chosen {
            self.chosen.insert(self.forks.len());
        }
        self.forks.extend(fork);
        self
    }

    pub(super) fn joined_by(&mut self, other: &Self) {
        self.chosen.extend(&other.chosen);
    }

    fn close(&mut self) {
        self.forks.pop();
        let around = self.forks.len();
        self.chosen.retain(|depth| *depth <= around);
    }
}

impl<F: Flow> Scenario<F> {
    /// Begins the joins that wait for nobody any more, and those that this brings about.
    #[track_caller]
    pub(super) fn begin_joins(&mut self, definition: &Definition, entered: &mut Vec<Entered>) {
        while self.ended.is_none() {
            let beginning = self.complete(definition);
            if beginning.is_empty() {
                assert!(
                    !self.snapshot.active.is_empty(),
                    "the last branch ended in no terminal state"
                );
                return;
            }
            for (id, closes) in beginning {
                let mut waiting = self.snapshot.waiting.iter();
                // One that began before it may have cancelled it.
                let Some(at) = waiting.position(|stay| stay.id == id) else {
                    continue;
                };
                let mut join = self.snapshot.waiting.remove(at);
                join.entered_at.clone_from(&self.snapshot.now);
                if closes {
                    self.stays.entry(id).or_default().branch.close();
                }
                self.work_on(definition, join, entered);
            }
        }
    }

    fn forks(&self, stay: &StateInstance) -> &[u32] {
        let known = self.stays.get(&stay.id);
        known.map_or(&[], |known| &known.branch.forks)
    }

    /// Branches inside these forks that have neither ended nor come to a join of theirs.
    fn under_way(&self, forks: &[u32]) -> Vec<&StateInstance> {
        let deeper = |stay: &&StateInstance| self.forks(stay).len() > forks.len();
        let active = self.snapshot.active.iter();
        let inner = self.snapshot.waiting.iter().filter(deeper);
        let all = active.chain(inner);
        all.filter(|stay| self.forks(stay).starts_with(forks))
            .collect()
    }

    /// The joins that begin now, and whether each closes its fork.
    fn complete(&self, definition: &Definition) -> Vec<(String, bool)> {
        let waiting = &self.snapshot.waiting;
        let free = |stay: &&StateInstance| self.under_way(self.forks(stay)).is_empty();
        let depth = |stay: &&StateInstance| self.forks(stay).len();
        let ahead = Ahead::of(definition);
        let Some(innermost) = waiting.iter().filter(free).max_by_key(depth) else {
            let lone = waiting.iter().find(|stay| self.is_alone(stay, &ahead));
            return lone
                .map(|stay| (stay.id.clone(), false))
                .into_iter()
                .collect();
        };
        let together = || {
            waiting
                .iter()
                .filter(|stay| self.forks(stay) == self.forks(innermost))
        };
        let closes = together().count() == 1;
        let foremost = together().filter(|stay| {
            !together().any(|other| other.id != stay.id && ahead.has(&other.name, &stay.name))
        });
        foremost.map(|stay| (stay.id.clone(), closes)).collect()
    }

    /// Led here by choice, where no other branch of the fork can come.
    fn is_alone(&self, join: &StateInstance, ahead: &Ahead<'_>) -> bool {
        let forks = self.forks(join);
        let known = self.stays.get(&join.id);
        let chosen = known.is_some_and(|known| known.branch.chosen.contains(&forks.len()));
        let waiting = self.snapshot.waiting.iter();
        let beside = waiting.filter(|one| one.id != join.id && self.forks(one).starts_with(forks));
        let mut others = self.under_way(forks).into_iter().chain(beside);
        chosen && !others.any(|other| ahead.has(&other.name, &join.name))
    }
}

/// The ways of a graph, without those that lead back.
struct Ahead<'a> {
    ways: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Ahead<'a> {
    fn of(definition: &'a Definition) -> Self {
        let ways = BTreeSet::new();
        let mut ahead = Self { ways };
        ahead.walk(
            definition,
            &mut vec![&definition.initial],
            &mut BTreeSet::new(),
        );
        ahead
    }

    fn walk(
        &mut self,
        definition: &'a Definition,
        path: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) {
        let Some(&state) = path.last() else { return };
        let ways = definition.transitions.iter();
        for target in ways
            .filter(|way| way.source == state)
            .flat_map(|way| &way.targets)
        {
            if path.contains(&target.as_str()) {
                continue;
            }
            self.ways.insert((state, target));
            if !done.contains(target.as_str()) {
                path.push(target);
                self.walk(definition, path, done);
                path.pop();
            }
        }
        done.insert(state);
    }

    /// Whether a branch in one state may come to another.
    fn has(&self, from: &str, to: &str) -> bool {
        let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
        while let Some(state) = open.pop() {
            for (_, target) in self.ways.iter().filter(|(source, _)| *source == state) {
                if seen.insert(target) {
                    open.push(target);
                }
            }
        }
        from != to && seen.contains(to)
    }
}
