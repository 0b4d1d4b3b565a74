//! How often the database is asked: a directory that stays as it is costs decisions nothing.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use super::*;
use crate::support::app::task_of;

/// Counts the statements that are sent from this thread.
#[derive(Clone, Default)]
struct Statements(Arc<AtomicUsize>);

impl<S: Subscriber> Layer<S> for Statements {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            let mut statement = Ours(false);
            event.record(&mut statement);
            self.0
                .fetch_add(usize::from(statement.0), Ordering::Relaxed);
        }
    }
}

/// Whether a statement is the store's own, and not one that a new connection begins with.
struct Ours(bool);

impl Visit for Ours {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "summary" {
            let text = format!("{value:?}");
            self.0 = !["pg_type", "set role"].iter().any(|one| text.contains(one));
        }
    }
}

impl Statements {
    fn since_last(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

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
    let statements = Statements::default();
    let subscriber = tracing_subscriber::registry().with(statements.clone());
    // As long as there is but one, other threads would decide for all that it hears nothing.
    let _another =
        tracing::Dispatch::new(tracing_subscriber::registry().with(Statements::default()));
    let _counting = tracing::subscriber::set_default(subscriber);
    // One to load, one to commit; the first time, one more to ask who the reviewers and the approvers are.
    let first = asked(&app, &statements, "doc-1").await;
    assert_eq!(
        asked(&app, &statements, "doc-2").await,
        [2, 2, 2],
        "{first:?}"
    );
    assert_eq!(asked(&app, &statements, "doc-3").await, [2, 2, 2]);
    // Whoever joins is known at once.
    member(&app, "approvers", "newcomer").await;
    assert_eq!(asked(&app, &statements, "doc-4").await, [3, 2, 3]);
    assert_eq!(asked(&app, &statements, "doc-5").await, [2, 2, 2]);
}
