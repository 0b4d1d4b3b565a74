//! Background tasks that repeat a turn until the host stops, and the pauses between turns. Also [`apart`], for work with a waiting caller.
//!
//! A worker that claims rows by lease implements [`LeaseQueue`](crate::lease_worker::LeaseQueue) instead of [`Worker`].

use std::panic::resume_unwind;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Limit of the doublings of a pause, which keeps its computation in range.
const DOUBLINGS_MAX: u32 = 16;

/// Pauses that double from the first to the last.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub first: Duration,
    pub last: Duration,
}

impl Backoff {
    /// Pauses that all have the same length.
    pub const fn constant(pause: Duration) -> Backoff {
        Backoff {
            first: pause,
            last: pause,
        }
    }

    /// The pause that follows this many earlier ones.
    pub fn pause(self, earlier: u32) -> Duration {
        let factor = 1 << earlier.min(DOUBLINGS_MAX);
        self.first.saturating_mul(factor).min(self.last)
    }
}

/// A task that [`run`] repeats.
pub trait Worker: Send {
    type Error: Send;

    /// The pauses after failed turns in a row. A wake-up does not shorten them.
    const BACK_OFF: Backoff;

    /// Returns the pause until the next turn. After a pause of zero, the next turn follows at once.
    fn turn(&mut self) -> impl Future<Output = Result<Duration, Self::Error>> + Send;

    /// Completes when the next turn is due before the pause is over. It is dropped at the end of the pause.
    fn woken(&mut self) -> impl Future<Output = ()> + Send;

    /// Handles a failed turn. The next turn follows after `pause`.
    fn failed(&mut self, error: Self::Error, pause: Duration);
}

/// Repeats the worker's turn until `cancel`. A turn in progress is finished.
pub async fn run<W: Worker>(worker: &mut W, cancel: &CancellationToken) {
    let mut failures: u32 = 0;
    while !cancel.is_cancelled() {
        let pause = match worker.turn().await {
            Ok(pause) => {
                failures = 0;
                pause
            }
            Err(error) => {
                let pause = W::BACK_OFF.pause(failures);
                failures = failures.saturating_add(1);
                worker.failed(error, pause);
                pause
            }
        };
        if pause.is_zero() {
            continue;
        }
        tokio::select! {
            () = cancel.cancelled() => {}
            () = worker.woken(), if failures == 0 => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Runs `task` at once, and then after each `interval` until `cancel`.
pub async fn every<F: Future<Output = ()>>(
    interval: Duration,
    cancel: &CancellationToken,
    task: impl Fn() -> F,
) {
    while !cancel.is_cancelled() {
        task().await;
        tokio::select! {
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(interval) => {}
        }
    }
}

/// Runs the work as a task of its own. Dropping this future drops the work. Use it for one of several concurrent parts of
/// a task: a part that blocks the thread blocks all other parts of the same task.
pub async fn apart<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends before its caller does, which shutdown waits for"
    )]
    let task = AbortOnDropHandle::new(tokio::spawn(work));
    match task.await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends, and the caller with it.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::sync::oneshot;
    use tokio::task::block_in_place;

    use super::*;

    /// Longer than a task waits for a thread on a busy machine.
    const TIMEOUT: Duration = Duration::from_secs(20);

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_apart_goes_on_while_other_work_of_its_caller_blocks() {
        let (go, going) = mpsc::channel();
        let blocks = async move { block_in_place(|| going.recv_timeout(TIMEOUT).is_ok()) };
        let goes_on = async move { go.send(()).is_ok() };
        let both = tokio::join!(apart(blocks), apart(goes_on));
        assert_eq!(both, (true, true));
    }

    #[tokio::test]
    async fn work_apart_is_dropped_with_its_caller() {
        let (held, dropped) = oneshot::channel::<()>();
        let work = apart(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        let mut work = Box::pin(work);
        tokio::select! {
            biased;
            () = &mut work => panic!("it never ends"),
            () = std::future::ready(()) => {}
        }
        drop(work);
        let dropped = tokio::time::timeout(TIMEOUT, dropped).await;
        assert!(dropped.expect("in time").is_err());
    }

    #[tokio::test]
    #[should_panic(expected = "of the work")]
    async fn a_panic_apart_is_one_of_the_caller() {
        apart::<()>(async { panic!("of the work") }).await;
    }

    #[test]
    fn pauses_double_up_to_the_last() {
        let pauses = Backoff {
            first: Duration::from_millis(5),
            last: Duration::from_millis(250),
        };
        let taken: Vec<u128> = (0..8).map(|n| pauses.pause(n).as_millis()).collect();
        assert_eq!(taken, [5, 10, 20, 40, 80, 160, 250, 250]);
        assert_eq!(pauses.pause(u32::MAX), pauses.last);
        let constant = Backoff::constant(Duration::from_secs(1));
        assert_eq!(constant.pause(3), Duration::from_secs(1));
    }

    /// Returns the results of a script, and cancels itself after the last one. It is always woken.
    struct Scripted {
        script: std::vec::IntoIter<Result<Duration, ()>>,
        pauses: Vec<Duration>,
        cancel: CancellationToken,
    }

    impl Worker for Scripted {
        type Error = ();

        const BACK_OFF: Backoff = Backoff {
            first: Duration::from_nanos(1),
            last: Duration::from_nanos(4),
        };

        async fn turn(&mut self) -> Result<Duration, ()> {
            let turn = self.script.next().expect("a turn before the end");
            if self.script.as_slice().is_empty() {
                self.cancel.cancel();
            }
            turn
        }

        async fn woken(&mut self) {}

        fn failed(&mut self, (): (), pause: Duration) {
            self.pauses.push(pause);
        }
    }

    #[tokio::test]
    async fn pauses_grow_while_turns_fail_and_begin_anew_after_a_success() {
        let [long, zero] = [Ok(Duration::MAX), Ok(Duration::ZERO)];
        let failed = Err(());
        let script = [failed, failed, failed, failed, long, failed, zero, failed];
        let cancel = CancellationToken::new();
        let mut worker = Scripted {
            script: Vec::from(script).into_iter(),
            pauses: Vec::new(),
            cancel: cancel.clone(),
        };
        run(&mut worker, &cancel).await;
        let pauses: Vec<_> = worker.pauses.iter().map(Duration::as_nanos).collect();
        assert_eq!(pauses, [1, 2, 4, 4, 1, 1]);
        assert_eq!(worker.script.len(), 0, "every turn ran");
    }
}
