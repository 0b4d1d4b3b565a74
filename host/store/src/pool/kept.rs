//! Connections that state instance at hand between statements. To give one back to the pool costs a task and a question to the
//! server; who asks statement after statement would pay that for each.
//!
//! Nobody waits for a connection while one lies here: whoever finds none says that they wait, and from then on what
//! comes back goes to the pool, which serves them in turn. Every connection goes there now and then, so that the
//! pool's own rules about age hold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::Postgres;
use sqlx::pool::PoolConnection;

/// How long a connection stays away from the pool.
const KEPT_MAX: Duration = Duration::from_secs(10);

/// A connection, out of the pool.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) connection: PoolConnection<Postgres>,
    /// When the pool gave it away.
    since: Instant,
}

impl Lease {
    pub(super) fn new(connection: PoolConnection<Postgres>) -> Lease {
        Lease {
            connection,
            since: Instant::now(),
        }
    }

    /// How long it has been away from the pool.
    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

/// The connections at hand. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept(Arc<Mutex<Shelf>>);

/// No more lie here than the pool may open.
#[derive(Debug, Default)]
struct Shelf {
    idle: Vec<(Lease, Instant)>,
    /// Callers who wait for the pool.
    waiting: usize,
}

impl Drop for Shelf {
    /// Closes what is left: no pool is there to give it back to, and maybe no runtime to do so, which that would take.
    fn drop(&mut self) {
        for (lease, _) in self.idle.drain(..) {
            drop(lease.connection.detach());
        }
    }
}

/// Somebody waits for the pool for as long as this lives.
#[derive(Debug)]
pub(super) struct Waiting(Kept);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.shelf().waiting -= 1;
    }
}

impl Kept {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that was used last, with how long ago that was; else a place among those who wait.
    pub(super) fn take(&self) -> Result<(Lease, Duration), Waiting> {
        let mut open = self.shelf();
        if let Some((lease, since)) = open.idle.pop() {
            return Ok((lease, since.elapsed()));
        }
        open.waiting += 1;
        Err(Waiting(self.clone()))
    }

    /// Keeps a connection on which nothing is under way, unless it belongs back into the pool.
    pub(super) fn put(&self, lease: Lease, is_closed: impl FnOnce() -> bool) {
        if lease.age() >= KEPT_MAX {
            return;
        }
        let mut open = self.shelf();
        // Looked at under the lock: who closes the pool takes what is here afterwards.
        if open.waiting == 0 && !is_closed() {
            open.idle.push((lease, Instant::now()));
        } else {
            drop(open);
        }
    }

    /// Gives all back to the pool.
    pub(super) fn clear(&self) {
        let idle = std::mem::take(&mut self.shelf().idle);
        drop(idle);
    }

    pub(super) fn len(&self) -> usize {
        self.shelf().idle.len()
    }
}

/// Whether one that has lain here for so long may have been lost without a word.
pub(super) fn is_stale(idle_for: Duration) -> bool {
    idle_for >= KEPT_MAX
}
