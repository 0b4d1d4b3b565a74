//! Counts are neither lost nor counted twice, and their labels are bounded.

use super::*;

fn labels(counted: &[Counted]) -> Vec<(&str, i64)> {
    let mut labels: Vec<_> = counted
        .iter()
        .map(|one| (one.label.as_str(), one.count))
        .collect();
    labels.sort_unstable();
    labels
}

#[test]
fn what_is_taken_is_gone_and_what_is_put_back_is_there_again() {
    let tally = HostCounts::default();
    tally.refused(TenantId(1), "not_owner");
    tally.refused(TenantId(1), "not_owner");
    tally.refused(TenantId(2), "busy");
    let taken = tally.take();
    assert_eq!(labels(&taken), [("busy", 1), ("not_owner", 2)]);
    assert_eq!(tally.take(), []);
    tally.refused(TenantId(1), "not_owner");
    tally.put_back(&taken);
    assert_eq!(labels(&tally.take()), [("busy", 1), ("not_owner", 3)]);
}

#[test]
fn reasons_beyond_the_limit_are_counted_together() {
    let tally = HostCounts::default();
    for number in 0..REASONS_MAX + 5 {
        tally.refused(TenantId(1), &format!("reason-{number}"));
    }
    tally.refused(TenantId(1), "reason-0");
    tally.refused(TenantId(1), &"a".repeat(REASON_BYTES_MAX + 1));
    let taken = tally.take();
    let labels = labels(&taken);
    assert_eq!(labels.len(), REASONS_MAX + 1);
    assert!(labels.contains(&(OTHER, 6)) && labels.contains(&("reason-0", 2)));
}

#[test]
fn concurrent_counts_are_complete() {
    let tally = HostCounts::default();
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    tally.refused(TenantId(1), "busy");
                }
            });
        }
        for _ in 0..100 {
            taken.extend(tally.take());
        }
    });
    taken.extend(tally.take());
    let sum: i64 = taken.iter().map(|one| one.count).sum();
    assert_eq!(sum, 4_000);
}
