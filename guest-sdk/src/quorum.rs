//! Votes: whether the outcome of a state with several tasks is certain yet.
//!
//! Each person decides at most once in a state instance. The vote being cast is in the event, not among the
//! decisions of the facts. The functions here count it, so that a flow needs one `match`. Only the assignment
//! says how many votes are needed.

use crate::{Event, EventSource, Flow};

/// The state of a vote, including the one being cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// Enough people have decided for it.
    Reached,
    /// Even all remaining votes would be too few.
    Impossible,
    /// It depends on the remaining votes.
    Open,
}

impl Quorum {
    /// The state of a vote with `votes` of `needed` decisions and `undecided` tasks.
    pub fn of(votes: usize, needed: usize, undecided: usize) -> Self {
        if votes >= needed {
            Self::Reached
        } else if votes.saturating_add(undecided) < needed {
            Self::Impossible
        } else {
            Self::Open
        }
    }
}

impl<F: Flow> Event<F> {
    /// Whether enough people decide for this trigger.
    ///
    /// Each decision and each open task is counted once; cancelled tasks are not.
    pub fn quorum(&self, trigger: F::Trigger) -> Quorum {
        Quorum::of(
            self.votes(trigger),
            self.state_instance.needed as usize,
            self.undecided(),
        )
    }

    /// Decisions for this trigger in the present state instance, the one being cast included.
    pub fn votes(&self, trigger: F::Trigger) -> usize {
        let this = matches!(self.source, EventSource::Task(_)) && self.trigger == trigger;
        self.state_instance.votes(trigger) + usize::from(this)
    }

    /// Tasks of the present state instance that are still undecided once this decision is cast.
    pub fn undecided(&self) -> usize {
        let this = self.task().map(|task| &task.id);
        let open = self
            .state_instance
            .tasks
            .iter()
            .filter(|task| task.is_open());
        open.filter(|task| Some(&task.id) != this).count()
    }

    /// Children of the present state instance that still run once this one has ended.
    pub fn children_running(&self) -> usize {
        let this = self.child().map(|child| &child.id);
        let running = self
            .state_instance
            .children
            .iter()
            .filter(|one| one.outcome.is_none());
        running.filter(|child| Some(&child.id) != this).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_certain_as_soon_as_nothing_can_change_it() {
        for (votes, needed, undecided, quorum) in [
            (2, 2, 3, Quorum::Reached),
            (3, 2, 0, Quorum::Reached),
            (1, 2, 1, Quorum::Open),
            (0, 2, 2, Quorum::Open),
            (0, 2, 1, Quorum::Impossible),
            (1, 2, 0, Quorum::Impossible),
        ] {
            assert_eq!(Quorum::of(votes, needed, undecided), quorum);
        }
    }
}
