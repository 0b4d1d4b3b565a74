//! Batches begin at once, take the items that were queued while others ran, and answer every caller.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::{Batch, Batcher, Bounds, Full};

const TIMEOUT: Duration = Duration::from_mins(1);

/// Reports the beginning of each batch, and ends it when a test permits that.
struct Batches {
    begun: mpsc::UnboundedSender<Vec<u32>>,
    may_end: Arc<Semaphore>,
}

struct Item(u32, oneshot::Sender<()>);

impl Batch for Batches {
    type Item = Item;
    const NAME: &'static str = "test";

    /// A batch has at most one item of each group of ten numbers.
    fn fits(chosen: &[Item], item: &Item) -> bool {
        chosen.iter().all(|other| other.0 / 10 != item.0 / 10)
    }

    async fn run(&self, items: Vec<Item>) {
        let numbers = items.iter().map(|item| item.0).collect();
        self.begun.send(numbers).expect("the test receives");
        self.may_end.acquire().await.expect("open").forget();
        for Item(number, reply) in items {
            assert_ne!(number, 666, "a worker that panics");
            let _gone = reply.send(());
        }
    }
}

struct Fixture {
    batcher: Batcher<Batches>,
    begun: mpsc::UnboundedReceiver<Vec<u32>>,
    may_end: Arc<Semaphore>,
}

impl Fixture {
    fn new(workers: usize, size_max: usize, waiting: usize) -> Fixture {
        let (sender, begun) = mpsc::unbounded_channel();
        let may_end = Arc::new(Semaphore::new(0));
        let work = Batches {
            begun: sender,
            may_end: may_end.clone(),
        };
        let bounds = Bounds {
            workers,
            size_max,
            waiting_max: waiting,
        };
        Fixture {
            batcher: Batcher::new(work, bounds, TaskTracker::new()),
            begun,
            may_end,
        }
    }

    fn submit(&self, number: u32) -> Result<oneshot::Receiver<()>, Full> {
        let (reply, answered) = oneshot::channel();
        // The worker becomes a task at once.
        self.batcher.enqueue(Item(number, reply)).map(drop)?;
        Ok(answered)
    }

    async fn batch(&mut self) -> Vec<u32> {
        let batch = tokio::time::timeout(TIMEOUT, self.begun.recv()).await;
        batch.expect("a batch begins").expect("a worker")
    }
}

#[tokio::test]
async fn items_queued_during_a_batch_form_the_next() {
    let mut fixture = Fixture::new(1, 3, 10);
    let first = fixture.submit(10).expect("a place");
    assert_eq!(fixture.batch().await, [10]);
    let rest: Vec<_> = [20, 21, 30, 40, 50, 22]
        .map(|number| fixture.submit(number).expect("a place"))
        .into();
    fixture.may_end.add_permits(10);
    first.await.expect("answered");
    assert_eq!(fixture.batch().await, [20, 30, 40]);
    assert_eq!(fixture.batch().await, [21, 50]);
    assert_eq!(fixture.batch().await, [22]);
    for answered in rest {
        answered.await.expect("answered");
    }
    fixture
        .submit(60)
        .expect("a place")
        .await
        .expect("answered");
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_a_free_worker_begins_at_once() {
    let mut fixture = Fixture::new(2, 8, 2);
    let mut answered = vec![fixture.submit(10).expect("a place")];
    assert_eq!(fixture.batch().await, [10]);
    answered.push(fixture.submit(20).expect("a place"));
    assert_eq!(fixture.batch().await, [20]);
    answered.push(fixture.submit(30).expect("a place"));
    answered.push(fixture.submit(40).expect("a place"));
    assert_eq!(fixture.submit(50).unwrap_err(), Full);
    fixture.may_end.add_permits(10);
    for answered in answered {
        answered.await.expect("answered");
    }
    fixture
        .submit(50)
        .expect("a place")
        .await
        .expect("answered");
}

#[tokio::test]
async fn others_run_after_a_caller_went_away_or_a_worker_panicked() {
    let mut fixture = Fixture::new(1, 8, 10);
    drop(fixture.submit(10).expect("a place"));
    assert_eq!(fixture.batch().await, [10]);
    let panicked = fixture.submit(666).expect("a place");
    fixture.may_end.add_permits(10);
    assert_eq!(fixture.batch().await, [666]);
    assert!(panicked.await.is_err());
    fixture
        .submit(20)
        .expect("a place")
        .await
        .expect("answered");
    assert_eq!(fixture.batch().await, [20]);
}

#[tokio::test]
async fn a_caller_runs_batches_until_its_item_is_done_then_a_task_does() {
    let Fixture {
        batcher,
        mut begun,
        may_end,
    } = Fixture::new(1, 1, 10);
    let item = |number| {
        let (reply, answered) = oneshot::channel();
        (Item(number, reply), answered)
    };
    let (first, answered) = item(10);
    let mut running = Box::pin(batcher.run(first, answered));
    tokio::select! {
        biased;
        _ = &mut running => panic!("the batch may not end yet"),
        batch = begun.recv() => assert_eq!(batch, Some(vec![10])),
    }
    let (second, answered) = item(20);
    assert!(batcher.enqueue(second).expect("a place").work.is_none());
    may_end.add_permits(1);
    running.await.expect("a place").expect("answered");
    // The second item was queued behind the first, whose caller has gone.
    assert_eq!(begun.recv().await, Some(vec![20]));
    may_end.add_permits(1);
    answered.await.expect("answered");
}

#[tokio::test]
async fn a_batch_goes_on_as_a_task_when_its_caller_leaves() {
    let Fixture {
        batcher,
        mut begun,
        may_end,
    } = Fixture::new(1, 1, 10);
    let (reply, answered) = oneshot::channel();
    let (ended, done) = oneshot::channel();
    let mut running = Box::pin(batcher.run(Item(10, reply), done));
    tokio::select! {
        biased;
        _ = &mut running => panic!("the batch may not end yet"),
        batch = begun.recv() => assert_eq!(batch, Some(vec![10])),
    }
    drop(running);
    drop::<oneshot::Sender<()>>(ended);
    may_end.add_permits(1);
    answered.await.expect("the batch ended");
}
