//! Embed tokens: who may issue them, for whom, and about what. `access::embedding` tests their use.

use serde_json::{Value, json};
use wrkflw_runtime::clock::Clock;

use super::*;

const ORIGIN: &str = "https://documents.example";
const PATH: &str = "/v1/embed-tokens";

/// A request for a token of the reviewer about an entity, with these members replaced.
fn body(change: &Value) -> Value {
    let mut body = json!({
        "subject": "reviewer", "roles": ["user"], "entityType": "document", "entityId": "doc-1", "origin": ORIGIN,
    });
    let members = body.as_object_mut().expect("an object");
    for (name, value) in change.as_object().expect("an object") {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    body
}

async fn issue(app: &TestApp, change: &Value) -> Answer {
    app.post("admin", PATH, body(change)).await
}

#[tokio::test]
async fn a_token_is_for_one_instance_or_for_the_newest_about_an_entity() {
    let app = TestApp::start().await;
    let first = app.started("doc-1").await;
    let cancel = format!(
        "/v1/instances/{}/cancel",
        first["id"].as_str().expect("an id")
    );
    let reason = json!({ "reason": "begun anew" });
    app.post("admin", &cancel, reason).await.expect(200);
    let last = app.started("doc-1").await;
    let about_entity = issue(&app, &json!({})).await.expect(200);
    assert_eq!(about_entity["instanceId"], last["id"]);
    assert_eq!(about_entity["scope"], "read");
    let named = json!({ "entityType": null, "entityId": null, "instanceId": first["id"], "scope": "decide", "minutes": 60 });
    let named = issue(&app, &named).await.expect(200);
    assert_eq!(named["instanceId"], first["id"]);
    assert_eq!(named["scope"], "decide");
    let lasts = |token: &Value| {
        let until = token["expiresAt"].as_str().expect("a moment");
        let until: jiff::Timestamp = until.parse().expect("a moment");
        until.duration_since(Clock::System.now()).as_secs()
    };
    assert!((540..=600).contains(&lasts(&about_entity)));
    assert!((3540..=3600).contains(&lasts(&named)));
}

#[tokio::test]
async fn an_issuer_needs_a_permission_and_cannot_exceed_their_own() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    let refused = app.post("author", PATH, body(&json!({}))).await;
    refused.problem(403, "permission_missing");
    grant(&app, "product", &["embed:issue", "instance:read"]).await;
    let (_, token) = bearer(&app.host(), "documents", "default", &["product"]);
    let headers = [("authorization", token.as_str())];
    let host = app.host();
    let post = async |change: Value| {
        let body = Some(body(&change));
        host.send("", "POST", PATH, &headers, body).await
    };
    let more = post(json!({})).await.problem(422, "invalid_request");
    assert_eq!(more["errors"][0]["pointer"], "/roles");
    assert_eq!(more["errors"][0]["code"], "not_permitted");
    grant(&app, "reader", &["instance:read"]).await;
    post(json!({ "roles": ["reader"] })).await.expect(200);
    let blind = post(json!({ "roles": [] })).await;
    let blind = blind.problem(422, "invalid_request");
    assert_eq!(blind["errors"][0]["code"], "not_permitted");
}

#[tokio::test]
async fn an_instance_that_the_person_does_not_see_is_not_found() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let nothing = json!({ "entityId": "doc-9" });
    issue(&app, &nothing).await.problem(404, "not_found");
    sql(&app, "update instance set observers = '{}'").await;
    sql(&app, "update task set restricted = true").await;
    sql(&app, "update definition_version set restricted = true").await;
    let beside = app.beside().await;
    let by_id = json!({ "entityType": null, "entityId": null, "instanceId": instance["id"], "subject": "stranger" });
    for change in [json!({ "subject": "stranger" }), by_id] {
        let answer = beside
            .send("admin", "POST", PATH, &[], Some(body(&change)))
            .await;
        answer.problem(404, "not_found");
    }
}

#[tokio::test]
async fn a_wrong_request_says_what_to_correct() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    for (change, pointer) in [
        (json!({ "origin": "documents.example" }), "/origin"),
        (json!({ "origin": "https://documents.example/" }), "/origin"),
        (json!({ "origin": "*" }), "/origin"),
        (json!({ "origin": "null" }), "/origin"),
        (json!({ "minutes": 0 }), "/minutes"),
        (json!({ "minutes": 61 }), "/minutes"),
        (json!({ "scope": "own" }), "/scope"),
        (json!({ "subject": "wrkflw:host" }), "/subject"),
        (json!({ "subject": "" }), "/subject"),
        (json!({ "subject": null }), "/subject"),
        (json!({ "roles": null }), "/roles"),
        (json!({ "roles": vec!["user"; 65] }), "/roles"),
        (json!({ "roles": [""] }), "/roles/0"),
        (json!({ "entityType": null }), "/instanceId"),
        (
            json!({ "entityType": null, "entityId": null }),
            "/instanceId",
        ),
        (
            json!({ "instanceId": "00000000-0000-7000-8000-000000000000" }),
            "/instanceId",
        ),
        (json!({ "until": 5 }), "/until"),
    ] {
        let problem = issue(&app, &change).await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{change}");
    }
}
