//! Commands on one instance queue here, so that they do not race each other to the database.
//!
//! The queue spares work; it is not what makes commands safe. That is the revision in the commit.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use crate::domain::ids::InstanceId;

/// Places. Two instances may share one: they then wait for each other, and nothing else happens. So many that hundreds of
/// commands under way seldom meet: a megabyte.
const PLACES: usize = 16_384;

/// First come, first served, per instance.
pub(super) struct Queue<P> {
    lines: Box<[Line<P>]>,
}

#[derive(Default)]
struct Line<P> {
    /// What stands there between two turns.
    place: Mutex<P>,
    /// Commands that wait for their turn.
    waiting: AtomicUsize,
}

/// Somebody's turn at a place, until it is dropped.
pub(super) struct Turn<'a, P> {
    place: MutexGuard<'a, P>,
    waiting: &'a AtomicUsize,
}

impl<P: Default> Queue<P> {
    pub(super) fn new() -> Queue<P> {
        Queue {
            lines: (0..PLACES).map(|_| Line::default()).collect(),
        }
    }

    fn line(&self, instance: InstanceId) -> &Line<P> {
        let (_, random) = instance.0.as_u64_pair();
        let line =
            usize::try_from(random % PLACES as u64).expect("fewer places than a usize counts");
        &self.lines[line]
    }

    /// The turn, unless somebody has it or waits for it.
    pub(super) fn at_once(&self, instance: InstanceId) -> Option<Turn<'_, P>> {
        let line = self.line(instance);
        Some(Turn {
            place: line.place.try_lock().ok()?,
            waiting: &line.waiting,
        })
    }

    /// How many commands wait for their turn.
    pub(super) fn waiting(&self, instance: InstanceId) -> usize {
        self.line(instance).waiting.load(Ordering::Relaxed)
    }

    /// Waits until it is a command's turn.
    pub(super) async fn turn(&self, instance: InstanceId) -> Turn<'_, P> {
        let _waits = Waits::at(&self.line(instance).waiting);
        self.turn_behind(instance).await
    }

    /// Waits until all have had their turn who wait for it now.
    pub(super) async fn turn_behind(&self, instance: InstanceId) -> Turn<'_, P> {
        let line = self.line(instance);
        Turn {
            place: line.place.lock().await,
            waiting: &line.waiting,
        }
    }
}

impl<P> Turn<'_, P> {
    /// Whether commands wait for their turn.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

impl<P> Deref for Turn<'_, P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.place
    }
}

impl<P> DerefMut for Turn<'_, P> {
    fn deref_mut(&mut self) -> &mut P {
        &mut self.place
    }
}

/// One who waits, until the turn comes or is not wanted any more.
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
