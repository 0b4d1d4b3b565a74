//! Bodies that come in time, slowly, or with an error.

use std::convert::Infallible;

use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::*;

type Chunk = Result<Bytes, Infallible>;

fn paced(body_max: Duration) -> (mpsc::Sender<Chunk>, Paced) {
    let (sender, receiver) = mpsc::channel(1);
    let body = Body::from_stream(ReceiverStream::new(receiver));
    (sender, Paced::new(body, Pace { body_max }))
}

async fn pass(sender: &mpsc::Sender<Chunk>, paced: &mut Paced, length: usize) {
    let chunk = Ok(vec![0; length].into());
    sender.send(chunk).await.expect("a reader");
    paced.frame().await.expect("a frame").expect("data");
}

#[tokio::test]
async fn what_comes_earns_more_time() {
    let (sender, mut paced) = paced(Duration::from_secs(20));
    let first = paced.due();
    for length in [16 * 1024, 16 * 1024, 16 * 1024, 100] {
        pass(&sender, &mut paced, length).await;
    }
    assert_eq!(paced.due(), first + Duration::from_secs(3));
    drop(sender);
    assert!(paced.frame().await.is_none());
}

#[tokio::test]
async fn a_body_that_stops_fails_when_its_time_is_over() {
    let (sender, mut paced) = paced(Duration::from_millis(50));
    pass(&sender, &mut paced, 100).await;
    let failed = paced.frame().await.expect("a frame");
    let problem = problem(&failed.expect_err("too slow")).expect("a problem");
    assert_eq!(problem.code, "request_timeout");
}

#[test]
fn another_failure_is_not_taken_for_it() {
    let broken = axum::Error::new(std::io::Error::other("broken off"));
    assert!(problem(&broken).is_none());
}
