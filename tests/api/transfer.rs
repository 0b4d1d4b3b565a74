//! Conditional reads, compressed bodies, and the page at the root.

use http_body_util::BodyExt as _;

use super::*;

async fn with(app: &TestApp, user: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    app.host().send(user, "GET", path, headers, None).await
}

fn tag(answer: &Answer) -> String {
    let tag = answer.headers["etag"].to_str();
    tag.expect("a text").to_owned()
}

#[tokio::test]
async fn an_unchanged_response_is_not_sent_again() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let (id, task) = (instance["id"].as_str().expect("an id"), task_of(&instance));
    let calendar = json!({ "timeZone": "UTC", "hours": { "monday": [{ "from": "09:00", "until": "17:00" }] } });
    app.put("admin", "/v1/calendars/office", calendar)
        .await
        .expect(200);
    let version = "/v1/definitions/document-approval/versions/1";
    for (path, is_weak) in [
        (format!("/v1/instances/{id}"), false),
        (format!("/v1/tasks/{task}"), false),
        (format!("/v1/instances/{id}/history"), true),
        (format!("/v1/instances/{id}/diagram.svg"), true),
        (version.to_owned(), true),
        (format!("{version}/diagram.svg"), true),
        ("/v1/people/author".to_owned(), true),
        ("/v1/groups/authors".to_owned(), true),
        ("/v1/calendars/office".to_owned(), true),
        ("/v1/me".to_owned(), true),
        ("/v1/definitions/document-approval".to_owned(), true),
        (format!("/v1/ids/{id}"), true),
        (format!("/v1/instances/{id}/actions"), true),
        ("/v1/people/author/absences".to_owned(), true),
        ("/v1/me/preferences".to_owned(), true),
        ("/v1/me/sessions".to_owned(), true),
        ("/v1/me/views".to_owned(), true),
        ("/v1/calendars".to_owned(), true),
        ("/openapi.json".to_owned(), true),
        ("/asyncapi.json".to_owned(), true),
        ("/schemas/".to_owned(), true),
        ("/schemas/v1/dev.wrkflw.task.created.json".to_owned(), true),
    ] {
        let first = app.get("author", &path).await;
        assert_eq!(first.status, 200, "{path}");
        let tag = tag(&first);
        assert_eq!(tag.starts_with("W/"), is_weak, "{path}: {tag}");
        let opaque = tag.trim_start_matches("W/");
        for held in [tag.clone(), format!("\"x\", W/{opaque}"), "*".to_owned()] {
            let again = with(&app, "author", &path, &[("if-none-match", &held)]).await;
            assert_eq!((again.status, &*again.text), (304, ""), "{path}: {held}");
            assert_eq!(again.headers["etag"], tag, "{path}");
            assert!(again.headers.contains_key("x-request-id"));
        }
        let other = with(&app, "author", &path, &[("if-none-match", "\"other\"")]).await;
        assert_eq!((other.status, other.text), (200, first.text), "{path}");
    }
}

#[tokio::test]
async fn a_changed_response_is_sent_and_nothing_to_callers_without_access() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let path = format!("/v1/instances/{}", instance["id"].as_str().expect("an id"));
    let group = "/v1/groups/reviewers";
    for path in [path.as_str(), group] {
        let held = tag(&app.get("author", path).await);
        let held = [("if-none-match", held.as_str())];
        assert_eq!(with(&app, "author", path, &held).await.status, 304);
        let headers = [held[0], ("authorization", "Bearer x")];
        assert_eq!(with(&app, "", path, &headers).await.status, 401);
        claimed(&app, "reviewer", &app.started(path).await).await;
        if path == group {
            let member = "/v1/groups/reviewers/members/approver";
            app.put("admin", member, json!({})).await.expect(200);
        } else {
            claimed(&app, "reviewer", &instance).await;
        }
        assert_eq!(
            with(&app, "author", path, &held).await.status,
            200,
            "{path}"
        );
    }
    // A command is not a read.
    let task = task_of(&app.started("doc-2").await);
    let claim = format!("/v1/tasks/{task}/claim");
    let any = [("if-none-match", "*")];
    let host = app.host();
    let claim = host.send("reviewer", "POST", &claim, &any, Some(json!({})));
    claim.await.expect(200);
}

#[tokio::test]
async fn long_bodies_are_compressed_if_the_client_accepts_it() {
    let app = TestApp::start().await;
    let path = "/v1/definitions/document-approval/versions/1";
    let plain = app.get("author", path).await;
    assert!(plain.text.len() > 1024 && !plain.headers.contains_key("content-encoding"));
    for (accepted, encoding, magic) in [
        ("gzip", "gzip", &[0x1f, 0x8b][..]),
        ("zstd", "zstd", &[0x28, 0xb5, 0x2f, 0xfd]),
        ("gzip;q=0.5, zstd", "zstd", &[0x28, 0xb5, 0x2f, 0xfd]),
    ] {
        let request = app.host().request("author", "GET", path);
        let request = request.header("accept-encoding", accepted);
        let host = app.host();
        let response = host.open(request.body(Body::empty()).expect("a request"));
        let (parts, body) = response.await.into_parts();
        assert_eq!(parts.headers["content-encoding"], encoding, "{accepted}");
        assert_eq!(parts.headers["etag"], plain.headers["etag"]);
        let bytes = body.collect().await.expect("a body").to_bytes();
        assert!(
            bytes.starts_with(magic) && bytes.len() < plain.text.len(),
            "{accepted}"
        );
    }
    let other = with(&app, "author", path, &[("accept-encoding", "br, identity")]).await;
    assert_eq!((other.text, other.status), (plain.text, 200));
}

#[tokio::test]
async fn short_bodies_and_streams_are_not_compressed() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let decide = format!("/v1/tasks/{}/decide", task_of(&instance));
    let headers = [
        ("prefer", "return=minimal"),
        ("accept-encoding", "gzip, zstd"),
    ];
    let host = app.host();
    let mut request = host.request("reviewer", "POST", &decide);
    let map = request.headers_mut().expect("headers");
    for (name, value) in headers {
        map.insert(name, value.parse().expect("a value"));
    }
    map.insert("content-type", "application/json".parse().expect("a value"));
    let body = Body::from(json!({ "outcome": "APPROVE" }).to_string());
    let decided = host.answer(request.body(body).expect("a request")).await;
    assert!(!decided.headers.contains_key("content-encoding"));
    decided.expect(200);
    let request = host.request("author", "GET", "/v1/events/stream");
    let request = request.header("accept-encoding", "gzip, zstd");
    let stream = host
        .open(request.body(Body::empty()).expect("a request"))
        .await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    assert!(!stream.headers().contains_key("content-encoding"));
}

#[tokio::test]
async fn the_root_leads_on() {
    let app = TestApp::empty().await;
    let html = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let browser = with(&app, "", "/", &[("accept", html)]).await;
    assert_eq!(
        (browser.status, &browser.headers["location"]),
        (303, &"/docs".parse().expect("a value"))
    );
    let links = app.get("", "/").await.expect(200);
    let links = links.as_object().expect("links");
    assert!(links.len() >= 4, "{links:?}");
    for link in links.values() {
        assert_eq!(
            app.get("", link.as_str().expect("a path")).await.status,
            200,
            "{link}"
        );
    }
}

#[tokio::test]
async fn an_unknown_path_has_a_page_for_browsers() {
    let app = TestApp::empty().await;
    let html = [("accept", "text/html,*/*;q=0.8")];
    for path in ["/inbox", "/v1/nothing", "/docs/nothing"] {
        let page = with(&app, "", path, &html).await;
        let kind = page.headers["content-type"].to_str().expect("a text");
        assert_eq!((page.status, kind), (404, "text/html; charset=utf-8"));
        assert!(page.text.contains("<a href=\"/\">"), "{}", page.text);
        let policy = page.headers["content-security-policy"].to_str();
        assert!(policy.expect("a text").starts_with("default-src 'none'"));
        app.get("", path).await.problem(404, "not_found");
    }
}
