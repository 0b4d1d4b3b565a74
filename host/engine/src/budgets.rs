//! Limits on the work that follows from one instance. Operators set them. They end a flow that starts instances in a loop.

use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::{Instance, StateInstance};
use wrkflw_core::rejection::Rejection;
use wrkflw_store::descendants::{Bounds, PlaceResult};

/// The limit of started descendants, as a multiple of the limit of running ones. With the defaults, an instance may start one
/// a day for 27 years.
const STARTED_FOR_EACH: u32 = 20;

/// The limits for one instance and its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    /// Descendants of an instance without a parent, of all generations, that may run at a time.
    pub descendants_max: u32,
    /// Descendants that such an instance may have from its start to its end, including ended ones.
    pub descendants_started_max: u32,
    /// Deadlines, children and waits for signals that an instance may have open at a time. Each is a job or becomes one.
    pub open_jobs_max: u32,
}

impl Default for Budgets {
    fn default() -> Budgets {
        Budgets::of(500, 1_000)
    }
}

impl Budgets {
    /// The limits of a host with these settings.
    pub fn of(descendants_max: u32, open_jobs_max: u32) -> Budgets {
        Budgets {
            descendants_max,
            descendants_started_max: descendants_max.saturating_mul(STARTED_FOR_EACH),
            open_jobs_max,
        }
    }

    pub(super) fn below_a_root(self) -> Bounds {
        Bounds {
            running_max: self.descendants_max,
            started_max: self.descendants_started_max,
        }
    }

    /// Why a child may not be started below its root, and what helps. None if it may be started.
    pub(super) fn refusal(self, place: PlaceResult, root: InstanceId) -> Option<String> {
        match place {
            PlaceResult::Taken => None,
            PlaceResult::TooManyRun => Some(format!(
                "{} instances below {root} run, as many as may at a time (descendants_max); try again when some of them have ended",
                self.descendants_max
            )),
            PlaceResult::TooManyStarted => Some(format!(
                "{} instances have been started below {root}, as many as may be from its start to its end; go on in a new instance, or raise descendants_max",
                self.descendants_started_max
            )),
        }
    }

    /// Refuses a change that opens more than the limit. An instance that is above a lowered limit may keep what is open, but not open more.
    /// Commands of the host on an existing instance are never refused: a deadline has passed, a child has ended, a service has answered.
    pub(super) fn check(
        self,
        before: Option<&Instance>,
        after: &Instance,
        is_host: bool,
    ) -> Result<(), Rejection> {
        let open = open(after);
        let most = usize::try_from(self.open_jobs_max).unwrap_or(usize::MAX);
        if open <= most || before.is_some_and(|before| is_host || open <= self::open(before)) {
            return Ok(());
        }
        let message = format!(
            "the instance would have {open} deadlines, children, service calls and waits for signals open; {most} are as many as may be (open_jobs_max)"
        );
        Err(Rejection::not_now("limit_reached", message))
    }
}

fn open(instance: &Instance) -> usize {
    let of_state_instance = |state_instance: &StateInstance| {
        let tasks = state_instance
            .tasks
            .iter()
            .filter(|task| task.status.is_open());
        let children = state_instance
            .children
            .iter()
            .filter(|child| child.outcome.is_none());
        state_instance.deadlines.len()
            + tasks
                .map(|task| task.deadlines.len() + usize::from(task.resumption().is_some()))
                .sum::<usize>()
            + children.count()
            + state_instance.correlated().count()
            + usize::from(state_instance.open_call().is_some())
    };
    instance.active.iter().map(of_state_instance).sum()
}

#[cfg(test)]
mod tests;
