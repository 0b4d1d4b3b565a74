//! Votes: whether the outcome of a state with several tasks is certain.
//!
//! Each person decides at most once in a state instance. The vote being cast is in the event and not yet among the decisions of
//! the facts. The functions here include it, so that a flow needs one `match`. The assignment says how many votes are needed. A
//! vote against ends nothing as long as enough votes are possible.

use crate::{Event, EventSource, Flow, Fraction, Needed, TaskStatus};

/// The state of a vote, including the one being cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// Enough people have decided for it.
    Reached,
    /// The remaining votes cannot suffice.
    Impossible,
    /// The result depends on the remaining votes.
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

impl Needed {
    /// At least this fraction of the tasks.
    pub fn at_least(numerator: u32, denominator: u32) -> Self {
        Self::AtLeast(Fraction {
            numerator,
            denominator,
        })
    }

    /// More than this fraction of the tasks.
    pub fn more_than(numerator: u32, denominator: u32) -> Self {
        Self::MoreThan(Fraction {
            numerator,
            denominator,
        })
    }

    /// The number of decisions needed out of this many tasks, at least one.
    pub fn of(&self, tasks: usize) -> usize {
        let part = |of: &Fraction| {
            let denominator = u64::from(of.denominator.max(1));
            (tasks as u64 * u64::from(of.numerator), denominator)
        };
        let count = match self {
            Self::Count(count) => u64::from(*count),
            Self::AtLeast(of) => {
                let (part, denominator) = part(of);
                part.div_ceil(denominator)
            }
            Self::MoreThan(of) => {
                let (part, denominator) = part(of);
                part / denominator + 1
            }
        };
        usize::try_from(count).unwrap_or(usize::MAX).max(1)
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

    /// Like `quorum`, with another number than that of the assignment, such as for a veto by a third:
    /// `event.quorum_of(Reject, &Needed::at_least(1, 3))`.
    pub fn quorum_of(&self, trigger: F::Trigger, needed: &Needed) -> Quorum {
        let tasks = self.state_instance.tasks.iter();
        let tasks = tasks.filter(|task| task.status != TaskStatus::Cancelled);
        Quorum::of(
            self.votes(trigger),
            needed.of(tasks.count()),
            self.undecided(),
        )
    }

    /// Decisions for this trigger in the present state instance, including the one being cast.
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

    /// Children of the present state instance that still run, without the child whose end this event is.
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
    fn the_result_is_certain_once_no_vote_can_change_it() {
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

    #[test]
    fn a_fraction_of_the_tasks_is_counted_exactly() {
        for (needed, counts) in [
            (Needed::at_least(2, 3), [1, 2, 2, 3, 4, 4, 67]),
            (Needed::more_than(1, 2), [1, 2, 2, 3, 3, 4, 51]),
            (Needed::at_least(1, 1), [1, 2, 3, 4, 5, 6, 100]),
            (Needed::Count(2), [2; 7]),
        ] {
            let of = [1, 2, 3, 4, 5, 6, 100].map(|tasks| needed.of(tasks));
            assert_eq!(of, counts, "{needed:?}");
        }
    }
}
