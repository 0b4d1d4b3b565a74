//! Which commands wait for which, how long, and the response when it is unknown whether the commit took place.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::wire::Wire;
use crate::support::app::{Host, TestApp, task_of};
use crate::support::plug::{Gate, Plug, within};

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);
/// Far longer than a statement waits for a row lock, and short enough for a test.
const AT_MOST: Duration = Duration::from_secs(15);

/// The number of sessions that wait for a lock.
const WAITING: &str = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";

async fn count(app: &TestApp, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count")
}

fn start_body(entity: &str) -> Value {
    json!({ "definitionKey": "document-approval", "entityType": "document", "entityId": entity, "data": { "title": "A plan" } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_locked_for_long_delays_a_caller_until_the_timeout() {
    let app = TestApp::start().await;
    let host = app.beside_at(app.database.url(), SHORT).await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&app.started("doc-1").await));
    let mut holder = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a transaction");
    sqlx::query("select from instance for update")
        .execute(&mut *holder)
        .await
        .expect("a lock");

    let begun = Instant::now();
    // One waits for the row, the other one is queued behind the first.
    let post = || host.send("reviewer", "POST", &claim, &[], Some(json!({})));
    for answer in <[_; 2]>::from(tokio::join!(post(), post())) {
        assert_eq!(answer.headers["retry-after"], "1");
        answer.problem(503, "busy");
    }
    assert!(begun.elapsed() < AT_MOST, "{:?}", begun.elapsed());
    holder.rollback().await.expect("a rollback");
    assert_eq!(
        count(
            &app,
            "select count(*) from audit_entry where type = 'TASK_CLAIMED'"
        )
        .await,
        0
    );
    post().await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_locked_for_a_while_fails_no_command() {
    let app = TestApp::start().await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&app.started("doc-1").await));
    let mut holder = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a transaction");
    sqlx::query("select from instance for update")
        .execute(&mut *holder)
        .await
        .expect("a lock");
    let release = async {
        while count(&app, WAITING).await == 0 {
            crate::support::pause().await;
        }
        holder.rollback().await.expect("a rollback");
    };
    let (answer, ()) = tokio::join!(app.post("reviewer", &claim, json!({})), release);
    answer.expect(200);
}

/// Sends one request whose commit's answer is lost.
async fn lose(
    wire: &Wire,
    host: &Host,
    needle: &str,
    outage: usize,
    user: &str,
    path: &str,
    body: Value,
) -> Value {
    wire.lose_the_answer_to(needle, outage);
    let answer = host.send(user, "POST", path, &[], Some(body)).await;
    assert!(wire.is_spent(), "the wire was not cut: {answer:?}");
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
    answer.body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_not_taken_for_a_conflict() {
    let app = TestApp::start().await;
    let wire = Wire::to(app.database.url()).await;
    let host = app.beside_at(wire.url(), LONG).await;
    // Whether or not the lookup right after the cut succeeds.
    for outage in [0, 1, 3] {
        let entity = format!("doc-{outage}");
        let started = lose(
            &wire,
            &host,
            "FLOW_STARTED",
            outage,
            "author",
            "/v1/instances",
            start_body(&entity),
        )
        .await;
        let task = task_of(&started["instance"]);
        let claim = format!("/v1/tasks/{task}/claim");
        let claimed = lose(
            &wire,
            &host,
            "TASK_CLAIMED",
            outage,
            "reviewer",
            &claim,
            json!({}),
        )
        .await;
        assert_eq!(claimed["task"]["owner"], "reviewer");
        let decide = format!("/v1/tasks/{task}/decide");
        let decision = json!({ "outcome": "APPROVE" });
        let decided = lose(
            &wire,
            &host,
            "DECISION_RECORDED",
            outage,
            "reviewer",
            &decide,
            decision,
        )
        .await;
        // The reply is that of the committed attempt, not of another one.
        let id = started["instance"]["id"].as_str().expect("an id");
        let shown = app
            .get("reviewer", &format!("/v1/instances/{id}"))
            .await
            .expect(200);
        assert_eq!(
            decided["instance"]["states"][0]["id"],
            shown["states"][0]["id"]
        );
        assert_eq!(
            (&shown["revision"], &decided["instance"]["revision"]),
            (&json!(3), &json!(3))
        );
    }
    for kind in ["FLOW_STARTED", "TASK_CLAIMED", "DECISION_RECORDED"] {
        let sql = sqlx::query_scalar::<_, i64>("select count(*) from audit_entry where type = $1")
            .bind(kind);
        assert_eq!(
            sql.fetch_one(app.database.admin_pool())
                .await
                .expect("a count"),
            3,
            "{kind}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_ended_before_its_commit_fails_no_command() {
    let app = TestApp::start().await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&app.started("doc-1").await));
    let mut holder = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a transaction");
    sqlx::query("select from instance for update")
        .execute(&mut *holder)
        .await
        .expect("a lock");
    let end = async {
        let ended = "select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity
                     where datname = current_database() and wait_event_type = 'Lock'";
        while count(&app, ended).await == 0 {
            crate::support::pause().await;
        }
        holder.rollback().await.expect("a rollback");
    };
    let (answer, ()) = tokio::join!(app.post("reviewer", &claim, json!({})), end);
    answer.expect(200);
    assert_eq!(
        count(
            &app,
            "select count(*) from audit_entry where type = 'TASK_CLAIMED'"
        )
        .await,
        1
    );
}

/// The first statement of a start goes on in the server while the host has given it up and tries again. When it writes, the
/// instance of the second attempt has ended, so no other instance runs about the entity.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_in_doubt_that_runs_late_starts_no_second_instance() {
    let app = TestApp::start().await;
    let wire = Wire::to(app.database.url()).await;
    let host = app.beside_at(wire.url(), LONG).await;
    let gate = Gate::shut(&app.database, "instance").await;
    let starting = host.send(
        "author",
        "POST",
        "/v1/instances",
        &[],
        Some(start_body("doc-1")),
    );
    let cutting = async {
        gate.is_met().await;
        wire.cut();
    };
    let (started, ()) = tokio::join!(starting, cutting);
    let started = started.started();
    let cancel = format!(
        "/v1/instances/{}/cancel",
        started["id"].as_str().expect("an id")
    );
    let reason = json!({ "reason": "It is over." });
    app.post("admin", &cancel, reason).await.expect(200);
    gate.open().await;
    let begun = "select count(*) from audit_entry where type = 'FLOW_STARTED'";
    assert_eq!(count(&app, begun).await, 1);
    assert_eq!(count(&app, "select count(*) from instance").await, 1);
}

/// The first lookup after the lost response finds no effect yet. The next attempt loads the instance with the effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_in_doubt_that_succeeds_before_the_next_load_is_not_repeated() {
    const SAID: &str = "select count(*) from audit_entry where type = 'FLOW_COMMENTED'";
    let app = TestApp::start().await;
    let wire = Wire::to(app.database.url()).await;
    let host = app.beside_at(wire.url(), LONG).await;
    let instance = app.started("plug").await;
    let id = instance["id"].as_str().expect("an id");
    let path = format!("/v1/instances/{id}/comment");
    let plug = Plug::put(&app.database).await;
    let body = json!({ "comment": "Once." });
    let saying = host.send("reviewer", "POST", &path, &[], Some(body));
    let landing = async {
        plug.is_met().await;
        let mut holder = app
            .database
            .admin_pool()
            .begin()
            .await
            .expect("a transaction");
        // A load reads this table. Neither the commit nor the lookup does.
        sqlx::query("lock table membership in access exclusive mode")
            .execute(&mut *holder)
            .await
            .expect("a lock");
        wire.cut();
        while count(&app, WAITING).await == 0 {
            crate::support::pause().await;
        }
        plug.pull().await;
        while count(&app, SAID).await == 0 {
            crate::support::pause().await;
        }
        holder.rollback().await.expect("a rollback");
    };
    let both = Box::pin(async { tokio::join!(saying, landing) });
    let (answer, ()) = within(both).await;
    answer.expect(200);
    assert_eq!(count(&app, SAID).await, 1);
}
