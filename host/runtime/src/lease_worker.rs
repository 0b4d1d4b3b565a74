//! The worker of a queue of rows that are claimed by lease. It claims due rows for its free places, runs them concurrently, and
//! sleeps until the next row is due, a claim ends, or new rows are announced.
//!
//! A claim is a lease: after its end, any worker claims the row again. So if a host fails, other hosts process its rows. A
//! [`LeaseQueue`] defines how rows are claimed, run and settled.

use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, between, later};
use crate::worker::{self, Backoff, Worker};

/// The longest sleep. Rows that other hosts add do not wake this worker.
const POLL_MAX: Duration = Duration::from_secs(1);
/// The shortest sleep. Without it, the worker would poll without a pause for a row that is due but locked.
const POLL_MIN: Duration = Duration::from_millis(5);
/// The pause after a failure of the database.
const BACK_OFF: Backoff = Backoff::constant(Duration::from_secs(1));
/// How often the holder of a row renews its lease, per length of the lease.
const RENEWALS_PER_LEASE: u32 = 4;

/// The parameters of a claim: up to `limit` rows that are due at `now`, until `lease_end`.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub now: Timestamp,
    pub lease_end: Timestamp,
    pub limit: i64,
}

/// A claimed row, or rows that are claimed together.
pub struct Claim<S> {
    /// The argument of [`LeaseQueue::ended`], such as a tenant.
    place: S,
    work: BoxFuture<'static, ()>,
}

impl<S> Claim<S> {
    /// `work` runs the claim and stores the result.
    pub fn new(place: S, work: impl Future<Output = ()> + Send + 'static) -> Claim<S> {
        let work = Box::pin(work);
        Claim { place, work }
    }
}

/// A queue of rows that are claimed by lease.
pub trait LeaseQueue: Send {
    type Place: Send + 'static;
    type Error: Display + Send;

    /// The name of the rows in logs, in the plural.
    const NAME: &'static str;
    /// Claims in flight at a time.
    const PLACES: usize;

    /// Claims due rows.
    fn claim(
        &mut self,
        window: Window,
    ) -> impl Future<Output = Result<Vec<Claim<Self::Place>>, Self::Error>> + Send;

    /// When the next row can be claimed, if the queue knows that. Called while places are free.
    fn next_due(&mut self) -> impl Future<Output = Result<Option<Timestamp>, Self::Error>> + Send {
        std::future::ready(Ok(None))
    }

    /// Frees the place of a claim that has ended.
    fn ended(&mut self, _: Self::Place) {}
}

/// A worker of one queue.
pub struct LeaseWorker<Q: LeaseQueue> {
    queue: Q,
    clock: Clock,
    lease: Duration,
    wake: watch::Receiver<()>,
    in_flight: JoinSet<Q::Place>,
}

impl<Q: LeaseQueue> LeaseWorker<Q> {
    /// A worker that claims for the time of `lease`, and looks for rows early when `wake` changes.
    pub fn new(queue: Q, clock: Clock, lease: Duration, wake: watch::Receiver<()>) -> Self {
        LeaseWorker {
            queue,
            clock,
            lease,
            wake,
            in_flight: JoinSet::new(),
        }
    }

    /// Works until `cancel`, then waits for the claims in flight.
    pub async fn run(mut self, cancel: &CancellationToken) {
        worker::run(&mut self, cancel).await;
        while self.in_flight.join_next().await.is_some() {}
    }

    fn start(&mut self, Claim { place, work }: Claim<Q::Place>) {
        self.in_flight.spawn(async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                let name = Q::NAME;
                tracing::error!("work on {name} panicked; it is claimed again after its lease");
            }
            place
        });
    }

    fn ended(&mut self, ended: Result<Q::Place, JoinError>) {
        self.queue.ended(ended.expect("panics are caught"));
    }

    fn free(&self) -> usize {
        Q::PLACES.saturating_sub(self.in_flight.len())
    }
}

impl<Q: LeaseQueue> Worker for LeaseWorker<Q> {
    type Error = Q::Error;

    const BACK_OFF: Backoff = BACK_OFF;

    async fn turn(&mut self) -> Result<Duration, Q::Error> {
        // Rows that are announced from here on may be too late for this turn, so they cause another turn.
        self.wake.mark_unchanged();
        while let Some(ended) = self.in_flight.try_join_next() {
            self.ended(ended);
        }
        if self.free() > 0 {
            let now = self.clock.now();
            let window = Window {
                now,
                lease_end: later(now, self.lease),
                limit: i64::try_from(self.free()).expect("few places"),
            };
            for claim in self.queue.claim(window).await? {
                self.start(claim);
            }
        }
        if self.free() > 0
            && let Some(next) = self.queue.next_due().await?
        {
            return Ok(between(self.clock.now(), next).clamp(POLL_MIN, POLL_MAX));
        }
        Ok(POLL_MAX)
    }

    async fn woken(&mut self) {
        tokio::select! {
            Some(ended) = self.in_flight.join_next() => self.ended(ended),
            Ok(()) = self.wake.changed() => {}
            else => std::future::pending().await,
        }
    }

    fn failed(&mut self, error: Q::Error, _: Duration) {
        let name = Q::NAME;
        tracing::warn!(%error, "{name} could not be claimed; the worker tries again soon");
    }
}

/// The lease on a claimed row whose holder renews it while it works.
#[derive(Debug)]
pub struct Lease {
    clock: Clock,
    length: Duration,
    renewed_at: Timestamp,
}

impl Lease {
    /// A lease that has just begun.
    pub fn new(clock: Clock, length: Duration) -> Lease {
        Lease {
            renewed_at: clock.now(),
            clock,
            length,
        }
    }

    /// Whether a share of the lease has passed, even if the clock was set back.
    pub fn is_renewal_due(&self) -> bool {
        let passed = self.clock.now().duration_since(self.renewed_at);
        passed.unsigned_abs() >= self.length / RENEWALS_PER_LEASE
    }

    /// Begins the lease anew. Returns its end.
    pub fn renew(&mut self) -> Timestamp {
        self.renewed_at = self.clock.now();
        later(self.renewed_at, self.length)
    }
}

/// Awaits `work`, at most for `time`. The error says why it failed, also after a timeout or a panic.
pub async fn guarded<T, E: Display>(
    time: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match tokio::time::timeout(time, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(result)) => result.map_err(|error| error.to_string()),
        Ok(Err(_)) => Err("the host panicked over it".to_owned()),
        Err(_) => Err(format!("it was not done after {} s", time.as_secs())),
    }
}

#[cfg(test)]
mod tests;
