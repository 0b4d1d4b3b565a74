//! Connections that are kept outside the pool between statements. To return a connection to the pool costs a task and a
//! round trip, which every statement would pay.
//!
//! No caller waits while a connection is kept here. A caller that finds none is counted as waiting. From then on connections return to
//! the pool, which serves callers in turn. Every connection regularly returns to the pool, so that the pool's own rules about age hold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};
use tokio::time::timeout;

use super::REST_MAX;

/// How long a connection stays away from the pool.
const KEPT_MAX: Duration = Duration::from_secs(10);

/// A connection taken from the pool.
#[derive(Debug)]
pub(super) struct Lease {
    /// None only while it is dropped.
    connection: Option<PoolConnection<Postgres>>,
    /// When it was taken.
    since: Instant,
}

impl Lease {
    pub(super) fn new(connection: PoolConnection<Postgres>) -> Lease {
        Lease {
            connection: Some(connection),
            since: Instant::now(),
        }
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("it is not dropped")
    }

    pub(super) fn into_inner(mut self) -> PoolConnection<Postgres> {
        self.connection.take().expect("it is not dropped")
    }

    /// Closes it directly: the pool would ping it first.
    pub(super) fn close(self) {
        drop(self.into_inner().detach());
    }

    /// How long it has been away from the pool.
    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for Lease {
    /// Returns it to the pool. The pool pings it without a limit, and meanwhile a lost connection would use up a place of the pool.
    #[expect(
        clippy::disallowed_methods,
        reason = "the close of the pool waits for the return of its connections"
    )]
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let returned = timeout(REST_MAX, connection.return_to_pool());
        drop(tokio::spawn(returned));
    }
}

/// The kept connections. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct IdleConnections(Arc<Mutex<Shelf>>);

/// The list has at most as many connections as the pool may open.
#[derive(Debug, Default)]
struct Shelf {
    idle: Vec<(Lease, Instant)>,
    /// Callers that wait for the pool.
    waiting: usize,
}

impl Shelf {
    fn close(&mut self) {
        for (lease, _) in self.idle.drain(..) {
            lease.close();
        }
    }
}

impl Drop for Shelf {
    /// Closes the remaining connections, because a return needs the pool and a runtime: the pool is gone, and maybe the runtime.
    fn drop(&mut self) {
        self.close();
    }
}

/// Counts one caller as waiting for the pool while this lives.
#[derive(Debug)]
pub(super) struct Waiting(IdleConnections);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.shelf().waiting -= 1;
    }
}

impl IdleConnections {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that was used last, with the time since then. If there is none, the caller is counted as waiting.
    pub(super) fn take(&self) -> Result<(Lease, Duration), Waiting> {
        let mut open = self.shelf();
        if let Some((lease, since)) = open.idle.pop() {
            return Ok((lease, since.elapsed()));
        }
        open.waiting += 1;
        Err(Waiting(self.clone()))
    }

    /// Keeps an idle connection, unless it must return to the pool.
    pub(super) fn put(&self, lease: Lease, is_closed: impl FnOnce() -> bool) {
        if lease.age() >= KEPT_MAX {
            return;
        }
        let mut open = self.shelf();
        // Checked under the lock: the pool first closes and then clears the kept connections.
        if open.waiting == 0 && !is_closed() {
            open.idle.push((lease, Instant::now()));
        } else {
            drop(open);
        }
    }

    /// Closes all without the pool.
    pub(super) fn close(&self) {
        self.shelf().close();
    }

    /// Returns all to the pool.
    pub(super) fn clear(&self) {
        let idle = std::mem::take(&mut self.shelf().idle);
        drop(idle);
    }

    pub(super) fn len(&self) -> usize {
        self.shelf().idle.len()
    }
}

/// Whether a connection that was idle for this time may be dead.
pub(super) fn is_stale(idle_for: Duration) -> bool {
    idle_for >= KEPT_MAX
}
