//! The plan that follows from the graph alone, so that `transition` need not repeat it.

use super::Graph;
use super::state::{Leads, Way};
use crate::{Event, EventSource, FiredBy, Flow, Plan, Quorum, Refusal, States, Triggers, fault};

/// Any vote of a quorum may be the last one. So each vote, also one without a target, gets the targets of both triggers.
pub(super) fn widen<S: States, T: Triggers>(ways: &mut [Way<S, T>], quorum: (T, T)) {
    let ends = ways.iter().filter(|way| is_end(way, quorum));
    let ends: Vec<S> = ends.flat_map(|way| &way.targets).copied().collect();
    for vote in ways.iter_mut().filter(|way| is_vote(way, quorum)) {
        for target in &ends {
            if !vote.targets.contains(target) && !vote.as_last_vote.contains(target) {
                vote.as_last_vote.push(*target);
            }
        }
    }
}

fn is_end<S, T: Triggers>(way: &Way<S, T>, (of, otherwise): (T, T)) -> bool {
    way.trigger == of || way.trigger == otherwise
}

fn is_vote<S, T: Triggers>(way: &Way<S, T>, quorum: (T, T)) -> bool {
    way.targets.is_empty() || is_end(way, quorum)
}

impl<S: States, T: Triggers> Graph<S, T> {
    /// The plan that follows from the graph alone. A fault if the graph leaves a choice.
    pub(crate) fn follow<F: Flow<State = S, Trigger = T>>(
        &self,
        event: &Event<F>,
    ) -> Result<Plan<S>, Refusal> {
        let mut way = self.way(event.state, event.trigger);
        let quorum = self.quorums.iter().find(|(state, _)| *state == event.state);
        if let (Some(vote), Some((_, quorum)), EventSource::Task(_)) = (way, quorum, &event.source)
            && is_vote(vote, *quorum)
        {
            way = match event.quorum(quorum.0) {
                Quorum::Reached => self.way(event.state, quorum.0),
                Quorum::Impossible => self.way(event.state, quorum.1),
                Quorum::Open => return Ok(Plan::stay()),
            };
        }
        match way.map(|way| (way.leads, &way.targets[..])) {
            Some((Leads::ToAll, targets)) => Ok(Plan::fork(targets.iter().copied())),
            Some((Leads::Beside, targets)) => Ok(Plan::spawn(targets.iter().copied())),
            Some((Leads::ToOne, [target])) => Ok(Plan::to(*target)),
            Some((Leads::ToOne, _)) | None => {
                let (trigger, state) = (event.trigger, event.state);
                let message = format!(
                    "{trigger:?} in {state:?} leads to no single state. `transition` has to choose one."
                );
                fault("no_single_target", message)
            }
        }
    }

    /// The possible targets of the trigger.
    pub(crate) fn targets(&self, source: S, trigger: T) -> &[S] {
        self.way(source, trigger).map_or(&[], |way| &way.targets)
    }

    /// The trigger of the state that this source may fire.
    pub(crate) fn fired(&self, source: S, by: FiredBy) -> Option<T> {
        let mut ways = self.ways.iter();
        let fired = ways.find(|way| way.source == source && way.rest.by.contains(by));
        fired.map(|way| way.trigger)
    }

    fn way(&self, source: S, trigger: T) -> Option<&Way<S, T>> {
        let mut ways = self.ways.iter();
        ways.find(|way| way.source == source && way.trigger == trigger)
    }
}
