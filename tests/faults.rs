//! Faults around the host: the broker refuses, the database is full or stuck, the load is too high, clocks jump, files change.
//! Each time the answer is clear, nothing is lost, and no restart is needed.

mod backlog;
mod clocks;
mod costs;
mod database;
pub(crate) mod dead_letters;
mod disk;
mod files;
mod overload;
mod program;
mod replays;
mod shutdown;
mod upgrades;

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::support::app::{Answer, Host, TestApp, task_of};
use crate::support::until;

/// Longer than anything that a test waits for.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Runs statements as the superuser, bypassing the host.
async fn sql(app: &TestApp, text: &str) {
    sqlx::raw_sql(AssertSqlSafe(text.to_owned()))
        .execute(app.database.admin_pool())
        .await
        .unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// Counts everything that a command could have left behind.
async fn traces(app: &TestApp) -> Value {
    let text: String = sqlx::query_scalar(
        "select json_build_object(
             'instances', (select count(*) from instance), 'entries', (select count(*) from audit_entry),
             'outbox', (select count(*) from outbox_event), 'tasks', (select count(*) from task),
             'decisions', (select count(*) from decision), 'replies', (select count(*) from idempotency_key),
             'revisions', (select coalesce(sum(revision), 0) from instance))::text",
    )
    .fetch_one(app.database.admin_pool())
    .await
    .expect("counts");
    serde_json::from_str(&text).expect("JSON")
}

/// Checks a refusal that says when to retry.
#[track_caller]
fn unavailable(answer: Answer, code: &str, words: &str) {
    let after = answer.headers.get("retry-after").cloned();
    let problem = answer.problem(503, code);
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert!(detail.contains(words), "{problem}");
    let seconds: u32 = after
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .unwrap_or_else(|| panic!("no Retry-After: {problem}"));
    assert!((1..=60).contains(&seconds), "{seconds}");
}

/// Repeats a request until the response has this status.
async fn eventually(host: &Host, path: &str, status: u16) -> Answer {
    let what = format!("{path} answers {status}");
    let look = async || host.send("", "GET", path, &[], None).await;
    until(&what, look, |answer: &Answer| answer.status == status).await
}

/// Waits until no event is left in the outbox.
async fn drained(app: &TestApp) {
    let look = async || {
        let left = sqlx::query_scalar::<_, i64>("select count(*) from outbox_event");
        left.fetch_one(app.database.admin_pool())
            .await
            .expect("a count")
    };
    until("all events are sent", look, |left: &i64| *left == 0).await;
}

/// The body that starts a document approval.
fn start_of(entity: &str) -> Value {
    json!({
        "definitionKey": "document-approval", "entityType": "document", "entityId": entity, "data": { "title": "A plan" },
    })
}

/// Claims the open task of an instance.
async fn claim(host: &Host, user: &str, instance: &Value) -> Answer {
    let path = format!("/v1/tasks/{}/claim", task_of(instance));
    host.send(user, "POST", &path, &[], Some(json!({}))).await
}
