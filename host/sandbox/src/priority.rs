//! Two pools for calls: the caller's own thread for quick calls, threads of low priority for slow ones.
//!
//! Nearly every call is quick and runs on the thread of its caller. A call that has used more than [`QUICK_MAX`] is moved, at its
//! next tick, to threads of the lowest scheduling priority in the host, so that a guest which burns its whole budget uses only
//! time that no other thread needs. The next call of the same function of the component begins there, until it is quick again. The
//! slow pool has slots of its own, so the slots of quick calls stay free. The limit of a slow call is in processor time: a busy
//! machine delays an answer, but does not change it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;

use super::call::Call;

/// The niceness of the slow threads. In the worst case they get a tenth of the processor.
const NICENESS: i32 = 10;
/// Processor time of a quick call. Its wall time may be any longer, because other threads may have delayed it.
const QUICK_MAX: Duration = Duration::from_millis(2);

/// The slots of one component.
#[derive(Debug)]
pub(super) struct Own {
    slots: Arc<Semaphore>,
    /// Whether the last call of each function was slow, by [`Call::number`]. One flag for all would be reset by each quick call of another function
    /// before a slow transition, which would then begin on the thread of its caller again.
    slow: [AtomicBool; Call::FUNCTIONS],
}

impl Own {
    pub(super) fn new(slots: usize) -> Own {
        Own {
            slots: Arc::new(Semaphore::new(slots)),
            slow: Default::default(),
        }
    }
}

/// Both pools.
#[derive(Debug)]
pub(super) struct Pools {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    /// None only while this is dropped.
    threads: Option<Runtime>,
}

/// The slots of one call, held until all resources of the call are freed.
#[derive(Debug)]
pub(super) struct Slots {
    _own: OwnedSemaphorePermit,
    shared: OwnedSemaphorePermit,
    function: usize,
    begins_slow: bool,
}

/// The end of a call.
#[derive(Debug)]
pub(super) enum Ended<T> {
    Answered(T),
    /// It used up its processor time.
    Overrun,
    /// It panicked, which is a fault of the host.
    Lost,
}

/// A running call. Fields are dropped in this order: its resources before its slots.
struct Running<T> {
    work: Pin<Box<dyn Future<Output = T> + Send>>,
    used: Duration,
    deadline: Duration,
    slots: Slots,
}

impl<T> Running<T> {
    fn poll_measured(&mut self, context: &mut Context<'_>) -> Poll<T> {
        let begun = processor_time();
        let polled = self.work.as_mut().poll(context);
        self.used += processor_time().saturating_sub(begun);
        polled
    }
}

/// Runs on the slow pool. Resolves to the end of the call and its processor time.
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

/// The processor time of this thread so far.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

impl Pools {
    /// Pools with so many concurrent calls each.
    pub(super) fn new(calls: usize) -> Result<Pools, String> {
        let threads = Builder::new_multi_thread()
            .worker_threads(std::thread::available_parallelism().map_or(1, usize::from))
            .thread_name("guest-slow")
            .on_thread_start(|| {
                // On Linux this affects only the calling thread.
                if let Err(error) = rustix::process::nice(NICENESS) {
                    tracing::warn!(%error, "slow guests run at the same priority as all else");
                }
            })
            .build()
            .map_err(|error| format!("the threads for slow guests cannot start: {error}"))?;
        Ok(Pools {
            quick: Arc::new(Semaphore::new(calls)),
            slow: Arc::new(Semaphore::new(calls)),
            threads: Some(threads),
        })
    }

    /// Acquires the component's own slot first. So a component whose calls all run into their deadline delays only itself, and
    /// the shared slots stay free for others. `function` is a [`Call::number`].
    pub(super) async fn slots(&self, own: &Own, function: usize) -> Result<Slots, AcquireError> {
        let held = Arc::clone(&own.slots).acquire_owned().await?;
        let begins_slow = own.slow[function].load(Ordering::Relaxed);
        let pool = if begins_slow { &self.slow } else { &self.quick };
        Ok(Slots {
            _own: held,
            shared: Arc::clone(pool).acquire_owned().await?,
            function,
            begins_slow,
        })
    }

    /// Runs a call until it ends or has used up `deadline` of processor time.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        own: &Own,
        slots: Slots,
        deadline: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Ended<T> {
        let begins_slow = slots.begins_slow;
        let slow = &own.slow[slots.function];
        let mut running = Running {
            work: Box::pin(work),
            used: Duration::ZERO,
            deadline,
            slots,
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
            slow.store(true, Ordering::Relaxed);
            // If the slow pool has no free slot, the call keeps the slot that it has.
            if let Ok(turn) = Arc::clone(&self.slow).try_acquire_owned() {
                running.slots.shared = turn;
            }
        }
        let threads = self.threads.as_ref().expect("taken on drop alone");
        // Dropping the handle, as a timeout does, drops the call at its next tick.
        let finished = AbortOnDropHandle::new(threads.spawn(running)).await;
        let (ended, used) = finished.unwrap_or((Ended::Lost, Duration::MAX));
        if begins_slow && used < QUICK_MAX {
            slow.store(false, Ordering::Relaxed);
        }
        ended
    }
}

impl Drop for Pools {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            // A sandbox may be dropped where blocking is not allowed. Calls end at their next tick.
            threads.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a guest does until its tick.
    async fn burn() {
        let begun = processor_time();
        while processor_time() < begun + QUICK_MAX {}
        tokio::task::yield_now().await;
    }

    #[tokio::test]
    async fn a_quick_function_does_not_bring_a_slow_one_back() {
        const GUARD: usize = 1;
        const TRANSITION: usize = 2;
        let (pools, own) = (Pools::new(1).expect("pools"), Own::new(1));
        let begins_slow = async |function| {
            let slots = pools.slots(&own, function).await.expect("slots");
            slots.begins_slow
        };
        let deadline = Duration::from_secs(10);
        let slots = pools.slots(&own, TRANSITION).await.expect("slots");
        pools.run(&own, slots, deadline, burn()).await;
        assert!(begins_slow(TRANSITION).await);
        let slots = pools.slots(&own, GUARD).await.expect("slots");
        pools.run(&own, slots, deadline, async {}).await;
        assert!(begins_slow(TRANSITION).await);
        assert!(!begins_slow(GUARD).await);
        // Until it is quick itself.
        let slots = pools.slots(&own, TRANSITION).await.expect("slots");
        pools.run(&own, slots, deadline, async {}).await;
        assert!(!begins_slow(TRANSITION).await);
    }
}
