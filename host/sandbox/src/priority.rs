//! Two pools for calls: the caller's own thread for quick calls, threads of low priority for slow ones.
//!
//! Nearly every call is quick and runs on the thread of its caller. A call that has used more than [`QUICK_MAX`] moves at its next tick
//! to threads of the lowest scheduling priority in the host. So a guest that uses up its whole budget uses only time that no other
//! thread needs. The next call of the same function of the component begins on these threads, until a call of it is quick. The slow
//! pool has places of its own, so the places of quick calls stay free. If no slow place is free, the call ends and begins again when one
//! is free: a waiting call would hold the place or the memory of another call. A component gets at most half of the places of each pool,
//! so one flow cannot take all places of its tenant. A tenant gets at most three quarters of the slow places, so copies of a flow cannot
//! take all places of the host. The limit of a slow call is in processor time: a busy machine delays an answer, but does not change it.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
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

/// The places of one component.
#[derive(Debug)]
pub(super) struct Own {
    places: Arc<Semaphore>,
    /// Whether the last call of each function was slow, by [`Call::number`]. With one flag for all functions, a quick call of
    /// another function would reset it, and the next slow transition would begin on the thread of its caller again.
    slow: [AtomicBool; Call::FUNCTIONS],
}

impl Own {
    pub(super) fn new(places: usize) -> Own {
        Own {
            places: Arc::new(Semaphore::new(places)),
            slow: Default::default(),
        }
    }
}

/// Both pools.
#[derive(Debug)]
pub(super) struct Pools {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    /// The slow places of each tenant that has slow calls.
    tenants: Mutex<HashMap<String, Weak<Semaphore>>>,
    places_each: usize,
    /// None only while this is dropped.
    threads: Option<Runtime>,
}

/// The places of one call, held until all resources of the call are freed.
#[derive(Debug)]
pub(super) struct Places {
    _own: OwnedSemaphorePermit,
    /// None for a quick call.
    tenant: Option<OwnedSemaphorePermit>,
    shared: OwnedSemaphorePermit,
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

/// A running call. Fields are dropped in this order: its resources before its places.
struct Running<T> {
    work: Pin<Box<dyn Future<Output = T> + Send>>,
    used: Duration,
    deadline: Duration,
    places: Places,
}

impl<T> Running<T> {
    fn poll_measured(&mut self, context: &mut Context<'_>) -> Poll<T> {
        let begun = processor_time();
        let polled = self.work.as_mut().poll(context);
        // A reading is a system call. The time of a quick call that has answered is not needed.
        if polled.is_pending() || self.places.begins_slow {
            self.used += processor_time().saturating_sub(begun);
        }
        polled
    }
}

/// Runs on the slow pool. Resolves to the end of the call and its processor time, without the last poll of a call that began in the quick pool.
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
            tenants: Mutex::default(),
            places_each: (calls * 3 / 4).max(1),
            threads: Some(threads),
        })
    }

    /// Acquires the component's own place and the tenant's share before a shared place. So a component whose calls all reach their deadline
    /// delays only itself, and the shared places stay free for others. A call that waits for its tenant's share holds no place of the
    /// component, because other tenants use the component. A call that waits for a place of the component holds no share of the tenant,
    /// because the tenant has other components. `function` is a [`Call::number`]. `turned_slow` if the call began before, and is slow.
    pub(super) async fn places(
        &self,
        own: &Own,
        (function, tenant): (usize, &str),
        turned_slow: bool,
    ) -> Result<Places, AcquireError> {
        let (held, of_tenant) = loop {
            let held = Arc::clone(&own.places).acquire_owned().await?;
            if !turned_slow && !own.slow[function].load(Ordering::Relaxed) {
                break (held, None);
            }
            let share = self.of_tenant(tenant);
            if let Ok(of_tenant) = Arc::clone(&share).try_acquire_owned() {
                break (held, Some(of_tenant));
            }
            drop(held);
            let of_tenant = share.acquire_owned().await?;
            if let Ok(held) = Arc::clone(&own.places).try_acquire_owned() {
                break (held, Some(of_tenant));
            }
        };
        let begins_slow = of_tenant.is_some();
        let pool = if begins_slow { &self.slow } else { &self.quick };
        Ok(Places {
            _own: held,
            tenant: of_tenant,
            shared: Arc::clone(pool).acquire_owned().await?,
            begins_slow,
        })
    }

    /// The slow places of a tenant.
    fn of_tenant(&self, name: &str) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = tenants.get(name).and_then(Weak::upgrade) {
            return places;
        }
        tenants.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.places_each));
        tenants.insert(name.to_owned(), Arc::downgrade(&places));
        places
    }

    /// Runs a call until it ends or has used up `deadline` of processor time. None if it turned slow and no slow place is free: the
    /// caller then begins it again with a slow place.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        own: &Own,
        (function, tenant): (usize, &str),
        places: Places,
        deadline: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<Ended<T>> {
        let begins_slow = places.begins_slow;
        let slow = &own.slow[function];
        let mut running = Running {
            work: Box::pin(work),
            used: Duration::ZERO,
            deadline,
            places,
        };
        if !begins_slow {
            let first = std::future::poll_fn(|context| match running.poll_measured(context) {
                Poll::Ready(done) => Poll::Ready(Some(done)),
                Poll::Pending if running.used >= QUICK_MAX => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            if let Some(done) = first.await {
                return Some(Ended::Answered(done));
            }
            metrics::counter!("wrkflw_guest_slow_total").increment(1);
            slow.store(true, Ordering::Relaxed);
            let of_tenant = self.of_tenant(tenant).try_acquire_owned().ok()?;
            running.places.shared = Arc::clone(&self.slow).try_acquire_owned().ok()?;
            running.places.tenant = Some(of_tenant);
        }
        let threads = self.threads.as_ref().expect("taken on drop alone");
        // A timeout drops the handle. The call is then dropped at its next tick.
        let finished = AbortOnDropHandle::new(threads.spawn(running)).await;
        let (ended, used) = finished.unwrap_or((Ended::Lost, Duration::MAX));
        if begins_slow && used < QUICK_MAX {
            slow.store(false, Ordering::Relaxed);
        }
        Some(ended)
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
mod tests;
