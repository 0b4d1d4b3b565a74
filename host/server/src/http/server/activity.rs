//! The last activity of a connection, and when its timeout ends.
//!
//! Written by the stream and by the requests of one connection, read by its task alone. Nothing waits here.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Timeouts;

/// Why a connection is ended by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    /// It asked for nothing.
    Idle,
    /// It began a request and did not go on.
    Head,
    /// It does not read what it asked for.
    Unread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Between requests.
    Idle,
    /// Some bytes of a request are there.
    Head,
    /// A request is being answered.
    Answering,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    /// Since when the socket takes no more of an answer.
    blocked: Option<Instant>,
}

/// Shared by the parts of one connection.
#[derive(Debug)]
pub(super) struct Activity(Mutex<State>);

impl Activity {
    pub(super) fn new(now: Instant) -> Activity {
        Activity(Mutex::new(State {
            phase: Phase::Idle,
            since: now,
            blocked: None,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes came in. Those of a body count for the request that is being answered.
    pub(super) fn read(&self, now: Instant) {
        let mut state = self.state();
        if state.phase == Phase::Idle {
            (state.phase, state.since) = (Phase::Head, now);
        }
    }

    /// The socket took something, or failed.
    pub(super) fn written(&self) {
        self.state().blocked = None;
    }

    /// The socket takes no more at present.
    pub(super) fn blocked(&self, now: Instant) {
        self.state().blocked.get_or_insert(now);
    }

    /// The head of a request is complete.
    pub(super) fn begin(&self, now: Instant) {
        let mut state = self.state();
        (state.phase, state.since) = (Phase::Answering, now);
    }

    /// The last byte of its answer was handed on.
    pub(super) fn end(&self, now: Instant) {
        let mut state = self.state();
        (state.phase, state.since) = (Phase::Idle, now);
    }

    /// Whether it has asked for nothing for so long.
    pub(super) fn is_idle_for(&self, at_least: Duration, now: Instant) -> bool {
        let state = self.state();
        state.phase == Phase::Idle && now.duration_since(state.since) >= at_least
    }

    /// When the connection is to be ended if nothing changes, and why.
    pub(super) fn due(&self, timeouts: &Timeouts) -> Option<(Instant, Overdue)> {
        let state = self.state();
        let waiting = match state.phase {
            Phase::Idle => Some((state.since + timeouts.idle_max, Overdue::Idle)),
            Phase::Head => Some((state.since + timeouts.head_max, Overdue::Head)),
            Phase::Answering => None,
        };
        let unread = state
            .blocked
            .map(|since| (since + timeouts.unread_max, Overdue::Unread));
        waiting.into_iter().chain(unread).min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        idle_max: Duration::from_secs(7),
        head_max: Duration::from_secs(3),
        unread_max: Duration::from_secs(5),
    };

    #[test]
    fn each_phase_has_its_own_patience() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let activity = Activity::new(begun);
        assert_eq!(activity.due(&TIMEOUTS), Some((at(7), Overdue::Idle)));
        assert!(activity.is_idle_for(Duration::from_secs(2), at(2)));
        assert!(!activity.is_idle_for(Duration::from_secs(3), at(2)));
        activity.read(at(2));
        assert!(!activity.is_idle_for(Duration::ZERO, at(2)));
        assert_eq!(activity.due(&TIMEOUTS), Some((at(5), Overdue::Head)));
        activity.read(at(3));
        let unchanged = activity.due(&TIMEOUTS);
        assert_eq!(
            unchanged,
            Some((at(5), Overdue::Head)),
            "a drip gains nothing"
        );
        activity.begin(at(4));
        assert_eq!(
            activity.due(&TIMEOUTS),
            None,
            "the host's work is bounded elsewhere"
        );
        activity.blocked(at(5));
        activity.blocked(at(6));
        assert_eq!(activity.due(&TIMEOUTS), Some((at(10), Overdue::Unread)));
        activity.written();
        activity.end(at(8));
        assert_eq!(activity.due(&TIMEOUTS), Some((at(15), Overdue::Idle)));
    }
}
