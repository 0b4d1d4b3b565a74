//! Two lanes for calls: the caller's own thread for the quick, threads of low priority for the rest.
//!
//! Nearly every call is over before a thread would miss it, and runs where it was asked. One that goes on is moved
//! to threads that the scheduler prefers last, so that a guest which burns its whole budget takes time that nobody
//! else wanted. A component whose call had to be moved begins there the next time, until it is quick again; calls
//! there have turns of their own, so the turns of the quick stay free.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;

/// How much the scheduler prefers all other threads of the host: a tenth of the processor at worst.
const NICENESS: i32 = 10;
/// A call that was resumed no more often than this was quick, however long others kept it from its thread.
const QUICK_POLLS_MAX: u32 = 2;

/// The turns of one component.
#[derive(Debug)]
pub(super) struct Own {
    turns: Arc<Semaphore>,
    /// Whether its last call took long.
    slow: AtomicBool,
}

impl Own {
    pub(super) fn new(turns: usize) -> Own {
        Own {
            turns: Arc::new(Semaphore::new(turns)),
            slow: AtomicBool::new(false),
        }
    }
}

/// Both lanes.
#[derive(Debug)]
pub(super) struct Lanes {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    /// Taken on drop alone.
    threads: Option<Runtime>,
}

/// The turns of one call, held until all that it used is given back.
#[derive(Debug)]
pub(super) struct Turns {
    _own: OwnedSemaphorePermit,
    shared: OwnedSemaphorePermit,
    begins_slow: bool,
}

/// A call under way. What it uses goes before its turns do: fields are dropped in this order.
struct Running<T> {
    work: Pin<Box<dyn Future<Output = T> + Send>>,
    polls: u32,
    turns: Turns,
}

impl<T> Future for Running<T> {
    type Output = (T, u32);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<(T, u32)> {
        self.polls += 1;
        let polls = self.polls;
        self.work.as_mut().poll(context).map(|done| (done, polls))
    }
}

impl Lanes {
    /// With so many calls at once in each lane.
    pub(super) fn new(calls: usize) -> Result<Lanes, String> {
        let threads = Builder::new_multi_thread()
            .worker_threads(std::thread::available_parallelism().map_or(1, usize::from))
            .thread_name("guest-slow")
            .on_thread_start(|| {
                // Of the calling thread alone, on Linux.
                if let Err(error) = rustix::process::nice(NICENESS) {
                    tracing::warn!(%error, "slow guests run at the same priority as all else");
                }
            })
            .build()
            .map_err(|error| format!("the threads for slow guests cannot start: {error}"))?;
        Ok(Lanes {
            quick: Arc::new(Semaphore::new(calls)),
            slow: Arc::new(Semaphore::new(calls)),
            threads: Some(threads),
        })
    }

    /// A component's own turn first: one whose calls all run into their deadline then waits for itself,
    /// and the turns of all stay free for others.
    pub(super) async fn turns(&self, own: &Own) -> Result<Turns, AcquireError> {
        let held = Arc::clone(&own.turns).acquire_owned().await?;
        let begins_slow = own.slow.load(Ordering::Relaxed);
        let lane = if begins_slow { &self.slow } else { &self.quick };
        Ok(Turns {
            _own: held,
            shared: Arc::clone(lane).acquire_owned().await?,
            begins_slow,
        })
    }

    /// Runs a call to its end. None when it panicked, which is a fault of the host.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        own: &Own,
        turns: Turns,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let begins_slow = turns.begins_slow;
        let mut running = Running {
            work: Box::pin(work),
            polls: 0,
            turns,
        };
        if !begins_slow {
            let first =
                std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut running).poll(context)));
            if let Poll::Ready((done, _)) = first.await {
                return Some(done);
            }
            metrics::counter!("wrkflw_guest_slow_total").increment(1);
            own.slow.store(true, Ordering::Relaxed);
            // When even the slow have no turn left, it keeps the one it has.
            if let Ok(turn) = Arc::clone(&self.slow).try_acquire_owned() {
                running.turns.shared = turn;
            }
        }
        let threads = self.threads.as_ref().expect("taken on drop alone");
        // Dropping the handle, as a deadline does, drops the call at its next tick.
        let (done, polls) = AbortOnDropHandle::new(threads.spawn(running)).await.ok()?;
        if begins_slow && polls <= QUICK_POLLS_MAX {
            own.slow.store(false, Ordering::Relaxed);
        }
        Some(done)
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            // Waiting is not allowed where a host drops its sandbox; calls end at their next tick.
            threads.shutdown_background();
        }
    }
}
