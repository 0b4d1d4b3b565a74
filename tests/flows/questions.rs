//! The number of database statements: an unchanged directory costs decisions none.

use super::*;
use crate::support::app::task_of;
use crate::support::statements::Statements;

/// The number of statements of the start of a document's approval, the claim of its review, and the decision.
async fn statement_counts(app: &TestApp, statements: &Statements, entity: &str) -> [usize; 3] {
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

/// On one thread, which sends all statements.
#[tokio::test]
async fn an_unchanged_directory_is_read_once() {
    let app = TestApp::start().await;
    let statements = Statements::count();
    // The first start is loaded and committed, and one statement reads the reviewers. Then all of it is cached: a start, a claim
    // and a decision take only the commit.
    let first = statement_counts(&app, &statements, "doc-1").await;
    assert_eq!(
        statement_counts(&app, &statements, "doc-2").await,
        [1, 1, 1],
        "{first:?}"
    );
    assert_eq!(
        statement_counts(&app, &statements, "doc-3").await,
        [1, 1, 1]
    );
    // A new member counts at once: a start with cached rows is not committed, and everything is read again.
    member(&app, "approvers", "newcomer").await;
    assert_eq!(
        statement_counts(&app, &statements, "doc-4").await,
        [4, 2, 2]
    );
    assert_eq!(
        statement_counts(&app, &statements, "doc-5").await,
        [1, 1, 1]
    );
}
