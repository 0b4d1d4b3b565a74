//! Batches: the work of many callers is done together. Items that are queued while one batch runs form the next.
//!
//! A request never waits for others to form a batch. An item that finds a worker free begins at once, by itself; the more there
//! is to do, the larger the batches. A full queue refuses at once. An item is processed even when its caller has gone away.
//!
//! A caller that finds a worker free runs the batch on its own task until its item is done: a hop to another task and back costs
//! a lone caller more than the batch. The rest of the batch moves to a new task then, or when the caller goes away.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use futures_util::FutureExt as _;
use metrics::{Gauge, Histogram};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

/// The work of a batch.
pub(super) trait Batch: Send + Sync + 'static {
    type Item: Send + 'static;

    /// The value of the label `work` of its metrics.
    const NAME: &'static str;

    /// Whether the item may be in one batch with the items chosen before it. The first item of a batch always fits.
    fn fits(chosen: &[Self::Item], item: &Self::Item) -> bool;

    /// Processes the items and notifies each caller.
    fn run(&self, items: Vec<Self::Item>) -> impl Future<Output = ()> + Send;
}

/// Bounds of a batcher.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Batches at a time.
    pub(super) workers: usize,
    /// Items in a batch.
    pub(super) size_max: usize,
    /// Items that wait.
    pub(super) waiting_max: usize,
}

/// The queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full")]
pub struct Full;

/// A queue and its workers, which exist only while there is something to do.
pub(super) struct Batcher<B: Batch> {
    parts: Arc<Parts<B>>,
    tasks: TaskTracker,
}

struct Parts<B: Batch> {
    batch: B,
    bounds: Bounds,
    measures: Measures,
    queue: Mutex<Queue<B::Item>>,
}

struct Queue<T> {
    waiting: VecDeque<(T, Instant)>,
    busy: usize,
}

impl<B: Batch> Batcher<B> {
    /// A batcher without items. Its workers will be tasks of `tasks`.
    pub(super) fn new(batch: B, bounds: Bounds, tasks: TaskTracker) -> Batcher<B> {
        let queue = Queue {
            waiting: VecDeque::new(),
            busy: 0,
        };
        Batcher {
            parts: Arc::new(Parts {
                batch,
                bounds,
                measures: Measures::of(B::NAME),
                queue: Mutex::new(queue),
            }),
            tasks,
        }
    }

    /// Queues the item and waits for `done`, whose sender the item has.
    ///
    /// Poll this to completion or drop it. While pending it may hold work that other callers wait for. So a task that runs several
    /// commands concurrently runs each [`apart`](wrkflw_runtime::worker::apart): one of them may block the thread.
    pub(super) async fn run<T>(
        &self,
        item: B::Item,
        mut done: oneshot::Receiver<T>,
    ) -> Result<Result<T, oneshot::error::RecvError>, Full> {
        let mut worker = self.enqueue(item)?;
        let done = poll_fn(|context| {
            worker.poll(context);
            Pin::new(&mut done).poll(context)
        });
        Ok(done.await)
    }

    /// Queues the item. Returns a worker for the caller to run, if one is free.
    fn enqueue(&self, item: B::Item) -> Result<Worker, Full> {
        let mut queue = self.parts.queue();
        if queue.waiting.len() >= self.parts.bounds.waiting_max {
            return Err(Full);
        }
        queue.waiting.push_back((item, Instant::now()));
        Ok(self.free_worker(queue))
    }

    /// How many items wait for a worker.
    pub(super) fn waiting(&self) -> usize {
        self.parts.queue().waiting.len()
    }

    /// Queues items, also beyond the bound. They were admitted to another queue, so they are no more than the batches of its
    /// workers.
    pub(super) fn requeue(&self, items: Vec<B::Item>) {
        for item in items {
            let mut queue = self.parts.queue();
            queue.waiting.push_back((item, Instant::now()));
            // When dropped, a worker goes on as a task.
            drop(self.free_worker(queue));
        }
    }

    fn free_worker(&self, mut queue: MutexGuard<'_, Queue<B::Item>>) -> Worker {
        let mut worker = Worker {
            work: None,
            tasks: self.tasks.clone(),
        };
        if queue.busy < self.parts.bounds.workers {
            queue.busy += 1;
            drop(queue);
            // Tracked from here on, whichever task runs it.
            let work = self.tasks.track_future(self.parts.clone().work());
            worker.work = Some(Box::pin(work));
        }
        worker
    }
}

/// A worker on its caller's task. When dropped, it goes on as a task of its own. Without work if no worker was free.
struct Worker {
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    tasks: TaskTracker,
}

impl Worker {
    fn poll(&mut self, context: &mut Context<'_>) {
        if let Some(work) = &mut self.work
            && let Poll::Ready(()) = work.as_mut().poll(context)
        {
            self.work = None;
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Without a runtime the process is ending.
        if let Some(work) = self.work.take()
            && let Ok(runtime) = Handle::try_current()
        {
            self.tasks.spawn_on(work, &runtime);
        }
    }
}

impl<T> Queue<T> {
    /// The next batch, first come, first served. Items that do not fit wait for the batch after it.
    fn take(&mut self, most: usize, fits: impl Fn(&[T], &T) -> bool) -> (Vec<T>, Option<Instant>) {
        let mut chosen = Vec::with_capacity(most.min(self.waiting.len()));
        let (mut left, mut oldest) = (VecDeque::new(), None);
        while chosen.len() < most
            && let Some((item, since)) = self.waiting.pop_front()
        {
            if chosen.is_empty() || fits(&chosen, &item) {
                oldest.get_or_insert(since);
                chosen.push(item);
            } else {
                left.push_back((item, since));
            }
        }
        while let Some(item) = left.pop_back() {
            self.waiting.push_front(item);
        }
        (chosen, oldest)
    }
}

impl<B: Batch> Parts<B> {
    fn queue(&self) -> MutexGuard<'_, Queue<B::Item>> {
        // A panic under the lock leaves no change half done.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs batches until nothing waits.
    async fn work(self: Arc<Self>) {
        loop {
            let (items, oldest, left) = {
                let mut queue = self.queue();
                let (items, oldest) = queue.take(self.bounds.size_max, B::fits);
                if items.is_empty() {
                    queue.busy -= 1;
                    return;
                }
                (items, oldest, queue.waiting.len())
            };
            self.measures.note(items.len(), oldest, left);
            let ended = AssertUnwindSafe(self.batch.run(items)).catch_unwind();
            if ended.await.is_err() {
                tracing::error!(work = B::NAME, "a batch panicked; its callers get an error");
            }
        }
    }
}

/// The metrics of one kind of batch.
struct Measures {
    items: Histogram,
    waiting: Gauge,
    wait: Histogram,
}

impl Measures {
    fn of(work: &'static str) -> Measures {
        Measures {
            items: metrics::histogram!("wrkflw_batch_items", "work" => work),
            waiting: metrics::gauge!("wrkflw_batch_waiting", "work" => work),
            wait: metrics::histogram!("wrkflw_batch_wait_seconds", "work" => work),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "far below the limit of a double"
    )]
    fn note(&self, items: usize, oldest: Option<Instant>, left: usize) {
        self.items.record(items as f64);
        self.waiting.set(left as f64);
        if let Some(oldest) = oldest {
            self.wait.record(oldest.elapsed().as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests;
