//! Who gets the work of a state, and what happens when nobody is eligible: over HTTP, with a flow whose assignments are in the
//! data of each instance.

mod allocation;
mod assignment;
mod blind;
mod bulk;
mod deadlines;
mod inputs;
mod joins;
mod jumps;
mod labels;
mod late;
mod members;
mod notices;
mod order;
mod padding;
mod payloads;
mod purchase;
mod questions;
mod reads;
mod recorded;
mod reoffer;
mod retain;
mod spawn;
mod suspended;
mod unassignable;
mod votes;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use wrkflw_engine::Engine;
use wrkflw_runtime::clock::Clock;

use crate::audit::commands::prove_all;
use crate::support::app::{Answer, TestApp};
use crate::support::guests::committee;

/// A host with the flow of committees.
async fn chambers() -> TestApp {
    let app = TestApp::empty().await;
    offer(&app, "committee", committee(), json!({})).await;
    app
}

/// Publishes a flow and activates it, even if the directory lacks names of its config.
async fn offer(app: &TestApp, key: &str, component: &[u8], config: Value) {
    app.publish(key, component, &config).await.expect(201);
    let path = format!("/v1/definitions/{key}/versions/1/activate");
    let forced = app.post("admin", &path, json!({ "force": true })).await;
    forced.expect(200);
}

/// Longer than anything here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The time of a host, which the test moves.
struct Time(Arc<AtomicI64>);

impl Time {
    /// A Monday, at nine in the morning.
    fn begin() -> Time {
        let monday: Timestamp = "2026-01-05T09:00Z".parse().expect("a moment");
        Time(Arc::new(AtomicI64::new(monday.as_millisecond())))
    }

    fn clock(&self) -> Clock {
        Clock::Manual(self.0.clone())
    }

    fn now(&self) -> Timestamp {
        self.clock().now()
    }

    /// Moves the time by this many seconds.
    fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    /// Moves the time, and waits until these hosts have run everything due by then.
    async fn work(&self, app: &TestApp, engines: &[&Engine], seconds: i64) {
        self.pass(seconds);
        for engine in engines {
            engine.wake_workers();
        }
        let due = "select count(*) from job where due_at <= $1::text::timestamptz";
        let settled = async {
            loop {
                let due = sqlx::query_scalar::<_, i64>(due).bind(self.now().to_string());
                let left = due.fetch_one(app.database.admin_pool()).await;
                if left.expect("a count") == 0 {
                    return;
                }
                crate::support::pause().await;
            }
        };
        let settled = tokio::time::timeout(TIMEOUT, settled).await;
        settled.expect("due work is done in time");
    }
}

/// A host with the flow of committees, and its time.
async fn chambers_at() -> (TestApp, Time) {
    let time = Time::begin();
    let app = TestApp::empty_at(time.clock()).await;
    let config = json!({ "calendars": ["office", "home"] });
    offer(&app, "committee", committee(), config).await;
    (app, time)
}

async fn claim(app: &TestApp, user: &str, task: &Value) {
    let path = format!("/v1/tasks/{}/claim", id(task));
    app.post(user, &path, json!({})).await.expect(200);
}

/// Claims and decides.
async fn decide(app: &TestApp, user: &str, task: &Value, decision: Value) -> Value {
    claim(app, user, task).await;
    let path = format!("/v1/tasks/{}/decide", id(task));
    let decided = app.post(user, &path, decision).await;
    decided.expect(200)["instance"].clone()
}

/// Starts a vote as `author`, about an entity of this id.
async fn vote(app: &TestApp, entity: &str, data: Value) -> Value {
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": entity, "data": data,
    });
    app.post("author", "/v1/instances", body).await.started()
}

async fn member(app: &TestApp, group: &str, person: &str) {
    let path = format!("/v1/people/{person}");
    let put = app.put("admin", &path, json!({ "name": person }));
    put.await.expect(200);
    let path = format!("/v1/groups/{group}/members/{person}");
    app.put("admin", &path, json!({})).await.expect(200);
}

async fn leave(app: &TestApp, group: &str, person: &str) {
    let path = format!("/v1/groups/{group}/members/{person}");
    let gone = app.host().send("admin", "DELETE", &path, &[], None).await;
    assert!((200..300).contains(&gone.status), "{}", gone.text);
}

async fn manager(app: &TestApp, of: &str, manager: &str) {
    let path = format!("/v1/people/{of}/manager");
    let put = app.put("admin", &path, json!({ "manager": manager }));
    put.await.expect(200);
}

async fn group(app: &TestApp, group: &str) {
    let path = format!("/v1/groups/{group}");
    app.put("admin", &path, json!({ "name": group }))
        .await
        .expect(200);
}

fn id(instance: &Value) -> &str {
    instance["id"].as_str().expect("an id")
}

/// The tasks of the only active state.
fn tasks(instance: &Value) -> &Vec<Value> {
    instance["states"][0]["tasks"].as_array().expect("tasks")
}

async fn shown(app: &TestApp, instance: &Value) -> Value {
    let path = format!("/v1/instances/{}", id(instance));
    app.get("admin", &path).await.expect(200)
}

/// The payloads of an instance's audit entries of this type.
async fn audited(app: &TestApp, instance: &Value, kind: &str) -> Vec<Value> {
    let path = format!("/v1/instances/{}/audit?limit=100", id(instance));
    let page = app.get("admin", &path).await.expect(200);
    let entries = page["data"].as_array().expect("entries").iter();
    entries
        .filter(|entry| entry["type"] == kind)
        .map(|entry| entry["payload"].clone())
        .collect()
}
