//! Faults for tests: a process under test dies at a named point between two effects, as in a power cut. It also checks invariants
//! that are too costly for production.
//!
//! It uses no other crate, so that every crate can name points.
//!
//! The code is the same in every build. Points and checks are active only in a process that calls [`under_test`] first, and
//! the program `wrkflw` never calls it. A point is one line in the code and one name in [`POINTS`]; a test compares the two.
//!
//! Begin with [`point`] and [`invariant!`]. [`POINTS`] lists all points.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// The environment variable that names the point to die at, as `name`, or as `name:n` for the nth time it is reached. The program
/// under test reads it. It is not a setting of the host.
pub const VARIABLE: &str = "FAULT_POINT";

/// Every point, in the order in which work reaches them.
pub const POINTS: [&str; 33] = [
    // A command: loaded, executed, committed, announced to the relay and to event streams.
    "command.loaded",
    "command.judged",
    "command.committed",
    "command.announced",
    // A partition's events: claimed, passed to the client, acknowledged by the broker, deleted, and the deletion committed.
    "relay.claimed",
    "relay.produced",
    "relay.acknowledged",
    "relay.deleted",
    "relay.settled",
    // Jobs, reassessments, children and bulk items: claimed, and done but not settled.
    "job.claimed",
    "job.done",
    "reassessment.claimed",
    "reassessment.walked",
    "child.started",
    "batch.claimed",
    "batch.item_done",
    // Service calls: claimed, answered but not reported, and kept for the next attempt.
    "call.claimed",
    "call.answered",
    "call.kept",
    // Notifications and webhooks.
    "notifier.read",
    "notifier.written",
    "notifier.moved",
    "webhook.claimed",
    "webhook.posted",
    // A signal by correlation: kept, and assigned to an instance. A portion of a signal to all: delivered, not recorded.
    "signal.kept",
    "signal.assigned",
    "signal.broadcast",
    // Publishing: machine code on disk, the row of the component, the row of the version.
    "artifact.written",
    "artifact.kept",
    "publish.component",
    "publish.version",
    // The directory: changed, and recorded in the audit.
    "directory.changed",
    "directory.noted",
];

mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The point to die at, and the number of times it must still be reached.
    static CHOSEN: OnceLock<(String, AtomicU64)> = OnceLock::new();

    pub(super) fn arm(text: &str) -> Result<(), String> {
        let (name, passing) = text.split_once(':').unwrap_or((text, "1"));
        let passing: u64 = passing.parse().map_err(|_| {
            format!("{text} has no valid count: write {name}:1 to die when {name} is first reached")
        })?;
        if passing == 0 || !super::POINTS.contains(&name) {
            return Err(format!("{text} is no point to die at"));
        }
        CHOSEN
            .set((name.to_owned(), AtomicU64::new(passing)))
            .map_err(|_| "a point is chosen already".to_owned())
    }

    pub(super) fn pass(name: &str) {
        let Some((chosen, left)) = CHOSEN.get() else {
            return;
        };
        if chosen == name && left.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::process::abort();
        }
    }
}

/// Whether a test started this process.
static UNDER_TEST: AtomicBool = AtomicBool::new(false);

/// Marks this process as under test: from now on invariants are checked.
pub fn under_test() {
    UNDER_TEST.store(true, Ordering::Relaxed);
}

/// Chooses the point at which this process dies.
pub fn arm(point: &str) -> Result<(), String> {
    armed::arm(point)
}

/// Reaches a point between two effects.
#[inline]
pub fn point(name: &'static str) {
    if UNDER_TEST.load(Ordering::Relaxed) {
        armed::pass(name);
    }
}

/// Panics if an invariant does not hold, in a process under test and in unit tests only. Takes a closure that checks it and the
/// message for the panic.
#[macro_export]
macro_rules! invariant {
    ($holds:expr, $what:expr $(,)?) => {
        // Evaluated here, where `cfg!(test)` is that of the caller's crate.
        $crate::held(cfg!(test), $holds, $what)
    };
}

#[doc(hidden)]
#[inline]
#[track_caller]
pub fn held(in_a_test: bool, holds: impl FnOnce() -> bool, what: fmt::Arguments<'_>) {
    if in_a_test || UNDER_TEST.load(Ordering::Relaxed) {
        assert!(holds(), "{what}");
    }
}
