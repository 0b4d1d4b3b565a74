//! The worker of a queue in memory.

use std::pin::pin;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use super::*;

/// Longer than anything here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Rows that are numbers. Work on odd ones panics.
struct Rows {
    waiting: Arc<Mutex<Vec<u32>>>,
    started: mpsc::UnboundedSender<u32>,
    ended: mpsc::UnboundedSender<u32>,
    /// Rows run until this is cancelled.
    hold: CancellationToken,
}

impl LeaseQueue for Rows {
    type Place = u32;
    type Error = &'static str;

    const NAME: &'static str = "rows";
    const PLACES: usize = 2;

    async fn claim(&mut self, window: Window) -> Result<Vec<Claim<u32>>, &'static str> {
        let mut waiting = self.waiting.lock().unwrap();
        let count = usize::try_from(window.limit).unwrap().min(waiting.len());
        let claim = |row: u32| {
            let (started, hold) = (self.started.clone(), self.hold.clone());
            Claim::new(row, async move {
                started.send(row).unwrap();
                hold.cancelled().await;
                assert!(row.is_multiple_of(2), "on purpose");
            })
        };
        Ok(waiting.drain(..count).map(claim).collect())
    }

    fn ended(&mut self, row: u32) {
        self.ended.send(row).unwrap();
    }
}

/// What a test sees of the rows, and sets.
struct View {
    waiting: Arc<Mutex<Vec<u32>>>,
    started: mpsc::UnboundedReceiver<u32>,
    ended: mpsc::UnboundedReceiver<u32>,
    hold: CancellationToken,
}

impl Rows {
    fn new(rows: &[u32]) -> (Rows, View) {
        let ((starts, started), (ends, ended)) =
            (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let (waiting, hold) = (
            Arc::new(Mutex::new(rows.to_vec())),
            CancellationToken::new(),
        );
        let rows = Rows {
            waiting: waiting.clone(),
            started: starts,
            ended: ends,
            hold: hold.clone(),
        };
        let view = View {
            waiting,
            started,
            ended,
            hold,
        };
        (rows, view)
    }
}

/// Starts a worker of these rows.
fn start(rows: Rows, cancel: &CancellationToken) -> JoinSet<()> {
    let (_, wake) = watch::channel(());
    let worker = LeaseWorker::new(rows, Clock::System, TIMEOUT, wake);
    let (mut tasks, cancelled) = (JoinSet::new(), cancel.clone());
    tasks.spawn(async move { worker.run(&cancelled).await });
    tasks
}

async fn next(rows: &mut mpsc::UnboundedReceiver<u32>) -> u32 {
    let row = tokio::time::timeout(TIMEOUT, rows.recv()).await;
    row.expect("in time").expect("a worker")
}

#[tokio::test]
async fn places_are_limited_and_a_panic_frees_its_place() {
    let (rows, mut view) = Rows::new(&[1, 3, 4]);
    let _tasks = start(rows, &CancellationToken::new());
    let mut running = [next(&mut view.started).await, next(&mut view.started).await];
    running.sort_unstable();
    assert_eq!(running, [1, 3]);
    assert_eq!(*view.waiting.lock().unwrap(), [4], "no place is free");
    view.hold.cancel();
    let mut ended = [next(&mut view.ended).await, next(&mut view.ended).await];
    ended.sort_unstable();
    assert_eq!(ended, [1, 3]);
    assert_eq!(next(&mut view.started).await, 4);
}

#[tokio::test]
async fn an_announcement_wakes_an_idle_worker_once() {
    let wake = watch::Sender::new(());
    let queue = Rows::new(&[]).0;
    let mut worker = LeaseWorker::new(queue, Clock::System, TIMEOUT, wake.subscribe());
    assert_eq!(worker.turn().await, Ok(POLL_MAX));
    assert!(futures_util::poll!(pin!(worker.woken())).is_pending());
    wake.send_replace(());
    assert!(futures_util::poll!(pin!(worker.woken())).is_ready());
    wake.send_replace(());
    worker
        .turn()
        .await
        .expect("a turn that sees what was announced before it");
    assert!(futures_util::poll!(pin!(worker.woken())).is_pending());
    drop(wake);
    assert!(futures_util::poll!(pin!(worker.woken())).is_pending());
}

#[tokio::test]
async fn a_stopping_worker_finishes_what_is_in_flight_and_claims_no_more() {
    let (rows, mut view) = Rows::new(&[2]);
    let cancel = CancellationToken::new();
    let mut tasks = start(rows, &cancel);
    assert_eq!(next(&mut view.started).await, 2);
    cancel.cancel();
    view.waiting.lock().unwrap().push(4);
    {
        let stopped = tasks.join_next();
        tokio::pin!(stopped);
        assert!(futures_util::poll!(&mut stopped).is_pending());
    }
    view.hold.cancel();
    tasks.join_all().await;
    assert_eq!(*view.waiting.lock().unwrap(), [4]);
}

#[test]
fn a_lease_is_renewed_after_a_quarter_of_its_length() {
    let now = Arc::new(AtomicI64::new(0));
    let at = |seconds: i64| now.store(seconds * 1000, std::sync::atomic::Ordering::SeqCst);
    let mut lease = Lease::new(Clock::Manual(now.clone()), Duration::from_mins(1));
    at(14);
    assert!(!lease.is_renewal_due());
    at(15);
    assert!(lease.is_renewal_due());
    assert_eq!(lease.renew(), Timestamp::from_second(75).unwrap());
    assert!(!lease.is_renewal_due());
    at(0);
    assert!(lease.is_renewal_due(), "the clock was set back");
}

#[tokio::test]
async fn work_that_panics_or_hangs_has_failed() {
    let panics = async { panic!("on purpose") };
    let failed = guarded::<(), &str>(Duration::from_mins(1), panics).await;
    assert_eq!(failed, Err("the host panicked over it".to_owned()));
    let hangs = std::future::pending();
    let failed = guarded::<(), &str>(Duration::ZERO, hangs).await;
    assert_eq!(failed, Err("it was not done after 0 s".to_owned()));
}
