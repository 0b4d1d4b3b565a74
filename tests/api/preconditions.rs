//! Headers that a command depends on: idempotency keys and revisions.

use super::access::World;
use super::openapi::operations;
use super::*;

#[tokio::test]
async fn an_idempotency_key_is_plain_text() {
    let app = TestApp::start().await;
    let host = app.host();
    let long = "k".repeat(256);
    for key in ["", "\"\"", "a\"b", &long] {
        let headers = [("idempotency-key", key)];
        let body = Some(approval_start("doc-1"));
        host.send("author", "POST", "/v1/instances", &headers, body)
            .await
            .problem(400, "malformed_request");
    }
    for (key, status) in [("\"k 1\"", 201), ("k 1", 201)] {
        let headers = [("idempotency-key", key)];
        let body = Some(approval_start("doc-1"));
        let answer = host.send("author", "POST", "/v1/instances", &headers, body);
        let replayed = answer.await;
        assert_eq!(replayed.status, status, "{}", replayed.text);
    }
}

#[tokio::test]
async fn a_command_checks_the_revision_that_it_names() {
    let app = TestApp::start().await;
    let host = app.host();
    let started = host
        .send(
            "author",
            "POST",
            "/v1/instances",
            &[],
            Some(approval_start("doc-1")),
        )
        .await;
    assert_eq!(started.headers["etag"], "\"1\"");
    let instance = started.started();
    let (id, task) = (instance["id"].as_str().expect("an id"), task_of(&instance));
    for path in [format!("/v1/instances/{id}"), format!("/v1/tasks/{task}")] {
        assert_eq!(
            app.get("author", &path).await.headers["etag"],
            "\"1\"",
            "{path}"
        );
    }
    // A start has no revision. The host refuses a header that would be ignored.
    let early = [("if-match", "\"1\"")];
    let body = json!({ "definitionKey": "document-approval", "entityType": "document", "entityId": "early" });
    host.send("author", "POST", "/v1/instances", &early, Some(body))
        .await
        .problem(400, "malformed_request");
    let claim = format!("/v1/tasks/{task}/claim");
    let send = async |what: &str, tag: &str| {
        let path = format!("/v1/tasks/{task}/{what}");
        host.send(
            "reviewer",
            "POST",
            &path,
            &[("if-match", tag)],
            Some(json!({})),
        )
        .await
    };
    for malformed in [
        "1",
        "W/\"1\"",
        "\"one\"",
        "\"-1\"",
        "\"1\", \"2\"",
        "\"+1\"",
        "\"00000000001\"",
        "",
    ] {
        send("claim", malformed)
            .await
            .problem(400, "malformed_request");
    }
    for stale in ["\"0\"", "\"2\"", "\"4294967295\"", "\"9999999999\""] {
        let problem = send("claim", stale).await.problem(412, "stale_revision");
        assert_eq!(problem["conflict"], json!({ "revision": 1 }));
    }
    let claimed = send("claim", "\"1\"").await;
    assert_eq!(
        (claimed.status, &claimed.headers["etag"]),
        (200, &"\"2\"".parse().expect("a tag"))
    );
    send("release", "\"1\"")
        .await
        .problem(412, "stale_revision");
    assert_eq!(
        send("release", "*").await.expect(200)["instance"]["revision"],
        3
    );
    app.post("reviewer", &claim, json!({})).await.expect(200);
}

/// A caller relies on such a header. So a change that does not support it is refused.
#[tokio::test]
async fn a_change_refuses_conditions_and_keys_that_it_does_not_support() {
    let world = World::new().await;
    let (app, host) = (&world.app, world.app.host());
    let before = rows(app).await;
    let mut refused = 0;
    let reads = ["/v1/instances/search", "/v1/names"];
    for operation in operations(app).await {
        if operation.method == "get" || reads.contains(&operation.path.as_str()) {
            continue;
        }
        let (method, path) = (operation.method.to_uppercase(), world.path(&operation));
        for header in [("If-Match", "*"), ("Idempotency-Key", "k-1")] {
            if operation.has_parameter(header.0) {
                continue;
            }
            let body = world.body(&operation);
            let answer = host.send("admin", &method, &path, &[header], body).await;
            let problem = answer.problem(400, "malformed_request");
            let pointer = format!("/{}", header.0);
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{method} {path}");
            refused += 1;
        }
    }
    assert!(refused > 60, "{refused}");
    assert_eq!(rows(app).await, before);
    // Reads depend on neither.
    let [search, names] = reads.map(|path| ("POST", path, Some(json!({}))));
    let roles = ["GET", "HEAD"].map(|method| (method, "/v1/roles", None));
    for (method, path, body) in roles.into_iter().chain([search, names]) {
        let headers = [("if-match", "*"), ("idempotency-key", "k-1")];
        let read = host.send("admin", method, path, &headers, body).await;
        assert_eq!(read.status, 200, "{method} {path}");
    }
}
