//! More work than a host can do: it answers what it can, refuses the rest at once, and stays small and alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::program::{Folder, Program, Said, ask, serve};
use super::*;
use crate::support::length::at_length;

const IN_FLIGHT_MAX: usize = 4;
const WAITING_MAX: usize = 8;
/// What the load may add to the memory of a host.
const GROWTH_BYTES_MAX: u64 = 96 << 20;

async fn host(folder: &Folder, app: &TestApp) -> Program {
    let line = format!(
        "--roles api --requests-in-flight-max {IN_FLIGHT_MAX} --requests-waiting-max {WAITING_MAX}"
    );
    Program::start(folder, serve(folder, app, &line)).await
}

/// A refusal for want of a place.
#[track_caller]
fn assert_refused(said: &Said) {
    assert_eq!(
        (said.status, &*said.code()),
        (503, "overloaded"),
        "{said:?}"
    );
    assert_eq!(said.header("retry-after"), Some("1"), "{said:?}");
    assert_eq!(
        said.header("content-type"),
        Some("application/problem+json"),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_host_that_is_stuck_refuses_what_it_cannot_begin_and_answers_probes() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let host = host(&folder, &app).await;
    let token = app.host().token("author");
    // The tenant is known from here on.
    let path = "/v1/instances?limit=1";
    assert_eq!(host.get(&token, path).await.expect("an answer").status, 200);

    let mut stuck = app.database.admin_pool().begin().await.expect("begun");
    sqlx::raw_sql("lock table instance in access exclusive mode")
        .execute(&mut *stuck)
        .await
        .expect("locked");
    let mut callers = JoinSet::new();
    let asked = 2 * (IN_FLIGHT_MAX + WAITING_MAX);
    for _ in 0..asked {
        let (address, token) = (host.address.clone(), token.clone());
        callers.spawn(async move { ask(&address, &token, "GET", path, "").await });
    }
    // All but those in hand are refused while nothing moves; those that waited once they have waited enough.
    for _ in 0..asked - IN_FLIGHT_MAX {
        let said = callers
            .join_next()
            .await
            .expect("a caller")
            .expect("no panic");
        assert_refused(&said.expect("an answer"));
    }
    for probe in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(
            host.get("", probe).await.expect("an answer").status,
            200,
            "{probe}"
        );
    }
    #[expect(clippy::cast_precision_loss, reason = "a metric is a float")]
    let in_hand = IN_FLIGHT_MAX as f64;
    assert!((host.metric("wrkflw_requests_in_flight").await - in_hand).abs() < 0.5);
    assert!(
        host.metric("wrkflw_requests_refused_total{reason=\"full\"}")
            .await
            >= 1.0
    );

    stuck.rollback().await.expect("released");
    while let Some(said) = callers.join_next().await {
        assert_eq!(said.expect("no panic").expect("an answer").status, 200);
    }
    assert_eq!(host.get(&token, path).await.expect("an answer").status, 200);
}

/// What callers were told.
#[derive(Debug, Default)]
struct Told {
    done: AtomicUsize,
    refused: AtomicUsize,
    /// The longest that a probe took, in milliseconds.
    probe_ms: AtomicUsize,
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story")]
#[expect(clippy::print_stdout, reason = "the figures of a run")]
async fn at_more_than_twice_its_capacity_a_host_does_its_work_and_stays_small() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let host = host(&folder, &app).await;
    let token = app.host().token("author");
    // Flow logic is compiled once, before anything is measured.
    let first = host.post(&token, "/v1/instances", &start_of("first")).await;
    assert_eq!(first.expect("an answer").status, 201);
    let before = host.resident_bytes();
    let (told, over) = (Arc::new(Told::default()), CancellationToken::new());
    let mut callers = JoinSet::new();
    for caller in 0..3 * (IN_FLIGHT_MAX + WAITING_MAX) {
        let (told, over) = (told.clone(), over.clone());
        let (address, token) = (host.address.clone(), token.clone());
        callers.spawn(async move {
            for number in 0.. {
                if over.is_cancelled() {
                    return;
                }
                let body = start_of(&format!("{caller}-{number}")).to_string();
                let said = ask(&address, &token, "POST", "/v1/instances", &body).await;
                let said = said.expect("an answer");
                if said.status == 201 {
                    told.done.fetch_add(1, Ordering::Relaxed);
                } else {
                    assert_refused(&said);
                    told.refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    let (address, probed, ending) = (host.address.clone(), told.clone(), over.clone());
    callers.spawn(async move {
        while !ending.is_cancelled() {
            let begun = Instant::now();
            let said = ask(&address, "", "GET", "/livez", "").await.expect("alive");
            assert_eq!(said.status, 200);
            let took = usize::try_from(begun.elapsed().as_millis()).expect("not long");
            probed.probe_ms.fetch_max(took, Ordering::Relaxed);
        }
    });
    let long = Duration::from_secs(at_length(4, 60));
    tokio::time::sleep(long).await;
    let after = host.resident_bytes();
    over.cancel();
    while let Some(caller) = callers.join_next().await {
        caller.expect("no panic");
    }
    let (done, refused) = (
        told.done.load(Ordering::Relaxed),
        told.refused.load(Ordering::Relaxed),
    );
    println!(
        "overload: {done} done, {refused} refused in {} s; /livez at most {} ms; memory {} -> {} MB",
        long.as_secs(),
        told.probe_ms.load(Ordering::Relaxed),
        before >> 20,
        after >> 20
    );
    assert!(done > 0 && refused > 0, "{told:?}");
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
    let said = host
        .post(&token, "/v1/instances", &start_of("afterwards"))
        .await;
    assert_eq!(said.expect("an answer").status, 201);
}
