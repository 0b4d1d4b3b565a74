//! What a process that tests run does besides: it dies at a named place between two effects, as in a power cut, and it
//! checks invariants that cost too much to check always.
//!
//! The code is the same in every build. Only a process that calls [`under_test`] first does either, and the program
//! `wrkflw` never does. A place stands in the code as one line and in [`POINTS`] as one name; a test compares the two.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// The variable by which a test names the point to die at, as `name` or as `name:n` for the nth passing. The program
/// under test reads it; the settings know nothing of it.
pub const VARIABLE: &str = "FAULT_POINT";

/// Every place, in the order in which work passes them.
pub const POINTS: [&str; 29] = [
    // A command: what it starts from is read, judged, written, told to relay and streams, and answered.
    "command.loaded",
    "command.judged",
    "command.committed",
    "command.announced",
    // A lane's events: claimed, handed to the client, acknowledged by the broker, deleted.
    "relay.claimed",
    "relay.produced",
    "relay.acknowledged",
    "relay.deleted",
    "relay.settled",
    // What is due: in hand, and done but not struck out.
    "job.claimed",
    "job.done",
    "recheck.claimed",
    "recheck.walked",
    "child.started",
    "batch.claimed",
    "batch.item_done",
    // Telling people and webhooks.
    "notifier.read",
    "notifier.written",
    "notifier.moved",
    "webhook.claimed",
    "webhook.posted",
    // A signal by correlation: kept, and given to an instance.
    "signal.kept",
    "signal.assigned",
    // Publishing: machine code on disk, the component's row, the version's.
    "artifact.written",
    "artifact.kept",
    "publish.component",
    "publish.version",
    // The directory: changed, and noted in the audit.
    "directory.changed",
    "directory.noted",
];

mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The point to die at, and how many passings are left.
    static CHOSEN: OnceLock<(String, AtomicU64)> = OnceLock::new();

    pub(super) fn arm(text: &str) -> Result<(), String> {
        let (name, passing) = text.split_once(':').unwrap_or((text, "1"));
        let passing: u64 = passing.parse().map_err(|_| {
            format!("{text} names no passing: write {name}:1 for the first of {name}")
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

/// Whether this process was started by a test.
static UNDER_TEST: AtomicBool = AtomicBool::new(false);

/// Makes this a process under test: invariants are checked from now on.
pub fn under_test() {
    UNDER_TEST.store(true, Ordering::Relaxed);
}

/// Chooses the point at which this process dies.
pub fn arm(point: &str) -> Result<(), String> {
    armed::arm(point)
}

/// Passes a place between two effects.
#[inline]
pub fn point(name: &'static str) {
    if UNDER_TEST.load(Ordering::Relaxed) {
        armed::pass(name);
    }
}

/// Ends a process under test in which this does not hold; asks nothing in any other.
#[inline]
#[track_caller]
pub fn invariant(holds: impl FnOnce() -> bool, what: fmt::Arguments<'_>) {
    if cfg!(test) || UNDER_TEST.load(Ordering::Relaxed) {
        assert!(holds(), "{what}");
    }
}
