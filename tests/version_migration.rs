//! Migrating instances to another version: one by one, and many in the background.

mod many;
mod one;

use serde_json::{Value, json};

use crate::support::app::{Answer, TestApp};
use crate::support::guests::committee;

/// A host with the flow of committees, with the voters `ida`, `jim` and `kay`. The second version calls the vote a ballot, the
/// third offers it to an empty bench, the fourth requires a budget, and the fifth has other voters.
async fn chambers() -> TestApp {
    let app = TestApp::empty().await;
    for config in [
        json!({}),
        json!({ "state": "Ballot" }),
        json!({ "group": "bench" }),
        json!({ "requires": "budget" }),
        json!({ "group": "reviewers" }),
    ] {
        app.publish("committee", committee(), &config)
            .await
            .expect(201);
    }
    let path = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    for group in ["voters", "bench"] {
        let path = format!("/v1/groups/{group}");
        let put = app.put("admin", &path, json!({ "name": group }));
        put.await.expect(200);
    }
    for voter in ["ida", "jim", "kay"] {
        let path = format!("/v1/people/{voter}");
        let put = app.put("admin", &path, json!({ "name": voter }));
        put.await.expect(200);
        let path = format!("/v1/groups/voters/members/{voter}");
        app.put("admin", &path, json!({})).await.expect(200);
    }
    app
}

/// Starts a vote about an entity of this id: three tasks, two of which must have the same outcome.
async fn vote(app: &TestApp, entity: &str) -> Value {
    let offer = |label: &str| json!({ "groups": ["voters"], "label": label });
    let offers = [offer("one"), offer("two"), offer("three")];
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": entity,
        "data": { "assign": { "offers": offers, "needed": 2 } },
    });
    app.post("author", "/v1/instances", body).await.started()
}

fn id(instance: &Value) -> &str {
    instance["id"].as_str().expect("an id")
}

fn task(instance: &Value, number: usize) -> &str {
    let tasks = instance["states"][0]["tasks"].as_array().expect("tasks");
    tasks[number]["id"].as_str().expect("an id")
}

async fn act(app: &TestApp, who: &str, task: &str, action: &str, body: Value) -> Answer {
    app.post(who, &format!("/v1/tasks/{task}/{action}"), body)
        .await
}

async fn migrate(app: &TestApp, instance: &Value, body: Value) -> Answer {
    let path = format!("/v1/instances/{}/migrate", id(instance));
    app.post("admin", &path, body).await
}

async fn shown(app: &TestApp, instance: &Value) -> Value {
    let path = format!("/v1/instances/{}", id(instance));
    app.get("admin", &path).await.expect(200)
}

/// The instance as in the response to a command, without members that only its own page has.
fn as_answered(mut shown: Value) -> Value {
    let members = shown.as_object_mut().expect("an instance");
    let further = [
        "ahead",
        "groups",
        "nextDueAt",
        "owners",
        "pastOwners",
        "people",
        "priority",
        "priorityName",
    ];
    for member in further {
        members.remove(member);
    }
    shown
}

fn ballot() -> Value {
    json!({ "version": 2, "states": { "Vote": "Ballot" } })
}
