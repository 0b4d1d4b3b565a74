//! The only place that reads the wall clock or draws a random number.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// Random bytes that a thread fetches at a time. A command draws some dozen times, and each system call costs more than the bytes.
const POOL_BYTES: usize = 512;

/// The clock of commands, in whole milliseconds.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    #[default]
    System,
    /// Milliseconds since the Unix epoch. Tests move it.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    pub fn now(&self) -> Timestamp {
        let milliseconds = match self {
            #[expect(clippy::disallowed_methods, reason = "the one place that may")]
            Clock::System => Timestamp::now().as_millisecond(),
            Clock::Manual(milliseconds) => milliseconds.load(Ordering::SeqCst),
        };
        Timestamp::from_millisecond(milliseconds)
            .expect("clocks stay within the years that timestamps cover")
    }
}

/// `at` plus `pause`, at most the last timestamp.
pub fn later(at: Timestamp, pause: Duration) -> Timestamp {
    let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
    at.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// The time between two moments, zero if `to` is the earlier one.
pub fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// A new id of version 7, greater than those that this process made before, even if the clock was set back.
pub fn new_id() -> Uuid {
    #[expect(clippy::disallowed_methods, reason = "the one place that may")]
    Uuid::now_v7()
}

/// Random bytes from the operating system. Each byte that is drawn is returned once.
pub fn random<const N: usize>() -> [u8; N] {
    thread_local! {
        static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], used: POOL_BYTES }) };
    }
    POOL.with_borrow_mut(Pool::draw)
}

struct Pool {
    bytes: [u8; POOL_BYTES],
    used: usize,
}

impl Pool {
    fn draw<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= POOL_BYTES) };
        if POOL_BYTES - self.used < N {
            getrandom::fill(&mut self.bytes).expect("the operating system has random numbers");
            self.used = 0;
        }
        let drawn = &mut self.bytes[self.used..self.used + N];
        let mut bytes = [0; N];
        bytes.copy_from_slice(drawn);
        drawn.fill(0);
        self.used += N;
        bytes
    }
}

#[cfg(test)]
mod tests;
