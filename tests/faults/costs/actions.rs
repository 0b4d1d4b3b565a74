//! The actions of an instance with as many tasks as it may have.

use super::*;

/// The most tasks of one state instance.
const TASKS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explaining_the_most_actions_delays_nobody() {
    let fixture = Fixture::open().await;
    let app = &fixture.app;
    fixture.with_committee().await;
    // The owner of a task may decide it, so flow logic is called for each outcome.
    let offers = vec![json!({ "owner": "reviewer", "groups": ["reviewers"] }); TASKS];
    let start = json!({
        "definitionKey": "committee", "entityType": "thing", "entityId": "all", "data": {
            "assign": { "offers": offers, "needed": TASKS }, "padding": "x".repeat(40_000),
        },
    });
    let instance = app.post("author", "/v1/instances", start).await.started();
    let path = format!(
        "/v1/instances/{}/actions",
        instance["id"].as_str().expect("an id")
    );
    let explained = app.get("reviewer", &path).await.expect(200);
    let count = explained["actions"].as_array().expect("actions").len();
    let left = explained["omitted"]["actions"].as_u64().expect("a number");
    assert!(count > 0 && left > 0, "{count} tried, {left} left out");
    fixture
        .delays_nobody(CostlyRequest::get("actions", "reviewer", path))
        .await;
}
