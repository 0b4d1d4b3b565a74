//! Places for long work: few, fair by tenant, given back.

use std::sync::mpsc;

use tokio::task::JoinSet;

use super::*;

fn tenant(number: i32) -> TenantId {
    TenantId(number)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_tenant_has_one_place_and_another_is_begun_at_once() {
    let offload = Offload::new(2);
    let (go, going) = mpsc::channel::<()>();
    let first = offload.run(tenant(1), move || going.recv().is_ok());
    let second = offload.run(tenant(1), || true);
    tokio::pin!(first, second);
    tokio::select! {
        biased;
        _ = &mut first => panic!("it waits to be let go"),
        _ = &mut second => panic!("its tenant has its place"),
        other = offload.run(tenant(2), || 7) => assert_eq!(other.expect("a place"), 7),
    }
    go.send(()).expect("it waits");
    assert!(first.await.expect("a place"));
    assert!(second.await.expect("the place of the first"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_thread_goes_on_with_others_while_work_borrows() {
    let offload = Offload::new(2);
    let (go, going) = mpsc::channel();
    let words = vec!["borrowed".to_owned()];
    let long = Duration::from_secs(1);
    // The only thread of this runtime is to run this while the work below has not ended.
    let mut other = JoinSet::new();
    other.spawn(async move { go.send(()).is_ok() });
    let borrowed = &words;
    let work = move || (going.recv().is_ok(), borrowed.len());
    let done = offload.in_place(tenant(1), long, work).await;
    assert_eq!(done.expect("a place"), (true, 1));
    let other = other.join_next().await.expect("it was begun");
    assert!(other.expect("it ran"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_has_an_end_and_a_panic_gives_its_place_back() {
    let offload = Offload::new(1);
    let (go, going) = mpsc::channel::<()>();
    let mut held = JoinSet::new();
    held.spawn({
        let offload = offload.clone();
        async move { offload.run(tenant(1), move || going.recv().is_ok()).await }
    });
    while offload.0.places.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let mut waiting: JoinSet<Result<(), Error>> = JoinSet::new();
    for _ in 0..WAITING_MAX {
        let offload = offload.clone();
        waiting.spawn(async move { offload.run(tenant(1), || panic!("as it happens")).await });
    }
    let line = offload.line(tenant(1));
    while line.waiting.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
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
