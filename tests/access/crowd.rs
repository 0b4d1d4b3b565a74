//! Far more connections than requests: their cost, that the host closes them in the end, and that others can still connect.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::TIMEOUT;
use super::client::{Reply, request, rest};
use super::host::Host;
use crate::support::app::{SECRET, TestApp};
use crate::support::length::at_length;

/// Concurrent connections.
const AT_ONCE: usize = 50;
/// The most memory that one idle connection may cost the host.
const IDLE_KIB_MAX: u64 = 32;

async fn host(app: &TestApp, settings: &[(&str, &str)]) -> Host {
    let secret = String::from_utf8(SECRET.to_vec()).expect("text");
    let mut all = vec![("jwt_secret", secret.as_str())];
    all.extend(settings);
    Host::start(app.database.url(), &all).await
}

/// Opens this many connections, and sends these bytes on each.
async fn open(host: &Host, count: usize, text: &str) -> Vec<TcpStream> {
    let opening = stream::iter(0..count).map(async |_| {
        let mut stream = TcpStream::connect(host.address)
            .await
            .expect("a connection");
        stream.write_all(text.as_bytes()).await.expect("sent");
        stream
    });
    opening.buffer_unordered(AT_ONCE).collect().await
}

/// Waits until the host has accepted this many connections, besides that of the probe.
async fn taken(host: &Host, count: usize) {
    let count = f64::from(u32::try_from(count + 1).expect("a small number"));
    let taken = async {
        while host.measure("wrkflw_http_connections").await != Some(count) {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, taken)
        .await
        .expect("all are taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_cost_little_and_are_closed() {
    let crowd = at_length(1_000, 10_000);
    let app = TestApp::empty().await;
    let idle_seconds = at_length("10", "60");
    let host = host(&app, &[("idle_max", idle_seconds)]).await;
    let bearer = format!("Bearer {}", app.host().token("admin"));
    let others = async || {
        let asking = (0..10).map(|_| async {
            host.ask("GET /v1/instances", &[("authorization", &bearer)], "")
                .await
        });
        let replies = join_all(asking).await;
        assert!(replies.iter().all(|reply| reply.status == 200));
    };
    others().await;
    let before = host.memory_kib();
    // Half of them have sent one request, the other half nothing.
    let (mut quiet, silent) = (
        open(&host, crowd / 2, &request("GET /livez", &[], "")).await,
        open(&host, crowd / 2, "").await,
    );
    quiet.extend(silent);
    let during = host.memory_kib();
    others().await;
    let bound = before + 16 * 1024 + IDLE_KIB_MAX * u64::try_from(crowd).expect("a small number");
    assert!(
        during < bound,
        "{before} KiB before, {during} KiB with {crowd} idle connections"
    );
    let ends = join_all(quiet.iter_mut().map(rest)).await;
    let answered = ends.iter().filter(|end| {
        Reply::parse(end).is_some_and(|reply| reply.status == 200 && reply.text == "ok\n")
    });
    assert_eq!(answered.count(), crowd / 2);
    assert_eq!(
        ends.iter().filter(|end| end.is_empty()).count(),
        crowd / 2,
        "closed without a response"
    );
    let closed = host
        .measure("wrkflw_http_connections_ended_total{reason=\"idle\"}")
        .await;
    assert_eq!(
        closed,
        Some(f64::from(u32::try_from(crowd).expect("a small number")))
    );
    others().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed_for_new_ones() {
    const PLACES: usize = 40;
    let app = TestApp::empty().await;
    let places = PLACES.to_string();
    let settings = [("connections_max", places.as_str()), ("idle_max", "3600")];
    let host = host(&app, &settings).await;
    let mut idle = open(&host, PLACES - 1, "").await;
    taken(&host, PLACES - 1).await;
    let newest = TcpStream::connect(host.address)
        .await
        .expect("a connection");
    // All connections are in use. A new client is at worst told to retry. It is accepted as soon as one of the others has been
    // idle for long enough.
    let served = async {
        loop {
            let reply = host.ask("GET /livez", &[], "").await;
            match reply.status {
                200 => return,
                503 => assert_eq!(reply.header("retry-after"), Some("1")),
                status => panic!("{status}"),
            }
        }
    };
    tokio::time::timeout(TIMEOUT, served)
        .await
        .expect("a connection becomes free");
    assert!(
        rest(&mut idle[0]).await.is_empty(),
        "an idle connection was closed"
    );
    drop(newest);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_free_connections_refuses_at_once() {
    const PLACES: usize = 10;
    const CROWD: usize = 200;
    let app = TestApp::empty().await;
    let places = PLACES.to_string();
    let settings = [("connections_max", places.as_str()), ("head_max", "3600")];
    let host = host(&app, &settings).await;
    // Each has begun a request, so none of them is idle.
    let mut busy = open(&host, PLACES, "GET /livez HTTP/1.1\r\nhost: localhost\r\n").await;
    let refused = async {
        loop {
            let reply = host.ask("GET /livez", &[], "").await;
            if reply.status == 503 {
                return reply;
            }
        }
    };
    let refused = tokio::time::timeout(TIMEOUT, refused)
        .await
        .expect("a refusal");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // Refusals run concurrently. One after the other, each would wait 50 ms.
    let crowd = join_all((0..CROWD).map(|_| host.ask("GET /livez", &[], "")));
    let crowd = tokio::time::timeout(Duration::from_secs(5), crowd).await;
    let statuses = crowd
        .expect("at once")
        .into_iter()
        .map(|reply| reply.status);
    assert_eq!(statuses.filter(|status| *status == 503).count(), CROWD);
    // The requests that were begun are still answered.
    busy[0]
        .write_all(b"connection: close\r\n\r\n")
        .await
        .expect("sent");
    let reply = Reply::parse(&rest(&mut busy[0]).await).expect("an answer");
    assert_eq!((reply.status, reply.text.as_str()), (200, "ok\n"));
    let refusals = host
        .measure("wrkflw_http_connections_ended_total{reason=\"no_room\"}")
        .await;
    assert!(refusals.is_some_and(|count| count >= 201.0));
}
