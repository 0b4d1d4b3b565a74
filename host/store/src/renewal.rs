//! Since when connections are worth keeping. One that was made while the database took no writes may stay so for ever.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Connections are made anew at most so often.
const EVERY: Duration = Duration::from_secs(1);

/// Shared by the pools of one store.
#[derive(Debug, Clone, Default)]
pub(super) struct Renewal(Arc<Mutex<Option<Instant>>>);

impl Renewal {
    /// Lets every connection be made anew before it is used again.
    pub(super) fn begin(&self) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_none_or(|at| at.elapsed() >= EVERY) {
            *since = Some(Instant::now());
        }
    }

    /// Whether a connection of this age is to be made anew.
    pub(super) fn outdates(&self, age: Duration) -> bool {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|at| age > at.elapsed())
    }
}
