//! More load than a host can serve: it serves what it can, refuses the rest at once, and its memory and probes are fine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::program::{Folder, Program, Response, ask, serve};
use super::*;
use crate::support::length::at_length;

const IN_FLIGHT_MAX: usize = 4;
/// Requests that may wait: four for each in flight.
const WAITING_MAX: usize = 4 * IN_FLIGHT_MAX;
/// Limit of the memory that the load may add to a host.
const GROWTH_BYTES_MAX: u64 = 96 << 20;
/// Limit of the time until a refusal, on a busy machine. A request waits one second for a place. With a place it may take ten.
const REFUSED_MAX: Duration = Duration::from_secs(5);

async fn host(folder: &Folder, app: &TestApp) -> Program {
    let line = format!("--roles api --requests-in-flight-max {IN_FLIGHT_MAX}");
    Program::start(folder, serve(folder, app, &line)).await
}

/// Checks a refusal because of too many requests, which came after this time.
#[track_caller]
fn assert_refused(response: &Response, took: Duration) {
    assert_eq!(
        (response.status, &*response.code()),
        (503, "overloaded"),
        "{response:?}"
    );
    assert_eq!(response.header("retry-after"), Some("1"), "{response:?}");
    assert_eq!(
        response.header("content-type"),
        Some("application/problem+json"),
        "{response:?}"
    );
    assert!(took < REFUSED_MAX, "refused after {took:?}: {response:?}");
}

#[tokio::test]
async fn a_host_that_is_stuck_refuses_what_it_cannot_begin_and_answers_probes() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let host = host(&folder, &app).await;
    let token = app.host().token("author");
    // From here on the host has the tenant cached.
    let path = "/v1/instances?limit=1";
    assert_eq!(host.get(&token, path).await.expect("an answer").status, 200);

    let mut stuck = app.database.admin_pool().begin().await.expect("begun");
    sqlx::raw_sql("lock table instance in access exclusive mode")
        .execute(&mut *stuck)
        .await
        .expect("locked");
    let mut callers = JoinSet::new();
    let count = 2 * (IN_FLIGHT_MAX + WAITING_MAX);
    for _ in 0..count {
        let (address, token) = (host.address.clone(), token.clone());
        callers.spawn(async move {
            let begun = Instant::now();
            let response = ask(&address, &token, "GET", path, "").await;
            (response.expect("an answer"), begun.elapsed())
        });
    }
    // All requests beyond those in flight are refused while the database is blocked: most at once, the waiting ones after their
    // wait.
    for _ in 0..count - IN_FLIGHT_MAX {
        let answered = callers.join_next().await.expect("a caller");
        let (response, took) = answered.expect("no panic");
        assert_refused(&response, took);
    }
    for probe in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(
            host.get("", probe).await.expect("an answer").status,
            200,
            "{probe}"
        );
    }
    #[expect(clippy::cast_precision_loss, reason = "a metric is a float")]
    let in_flight = IN_FLIGHT_MAX as f64;
    assert!((host.metric("wrkflw_requests_in_flight").await - in_flight).abs() < 0.5);
    assert!(
        host.metric("wrkflw_requests_refused_total{reason=\"full\"}")
            .await
            >= 1.0
    );

    stuck.rollback().await.expect("released");
    while let Some(answered) = callers.join_next().await {
        let (response, _) = answered.expect("no panic");
        assert_eq!(response.status, 200);
    }
    assert_eq!(host.get(&token, path).await.expect("an answer").status, 200);
}

/// Counts of the answers.
#[derive(Debug, Default)]
struct Counts {
    done: AtomicUsize,
    refused: AtomicUsize,
    /// The longest time of a refusal and of a probe, in milliseconds.
    refusal_ms: AtomicUsize,
    probe_ms: AtomicUsize,
}

fn millis(took: Duration) -> usize {
    usize::try_from(took.as_millis()).expect("not long")
}

/// Requests `/livez` again and again.
async fn probe(address: &str, counts: &Counts, over: &CancellationToken) {
    while !over.is_cancelled() {
        let begun = Instant::now();
        let response = ask(address, "", "GET", "/livez", "").await.expect("alive");
        assert_eq!(response.status, 200);
        let took = millis(begun.elapsed());
        counts.probe_ms.fetch_max(took, Ordering::Relaxed);
    }
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "the figures of a run")]
async fn at_more_than_twice_its_capacity_a_host_does_its_work_and_stays_small() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let host = host(&folder, &app).await;
    let token = app.host().token("author");
    // Flow logic is compiled before anything is measured.
    host.started(&token, &start_of("first")).await;
    let before = host.resident_bytes();
    let (counts, over) = (Arc::new(Counts::default()), CancellationToken::new());
    let mut callers = JoinSet::new();
    for caller in 0..3 * (IN_FLIGHT_MAX + WAITING_MAX) {
        let (counts, over) = (counts.clone(), over.clone());
        let (address, token) = (host.address.clone(), token.clone());
        callers.spawn(async move {
            for number in 0.. {
                if over.is_cancelled() {
                    return;
                }
                let body = start_of(&format!("{caller}-{number}")).to_string();
                let begun = Instant::now();
                let response = ask(&address, &token, "POST", "/v1/instances", &body).await;
                let (response, took) = (response.expect("an answer"), begun.elapsed());
                if response.status == 201 {
                    counts.done.fetch_add(1, Ordering::Relaxed);
                } else {
                    assert_refused(&response, took);
                    counts.refused.fetch_add(1, Ordering::Relaxed);
                    counts.refusal_ms.fetch_max(millis(took), Ordering::Relaxed);
                }
            }
        });
    }
    let (address, probed, ending) = (host.address.clone(), counts.clone(), over.clone());
    callers.spawn(async move { probe(&address, &probed, &ending).await });
    let long = Duration::from_secs(at_length(4, 60));
    // This is the duration of the overload, not a wait for a condition.
    tokio::time::sleep(long).await;
    let after = host.resident_bytes();
    over.cancel();
    while let Some(caller) = callers.join_next().await {
        caller.expect("no panic");
    }
    let (done, refused) = (
        counts.done.load(Ordering::Relaxed),
        counts.refused.load(Ordering::Relaxed),
    );
    println!(
        "overload: {done} done, {refused} refused in {} s, each after at most {} ms; /livez at most {} ms; memory {} -> {} MB",
        long.as_secs(),
        counts.refusal_ms.load(Ordering::Relaxed),
        counts.probe_ms.load(Ordering::Relaxed),
        before >> 20,
        after >> 20
    );
    assert!(done > 0 && refused > 0, "{counts:?}");
    assert!(after < before + GROWTH_BYTES_MAX, "{before} -> {after}");
    let stored: i64 = sqlx::query_scalar("select count(*) from instance")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(
        usize::try_from(stored),
        Ok(done + 1),
        "what was refused was not begun"
    );
    let response = host
        .post(&token, "/v1/instances", &start_of("afterwards"))
        .await;
    assert_eq!(response.expect("an answer").status, 201);
}
