//! What flow logic gets about people: only their ids, unless its definition reads more.

use super::*;
use crate::support::guests::hostile;

/// What a version's logic gets about the starter. The flow refuses, with this in the message.
async fn summary(app: &TestApp, key: &str) -> String {
    let body = json!({
        "definitionKey": key, "entityType": "thing", "entityId": "1",
        "data": { "behaviour": "echo_asked", "function": "start" },
    });
    let refused = app.post("author", "/v1/instances", body).await;
    let problem = refused.problem(403, "forbidden");
    problem["detail"].as_str().expect("a detail").to_owned()
}

#[tokio::test]
async fn logic_gets_the_groups_and_permissions_that_its_definition_reads() {
    let app = TestApp::start().await;
    for (key, config, reads) in [
        (
            "curious",
            json!({}),
            json!(["groups", "permissions", "comments", "inputs"]),
        ),
        (
            "discreet",
            json!({ "behaviour": "reads_nothing" }),
            json!([]),
        ),
    ] {
        let published = app.publish(key, hostile(), &config).await.expect(201);
        assert_eq!(published["reads"], reads, "{published}");
        let activate = format!("/v1/definitions/{key}/versions/1/activate");
        app.post("admin", &activate, json!({})).await.expect(200);
    }
    let curious = summary(&app, "curious").await;
    assert!(
        curious.contains(r#"groups: ["authors", "reviewers"]"#),
        "{curious}"
    );
    assert!(curious.contains(r#""instance:start""#), "{curious}");
    let discreet = summary(&app, "discreet").await;
    assert!(
        discreet.contains(r#"id: "author", groups: [], permissions: []"#),
        "{discreet}"
    );
}
