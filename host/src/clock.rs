//! The only place that reads the wall clock or draws a random number.

use std::cell::RefCell;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use uuid::{Builder, Uuid};

/// Random bytes that a thread fetches at once: a command draws some dozen times, and each question to the system costs
/// more than the bytes.
const POOL_BYTES: usize = 512;
/// The part of an id that counts within a millisecond, in bits.
const COUNTER_BITS: u32 = 42;

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
pub fn new_id() -> Uuid {
    static LAST: Mutex<Moment> = Mutex::new(Moment {
        milliseconds: 0,
        counter: 0,
    });
    #[expect(clippy::disallowed_methods, reason = "the one place that may")]
    let now = Timestamp::now().as_millisecond().unsigned_abs();
    let (seed, end): ([u8; 8], [u8; 4]) = (random(), random());
    let Moment {
        milliseconds,
        counter,
    } = {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        *last = last.next(now, u64::from_be_bytes(seed));
        *last
    };
    // Four bits and two of these are overwritten by the version and the variant, so the counter leaves them out.
    let [_, _, low @ ..] = (counter & 0x3fff_ffff | (counter >> 30) << 32).to_be_bytes();
    let [b0, b1, b2, b3, b4, b5] = low;
    let [b6, b7, b8, b9] = end;
    let rest = [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9];
    Builder::from_unix_timestamp_millis(milliseconds, &rest).into_uuid()
}

/// When an id was made, and its number within that millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    milliseconds: u64,
    counter: u64,
}

impl Moment {
    /// Later than this one, also when the clock was set back.
    fn next(self, now: u64, seed: u64) -> Moment {
        // The highest bit stays free, so that there is room to count on.
        let fresh = |milliseconds| Moment {
            milliseconds,
            counter: seed >> (u64::BITS - COUNTER_BITS + 1),
        };
        if now > self.milliseconds {
            return fresh(now);
        }
        match self.counter + 1 {
            counter if counter >> COUNTER_BITS == 0 => Moment { counter, ..self },
            _ => fresh(self.milliseconds + 1),
        }
    }
}

/// Random bytes from the operating system. Each is given away once, and none is kept.
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
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_later_than_those_before_them_and_none_comes_twice() {
        let ids: Vec<Uuid> = (0..10_000).map(|_| new_id()).collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| (0..1_000).map(|_| new_id()).collect::<Vec<_>>()))
            .collect();
        let all = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        let mut seen: BTreeSet<Uuid> = ids.into_iter().collect();
        let before = seen.len();
        seen.extend(all);
        assert_eq!(seen.len(), before + 4_000);
    }

    #[test]
    fn a_clock_set_back_and_a_full_counter_make_no_earlier_id() {
        let moment = |milliseconds, counter| Moment {
            milliseconds,
            counter,
        };
        assert_eq!(moment(5, 7).next(6, 0), moment(6, 0));
        assert_eq!(moment(5, 7).next(5, 0), moment(5, 8));
        assert_eq!(moment(5, 7).next(3, 0), moment(5, 8));
        let full = (1 << COUNTER_BITS) - 1;
        assert_eq!(moment(5, full).next(5, 0), moment(6, 0));
        let seeded = moment(5, 7).next(6, u64::MAX);
        assert_eq!(seeded.counter, full >> 1, "there is room to count on");
    }

    #[test]
    fn random_bytes_are_given_away_once() {
        let drawn: BTreeSet<[u8; 16]> = (0..1_000).map(|_| random()).collect();
        assert_eq!(drawn.len(), 1_000);
        let mut pool = Pool {
            bytes: [0; POOL_BYTES],
            used: POOL_BYTES,
        };
        let first: [u8; 16] = pool.draw();
        assert_eq!(pool.used, 16);
        assert_ne!(first, [0; 16]);
        assert_eq!(pool.bytes[..16], [0; 16]);
        pool.used = POOL_BYTES - 15;
        let next: [u8; 16] = pool.draw();
        assert_eq!(pool.used, 16, "{next:?}");
    }
}
