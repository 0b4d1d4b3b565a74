//! Headers of requests and responses: ambiguous requests are refused, and every response has the required headers.

use super::*;

#[tokio::test]
async fn an_ambiguous_request_is_refused() {
    let app = TestApp::start().await;
    let host = app.host();
    let before = rows(&app).await;
    let (_, author) = bearer(&host, "author", "default", &["user"]);
    let (_, admin) = bearer(&host, "admin", "default", &["admin"]);
    let start = async |headers: &[(&str, &str)]| {
        let body = Some(approval_start("doc-1"));
        host.send("", "POST", "/v1/instances", headers, body).await
    };
    let known = ("authorization", author.as_str());
    for doubled in [
        [known, ("authorization", &admin)],
        [known, known],
        [("idempotency-key", "a"), ("idempotency-key", "b")],
        [("if-match", "\"1\""), ("if-match", "*")],
        [("content-type", "text/plain"), ("x", "y")],
        [("host", "elsewhere"), ("x", "y")],
        [("last-event-id", "a"), ("last-event-id", "b")],
    ] {
        let mut headers = doubled.to_vec();
        if doubled[0].0 != "authorization" {
            headers.push(known);
        }
        let problem = start(&headers).await.problem(400, "malformed_request");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(doubled[0].0), "{doubled:?}: {detail}");
    }
    // Joined by a comma, as proxies do it.
    for (joined, status, code) in [
        (("idempotency-key", "a, b"), 400, "malformed_request"),
        (
            ("idempotency-key", "\"a\", \"b\""),
            400,
            "malformed_request",
        ),
        (("if-match", "\"1\", \"2\""), 400, "malformed_request"),
        (
            ("content-encoding", "identity, gzip"),
            415,
            "unsupported_encoding",
        ),
        (("content-encoding", "gzip"), 415, "unsupported_encoding"),
    ] {
        start(&[known, joined]).await.problem(status, code);
    }
    let both = format!("{author}, {admin}");
    start(&[("authorization", &both)])
        .await
        .problem(401, "token_malformed");
    assert_eq!(rows(&app).await, before);
    // A comma in quotes is part of the key.
    start(&[known, ("idempotency-key", "\"a, b\"")])
        .await
        .expect(201);
}

#[tokio::test]
async fn responses_forbid_sniffing_and_data_is_not_cached() {
    let app = TestApp::start().await;
    let started = app.started("doc-1").await;
    let id = started["id"].as_str().expect("an id");
    for (path, status) in [
        (format!("/v1/instances/{id}"), 200),
        (format!("/v1/instances/{id}/diagram.svg"), 200),
        ("/v1/events".to_owned(), 200),
        ("/v1/instances?limit=0".to_owned(), 400),
        ("/v1/nothing".to_owned(), 404),
        ("/openapi.json".to_owned(), 200),
        ("/livez".to_owned(), 200),
        ("/docs".to_owned(), 200),
    ] {
        let answer = app.get("author", &path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        assert_eq!(
            answer.headers["x-content-type-options"], "nosniff",
            "{path}"
        );
        let kept = answer.headers.get("cache-control");
        let is_data = path.starts_with("/v1/");
        assert_eq!(
            kept.is_some_and(|kept| kept == "no-store"),
            is_data,
            "{path}"
        );
    }
    let stream = app.host().request("author", "GET", "/v1/events/stream");
    let stream = stream.body(Body::empty()).expect("a request");
    let headers = app.host().open(stream).await.headers().clone();
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    let outsider = app.get("", "/v1/instances").await;
    assert_eq!(outsider.headers["cache-control"], "no-store");
    outsider.problem(401, "token_missing");
}

#[tokio::test]
async fn json_ends_with_a_line_feed_outside_of_tags_and_stored_replies() {
    let app = TestApp::start().await;
    let host = app.host();
    let key = [("idempotency-key", "k")];
    let start = async || {
        let body = Some(approval_start("doc-1"));
        host.send("author", "POST", "/v1/instances", &key, body)
            .await
    };
    let (first, again) = (start().await, start().await);
    assert!(first.text.ends_with("}\n"), "{}", first.text);
    assert_eq!(first.text, again.text);
    let refused = app.get("author", "/v1/groups/nothing").await;
    assert!(refused.text.ends_with("}\n"), "{}", refused.text);
    for path in ["/v1/groups/reviewers", "/openapi.json", "/v1/events"] {
        let whole = app.get("author", path).await;
        assert!(whole.text.ends_with("}\n"), "{path}");
        let head = host.send("author", "HEAD", path, &[], None).await;
        let length = whole.text.len().to_string();
        assert_eq!(head.text, "");
        assert_eq!(head.headers["content-length"], length, "{path}");
        let Some(tag) = whole.headers.get("etag").and_then(|tag| tag.to_str().ok()) else {
            continue;
        };
        let conditional = [("if-none-match", tag)];
        let same = host.send("author", "GET", path, &conditional, None).await;
        assert_eq!((same.status, same.text.as_str()), (304, ""));
    }
    let plain = app.get("author", "/livez").await;
    assert!(!plain.text.ends_with("\n\n"), "{}", plain.text);
}
