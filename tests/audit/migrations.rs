//! Migrated instances: the audit proves the same, and has the version of each command.

use serde_json::json;
use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_core::ids::InstanceId;

use super::commands::prove;
use super::stream::{commands, entries};
use crate::support::app::{TestApp, task_of};
use wrkflw_store::directory::tenants;

#[tokio::test(flavor = "multi_thread")]
async fn migrated_instances_replay_version_by_version() {
    let app = TestApp::start().await;
    for config in [
        json!({ "reviewers": "approvers" }),
        json!({ "rejectionNeedsComment": false }),
    ] {
        let published = app.publish("document-approval", DOCUMENT_APPROVAL, &config);
        published.await.expect(201);
    }
    let instance = app.started("doc-1").await;
    let id = instance["id"].as_str().expect("an id");
    let path = format!("/v1/instances/{id}/migrate");
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    app.post("reviewer", &claim, json!({})).await.expect(200);
    // She loses the task, because the second version offers it to others. Then the third offers it to reviewers again.
    for version in [2, 3] {
        let migrated = app.post("admin", &path, json!({ "version": version }));
        migrated.await.expect(200);
    }
    let path = format!("/v1/instances/{id}/suspend");
    app.post("admin", &path, json!({ "reason": "A break." }))
        .await
        .expect(200);
    let path = format!("/v1/instances/{id}/migrate");
    app.post("admin", &path, json!({ "version": 1 }))
        .await
        .expect(200);
    let path = format!("/v1/instances/{id}/resume");
    app.post("admin", &path, json!({})).await.expect(200);
    let open = app.get("admin", "/v1/tasks?view=all").await.expect(200);
    let task = open["data"][0]["id"].as_str().expect("an open task");
    for (action, body) in [
        ("claim", json!({})),
        ("decide", json!({ "outcome": "APPROVE" })),
    ] {
        let path = format!("/v1/tasks/{task}/{action}");
        app.post("reviewer", &path, body).await.expect(200);
    }

    let id = InstanceId(id.parse().expect("an id"));
    let tenant = tenants::find(app.store(), "default").await;
    let tenant = tenant.expect("a query").expect("a tenant");
    prove(&app, tenant, id, 9).await;
    let entries = entries(app.database.admin_pool(), id).await;
    let versions: Vec<_> = commands(&entries)
        .map(|command| {
            let evidence = command[0].draft.evidence.as_ref().expect("evidence");
            evidence.value()["version"].as_u64().expect("a version")
        })
        .collect();
    assert_eq!(versions, [1, 1, 2, 3, 3, 1, 1, 1, 1]);
}
