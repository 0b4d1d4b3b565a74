//! Rounds begin at once, grow while others are under way, and lose nobody.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::{Bounds, Combiner, Full, Work};

const LONG: Duration = Duration::from_mins(1);

/// Tells of each round when it begins, and ends it when it may.
struct Rounds {
    begun: mpsc::UnboundedSender<Vec<u32>>,
    may_end: Arc<Semaphore>,
}

struct Item(u32, oneshot::Sender<()>);

impl Work for Rounds {
    type Item = Item;
    const NAME: &'static str = "test";

    /// Of equal tens only one at a time.
    fn fits(chosen: &[Item], item: &Item) -> bool {
        chosen.iter().all(|other| other.0 / 10 != item.0 / 10)
    }

    async fn carry_out(&self, items: Vec<Item>) {
        let numbers = items.iter().map(|item| item.0).collect();
        self.begun.send(numbers).expect("the test listens");
        self.may_end.acquire().await.expect("open").forget();
        for Item(number, reply) in items {
            assert_ne!(number, 666, "a worker that panics");
            let _gone = reply.send(());
        }
    }
}

struct Bench {
    combiner: Combiner<Rounds>,
    begun: mpsc::UnboundedReceiver<Vec<u32>>,
    may_end: Arc<Semaphore>,
}

impl Bench {
    fn new(workers: usize, together: usize, waiting: usize) -> Bench {
        let (sender, begun) = mpsc::unbounded_channel();
        let may_end = Arc::new(Semaphore::new(0));
        let work = Rounds {
            begun: sender,
            may_end: may_end.clone(),
        };
        let bounds = Bounds {
            workers,
            together,
            waiting,
        };
        Bench {
            combiner: Combiner::new(work, bounds, TaskTracker::new()),
            begun,
            may_end,
        }
    }

    fn submit(&self, number: u32) -> Result<oneshot::Receiver<()>, Full> {
        let (reply, told) = oneshot::channel();
        // Left to a task at once.
        self.combiner.enter(Item(number, reply)).map(drop)?;
        Ok(told)
    }

    async fn round(&mut self) -> Vec<u32> {
        let round = tokio::time::timeout(LONG, self.begun.recv()).await;
        round.expect("a round begins").expect("a worker")
    }
}

#[tokio::test]
async fn what_comes_during_a_round_goes_with_the_next() {
    let mut bench = Bench::new(1, 3, 10);
    let first = bench.submit(10).expect("a place");
    assert_eq!(bench.round().await, [10]);
    let rest: Vec<_> = [20, 21, 30, 40, 50, 22]
        .map(|number| bench.submit(number).expect("a place"))
        .into();
    bench.may_end.add_permits(10);
    first.await.expect("told");
    assert_eq!(bench.round().await, [20, 30, 40]);
    assert_eq!(bench.round().await, [21, 50]);
    assert_eq!(bench.round().await, [22]);
    for told in rest {
        told.await.expect("told");
    }
    bench.submit(60).expect("a place").await.expect("told");
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_a_free_worker_takes_at_once() {
    let mut bench = Bench::new(2, 8, 2);
    let mut told = vec![bench.submit(10).expect("a place")];
    assert_eq!(bench.round().await, [10]);
    told.push(bench.submit(20).expect("a place"));
    assert_eq!(bench.round().await, [20]);
    told.push(bench.submit(30).expect("a place"));
    told.push(bench.submit(40).expect("a place"));
    assert_eq!(bench.submit(50).unwrap_err(), Full);
    bench.may_end.add_permits(10);
    for told in told {
        told.await.expect("told");
    }
    bench.submit(50).expect("a place").await.expect("told");
}

#[tokio::test]
async fn a_caller_that_went_away_and_a_worker_that_panicked_cost_the_others_nothing() {
    let mut bench = Bench::new(1, 8, 10);
    drop(bench.submit(10).expect("a place"));
    assert_eq!(bench.round().await, [10]);
    let panicked = bench.submit(666).expect("a place");
    bench.may_end.add_permits(10);
    assert_eq!(bench.round().await, [666]);
    assert!(panicked.await.is_err());
    bench.submit(20).expect("a place").await.expect("told");
    assert_eq!(bench.round().await, [20]);
}

#[tokio::test]
async fn a_caller_works_until_its_own_item_is_done_and_a_task_goes_on() {
    let Bench {
        combiner,
        mut begun,
        may_end,
    } = Bench::new(1, 1, 10);
    let item = |number| {
        let (reply, told) = oneshot::channel();
        (Item(number, reply), told)
    };
    let (first, told) = item(10);
    let mut carried = Box::pin(combiner.carry(first, told));
    tokio::select! {
        biased;
        _ = &mut carried => panic!("the round may not end yet"),
        round = begun.recv() => assert_eq!(round, Some(vec![10])),
    }
    let (second, told) = item(20);
    assert!(combiner.enter(second).expect("a place").work.is_none());
    may_end.add_permits(1);
    carried.await.expect("a place").expect("told");
    // The second item was in line behind the first, whose caller has left.
    assert_eq!(begun.recv().await, Some(vec![20]));
    may_end.add_permits(1);
    told.await.expect("told");
}

#[tokio::test]
async fn a_caller_that_leaves_amid_its_round_leaves_the_round_to_a_task() {
    let Bench {
        combiner,
        mut begun,
        may_end,
    } = Bench::new(1, 1, 10);
    let (reply, told) = oneshot::channel();
    let (ended, hears) = oneshot::channel();
    let mut carried = Box::pin(combiner.carry(Item(10, reply), hears));
    tokio::select! {
        biased;
        _ = &mut carried => panic!("the round may not end yet"),
        round = begun.recv() => assert_eq!(round, Some(vec![10])),
    }
    drop(carried);
    drop::<oneshot::Sender<()>>(ended);
    may_end.add_permits(1);
    told.await.expect("the round went on to its end");
}
