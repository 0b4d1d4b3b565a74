//! Drafts of comments: one for each person and open task, private, limited, and deleted with the task.

use serde_json::{Value, json};

use crate::api::sql;
use crate::support::app::{TestApp, task_of};

fn path(task: &str) -> String {
    format!("/v1/tasks/{task}/draft")
}

async fn draft(app: &TestApp, who: &str, task: &str) -> Value {
    app.get(who, &path(task)).await.expect(200)["comment"].clone()
}

async fn count(app: &TestApp) -> i64 {
    sqlx::query_scalar("select count(*) from draft")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a number")
}

#[tokio::test]
async fn a_draft_is_private_and_the_last_one_is_kept() {
    let app = TestApp::start().await;
    let task = task_of(&app.started("doc-1").await);
    let none = app.get("reviewer", &path(&task)).await.expect(200);
    assert_eq!(none, json!({ "comment": null, "updatedAt": null }));
    for text in ["The", "The sum is <b>"] {
        let body = json!({ "comment": text });
        let kept = app.put("reviewer", &path(&task), body).await.expect(200);
        assert_eq!(kept["comment"], text);
        assert!(kept["updatedAt"].is_string());
    }
    assert_eq!(draft(&app, "reviewer", &task).await, "The sum is <b>");
    assert_eq!(draft(&app, "reviewer2", &task).await, Value::Null);
    assert_eq!(count(&app).await, 1);
    // A blank text deletes the draft.
    let blank = json!({ "comment": " \n" });
    let gone = app.put("reviewer", &path(&task), blank).await.expect(200);
    assert_eq!(gone["comment"], Value::Null);
    assert_eq!(count(&app).await, 0);
}

#[tokio::test]
async fn a_draft_ends_with_its_task() {
    let app = TestApp::start().await;
    let (first, second) = (app.started("doc-1").await, app.started("doc-2").await);
    let (task, kept) = (task_of(&first), task_of(&second));
    for (who, task) in [
        ("reviewer", &task),
        ("reviewer2", &task),
        ("reviewer", &kept),
    ] {
        let body = json!({ "comment": "So far" });
        app.put(who, &path(task), body).await.expect(200);
    }
    app.engine.purge().await.expect("a sweep");
    assert_eq!(count(&app).await, 3, "open tasks keep theirs");
    app.decided("reviewer", &first, json!({ "outcome": "APPROVE" }))
        .await;
    for who in ["reviewer", "reviewer2"] {
        app.get(who, &path(&task)).await.problem(404, "not_found");
        let body = json!({ "comment": "Too late" });
        let late = app.put(who, &path(&task), body).await;
        late.problem(404, "not_found");
    }
    app.engine.purge().await.expect("a sweep");
    assert_eq!(count(&app).await, 1);
    assert_eq!(draft(&app, "reviewer", &kept).await, "So far");
}

#[tokio::test]
async fn drafts_are_bounded() {
    let app = TestApp::start().await;
    let task = task_of(&app.started("doc-1").await);
    let long = json!({ "comment": "a".repeat(16 * 1024) });
    app.put("reviewer", &path(&task), long).await.expect(200);
    let longer = json!({ "comment": "a".repeat(16 * 1024 + 1) });
    let refused = app.put("reviewer", &path(&task), longer).await;
    let problem = refused.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/comment");

    // With 200 other drafts, the oldest is deleted.
    sql(
        &app,
        "delete from draft;
         insert into draft select 1, 'reviewer', gen_random_uuid(), i::text, '2026-01-01'::timestamptz + i * interval '1 hour'
         from generate_series(1, 200) i",
    )
    .await;
    for text in ["new", "newer"] {
        let body = json!({ "comment": text });
        app.put("reviewer", &path(&task), body).await.expect(200);
        assert_eq!(count(&app).await, 200);
    }
    let oldest: String =
        sqlx::query_scalar("select comment from draft order by updated_at limit 1")
            .fetch_one(app.database.admin_pool())
            .await
            .expect("a draft");
    assert_eq!(oldest, "2");
    assert_eq!(draft(&app, "reviewer", &task).await, "newer");
}
