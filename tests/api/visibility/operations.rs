//! Bulk operations that hide instances from their requesters.

use wrkflw_engine::job_handlers::JobHandlers;
use wrkflw_store::bulk::{self, Batch, Outcome};

use super::*;

/// An instance that everybody sees, and the claimed item of a migration by `sue` that would hide it from her.
async fn hiding(app: &TestApp) -> (Value, Batch) {
    let activate = async |version: u32| {
        let path = format!("/v1/definitions/committee/versions/{version}/activate");
        app.post("admin", &path, json!({})).await.expect(200);
    };
    activate(2).await;
    let instance = vote(app, "m-1").await;
    // A person with only the permission to migrate may migrate to the active version.
    activate(1).await;
    super::grant(app, "mover", &["instance:migrate"]).await;
    let host = app.host();
    let (name, mover) = super::bearer(&host, "sue", "default", &["mover"]);
    let headers = [(name, mover.as_str())];
    let body = json!({ "definitionKey": "committee", "fromVersion": 2, "version": 1 });
    let begun = host.send("", "POST", "/v1/migrations", &headers, Some(body));
    assert_eq!(begun.await.expect(201)["total"], 1);
    let now = app.engine.clock().now();
    let lease_end = now + jiff::Span::new().hours(1);
    let batch = bulk::claim_batch(app.store(), now, lease_end, 1).await;
    (instance, batch.expect("a claim").expect("a batch"))
}

/// The item is executed again, as if the host had died after the commit and before the result was recorded.
#[tokio::test]
async fn a_repeated_migration_that_hides_an_instance_is_done() {
    let app = chambers().await;
    let (instance, batch) = hiding(&app).await;
    for _ in 0..2 {
        let item = JobHandlers::item(&app.engine, &batch, batch.items[0].0);
        let outcome = item.await.expect("an outcome");
        assert!(
            matches!(outcome, Outcome::Done { revision: 2 }),
            "{outcome:?}"
        );
    }
    assert!(!sees(&app, "sue", &instance).await);
}

#[tokio::test]
async fn an_instance_that_its_requester_does_not_see_any_more_is_refused_as_not_found() {
    let app = chambers().await;
    let (instance, batch) = hiding(&app).await;
    let path = format!("/v1/instances/{}/migrate", id(&instance));
    let to_one = json!({ "version": 1, "states": {} });
    app.post("admin", &path, to_one).await.expect(200);
    let item = JobHandlers::item(&app.engine, &batch, batch.items[0].0);
    let outcome = item.await.expect("an outcome");
    assert!(
        matches!(&outcome, Outcome::Refused { code, .. } if code == "not_found"),
        "{outcome:?}"
    );
}
