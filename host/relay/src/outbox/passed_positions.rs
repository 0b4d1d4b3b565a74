//! How far a worker has passed over events that need a later release, so that it reads those behind them.
//!
//! A claim reads a bounded number of events from the beginning of its partition. If a claim reaches that bound and has events that wait,
//! the next claim reads behind its last event. Some time after the last such claim, the worker begins anew: by then it may be able to
//! read the events, or an operator may have put some back.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long after its last move a position counts.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// The position in each partition up to which all events wait.
#[derive(Debug, Default)]
pub(super) struct PassedPositions(BTreeMap<i16, PassedPosition>);

#[derive(Debug)]
struct PassedPosition {
    pos: i64,
    /// Why the events wait.
    reason: String,
    moved_at: Instant,
}

impl PassedPositions {
    /// The positions that count, by partition.
    pub(super) fn positions(&mut self) -> BTreeMap<i16, i64> {
        self.0
            .retain(|_, place| place.moved_at.elapsed() < KEPT_FOR);
        let place = |(partition, place): (&i16, &PassedPosition)| (*partition, place.pos);
        self.0.iter().map(place).collect()
    }

    /// The position up to which all events of the partition wait.
    pub(super) fn pos(&self, partition: i16) -> Option<i64> {
        self.0.get(&partition).map(|place| place.pos)
    }

    /// The reason why the events up to this position wait.
    pub(super) fn reason(&self, partition: i16) -> Option<String> {
        self.0.get(&partition).map(|place| place.reason.clone())
    }

    /// Passes over the events up to `pos`.
    pub(super) fn pass(&mut self, partition: i16, pos: i64, reason: Option<String>) {
        let reason = reason.or_else(|| self.reason(partition));
        let place = PassedPosition {
            pos,
            reason: reason.unwrap_or_default(),
            moved_at: Instant::now(),
        };
        self.0.insert(partition, place);
    }

    /// Begins anew in the partition.
    pub(super) fn forget(&mut self, partition: i16) {
        self.0.remove(&partition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_read_from_its_beginning_again_after_a_while() {
        let mut passed = PassedPositions::default();
        passed.pass(3, 500, Some("version 2".to_owned()));
        passed.pass(3, 900, None);
        assert_eq!(passed.positions(), BTreeMap::from([(3, 900)]));
        assert_eq!((passed.pos(3), passed.pos(4)), (Some(900), None));
        assert_eq!(passed.reason(3).as_deref(), Some("version 2"));
        let place = passed.0.get_mut(&3).expect("a place");
        place.moved_at = Instant::now().checked_sub(KEPT_FOR).expect("a time");
        assert!(passed.positions().is_empty());
        assert_eq!(passed.reason(3), None);
        passed.pass(3, 500, None);
        passed.forget(3);
        assert!(passed.positions().is_empty());
    }
}
