//! Places for long work: few, fair by tenant, given back.

use std::sync::mpsc;

use tokio::task::JoinSet;

use super::*;

/// Longer than another task waits for a thread on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

fn tenant(number: i32) -> TenantId {
    TenantId(number)
}

async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(TIMEOUT, waiting).await;
    waited.expect("in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_tenant_has_one_place_and_another_is_begun_at_once() {
    let offload = Offload::new(2);
    let (go, going) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    let first = offload.run(tenant(1), move || going.recv_timeout(TIMEOUT).is_ok());
    let second = offload.run(tenant(1), move || begins.send(()).is_ok());
    tokio::pin!(first, second);
    // Beside the first, there is one place: whoever has it is done before the next is begun.
    tokio::select! {
        biased;
        _ = &mut first => panic!("it waits to be let go"),
        _ = &mut second => panic!("its tenant has its place"),
        other = offload.run(tenant(2), || 7) => assert_eq!(other.expect("a place"), 7),
    }
    assert!(begun.try_recv().is_err(), "its tenant has its place");
    go.send(()).expect("it waits");
    assert!(first.await.expect("a place"));
    assert!(second.await.expect("the place of the first"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_thread_goes_on_with_others_while_work_borrows() {
    let long = Duration::from_secs(1);
    let (go, going) = mpsc::channel();
    let (held, holds) = oneshot::channel();
    let mut spawned = JoinSet::new();
    // This takes the only thread that tasks have, and keeps it until the other task has run.
    spawned.spawn(async move {
        let words = vec!["borrowed".to_owned()];
        let borrowed = &words;
        let work = move || {
            held.send(()).expect("somebody waits for it");
            (going.recv_timeout(TIMEOUT).is_ok(), borrowed.len())
        };
        let done = Offload::new(2).in_place(tenant(1), long, work).await;
        assert_eq!(done.expect("a place"), (true, 1), "the other task ran");
    });
    holds.await.expect("it was begun");
    spawned.spawn(async move { go.send(()).expect("it goes on") });
    while let Some(ended) = spawned.join_next().await {
        ended.expect("no panic");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_has_an_end_and_a_panic_gives_its_place_back() {
    let offload = Offload::new(1);
    let (go, going) = mpsc::channel::<()>();
    let mut held = JoinSet::new();
    held.spawn({
        let offload = offload.clone();
        async move { offload.run(tenant(1), move || going.recv().is_ok()).await }
    });
    let place = &offload.0.places;
    until(|| place.available_permits() == 0).await;
    let mut waiting: JoinSet<Result<(), Error>> = JoinSet::new();
    for _ in 0..WAITING_MAX {
        let offload = offload.clone();
        waiting.spawn(async move { offload.run(tenant(1), || panic!("as it happens")).await });
    }
    let queue = offload.queue(tenant(1));
    until(|| queue.waiting.available_permits() == 0).await;
    let more = offload.run(tenant(1), || ()).await;
    assert!(matches!(more, Err(Error::Busy)), "{more:?}");
    go.send(()).expect("it waits");
    let held = held.join_next().await.expect("it was begun");
    assert!(held.expect("no panic").expect("a place"));
    while let Some(ended) = waiting.join_next().await {
        assert!(ended.expect_err("it panicked").is_panic());
    }
    assert_eq!(offload.0.places.available_permits(), 1);
}
