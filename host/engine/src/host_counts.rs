//! The counts of this host since it last wrote them to the series. Commands only add to numbers in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use wrkflw_core::audit::Entry;
use wrkflw_core::ids::TenantId;
use wrkflw_store::series::{Counted, OTHER, Series};

/// Limit of the reasons of one tenant that are counted separately between two writes. Flow logic chooses reasons.
const REASONS_MAX: usize = 32;
/// Limit of the bytes of a reason. A longer one is counted as [`OTHER`].
const REASON_BYTES_MAX: usize = 100;

/// The counts of a host. Taking them removes them from memory, so the map holds only the tenants of the last few seconds.
#[derive(Debug, Default)]
pub struct HostCounts(RwLock<HashMap<TenantId, Counts>>);

#[derive(Debug, Default)]
struct Counts {
    decisions: AtomicI64,
    starts: AtomicI64,
    refusals: Mutex<BTreeMap<String, i64>>,
}

impl Counts {
    fn refuse(&self, reason: &str, count: i64) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = refusals.contains_key(reason);
        let is_other =
            reason.len() > REASON_BYTES_MAX || !is_known && refusals.len() >= REASONS_MAX;
        let reason = if is_other { OTHER } else { reason };
        match refusals.get_mut(reason) {
            Some(known) => *known += count,
            None => {
                refusals.insert(reason.to_owned(), count);
            }
        }
    }
}

impl HostCounts {
    /// Counts the facts in the entries of a commit.
    pub(super) fn committed(&self, tenant: TenantId, entries: &[Entry]) {
        let (mut decisions, mut starts) = (0, 0);
        for entry in entries {
            match entry.draft.kind.as_str() {
                "DECISION_RECORDED" => decisions += 1,
                "FLOW_STARTED" => starts += 1,
                _ => {}
            }
        }
        if decisions + starts > 0 {
            self.add(tenant, |counts| {
                counts.decisions.fetch_add(decisions, Ordering::Relaxed);
                counts.starts.fetch_add(starts, Ordering::Relaxed);
            });
        }
    }

    /// Counts a refused command.
    pub(super) fn refused(&self, tenant: TenantId, reason: &str) {
        self.add(tenant, |counts| counts.refuse(reason, 1));
    }

    /// Adds while the map is held, so that nothing is added to counts that were taken.
    fn add(&self, tenant: TenantId, add: impl Fn(&Counts)) {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counts) = known.get(&tenant) {
            return add(counts);
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        add(known.entry(tenant).or_default());
    }

    /// Takes all counts.
    pub(super) fn take(&self) -> Vec<Counted> {
        let taken = std::mem::take(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner));
        let counted = taken.into_iter().flat_map(|(tenant, counts)| {
            let Counts {
                decisions,
                starts,
                refusals,
            } = counts;
            let refusals = refusals
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner);
            let plain = [
                (Series::Decisions, decisions.into_inner()),
                (Series::Starts, starts.into_inner()),
            ];
            let plain = plain.map(|(series, count)| (series, String::new(), count));
            let refusals = refusals
                .into_iter()
                .map(|(reason, count)| (Series::Refusals, reason, count));
            let all = plain.into_iter().chain(refusals);
            all.map(move |(series, label, count)| Counted {
                tenant,
                series,
                label,
                count,
            })
        });
        counted.filter(|one| one.count > 0).collect()
    }

    /// Puts counts back that could not be written.
    pub(super) fn put_back(&self, counted: &[Counted]) {
        for unwritten in counted {
            self.add(unwritten.tenant, |counts| {
                let number = match unwritten.series {
                    Series::Decisions => &counts.decisions,
                    Series::Starts => &counts.starts,
                    _ => return counts.refuse(&unwritten.label, unwritten.count),
                };
                number.fetch_add(unwritten.count, Ordering::Relaxed);
            });
        }
    }
}

#[cfg(test)]
mod tests;
