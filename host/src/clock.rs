//! The only place that reads the wall clock or draws a random number.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use uuid::Uuid;

/// The time that commands are stamped with, in whole milliseconds.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    #[default]
    System,
    /// Milliseconds of the Unix epoch, moved by hand in tests.
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

/// A new id, later than those before it.
#[expect(clippy::disallowed_methods, reason = "the one place that may")]
pub fn new_id() -> Uuid {
    Uuid::now_v7()
}

/// Random bytes from the operating system.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    bytes
}
