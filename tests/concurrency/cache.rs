//! A host uses its cached instances and callers. Here the cache is outdated: another host changed the instance, or a person's
//! groups or permissions changed. Every answer must be that of a host without a cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_runtime::clock::Clock;

use super::*;
use crate::audit::commands::prove_all;
use crate::support::app::task_of;
use crate::support::guests::another;
use crate::support::statements::Statements;

const MEMBERSHIP: &str = "/v1/groups/reviewers/members/reviewer";

async fn act(host: &Host, user: &str, task: &str, action: &str, body: Value) -> Answer {
    let path = format!("/v1/tasks/{task}/{action}");
    host.send(user, "POST", &path, &[], Some(body)).await
}

/// The same, for an action that must succeed.
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

/// Whether the host of the app commits a claim with cached rows, without reading.
async fn is_remembered(app: &TestApp, statements: &Statements, entity: &str) -> bool {
    let task = task_of(&app.started(entity).await);
    statements.since_last();
    done(&app.host(), "reviewer", &task, "claim", json!({})).await;
    statements.since_last() == 1
}

#[tokio::test]
async fn a_command_of_another_host_outdates_the_cache() {
    let app = TestApp::start().await;
    let (here, there) = (app.host(), app.beside().await);
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    done(&here, "reviewer", &task, "claim", json!({})).await;
    let decided = done(&there, "reviewer", &task, "decide", approve()).await;
    let next = task_of(&decided["instance"]);

    // By its cached rows, this host would accept the first command, and would not find the task of the second.
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
    // Its cached task is claimed, while the stored one is free.
    done(&here, "approver", &next, "claim", json!({})).await;
    done(&here, "approver", &next, "decide", approve()).await;
    assert_eq!(shown(&app, &instance).await["status"], "COMPLETED");
    prove_all(&app).await;
}

#[tokio::test]
async fn a_change_of_memberships_has_effect_at_once() {
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

    // Changed in the database, not by the API.
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

/// A start uses the cached active version. An activation or a retirement by another host outdates it.
#[tokio::test]
async fn an_activation_has_effect_on_the_next_start() {
    let app = TestApp::start().await;
    let there = app.beside().await;
    app.started("doc-1").await;
    let statements = Statements::count();
    app.started("doc-2").await;
    assert_eq!(
        statements.since_last(),
        1,
        "a start with cached rows is one commit"
    );

    let other = another(DOCUMENT_APPROVAL, "2");
    let published = app.publish("document-approval", &other, &json!({})).await;
    published.expect(201);
    assert_eq!(app.started("doc-3").await["definitionVersion"], 1);
    let versions = "/v1/definitions/document-approval/versions";
    let change = async |path: String| {
        let answer = there
            .send("admin", "POST", &path, &[], Some(json!({})))
            .await;
        answer.expect(200);
    };
    change(format!("{versions}/2/activate")).await;
    assert_eq!(app.started("doc-4").await["definitionVersion"], 2);
    change(format!("{versions}/2/retire")).await;
    let body = json!({ "definitionKey": "document-approval", "entityType": "document", "entityId": "doc-5", "data": { "title": "A plan" } });
    let refused = app.post("author", "/v1/instances", body).await;
    refused.problem(409, "no_active_version");
    change(format!("{versions}/2/reinstate")).await;
    change(format!("{versions}/2/activate")).await;
    assert_eq!(app.started("doc-5").await["definitionVersion"], 2);
    prove_all(&app).await;
}

/// A start that is refused by cached rows is refused by the rows in the database, too.
#[tokio::test]
async fn a_permission_that_was_granted_has_effect_on_the_next_start() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    let revoke = "delete from role_permission where permission = 'instance:start'";
    let kept =
        "create table kept as select * from role_permission where permission = 'instance:start'";
    run(&app, kept).await;
    run(&app, revoke).await;
    let body = json!({ "definitionKey": "document-approval", "entityType": "document", "entityId": "doc-2", "data": { "title": "A plan" } });
    let refused = app.post("author", "/v1/instances", body.clone()).await;
    refused.problem(403, "permission_missing");
    let again = app.post("author", "/v1/instances", body).await;
    again.problem(403, "permission_missing");
    run(&app, "insert into role_permission select * from kept").await;
    app.started("doc-2").await;
    prove_all(&app).await;
}

/// Nothing is written when an absence begins, so the cached access mark stays valid.
#[tokio::test]
async fn an_absence_has_effect_when_it_begins() {
    let time = Arc::new(AtomicI64::new(Clock::System.now().as_millisecond()));
    let app = TestApp::empty_at(Clock::Manual(time.clone())).await;
    app.with_approval().await;
    let here = app.host();
    let from = app.engine.clock().now() + jiff::SignedDuration::from_hours(1);
    let until = from + jiff::SignedDuration::from_hours(1);
    let body = json!({ "substitute": "approver", "from": from, "until": until });
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
    assert_eq!(claimed["task"]["ownership"]["onBehalfOf"], "reviewer");
    time.fetch_add(3_700_000, Ordering::SeqCst);
    let late = act(&here, "approver", &task, "decide", approve()).await;
    assert_eq!(
        late.problem(403, "forbidden")["reason"],
        "no_longer_substitute"
    );
}

/// Behind a load balancer that ignores instances, most cached rows of a host are outdated.
#[tokio::test]
async fn an_often_outdated_cache_is_not_used_until_it_would_hit() {
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
    // Each hit raises the hit score by one, and a miss has cost four.
    for round in 0..420 {
        let task = task_of(&app.started(&format!("own-{round}")).await);
        done(&app.host(), "reviewer", &task, "claim", json!({})).await;
    }
    assert!(is_remembered(&app, &statements, "fourth").await);
}
