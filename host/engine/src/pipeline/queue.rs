//! The first stage: commands on one instance queue here instead of competing in the database.
//!
//! The queue only saves work. Correctness rests on the revision, which the commit compares.

use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::group_commit::Pending;
use super::load::{self, NO_INSTANCE};
use super::{CommitMode, Mode, Run};
use crate::Engine;
use wrkflw_core::ids::InstanceId;
use wrkflw_store::load::Loaded;

/// Number of queues. Commands on two instances that share a queue wait for each other. With this number, hundreds of commands in
/// flight seldom share one. The queues take a megabyte.
const QUEUES: usize = 16_384;
/// Maximum age of rows that were read while the command waited: memberships may change meanwhile.
const READ_AHEAD_MAX: Duration = Duration::from_millis(100);

/// Queues of commands by instance, first come, first served.
pub(crate) struct InstanceQueue {
    queues: Box<[Queue]>,
}

#[derive(Default)]
struct Queue {
    /// Changes of commands that are executed and not committed yet.
    pending: Mutex<Pending>,
    /// Commands that wait for their slot.
    waiting: AtomicUsize,
}

/// The first position in an instance's queue, until it is dropped.
pub(super) struct Slot<'a> {
    pending: MutexGuard<'a, Pending>,
    waiting: &'a AtomicUsize,
}

/// A command's place in the queue of its instance.
#[derive(Default)]
pub(super) struct Queued<'a> {
    /// None for a start, which has no instance yet, and after the slot was released.
    pub(super) slot: Option<Slot<'a>>,
    /// The caller, read while another command had the slot.
    read_ahead: Option<ReadAhead>,
}

struct ReadAhead {
    loaded: Loaded,
    /// When the read began.
    since: Instant,
}

impl<'a> Queued<'a> {
    /// The slot, if commits are pending in it.
    pub(super) fn take_pending(&mut self) -> Option<Slot<'a>> {
        self.slot.take_if(|slot| slot.is_pending())
    }

    /// Releases the slot if commits are pending in it, so that other commands can commit them.
    pub(super) fn leave_pending(&mut self) {
        drop(self.take_pending());
    }

    /// The caller as read ahead, if that was recent enough.
    pub(super) fn take_read_ahead(&mut self) -> Option<Loaded> {
        let read = self.read_ahead.take()?;
        (read.since.elapsed() < READ_AHEAD_MAX).then_some(read.loaded)
    }
}

impl InstanceQueue {
    pub(crate) fn new() -> InstanceQueue {
        InstanceQueue {
            queues: (0..QUEUES).map(|_| Queue::default()).collect(),
        }
    }

    fn of(&self, instance: InstanceId) -> &Queue {
        let (_, random) = instance.0.as_u64_pair();
        let queue =
            usize::try_from(random % QUEUES as u64).expect("fewer queues than a usize counts");
        &self.queues[queue]
    }

    /// The slot, unless another command has it or waits for it.
    fn try_enter(&self, instance: InstanceId) -> Option<Slot<'_>> {
        let queue = self.of(instance);
        Some(Slot {
            pending: queue.pending.try_lock().ok()?,
            waiting: &queue.waiting,
        })
    }

    /// How many commands wait for their slot.
    pub(crate) fn waiting(&self, instance: InstanceId) -> usize {
        self.of(instance).waiting.load(Ordering::Relaxed)
    }

    /// Waits for the slot as a command.
    async fn enter(&self, instance: InstanceId) -> Slot<'_> {
        let mut entering = pin!(self.enter_uncounted(instance));
        let entered = poll_fn(|context| Poll::Ready(entering.as_mut().poll(context)));
        if let Poll::Ready(slot) = entered.await {
            return slot;
        }
        // It is counted only when it has its place in the queue. So a command that comes after the count is behind it.
        let _waits = Waits::at(&self.of(instance).waiting);
        entering.await
    }

    /// Waits for the slot behind all who wait now, without being counted as a command that waits.
    pub(super) async fn enter_uncounted(&self, instance: InstanceId) -> Slot<'_> {
        let queue = self.of(instance);
        Slot {
            pending: queue.pending.lock().await,
            waiting: &queue.waiting,
        }
    }
}

/// Waits for the command's slot, unless it has one, and reads the caller meanwhile.
pub(super) async fn queue_up<'a>(
    engine: &'a Engine,
    run: Run<'_>,
    mode: Mode,
    queued: &mut Queued<'a>,
) {
    let (Some(instance), None) = (run.instance, &queued.slot) else {
        return;
    };
    let queue = &engine.0.queue;
    queued.slot = queue.try_enter(instance);
    if queued.slot.is_some() {
        return;
    }
    let (slot, read_ahead) = tokio::join!(queue.enter(instance), read_ahead(engine, run, mode));
    (queued.slot, queued.read_ahead) = (Some(slot), read_ahead);
}

/// Reads the caller for a command that may run on pending state. The other commands read the caller with the instance.
async fn read_ahead(engine: &Engine, run: Run<'_>, mode: Mode) -> Option<ReadAhead> {
    if mode.commit != CommitMode::Joined || run.request.command.signal().is_some() {
        return None;
    }
    let since = Instant::now();
    // On a failure the load reads again, and reports it.
    let loaded = load::read_rows(engine, run.request, NO_INSTANCE)
        .await
        .ok()?;
    Some(ReadAhead { loaded, since })
}

impl Slot<'_> {
    /// Whether other commands wait for this slot.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

impl Deref for Slot<'_> {
    type Target = Pending;

    fn deref(&self) -> &Pending {
        &self.pending
    }
}

impl DerefMut for Slot<'_> {
    fn deref_mut(&mut self) -> &mut Pending {
        &mut self.pending
    }
}

/// Counts a command as waiting until it has its slot or goes away.
struct Waits<'a>(&'a AtomicUsize);

impl Waits<'_> {
    fn at(waiting: &AtomicUsize) -> Waits<'_> {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waits(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
