//! The renewal of connections. A connection that was opened while the database took no writes may stay read-only for ever.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two renewals.
const EVERY: Duration = Duration::from_secs(1);

/// Shared by the pools of one store.
#[derive(Debug, Clone, Default)]
pub(super) struct Renewal(Arc<Mutex<Option<Instant>>>);

impl Renewal {
    /// Has every open connection replaced before it is used again.
    pub(super) fn begin(&self) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_none_or(|at| at.elapsed() >= EVERY) {
            *since = Some(Instant::now());
        }
    }

    /// Whether a connection of this age must be replaced.
    pub(super) fn outdates(&self, age: Duration) -> bool {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|at| age > at.elapsed())
    }
}
