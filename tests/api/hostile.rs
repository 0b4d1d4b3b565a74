//! Flow logic that misbehaves is named, writes nothing, and holds up nobody else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::*;

const BUDGET: &str = "logic_budget_exceeded";
const FAULT: &str = "logic_fault";
const OUTPUT: &str = "logic_output_too_large";

/// The problem says whose logic failed, and where.
#[track_caller]
fn names_the_culprit(answer: Answer, code: &str, function: &str, digest: &str) {
    let problem = answer.problem(502, code);
    let detail = problem["detail"].as_str().expect("a detail");
    for named in ["hostile version 1", digest, function] {
        assert!(detail.contains(named), "{named} is not named in {detail}");
    }
}

async fn digest(app: &TestApp) -> String {
    let shown = app
        .get("author", "/v1/definitions/hostile/versions/1")
        .await;
    shown.expect(200)["digest"]
        .as_str()
        .expect("a digest")
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_logic_fails_is_not_made() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let body = hostile_start("t-1", json!({}));
    let instance = app.post("author", "/v1/instances", body).await.expect(201);
    let decide = format!(
        "/v1/tasks/{}/decide",
        claimed(&app, "reviewer", &instance).await
    );
    let (digest, before) = (digest(&app).await, rows(&app).await);
    for (behaviour, function, code) in [
        ("spin", "transition", BUDGET),
        ("spin", "guard", BUDGET),
        ("crawl", "transition", BUDGET),
        ("grow", "transition", BUDGET),
        ("allocate", "transition", BUDGET),
        ("allocate", "guard", BUDGET),
        ("recurse", "transition", FAULT),
        ("trap", "guard", FAULT),
        ("trap", "transition", FAULT),
        ("huge", "transition", OUTPUT),
        ("large", "transition", OUTPUT),
        ("undeclared_target", "transition", FAULT),
        ("unknown_attribute", "transition", FAULT),
        ("break_schema", "transition", FAULT),
        ("broken_json", "transition", FAULT),
        ("bad_decimal", "transition", FAULT),
        ("not_finite", "transition", FAULT),
        ("bad_timestamp", "transition", FAULT),
        ("nul", "transition", FAULT),
    ] {
        let input = json!({ "behaviour": behaviour, "function": function });
        let body = json!({ "outcome": "GO", "input": input });
        let answer = app.post("reviewer", &decide, body).await;
        assert_eq!(answer.status, 502, "{behaviour}: {}", answer.text);
        names_the_culprit(answer, code, function, &digest);
        assert_eq!(rows(&app).await, before, "{behaviour}");
    }
    // The same task is decided as soon as its logic behaves.
    let body = json!({ "outcome": "GO" });
    let done = app.post("reviewer", &decide, body).await.expect(200);
    assert_eq!(
        (&done["instance"]["outcome"], &done["instance"]["revision"]),
        (&json!("DONE"), &json!(3))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_logic_fails_leaves_nothing() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let (digest, before) = (digest(&app).await, rows(&app).await);
    for (behaviour, function, code) in [
        ("spin", "guard", BUDGET),
        ("spin", "assign", BUDGET),
        ("trap", "assign", FAULT),
        ("recurse", "assign", FAULT),
        ("allocate", "assign", BUDGET),
    ] {
        let body = hostile_start(
            "t-1",
            json!({ "behaviour": behaviour, "function": function }),
        );
        let key = ("idempotency-key", behaviour);
        let answer = app
            .host()
            .send("author", "POST", "/v1/instances", &[key], Some(body))
            .await;
        names_the_culprit(answer, code, function, &digest);
        assert_eq!(rows(&app).await, before, "{behaviour} in {function}");
    }
}

/// Claims and approves document after document; how long the slowest decision took.
async fn approve(app: &TestApp, name: &str, count: usize) -> Duration {
    let mut slowest = Duration::ZERO;
    for round in 0..count {
        let instance = app.started(&format!("{name}-{round}")).await;
        let decide = format!(
            "/v1/tasks/{}/decide",
            claimed(app, "reviewer", &instance).await
        );
        let begun = Instant::now();
        let body = json!({ "outcome": "APPROVE" });
        let decided = app.post("reviewer", &decide, body).await.expect(200);
        slowest = slowest.max(begun.elapsed());
        assert_eq!(decided["instance"]["states"][0]["name"], "FinalReview");
    }
    slowest
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_loops_of_one_flow_hold_up_no_other() {
    const ROUNDS: usize = 10;
    const LOOPS: usize = 12;
    let app = TestApp::start().await;
    with_hostile(&app).await;
    let alone = approve(&app, "alone", ROUNDS).await;

    let done = AtomicBool::new(false);
    let endless = async |number: usize| {
        let data = json!({ "behaviour": "spin", "function": "guard" });
        let body = hostile_start(&format!("t-{number}"), data);
        let mut failed = 0;
        while !done.load(Ordering::Relaxed) {
            let answer = app.post("author", "/v1/instances", body.clone()).await;
            // Its own callers may be told to come back; nobody gets an instance.
            assert!(matches!(answer.status, 502 | 503), "{}", answer.text);
            failed += usize::from(answer.status == 502);
        }
        failed
    };
    let approving = async {
        let slowest = approve(&app, "beside", ROUNDS).await;
        done.store(true, Ordering::Relaxed);
        slowest
    };
    let (beside, failed) = tokio::join!(approving, join_all((0..LOOPS).map(endless)));
    let failed: usize = failed.iter().sum();
    assert!(failed >= ROUNDS / 2, "the loops hardly ran: {failed}");
    // With two cores taken, a decision gets slower by what one fair turn costs, not by the queue of loops.
    let bound = alone * 20 + Duration::from_secs(2);
    assert!(
        beside < bound,
        "alone {alone:?}, beside endless loops {beside:?}"
    );
}
