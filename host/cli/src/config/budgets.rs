//! How much work one instance may cause, as operators set it.

use clap::Args;

use wrkflw_engine::budgets::Budgets;

/// Limits of what follows from one instance.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct BudgetArgs {
    /// Instances below one that may run at a time, children of children included. Twenty times as many may be started from its start to its end. Further ones count as not started
    #[arg(long, env = "WRKFLW_DESCENDANTS_MAX", default_value_t = Budgets::default().descendants_max,
        value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub descendants_max: u32,
    /// Deadlines, children and waits for signals that an instance may have open at a time. What would open more is refused
    #[arg(long, env = "WRKFLW_OPEN_JOBS_MAX", default_value_t = Budgets::default().open_jobs_max,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub open_jobs_max: u32,
}

impl BudgetArgs {
    /// The bounds of the engine.
    pub fn budgets(&self) -> Budgets {
        Budgets::of(self.descendants_max, self.open_jobs_max)
    }
}
