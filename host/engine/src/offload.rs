//! Runs long work of the host on threads of low priority, apart from the threads that serve requests.
//!
//! Flows and callers can make such work expensive: checks against schemas, drawings, large documents. Other modules limit
//! its size. This module gives it a thread and a place. There are few places, and a tenant has one of them at a time, so
//! one tenant cannot occupy all of them. [`Offload::in_place`] runs quick work at once, without a place.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::error::Error;
use wrkflw_core::ids::TenantId;
use wrkflw_core::schema::QUICK_MAX;

/// The least number of places. A machine with more than four processors has half as many places as processors.
const PLACES_MIN: usize = 2;
/// Work of one tenant that may wait. Each piece may hold a request in memory.
const WAITING_MAX: usize = 64;
/// The longest wait for a place. After it the caller gets [`Error::Busy`].
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Added to the nice value of a thread, so that the scheduler prefers all other threads of the host.
const NICENESS: i32 = 10;
/// From this number of queues on, unused ones are removed whenever one is added.
const QUEUES_SWEPT: usize = 1_000;

/// The places for long work. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Offload(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    places: Arc<Semaphore>,
    queues: Mutex<HashMap<TenantId, Weak<TenantQueue>>>,
}

/// The work of one tenant.
#[derive(Debug)]
struct TenantQueue {
    turn: Arc<Semaphore>,
    waiting: Semaphore,
}

/// A place, held while the work runs.
pub(super) struct OffloadPermit {
    _queue: Arc<TenantQueue>,
    _turn: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Default for Offload {
    fn default() -> Offload {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Offload::new((processors / 2).max(PLACES_MIN))
    }
}

impl Offload {
    pub(super) fn new(places: usize) -> Offload {
        Offload(Arc::new(Parts {
            places: Arc::new(Semaphore::new(places)),
            queues: Mutex::default(),
        }))
    }

    /// Runs the work on its own thread. If the caller goes away, the work continues and keeps its place.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant: TenantId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let place = self.place(tenant).await?;
        let (done, result) = oneshot::channel();
        let thread = named().spawn(move || {
            prefer_last();
            let ended = catch_unwind(AssertUnwindSafe(work));
            drop(place);
            // The caller may have gone away.
            let _ = done.send(ended);
        });
        let ended = match thread {
            Ok(_) => result.await.map_err(|_| Error::Busy)?,
            Err(error) => return Err(no_thread(&error)),
        };
        ended.map_or_else(|panic| resume_unwind(panic), Ok)
    }

    /// Runs work that borrows data and may take as long as `effort`. If that is long, the runtime moves the thread's other tasks.
    pub(crate) async fn in_place<T: Send>(
        &self,
        tenant: TenantId,
        effort: Duration,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, Error> {
        // A runtime of one thread cannot move tasks. No host serves on one.
        let is_served = || Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread;
        if effort <= QUICK_MAX || !is_served() {
            return Ok(work());
        }
        let _place = self.place(tenant).await?;
        tokio::task::block_in_place(|| {
            thread::scope(|scope| {
                let thread = named().spawn_scoped(scope, || {
                    prefer_last();
                    work()
                });
                let thread = thread.map_err(|error| no_thread(&error))?;
                thread.join().map_or_else(|panic| resume_unwind(panic), Ok)
            })
        })
    }

    /// Waits for a place. A tenant has one at a time.
    pub(super) async fn place(&self, tenant: TenantId) -> Result<OffloadPermit, Error> {
        let queue = self.queue(tenant);
        let waiting = queue.waiting.try_acquire().map_err(|_| refused("full"))?;
        let acquired = tokio::time::timeout(WAIT_MAX, async {
            let turn = Arc::clone(&queue.turn).acquire_owned().await;
            let place = Arc::clone(&self.0.places).acquire_owned().await;
            (turn, place)
        });
        let (turn, place) = acquired.await.map_err(|_| refused("waited"))?;
        drop(waiting);
        metrics::counter!("wrkflw_offloaded_total").increment(1);
        Ok(OffloadPermit {
            _queue: queue,
            _turn: turn.expect("queues are never closed"),
            _place: place.expect("the places are never closed"),
        })
    }

    fn queue(&self, tenant: TenantId) -> Arc<TenantQueue> {
        let mut queues = self.0.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(&tenant).and_then(Weak::upgrade) {
            return queue;
        }
        if queues.len() >= QUEUES_SWEPT {
            queues.retain(|_, queue| queue.strong_count() > 0);
        }
        let queue = Arc::new(TenantQueue {
            turn: Arc::new(Semaphore::new(1)),
            waiting: Semaphore::new(WAITING_MAX),
        });
        queues.insert(tenant, Arc::downgrade(&queue));
        queue
    }
}

fn named() -> thread::Builder {
    thread::Builder::new().name("offload".into())
}

/// Lowers the priority of the calling thread. Linux has a nice value for each thread.
fn prefer_last() {
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "long work runs at the same priority as all else");
    }
}

fn refused(reason: &'static str) -> Error {
    metrics::counter!("wrkflw_offload_refused_total", "reason" => reason).increment(1);
    Error::Busy
}

fn no_thread(error: &std::io::Error) -> Error {
    tracing::error!(%error, "no thread can be started for long work");
    refused("no_thread")
}

#[cfg(test)]
mod tests;
