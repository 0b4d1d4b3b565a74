//! The approval of a document over HTTP.

use serde_json::json;

use crate::support::app::{TestApp, task_of};

#[tokio::test]
async fn a_document_is_approved_by_two_reviews() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    assert_eq!(instance["status"], "RUNNING");
    assert_eq!(instance["revision"], 1);
    assert_eq!(instance["states"][0]["name"], "Submitted");
    assert_eq!(
        instance["states"][0]["tasks"][0]["candidates"],
        json!([{ "type": "group", "id": "reviewers" }])
    );

    let instance = app
        .decided(
            "reviewer",
            &instance,
            json!({ "outcome": "APPROVE", "comment": "fine" }),
        )
        .await;
    assert_eq!(instance["states"][0]["name"], "FinalReview");
    let instance = app
        .decided("approver", &instance, json!({ "outcome": "APPROVE" }))
        .await;
    assert_eq!(
        (&instance["status"], &instance["outcome"]),
        (&json!("COMPLETED"), &json!("APPROVED"))
    );
    assert_eq!(instance["states"], json!([]));
    assert_eq!(instance["revision"], 5);
}

#[tokio::test]
async fn a_rejected_document_goes_back_to_its_author() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let instance = app
        .decided(
            "reviewer",
            &instance,
            json!({ "outcome": "REJECT", "comment": "too short" }),
        )
        .await;
    assert_eq!(instance["states"][0]["name"], "ReworkRequested");
    assert_eq!(
        instance["states"][0]["tasks"][0]["candidates"],
        json!([{ "type": "user", "id": "author" }])
    );
    let rework = task_of(&instance);
    app.post("reviewer", &format!("/v1/tasks/{rework}/claim"), json!({}))
        .await
        .problem(403, "forbidden");

    let instance = app
        .decided("author", &instance, json!({ "outcome": "SUBMIT" }))
        .await;
    assert_eq!(instance["states"][0]["name"], "Submitted");
    let instance = app
        .decided(
            "reviewer2",
            &instance,
            json!({ "outcome": "REJECT", "comment": "still" }),
        )
        .await;
    let instance = app
        .decided("author", &instance, json!({ "outcome": "ABANDON" }))
        .await;
    assert_eq!(
        (&instance["status"], &instance["outcome"]),
        (&json!("COMPLETED"), &json!("REJECTED"))
    );
}

#[tokio::test]
async fn a_rejection_needs_a_comment() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    app.post("reviewer", &format!("/v1/tasks/{task}/claim"), json!({}))
        .await
        .expect(200);
    let decide = format!("/v1/tasks/{task}/decide");
    let problem = app
        .post("reviewer", &decide, json!({ "outcome": "REJECT" }))
        .await
        .problem(422, "invalid_input");
    assert_eq!(problem["errors"][0]["pointer"], "/comment");
    assert_eq!(problem["errors"][0]["code"], "required");
}
