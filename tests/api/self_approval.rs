//! Nobody decides on their own request, in whatever way. Each attempt is refused for that reason, and recorded with its actor and
//! its task.

use super::people::{absent, all_back, inbox, known, managed, member, post_action, refused};
use super::*;

/// Tries the command. It must be refused because of the own request, and recorded.
async fn assert_excluded(app: &TestApp, user: &str, task: &str, what: &str, body: Value) {
    let before = refused(app, user, Some(task), "own_request").await;
    let answer = post_action(app, user, task, what, body).await;
    let problem = answer.problem(403, "forbidden");
    assert_eq!(problem["reason"], "own_request", "{user} {what}");
    let after = refused(app, user, Some(task), "own_request").await;
    assert_eq!(after, before + 1, "{user} {what}");
}

fn approve() -> Value {
    json!({ "outcome": "APPROVE" })
}

fn to(person: &str) -> Value {
    json!({ "to": person, "reason": "so that it gets done" })
}

/// Checks that in the audit no requester decided on the instance, in person or by a substitute.
async fn proves_none(app: &TestApp) {
    let sql = "select count(*) from decision d
        join task t on t.tenant_id = d.tenant_id and t.id = d.task_id
        join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
        where d.actor = any(i.requesters) or d.on_behalf_of = any(i.requesters)";
    let count: i64 = sqlx::query_scalar(sql)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(count, 0);
}

#[tokio::test]
async fn not_in_person_and_not_as_a_member_of_a_group() {
    let app = TestApp::start().await;
    // The author is one of the reviewers.
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    assert_eq!(inbox(&app, "author", "available").await, []);
    assert_excluded(&app, "author", &task, "claim", json!({})).await;
    assert_excluded(&app, "author", &task, "decide", approve()).await;
    claimed(&app, "reviewer", &instance).await;
    assert_excluded(&app, "author", &task, "decide", approve()).await;
    assert_excluded(&app, "author", &task, "delegate", to("reviewer2")).await;
    // The same for a person who joins the group later.
    let second = app
        .decided("reviewer2", &app.started("doc-2").await, approve())
        .await;
    member(&app, "approvers", "author").await;
    assert_excluded(&app, "author", &task_of(&second), "claim", json!({})).await;
    proves_none(&app).await;
}

#[tokio::test]
async fn not_by_delegation() {
    let app = TestApp::start().await;
    known(&app, &["dee"]).await;
    let instance = app.started("doc-1").await;
    let task = claimed(&app, "reviewer", &instance).await;
    assert_excluded(&app, "reviewer", &task, "delegate", to("author")).await;
    let on = post_action(&app, "reviewer", &task, "delegate", to("dee")).await;
    on.expect(200);
    assert_excluded(&app, "dee", &task, "delegate", to("author")).await;
    // Nor as the substitute of the delegate.
    absent(&app, "dee", "author", None).await;
    assert_excluded(&app, "author", &task, "decide", approve()).await;
    proves_none(&app).await;
}

#[tokio::test]
async fn not_as_a_substitute_and_not_by_one() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    // For an approver: before and after that one has claimed.
    absent(&app, "reviewer", "author", None).await;
    assert_excluded(&app, "author", &task, "claim", json!({})).await;
    claimed(&app, "reviewer", &instance).await;
    assert_excluded(&app, "author", &task, "decide", approve()).await;
    all_back(&app).await;
    // At the end of a chain of substitutes.
    absent(&app, "reviewer", "between", None).await;
    absent(&app, "between", "author", None).await;
    assert_excluded(&app, "author", &task, "decide", approve()).await;
    all_back(&app).await;
    // A substitute of the author, who would be a candidate by their own group.
    let other = app.started("doc-2").await;
    absent(&app, "author", "sue", None).await;
    assert_excluded(&app, "sue", &task_of(&other), "claim", json!({})).await;
    proves_none(&app).await;
}

#[tokio::test]
async fn not_by_reassignment() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    assert_excluded(&app, "admin", &task, "reassign", to("author")).await;
    claimed(&app, "reviewer", &instance).await;
    assert_excluded(&app, "admin", &task, "reassign", to("author")).await;
    // An operator who is the requester cannot reassign the task to themselves.
    member(&app, "authors", "admin").await;
    let mine = app
        .post("admin", "/v1/instances", approval_start("doc-2"))
        .await;
    let task = task_of(&mine.started());
    assert_excluded(&app, "admin", &task, "reassign", to("admin")).await;
    assert_excluded(&app, "admin", &task, "decide", approve()).await;
    proves_none(&app).await;
}

#[tokio::test]
async fn not_by_a_restart() {
    let app = TestApp::start().await;
    member(&app, "authors", "writer").await;
    let first = app.started("doc-1").await;
    let path = |what: &str| format!("/v1/instances/{}/{what}", first["id"].as_str().expect("id"));
    let reason = json!({ "reason": "once more" });
    app.post("admin", &path("cancel"), reason).await.expect(200);
    let second = app.post("writer", &path("restart"), json!({})).await;
    let second = second.started();
    let task = task_of(&second);
    assert_excluded(&app, "author", &task, "claim", json!({})).await;
    claimed(&app, "reviewer", &second).await;
    assert_excluded(&app, "author", &task, "decide", approve()).await;
    assert_excluded(&app, "reviewer", &task, "delegate", to("writer")).await;
    absent(&app, "reviewer", "writer", None).await;
    assert_excluded(&app, "writer", &task, "decide", approve()).await;
    proves_none(&app).await;
}

#[tokio::test]
async fn not_by_an_answer_of_flow_logic() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let start = async |entity: &str, behaviour: &str| {
        let data = json!({ "behaviour": behaviour, "function": "enter" });
        let body = hostile_start(entity, data);
        app.post("author", "/v1/instances", body).await
    };
    // As the owner from the start. Such an answer is a fault of the logic, and nothing starts.
    let before = rows(&app).await;
    start("t-1", "own_initiator")
        .await
        .problem(424, "logic_fault");
    assert_eq!(rows(&app).await, before);
    // As a candidate by name, and as a manager.
    let named = start("t-2", "offer_initiator").await.started();
    assert_excluded(&app, "author", &task_of(&named), "claim", json!({})).await;
    managed(&app, "author", "author").await;
    let manager = start("t-3", "offer_manager").await.started();
    assert_eq!(
        manager["states"][0]["tasks"][0]["candidates"],
        json!([{ "type": "user", "id": "author" }])
    );
    let task = task_of(&manager);
    assert_excluded(&app, "author", &task, "claim", json!({})).await;
    let go = json!({ "outcome": "GO" });
    assert_excluded(&app, "author", &task, "decide", go).await;
    proves_none(&app).await;
}
