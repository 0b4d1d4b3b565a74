//! Which requests run, wait and are refused, and which of them write.

use super::*;

#[tokio::test]
async fn some_work_some_wait_and_the_rest_is_refused_at_once() {
    let admission = Admission::new(2, 1);
    let first = admission.place().await.expect("a place");
    let _second = admission.place().await.expect("a place");
    let (third, fourth, ()) = tokio::join!(admission.place(), admission.place(), async {
        tokio::task::yield_now().await;
        drop(first);
    });
    assert!(third.is_ok(), "it waited for the place that came free");
    assert_eq!(fourth.err(), Some(Refused::Full));
}

#[tokio::test]
async fn a_shutdown_waits_for_pages_too() {
    let admission = Admission::new(1, 1);
    let page = admission.beside().0.requests.token();
    let mut drained = std::pin::pin!(admission.drained());
    assert!(futures_util::poll!(drained.as_mut()).is_pending());
    drop(page);
    drained.await;
}

#[tokio::test]
async fn four_requests_may_wait_for_each_place() {
    let admission = Admission::sized(2);
    let held = async { tokio::join!(admission.place(), admission.place()) }.await;
    let waiting: Vec<_> = (0..9).map(|_| admission.place()).collect();
    let ended = futures_util::future::join_all(waiting).await;
    let count = |why| {
        ended
            .iter()
            .filter(|end| end.as_ref().err() == Some(&why))
            .count()
    };
    assert_eq!((count(Refused::Waited), count(Refused::Full)), (8, 1));
    drop(held);
}

#[test]
fn what_only_reads_or_is_tried_shows_no_write() {
    for (method, target, expected) in [
        ("GET", "/v1/instances", false),
        ("POST", "/v1/names", false),
        ("POST", "/v1/instances/search?q=plan", false),
        ("POST", "/v1/instances?dryRun=true", false),
        (
            "PUT",
            "/v1/people/ann/manager?force=true&dryRun=true",
            false,
        ),
        ("POST", "/v1/instances?dryRun=false", true),
        ("POST", "/v1/instances", true),
        ("DELETE", "/v1/people/ann/manager", true),
    ] {
        let request = Request::builder().method(method).uri(target);
        let request = request.body(axum::body::Body::empty()).expect("a request");
        assert_eq!(may_write(&request), expected, "{method} {target}");
    }
}

#[tokio::test]
async fn nobody_waits_for_ever() {
    let admission = Admission::new(1, 1);
    let _only = admission.place().await.expect("a place");
    let begun = Instant::now();
    assert_eq!(admission.place().await.err(), Some(Refused::Waited));
    assert!(begun.elapsed() >= WAIT_MAX, "{:?}", begun.elapsed());
    // Its place among those who wait is free again.
    assert_eq!(admission.place().await.err(), Some(Refused::Waited));
}
