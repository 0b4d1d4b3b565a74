//! Shared by all tests: the service, databases, brokers, guests.

pub(crate) mod app;
pub(crate) mod documented;
pub(crate) mod guests;
pub(crate) mod kafka;
pub(crate) mod length;
pub(crate) mod machine;
pub(crate) mod own_postgres;
pub(crate) mod plans;
pub(crate) mod plug;
pub(crate) mod postgres;
pub(crate) mod program;
pub(crate) mod proxy;
pub(crate) mod raw;
pub(crate) mod receiver;
pub(crate) mod statements;

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

/// The time between two looks at what a test waits for. Looks without a pause take the processor from the tests beside it.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The same for threads that wait. Several of them look at the same time, and each look is a request.
const THREAD_LOOK_EVERY: Duration = Duration::from_millis(25);
/// Longer than anything that a test looks for takes on a busy machine.
pub(crate) const LOOK_MAX: Duration = Duration::from_mins(2);

/// Waits before the next check of a condition.
pub(crate) async fn pause() {
    tokio::time::sleep(LOOK_EVERY).await;
}

/// The same on a thread that may block.
pub(crate) fn pause_thread() {
    thread::sleep(THREAD_LOOK_EVERY);
}

/// Repeats `look` until `is_so` holds for its result, and returns this result. After a time limit, it fails with the last result.
pub(crate) async fn until_so<T: Debug>(
    look: impl AsyncFnMut() -> T,
    is_so: impl Fn(&T) -> bool,
) -> T {
    until("what the test looks for", look, is_so).await
}

/// The same for a condition with a name, which the failure tells.
pub(crate) async fn until<T: Debug>(
    what: &str,
    mut look: impl AsyncFnMut() -> T,
    is_so: impl Fn(&T) -> bool,
) -> T {
    let mut last = None;
    let looking = async {
        loop {
            let seen = look().await;
            if is_so(&seen) {
                return seen;
            }
            last = Some(seen);
            pause().await;
        }
    };
    let found = tokio::time::timeout(LOOK_MAX, looking).await;
    found.unwrap_or_else(|_| panic!("it never came true: {what}; last seen: {last:?}"))
}

/// The same on a thread that may block.
pub(crate) fn until_on_thread<T: Debug>(
    what: &str,
    mut look: impl FnMut() -> T,
    is_so: impl Fn(&T) -> bool,
) -> T {
    let begun = Instant::now();
    loop {
        let seen = look();
        if is_so(&seen) {
            return seen;
        }
        assert!(
            begun.elapsed() < LOOK_MAX,
            "it never came true: {what}; last seen: {seen:?}"
        );
        pause_thread();
    }
}

/// A name that is unique on a shared server.
#[expect(
    clippy::disallowed_methods,
    reason = "the name of something thrown away is no id of the core"
)]
pub(crate) fn unique() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
