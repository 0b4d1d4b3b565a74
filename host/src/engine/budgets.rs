//! How much one instance may make others do: bounds that operators set, so that a flow in a circle comes to an end.

use crate::domain::instance::{Instance, StateInstance};
use crate::domain::rejection::Rejection;

/// Bounds on what follows from one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    /// Instances that may be started below one that has no parent, of all generations, from its start to its end.
    pub descendants_max: u32,
    /// Deadlines, children and waits for signals that an instance may have open at a time: each is a job, or will be one.
    pub open_jobs_max: u32,
}

impl Default for Budgets {
    fn default() -> Budgets {
        Budgets {
            descendants_max: 500,
            open_jobs_max: 1_000,
        }
    }
}

impl Budgets {
    /// Refuses a change after which the instance would have more open than it may. One that had more before, under another
    /// bound, may have as many still.
    pub(super) fn check(
        self,
        before: Option<&Instance>,
        after: &Instance,
    ) -> Result<(), Rejection> {
        let open = open(after);
        let most = usize::try_from(self.open_jobs_max).unwrap_or(usize::MAX);
        if open <= most || before.is_some_and(|before| open <= self::open(before)) {
            return Ok(());
        }
        let message = format!(
            "the instance would have {open} deadlines, children and waits for signals open; {most} are as many as may be (open_jobs_max)"
        );
        Err(Rejection::not_now("limit_reached", message))
    }
}

fn open(instance: &Instance) -> usize {
    let of_stay = |stay: &StateInstance| {
        let tasks = stay.tasks.iter().filter(|task| task.status.is_open());
        let children = stay.children.iter().filter(|child| child.outcome.is_none());
        stay.deadlines.len()
            + tasks.map(|task| task.deadlines.len()).sum::<usize>()
            + children.count()
            + usize::from(stay.correlation.is_some())
    };
    instance.active.iter().map(of_stay).sum()
}
