//! The limits that follow from the settings.

use super::*;

#[test]
fn twenty_times_as_many_may_start_as_may_run() {
    let Budgets {
        descendants_max,
        descendants_started_max,
        open_jobs_max,
    } = Budgets::default();
    let bounds = (descendants_max, descendants_started_max, open_jobs_max);
    assert_eq!(bounds, (500, 10_000, 1_000));
    assert_eq!(Budgets::of(7, 1).descendants_started_max, 140);
    assert_eq!(Budgets::of(u32::MAX, 1).descendants_started_max, u32::MAX);
}
