//! Who gets the work of a state, and what happens when nobody is left: over HTTP, with a flow whose assignments stand in
//! the data of each instance.

mod assignment;
mod bulk;
mod joins;
mod questions;
mod unassignable;
mod votes;

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::guests::committee;

/// A host on which committees vote.
async fn chambers() -> TestApp {
    let app = TestApp::empty().await;
    let published = app.publish("committee", committee(), &json!({})).await;
    published.expect(201);
    let path = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    app
}

/// Starts a vote as `author`, about an entity of this id.
async fn vote(app: &TestApp, entity: &str, data: Value) -> Value {
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": entity, "data": data,
    });
    app.post("author", "/v1/instances", body).await.expect(201)
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
