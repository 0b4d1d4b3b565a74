//! Wait states over HTTP, with a flow that waits for what the data of each instance names: signals sent to an instance,
//! signals sent by correlation, and other instances.

mod children;
mod correlation;
mod floods;
mod inbox;
mod lost_hosts;
mod neighbours;
mod receipts;
mod signals;
mod stopped;

use std::time::Duration;

use serde_json::{Value, json};
use wrkflw::domain::ids::InstanceId;

use crate::audit;
use crate::support::app::{Answer, TestApp, Timers};
use crate::support::guests::errands;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A host on which errands are run.
async fn field() -> TestApp {
    let app = TestApp::empty().await;
    let published = app.publish("errands", errands(), &json!({})).await;
    published.expect(201);
    let path = "/v1/definitions/errands/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    app
}

/// Starts an errand as `author`, about an entity of this id.
async fn begin(app: &TestApp, entity: &str, data: Value) -> String {
    let body = json!({
        "definitionKey": "errands", "entityType": "errand", "entityId": entity, "data": data,
    });
    let started = app.post("author", "/v1/instances", body).await.expect(201);
    id(&started)
}

fn id(instance: &Value) -> String {
    instance["id"].as_str().expect("an id").to_owned()
}

async fn signal(app: &TestApp, instance: &str, trigger: &str, body: Value) -> Answer {
    let path = format!("/v1/instances/{instance}/signals/{trigger}");
    app.post("author", &path, body).await
}

async fn shown(app: &TestApp, instance: &str) -> Value {
    let path = format!("/v1/instances/{instance}");
    app.get("admin", &path).await.expect(200)
}

/// The instance, once it is what is waited for.
async fn until(app: &TestApp, instance: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let waiting = async {
        loop {
            let found = shown(app, instance).await;
            if is_so(&found) {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    if let Ok(found) = tokio::time::timeout(PATIENCE, waiting).await {
        return found;
    }
    panic!("in time: {}", shown(app, instance).await);
}

async fn until_status(app: &TestApp, instance: &str, status: &str) -> Value {
    until(app, instance, |found| found["status"] == status).await
}

/// The children of an instance, oldest first, once there are so many.
async fn children(app: &TestApp, parent: &str, count: usize) -> Vec<String> {
    let waiting = async {
        loop {
            let path = format!("/v1/instances?parent={parent}");
            let page = app.get("admin", &path).await.expect(200);
            let lines = page["data"].as_array().expect("lines");
            assert!(lines.len() <= count, "{page}");
            if lines.len() == count {
                return lines.iter().rev().map(id).collect();
            }
            tokio::task::yield_now().await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, waiting).await;
    found.expect("in time")
}

/// The payloads of an instance's audit entries of this type.
async fn audited(app: &TestApp, instance: &str, kind: &str) -> Vec<Value> {
    let path = format!("/v1/instances/{instance}/audit?limit=100");
    let page = app.get("admin", &path).await.expect(200);
    let entries = page["data"].as_array().expect("entries").iter();
    let entries = entries.filter(|entry| entry["type"] == kind);
    entries.map(|entry| entry["payload"].clone()).collect()
}

async fn counted(app: &TestApp, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count")
}

/// Waits until no job is left.
async fn settled(app: &TestApp) {
    let settling = async {
        while counted(app, "select count(*) from job").await > 0 {
            tokio::task::yield_now().await;
        }
    };
    let settled = tokio::time::timeout(PATIENCE, settling).await;
    settled.expect("in time");
}

/// The record rebuilds the instance, and its commands come to the same again.
async fn proven(app: &TestApp, instance: &str) {
    audit::proven(app, InstanceId(instance.parse().expect("an id"))).await;
}
