//! Of those who act at once exactly one wins, and the others learn who it was.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::app::{Answer, Host, TestApp, task_of};

const CALLERS: usize = 50;

/// Sends the same request fifty times at once, half of it to another host.
async fn at_once(app: &TestApp, users: &[&str], path: &str, body: &Value) -> Vec<Answer> {
    let hosts = [app.host(), app.beside().await];
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (host, user) = (
            hosts[caller % 2].clone(),
            users[caller % users.len()].to_owned(),
        );
        let (path, body) = (path.to_owned(), body.clone());
        spawn(&mut callers, host, user, path, body);
    }
    callers.join_all().await
}

fn spawn(callers: &mut JoinSet<Answer>, host: Host, user: String, path: String, body: Value) {
    callers.spawn(async move { host.send(&user, "POST", &path, &[], Some(body)).await });
}

fn statuses(answers: &[Answer], status: u16) -> usize {
    answers
        .iter()
        .filter(|answer| answer.status == status)
        .count()
}

async fn count(app: &TestApp, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count")
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_decide_and_one_wins() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    app.post("reviewer", &format!("/v1/tasks/{task}/claim"), json!({}))
        .await
        .expect(200);
    let path = format!("/v1/tasks/{task}/decide");
    let answers = at_once(&app, &["reviewer"], &path, &json!({ "outcome": "APPROVE" })).await;
    assert_eq!((statuses(&answers, 200), statuses(&answers, 409)), (1, 49));
    for lost in answers.iter().filter(|answer| answer.status == 409) {
        assert_eq!(lost.body["code"], "task_taken");
        let conflict = &lost.body["conflict"];
        let named = (
            &conflict["by"],
            &conflict["action"],
            &conflict["outcome"],
            &conflict["task"],
        );
        assert_eq!(
            named,
            (
                &json!("reviewer"),
                &json!("decided"),
                &json!("APPROVE"),
                &json!(task)
            )
        );
        assert!(conflict["at"].is_string());
    }
    assert_eq!(count(&app, "select count(*) from decision").await, 1);
    assert_eq!(
        count(
            &app,
            "select count(*) from audit_entry where type = 'DECISION_RECORDED'"
        )
        .await,
        1
    );
    assert_eq!(
        count(
            &app,
            "select count(*) from audit_entry where type = 'STATE_TRANSITIONED'"
        )
        .await,
        1
    );
    assert_eq!(
        count(
            &app,
            "select count(*) - max(event_seq) from audit_entry where event_seq is not null"
        )
        .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_claim_and_one_wins() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let path = format!("/v1/tasks/{}/claim", task_of(&instance));
    let answers = at_once(&app, &["reviewer", "reviewer2"], &path, &json!({})).await;
    assert_eq!((statuses(&answers, 200), statuses(&answers, 409)), (1, 49));
    let won = answers
        .iter()
        .find(|answer| answer.status == 200)
        .expect("a winner");
    let owner = &won.body["task"]["owner"];
    for lost in answers.iter().filter(|answer| answer.status == 409) {
        assert_eq!(
            (
                &lost.body["conflict"]["by"],
                &lost.body["conflict"]["action"]
            ),
            (owner, &json!("claimed"))
        );
    }
    assert_eq!(
        count(
            &app,
            "select count(*) from audit_entry where type = 'TASK_CLAIMED'"
        )
        .await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn decide_against_cancel_has_one_winner() {
    let app = TestApp::start().await;
    let other = app.beside().await;
    for round in 0..10 {
        let instance = app.started(&format!("doc-{round}")).await;
        let (task, id) = (
            task_of(&instance),
            instance["id"].as_str().expect("an id").to_owned(),
        );
        app.post("reviewer", &format!("/v1/tasks/{task}/claim"), json!({}))
            .await
            .expect(200);
        let (decide, cancel) = (
            format!("/v1/tasks/{task}/decide"),
            format!("/v1/instances/{id}/cancel"),
        );
        let decision = other.send(
            "reviewer",
            "POST",
            &decide,
            &[],
            Some(json!({ "outcome": "APPROVE" })),
        );
        let (decided, cancelled) = tokio::join!(
            decision,
            app.post("admin", &cancel, json!({ "reason": "withdrawn" }))
        );
        // A cancel may follow a decision, never the other way round.
        assert_eq!(cancelled.status, 200, "{}", cancelled.text);
        if decided.status != 200 {
            let problem = decided.problem(409, "task_taken");
            assert_eq!(
                (&problem["conflict"]["action"], &problem["conflict"]["by"]),
                (&json!("cancelled"), &json!("admin"))
            );
        }
        let shown = app
            .get("author", &format!("/v1/instances/{id}"))
            .await
            .expect(200);
        assert_eq!(shown["status"], "CANCELLED");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_starts_about_one_entity_make_one_instance() {
    let app = TestApp::start().await;
    let body = json!({
        "definitionKey": "document-approval", "entityType": "document", "entityId": "doc-1", "data": { "title": "A plan" },
    });
    let answers = at_once(&app, &["author"], "/v1/instances", &body).await;
    assert_eq!((statuses(&answers, 201), statuses(&answers, 409)), (1, 49));
    let won = answers
        .iter()
        .find(|answer| answer.status == 201)
        .expect("a winner");
    for lost in answers.iter().filter(|answer| answer.status == 409) {
        assert_eq!(
            (&lost.body["code"], &lost.body["conflict"]["instance"]),
            (&json!("already_running"), &won.body["id"])
        );
    }
    assert_eq!(count(&app, "select count(*) from instance").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn votes_on_different_instances_do_not_meet() {
    let app = TestApp::start().await;
    let mut callers = JoinSet::new();
    for round in 0..CALLERS {
        let instance = app.started(&format!("doc-{round}")).await;
        spawn(
            &mut callers,
            app.host(),
            "reviewer".into(),
            format!("/v1/tasks/{}/claim", task_of(&instance)),
            json!({}),
        );
    }
    let answers = callers.join_all().await;
    assert_eq!(statuses(&answers, 200), CALLERS);
}

#[tokio::test(flavor = "multi_thread")]
async fn delegate_against_decide_has_one_winner() {
    let app = TestApp::start().await;
    let other = app.beside().await;
    for round in 0..10 {
        let instance = app.started(&format!("doc-{round}")).await;
        let task = task_of(&instance);
        let path = |what: &str| format!("/v1/tasks/{task}/{what}");
        app.post("reviewer", &path("claim"), json!({}))
            .await
            .expect(200);
        let (decide, delegate) = (path("decide"), path("delegate"));
        let approve = Some(json!({ "outcome": "APPROVE" }));
        let on = json!({ "to": "approver", "reason": "away" });
        let (decided, delegated) = tokio::join!(
            other.send("reviewer", "POST", &decide, &[], approve),
            app.post("reviewer", &delegate, on)
        );
        let shown = app.get("author", &format!("/v1/tasks/{task}")).await;
        let task = shown.expect(200)["task"].clone();
        if decided.status == 200 {
            let conflict = delegated.problem(409, "task_taken")["conflict"].clone();
            assert_eq!(conflict["action"], "decided");
            assert_eq!(task["status"], "COMPLETED");
        } else {
            assert_eq!(delegated.status, 200, "{}", delegated.text);
            let problem = decided.problem(403, "forbidden");
            assert_eq!(problem["reason"], "not_owner");
            assert_eq!(task["owner"], "approver");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reassign_against_claim_leaves_one_owner() {
    let app = TestApp::start().await;
    let other = app.beside().await;
    for round in 0..10 {
        let instance = app.started(&format!("doc-{round}")).await;
        let task = task_of(&instance);
        let path = |what: &str| format!("/v1/tasks/{task}/{what}");
        let (claim, reassign) = (path("claim"), path("reassign"));
        let to = json!({ "to": "approver", "reason": "urgent" });
        let (claimed, reassigned) = tokio::join!(
            other.send("reviewer", "POST", &claim, &[], Some(json!({}))),
            app.post("admin", &reassign, to)
        );
        // An operator's word stands, whether somebody had claimed the task before or not.
        let reassigned = reassigned.expect(200);
        let previous = &reassigned["events"][0]["data"]["previous"];
        if claimed.status == 200 {
            assert_eq!(previous, "reviewer");
        } else {
            assert_eq!(previous, &Value::Null);
            let problem = claimed.problem(409, "task_taken");
            assert_eq!(
                (&problem["conflict"]["action"], &problem["conflict"]["by"]),
                (&json!("claimed"), &json!("approver"))
            );
        }
        let shown = app.get("author", &format!("/v1/tasks/{task}")).await;
        assert_eq!(shown.expect(200)["task"]["owner"], "approver");
    }
}
