//! Wait states over HTTP. What the flow waits for is set by the data of each instance: signals sent to the instance, signals sent
//! by correlation, and child instances.

mod broadcasts;
mod cancellations;
mod children;
mod correlation;
mod floods;
mod inbox;
mod lost_hosts;
mod neighbours;
mod receipts;
mod received;
mod services;
mod signals;
mod stopped;
mod subscriptions;
mod waits;
mod withdrawn;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use wrkflw_core::ids::InstanceId;
use wrkflw_runtime::clock::Clock;

use crate::audit;
use crate::support::app::{ADMIN, Answer, Host, TestApp, Timers, USER};
use crate::support::guests::subflows;
use crate::support::until_so;
use wrkflw_store::directory::tenants;

/// Longer than anything here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A host with the flow of sub-flows.
async fn fixture() -> TestApp {
    fixture_at(Clock::System).await
}

/// The same, at this time.
async fn fixture_at(clock: Clock) -> TestApp {
    let app = TestApp::empty_at(clock).await;
    let published = app.publish("subflows", subflows(), &json!({})).await;
    published.expect(201);
    let path = "/v1/definitions/subflows/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    app
}

/// A second tenant of the same host, with the people and the flow of the first.
struct Other {
    host: Host,
    /// The `Authorization` headers of its `author` and of its `admin`.
    author: String,
    admin: String,
}

impl Other {
    async fn of(app: &TestApp) -> Other {
        let roles = BTreeMap::from([("user", USER), ("admin", ADMIN)]);
        let (store, now) = (app.store(), app.engine.clock().now());
        let tenant = tenants::ensure_tenant(store, "other", &roles, now).await;
        tenant.expect("a tenant");
        for table in [
            "person",
            "\"group\"",
            "membership",
            "definition",
            "definition_version",
        ] {
            let copy = format!(
                "insert into {table} select (jsonb_populate_record(null::{table}, to_jsonb(x) || jsonb_build_object('tenant_id', o.id))).*
                from {table} x join tenant d on d.id = x.tenant_id and d.name = 'default' join tenant o on o.name = 'other'"
            );
            sqlx::raw_sql(sqlx::AssertSqlSafe(copy))
                .execute(app.database.admin_pool())
                .await
                .expect("a copy");
        }
        let host = app.host();
        let bearer = |name: &str, role| format!("Bearer {}", host.token_of(name, "other", &[role]));
        Other {
            author: bearer("author", "user"),
            admin: bearer("admin", "admin"),
            host,
        }
    }

    async fn post(&self, authorization: &str, path: &str, body: Value) -> Answer {
        let headers = [("authorization", authorization)];
        self.host.send("", "POST", path, &headers, Some(body)).await
    }

    /// Starts an instance.
    async fn start(&self, entity: &str, data: Value) {
        let body = json!({
            "definitionKey": "subflows", "entityType": "errand", "entityId": entity, "data": data,
        });
        let started = self.post(&self.author, "/v1/instances", body).await;
        started.expect(201);
    }
}

/// Starts an instance as `author`, about an entity of this id.
async fn begin(app: &TestApp, entity: &str, data: Value) -> String {
    let body = json!({
        "definitionKey": "subflows", "entityType": "errand", "entityId": entity, "data": data,
    });
    let started = app.post("author", "/v1/instances", body).await.started();
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

/// The instance, once it satisfies the condition.
async fn until(app: &TestApp, instance: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until_so(async || shown(app, instance).await, is_so).await
}

async fn until_status(app: &TestApp, instance: &str, status: &str) -> Value {
    until(app, instance, |found| found["status"] == status).await
}

/// The children of an instance, oldest first, once there are so many.
async fn children(app: &TestApp, parent: &str, count: usize) -> Vec<String> {
    let path = format!("/v1/instances?parentId={parent}");
    let look = async || {
        let page = app.get("admin", &path).await.expect(200);
        let lines = page["data"].as_array().expect("lines");
        assert!(lines.len() <= count, "{page}");
        lines.iter().rev().map(id).collect::<Vec<String>>()
    };
    until_so(look, |found: &Vec<String>| found.len() == count).await
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
    let look = async || counted(app, "select count(*) from job").await;
    until_so(look, |left: &i64| *left == 0).await;
}

/// The audit rebuilds the instance, and a replay of its commands gives the same.
async fn proven(app: &TestApp, instance: &str) {
    audit::proven(app, InstanceId(instance.parse().expect("an id"))).await;
}
