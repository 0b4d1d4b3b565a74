//! The verification of one instance over the API: its counts, its findings, and who may request it.

use tokio::sync::oneshot;
use wrkflw_core::ids::TenantId;

use super::*;

fn path(instance: &Value) -> String {
    format!(
        "/v1/instances/{}/verification",
        instance["id"].as_str().expect("an id")
    )
}

#[tokio::test]
async fn an_unchanged_instance_has_no_findings_and_a_changed_one_has_specific_ones() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let rejection = json!({ "outcome": "REJECT", "comment": "too short" });
    let instance = app.decided("reviewer", &instance, rejection).await;
    let other = app.started("doc-2").await;
    let verified = app.get("admin", &path(&instance)).await.expect(200);
    assert_eq!(verified["count"], 0, "{verified}");
    assert_eq!(verified["findings"], json!([]));
    assert_eq!(verified["decisions"], 1);
    assert_eq!(verified["seals"], 1);
    assert!(verified["entries"].as_u64() > Some(3), "{verified}");

    sql(
        &app,
        "update instance set initiator = 'mallory' where entity_id = 'doc-1'",
    )
    .await;
    let changed = app.get("admin", &path(&instance)).await.expect(200);
    assert_eq!(changed["count"], 1, "{changed}");
    assert_eq!(changed["findings"][0]["code"], "instance");
    let detail = changed["findings"][0]["detail"].as_str().expect("a detail");
    assert!(detail.contains("mallory"), "{detail}");
    let untouched = app.get("admin", &path(&other)).await.expect(200);
    assert_eq!(untouched["count"], 0, "{untouched}");
}

#[tokio::test]
async fn a_verification_needs_the_audit_permission_and_an_instance_of_the_tenant() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    app.get("author", &path(&instance))
        .await
        .problem(403, "permission_missing");
    let unknown = format!("/v1/instances/{}/verification", uuid::Uuid::nil());
    app.get("admin", &unknown).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_verification_takes_no_place_of_other_long_work() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let (go, going) = std::sync::mpsc::channel::<()>();
    let (begins, begun) = oneshot::channel();
    let offload = app.engine.offload().clone();
    let tenant = TenantId(1);
    let other = async move {
        let work = move || begins.send(()).is_ok() && going.recv().is_ok();
        offload.run(tenant, work).await.expect("the tenant's place")
    };
    let verified = async {
        begun.await.expect("the other work has the place");
        let verified = app.get("admin", &path(&instance)).await.expect(200);
        go.send(()).expect("the other work waits");
        verified
    };
    let (other, verified) = futures_util::future::join(other, verified).await;
    assert!(other, "it went on");
    assert_eq!(verified["count"], 0, "{verified}");
}
