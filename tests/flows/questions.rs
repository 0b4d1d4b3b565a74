//! How often the database is asked: a directory that stays as it is costs decisions nothing.

use super::*;
use crate::support::app::task_of;
use crate::support::statements::Statements;

/// How many statements the start of a document's approval takes, the claim of its review, and the decision.
async fn asked(app: &TestApp, statements: &Statements, entity: &str) -> [usize; 3] {
    statements.since_last();
    let instance = app.started(entity).await;
    let start = statements.since_last();
    let task = task_of(&instance);
    let claim = format!("/v1/tasks/{task}/claim");
    app.post("reviewer", &claim, json!({})).await.expect(200);
    let claimed = statements.since_last();
    let decide = format!("/v1/tasks/{task}/decide");
    let decision = json!({ "outcome": "APPROVE" });
    app.post("reviewer", &decide, decision).await.expect(200);
    [start, claimed, statements.since_last()]
}

/// On one thread, so that all statements are sent from it.
#[tokio::test]
async fn a_directory_that_stays_as_it_is_is_asked_once() {
    let app = TestApp::start().await;
    let statements = Statements::count();
    // The first start is loaded and committed, and one statement asks who the reviewers are. After that all of it is cached: a
    // start, a claim and a decision are only committed.
    let first = asked(&app, &statements, "doc-1").await;
    assert_eq!(
        asked(&app, &statements, "doc-2").await,
        [1, 1, 1],
        "{first:?}"
    );
    assert_eq!(asked(&app, &statements, "doc-3").await, [1, 1, 1]);
    // Whoever joins is known at once: a start by cached rows is not committed, and all is read again.
    member(&app, "approvers", "newcomer").await;
    assert_eq!(asked(&app, &statements, "doc-4").await, [4, 2, 2]);
    assert_eq!(asked(&app, &statements, "doc-5").await, [1, 1, 1]);
}
