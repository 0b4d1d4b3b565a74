//! A host acts on what it remembers of an instance and of its caller. Here the memory is out of date: another host moved
//! on, or somebody is no longer what they were. Every answer is that of a host which remembers nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use wrkflw::clock::Clock;

use super::*;
use crate::audit::commands::prove_all;
use crate::support::app::task_of;
use crate::support::statements::Statements;

const MEMBERSHIP: &str = "/v1/groups/reviewers/members/reviewer";

async fn act(host: &Host, user: &str, task: &str, action: &str, body: Value) -> Answer {
    let path = format!("/v1/tasks/{task}/{action}");
    host.send(user, "POST", &path, &[], Some(body)).await
}

/// The same, where nothing stands in the way.
async fn done(host: &Host, user: &str, task: &str, action: &str, body: Value) -> Value {
    act(host, user, task, action, body).await.expect(200)
}

fn approve() -> Value {
    json!({ "outcome": "APPROVE" })
}

async fn run(app: &TestApp, sql: &'static str) {
    let done = sqlx::raw_sql(sql).execute(app.database.admin_pool()).await;
    done.expect(sql);
}

/// Whether the host of the app commits a claim by what it remembers, with nothing read before.
async fn is_remembered(app: &TestApp, statements: &Statements, entity: &str) -> bool {
    let task = task_of(&app.started(entity).await);
    statements.since_last();
    done(&app.host(), "reviewer", &task, "claim", json!({})).await;
    statements.since_last() == 1
}

#[tokio::test]
async fn another_host_was_faster() {
    let app = TestApp::start().await;
    let (here, there) = (app.host(), app.beside().await);
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    done(&here, "reviewer", &task, "claim", json!({})).await;
    let decided = done(&there, "reviewer", &task, "decide", approve()).await;
    let next = task_of(&decided["instance"]);

    // By what this host remembers, the first would do, and the second know no such task.
    let late = act(
        &here,
        "reviewer",
        &task,
        "decide",
        json!({ "outcome": "REJECT", "comment": "No." }),
    )
    .await;
    let conflict = &late.problem(409, "task_taken")["conflict"];
    assert_eq!(
        (&conflict["action"], &conflict["outcome"]),
        (&json!("decided"), &json!("APPROVE"))
    );
    done(&there, "approver", &next, "claim", json!({})).await;
    done(&there, "approver", &next, "release", json!({})).await;
    done(&here, "approver", &next, "claim", json!({})).await;
    done(&there, "approver", &next, "release", json!({})).await;
    // It remembers the task as claimed, and it is free.
    done(&here, "approver", &next, "claim", json!({})).await;
    done(&here, "approver", &next, "decide", approve()).await;
    assert_eq!(shown(&app, &instance).await["status"], "COMPLETED");
    prove_all(&app).await;
}

#[tokio::test]
async fn who_is_put_out_or_let_in_is_so_at_once() {
    let app = TestApp::start().await;
    let (here, there) = (app.host(), app.beside().await);
    let claim = async |entity: &str| {
        let task = task_of(&app.started(entity).await);
        act(&here, "reviewer", &task, "claim", json!({})).await
    };
    claim("doc-1").await.expect(200);
    there
        .send("admin", "DELETE", MEMBERSHIP, &[], None)
        .await
        .expect(200);
    let refused = claim("doc-2").await.problem(403, "forbidden");
    assert_eq!(refused["reason"], "not_a_candidate");
    there
        .send("admin", "PUT", MEMBERSHIP, &[], Some(json!({})))
        .await
        .expect(200);
    claim("doc-3").await.expect(200);

    // Not by way of a host: what roles permit is set when a tenant is made.
    run(
        &app,
        "delete from role_permission where permission = 'task:act'",
    )
    .await;
    claim("doc-4").await.problem(403, "permission_missing");
    run(
        &app,
        "insert into role_permission select id, unnest(array['admin', 'user']), 'task:act' from tenant",
    )
    .await;
    claim("doc-5").await.expect(200);
    prove_all(&app).await;
}

/// Nothing is written when an absence begins, so nothing would tell the host that it did.
#[tokio::test]
async fn an_absence_begins_of_itself() {
    let time = Arc::new(AtomicI64::new(Clock::System.now().as_millisecond()));
    let app = TestApp::empty_at(Clock::Manual(time.clone())).await;
    app.with_approval().await;
    let here = app.host();
    let from = app.engine.clock().now() + jiff::SignedDuration::from_hours(1);
    let until = from + jiff::SignedDuration::from_hours(1);
    let body = json!({ "substitute": "approver", "activeFrom": from, "activeUntil": until });
    let absence = "/v1/people/reviewer/absences";
    app.post("reviewer", absence, body).await.expect(201);

    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    let refused = act(&here, "approver", &task, "claim", json!({})).await;
    assert_eq!(
        refused.problem(403, "forbidden")["reason"],
        "not_a_candidate"
    );
    time.fetch_add(3_700_000, Ordering::SeqCst);
    let claimed = done(&here, "approver", &task, "claim", json!({})).await;
    assert_eq!(claimed["task"]["holding"]["onBehalfOf"], "reviewer");
    time.fetch_add(3_700_000, Ordering::SeqCst);
    let late = act(&here, "approver", &task, "decide", approve()).await;
    assert_eq!(
        late.problem(403, "forbidden")["reason"],
        "no_longer_substitute"
    );
}

/// Behind a balancer that knows nothing of instances, what a host remembers is out of date more often than not.
#[tokio::test]
async fn a_host_that_remembers_wrongly_reads_until_it_would_be_right() {
    let app = TestApp::start().await;
    let there = app.beside().await;
    let statements = Statements::count();
    assert!(!is_remembered(&app, &statements, "first").await);
    assert!(is_remembered(&app, &statements, "second").await);
    for round in 0..100 {
        let task = task_of(&app.started(&format!("doc-{round}")).await);
        done(&there, "reviewer", &task, "claim", json!({})).await;
        done(&app.host(), "reviewer", &task, "decide", approve()).await;
    }
    assert!(!is_remembered(&app, &statements, "third").await);
    // Each that it could have acted on raises its trust by one, and a mistake has cost it four.
    for round in 0..420 {
        let task = task_of(&app.started(&format!("own-{round}")).await);
        done(&app.host(), "reviewer", &task, "claim", json!({})).await;
    }
    assert!(is_remembered(&app, &statements, "fourth").await);
}
