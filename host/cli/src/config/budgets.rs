//! Limits of the work that one instance may cause, as operators set them.

use clap::Args;

use wrkflw_engine::budgets::Budgets;

/// Limits of the work that one instance may cause.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct BudgetArgs {
    /// Maximum number of descendants of an instance that run at a time: its children, their children and so on. Twenty times as many may be started during its life. Further ones count as not started
    #[arg(long, env = "WRKFLW_DESCENDANTS_MAX", default_value_t = Budgets::default().descendants_max,
        value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub descendants_max: u32,
    /// Maximum number of open deadlines, children, service calls and waits for signals of an instance. A command that would open more is refused
    #[arg(long, env = "WRKFLW_OPEN_JOBS_MAX", default_value_t = Budgets::default().open_jobs_max,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub open_jobs_max: u32,
}

impl BudgetArgs {
    pub fn budgets(&self) -> Budgets {
        Budgets::of(self.descendants_max, self.open_jobs_max)
    }
}
