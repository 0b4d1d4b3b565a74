//! Two lanes for calls: the caller's own thread for the quick, threads of low priority for the rest.
//!
//! Nearly every call is over before a thread would miss it, and runs where it was asked. One that has used more is
//! moved, at its next tick, to threads that the scheduler prefers last, so that a guest which burns its whole budget takes time that nobody
//! else wanted. A component whose call had to be moved begins there the next time, until it is quick again; calls
//! there have turns of their own, so the turns of the quick stay free. What such a call may take is counted in
//! processor time: how busy others keep the machine decides when an answer comes, never what it is.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;

/// How much the scheduler prefers all other threads of the host: a tenth of the processor at worst.
const NICENESS: i32 = 10;
/// Processor time of a quick call. By the clock, others may have kept it from its thread for any time.
const QUICK_MAX: Duration = Duration::from_millis(2);

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

/// How a call ended.
#[derive(Debug)]
pub(super) enum Ended<T> {
    Answered(T),
    /// It used up its processor time.
    Overrun,
    /// It panicked, which is a fault of the host.
    Lost,
}

/// A call under way. What it uses goes before its turns do: fields are dropped in this order.
struct Running<T> {
    work: Pin<Box<dyn Future<Output = T> + Send>>,
    used: Duration,
    deadline: Duration,
    turns: Turns,
}

impl<T> Running<T> {
    fn poll_measured(&mut self, context: &mut Context<'_>) -> Poll<T> {
        let begun = processor_time();
        let polled = self.work.as_mut().poll(context);
        self.used += processor_time().saturating_sub(begun);
        polled
    }
}

/// On the slow lane, with the processor time that it took.
impl<T> Future for Running<T> {
    type Output = (Ended<T>, Duration);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.poll_measured(context);
        let used = self.used;
        match polled {
            Poll::Ready(done) => Poll::Ready((Ended::Answered(done), used)),
            Poll::Pending if used >= self.deadline => Poll::Ready((Ended::Overrun, used)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// What this thread has used so far.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
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

    /// Runs a call to its end, or until it has used so much processor time.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        own: &Own,
        turns: Turns,
        deadline: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Ended<T> {
        let begins_slow = turns.begins_slow;
        let mut running = Running {
            work: Box::pin(work),
            used: Duration::ZERO,
            deadline,
            turns,
        };
        if !begins_slow {
            let first = std::future::poll_fn(|context| match running.poll_measured(context) {
                Poll::Ready(done) => Poll::Ready(Some(done)),
                Poll::Pending if running.used >= QUICK_MAX => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            if let Some(done) = first.await {
                return Ended::Answered(done);
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
        let finished = AbortOnDropHandle::new(threads.spawn(running)).await;
        let (ended, used) = finished.unwrap_or((Ended::Lost, Duration::MAX));
        if begins_slow && used < QUICK_MAX {
            own.slow.store(false, Ordering::Relaxed);
        }
        ended
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
