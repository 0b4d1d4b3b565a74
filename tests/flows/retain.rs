//! Tasks that go to a candidate who is familiar with the instance.

use super::*;
use crate::support::guests::branches;

#[tokio::test]
async fn the_candidate_who_decided_last_owns_the_next_task() {
    let app = TestApp::empty().await;
    offer(&app, "branches", branches(), json!({})).await;
    let items = json!([
        { "id": "bolt", "group": "reviewers" },
        { "id": "nut", "group": "approvers" },
    ]);
    let body = json!({
        "definitionKey": "branches", "entityType": "walk", "entityId": "1",
        "data": { "items": items, "retain": true },
    });
    let instance = app.post("admin", "/v1/instances", body).await.started();
    let go = json!({ "outcome": "GO" });
    for (place, person) in [(0, "reviewer2"), (1, "approver")] {
        let task = instance["states"][place]["tasks"][0].clone();
        decide(&app, person, &task, go.clone()).await;
    }
    // `approver` decided last, but is no reviewer.
    let met = shown(&app, &instance).await;
    let task = &met["states"][0]["tasks"][0];
    assert_eq!(
        (&met["states"][0]["name"], &task["owner"], &task["status"]),
        (&json!("Meet"), &json!("reviewer2"), &json!("CLAIMED"))
    );
    let path = format!("/v1/tasks/{}/decide", id(task));
    app.post("reviewer", &path, go.clone()).await.expect(403);
    // The task is as if claimed, so it can be released.
    let release = format!("/v1/tasks/{}/release", id(task));
    app.post("reviewer2", &release, json!({})).await.expect(200);
    let done = app.post("reviewer", &path, go).await.expect(200);
    assert_eq!(done["instance"]["outcome"], "DONE");
    prove_all(&app).await;
}
