//! Work of many callers that is carried out together: what is queued while one round is under way goes with the next.
//!
//! Nobody waits for company. An item that finds a worker free begins at once, alone; the more there is to do, the
//! more travels in one round. A queue that is full refuses at once. The work goes on when its caller goes away.
//!
//! A caller who finds a worker free lends its own task to the work until its item is done: a hop to another task and
//! back costs a lone caller more than the round. What is left to do then, or when the caller goes away, is a task's.

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

/// What is done, and with how many at a time.
pub(super) trait Work: Send + Sync + 'static {
    type Item: Send + 'static;

    /// The name that its metrics carry.
    const NAME: &'static str;

    /// Whether the item may travel with those chosen before it. The first of a round always may.
    fn fits(chosen: &[Self::Item], item: &Self::Item) -> bool;

    /// Does it, and tells each caller.
    fn carry_out(&self, items: Vec<Self::Item>) -> impl Future<Output = ()> + Send;
}

/// How much is under way and in line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Rounds at a time.
    pub(super) workers: usize,
    /// Items in a round.
    pub(super) together: usize,
    /// Items that wait.
    pub(super) waiting: usize,
}

/// The queue had no place left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too much waits already")]
pub struct Full;

/// The queue and its workers, who are there only while there is something to do.
pub(super) struct Combiner<W: Work> {
    parts: Arc<Parts<W>>,
    tasks: TaskTracker,
}

struct Parts<W: Work> {
    work: W,
    bounds: Bounds,
    measures: Measures,
    line: Mutex<Line<W::Item>>,
}

struct Line<T> {
    waiting: VecDeque<(T, Instant)>,
    busy: usize,
}

impl<W: Work> Combiner<W> {
    /// The workers are tasks of `tasks`.
    pub(super) fn new(work: W, bounds: Bounds, tasks: TaskTracker) -> Combiner<W> {
        let line = Line {
            waiting: VecDeque::new(),
            busy: 0,
        };
        Combiner {
            parts: Arc::new(Parts {
                work,
                bounds,
                measures: Measures::of(W::NAME),
                line: Mutex::new(line),
            }),
            tasks,
        }
    }

    /// Takes the item on and waits until `told` hears of its end; what the item carries tells it. Whoever begins this
    /// sees it through or drops it: others wait meanwhile for the work that it may have in hand.
    pub(super) async fn carry<T>(
        &self,
        item: W::Item,
        mut told: oneshot::Receiver<T>,
    ) -> Result<Result<T, oneshot::error::RecvError>, Full> {
        let mut hand = self.enter(item)?;
        let done = poll_fn(|context| {
            hand.poll(context);
            Pin::new(&mut told).poll(context)
        });
        Ok(done.await)
    }

    /// Puts the item in line, with the work if there is a worker free for it.
    fn enter(&self, item: W::Item) -> Result<Hand, Full> {
        let mut line = self.parts.line();
        if line.waiting.len() >= self.parts.bounds.waiting {
            return Err(Full);
        }
        line.waiting.push_back((item, Instant::now()));
        Ok(self.see_to(line))
    }

    /// Takes on what another queue had a place for already: no more than the rounds of its workers.
    pub(super) fn put_back(&self, items: Vec<W::Item>) {
        for item in items {
            let mut line = self.parts.line();
            line.waiting.push_back((item, Instant::now()));
            // A task takes it over at once.
            drop(self.see_to(line));
        }
    }

    fn see_to(&self, mut line: MutexGuard<'_, Line<W::Item>>) -> Hand {
        let mut hand = Hand {
            work: None,
            tasks: self.tasks.clone(),
        };
        if line.busy < self.parts.bounds.workers {
            line.busy += 1;
            drop(line);
            // Counted from here on, whoever carries it on.
            let work = self.tasks.track_future(self.parts.clone().work());
            hand.work = Some(Box::pin(work));
        }
        hand
    }
}

/// A caller's part in the work, if it has any. Whoever drops it leaves the rest to a task.
struct Hand {
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    tasks: TaskTracker,
}

impl Hand {
    fn poll(&mut self, context: &mut Context<'_>) {
        if let Some(work) = &mut self.work
            && let Poll::Ready(()) = work.as_mut().poll(context)
        {
            self.work = None;
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // Without a runtime the process is over.
        if let Some(work) = self.work.take()
            && let Ok(runtime) = Handle::try_current()
        {
            self.tasks.spawn_on(work, &runtime);
        }
    }
}

impl<T> Line<T> {
    /// The next round, in the order of their coming; those that do not fit wait for the round after it.
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

impl<W: Work> Parts<W> {
    fn line(&self) -> MutexGuard<'_, Line<W::Item>> {
        // Nothing that runs under the lock leaves the line half changed.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until nothing is left in line.
    async fn work(self: Arc<Self>) {
        loop {
            let (items, oldest, left) = {
                let mut line = self.line();
                let (items, oldest) = line.take(self.bounds.together, W::fits);
                if items.is_empty() {
                    line.busy -= 1;
                    return;
                }
                (items, oldest, line.waiting.len())
            };
            self.measures.note(items.len(), oldest, left);
            let carried_out = AssertUnwindSafe(self.work.carry_out(items)).catch_unwind();
            if carried_out.await.is_err() {
                tracing::error!(work = W::NAME, "a round panicked; its callers are told so");
            }
        }
    }
}

/// What is measured of one kind of work.
struct Measures {
    items: Histogram,
    waiting: Gauge,
    wait: Histogram,
}

impl Measures {
    fn of(work: &'static str) -> Measures {
        Measures {
            items: metrics::histogram!("wrkflw_round_items", "work" => work),
            waiting: metrics::gauge!("wrkflw_round_waiting", "work" => work),
            wait: metrics::histogram!("wrkflw_round_wait_seconds", "work" => work),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "far below the limit of a double"
    )]
    fn note(&self, together: usize, oldest: Option<Instant>, left: usize) {
        self.items.record(together as f64);
        self.waiting.set(left as f64);
        if let Some(oldest) = oldest {
            self.wait.record(oldest.elapsed().as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests;
