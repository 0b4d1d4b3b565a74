//! The permitted forms of requests, and the messages for others.

use super::*;

/// Sends a JSON text as a start.
async fn start(app: &TestApp, text: &str) -> Answer {
    raw(
        &app.host(),
        "author",
        ("POST", "/v1/instances"),
        "application/json",
        text.to_owned(),
    )
    .await
}

/// The body of a start with this text as its data.
fn with_data(data: &str) -> String {
    format!(
        r#"{{"definitionKey":"document-approval","entityType":"document","entityId":"doc-1","data":{data}}}"#
    )
}

#[tokio::test]
async fn a_text_that_is_no_json_is_refused_with_a_pointer() {
    let app = TestApp::start().await;
    let before = rows(&app).await;
    let deep = format!(r#"{{"title":{}1{}}}"#, "[".repeat(70), "]".repeat(70));
    for (text, pointer) in [
        (String::from("{"), ""),
        ("[1".into(), ""),
        ("nonsense".into(), ""),
        (with_data(r#"{"title":"a\u0000b"}"#), "/data/title"),
        // A member name that the JSON library uses for unparsed text. The validated data would differ from the stored data.
        (
            with_data(r#"{"$serde_json::private::RawValue":"{\"title\":\"\"}"}"#),
            "/data/$serde_json::private::RawValue",
        ),
        (with_data(r#"{"title":"\ud800"}"#), "/data/title"),
        (with_data(r#"{"title":"a","title":"b"}"#), "/data/title"),
        (
            with_data(r#"{"a/b":{"~":[1,"\udfff"]}}"#),
            "/data/a~1b/~0/1",
        ),
        (with_data(r#"{"n":01}"#), "/data/n"),
        (with_data(r#"{"n":1e999}"#), "/data/n"),
        (r#"{"entityId":"a","entityId":"b"}"#.into(), "/entityId"),
        (format!("{}{{}}", with_data("{}")), ""),
    ] {
        let problem = start(&app, &text).await.problem(400, "malformed_json");
        let found = problem["errors"][0]["pointer"].as_str().expect("a pointer");
        assert_eq!(found, pointer, "{text}: {problem}");
    }
    let problem = start(&app, &with_data(&deep))
        .await
        .problem(400, "malformed_json");
    let pointer = problem["errors"][0]["pointer"].as_str().expect("a pointer");
    assert!(pointer.starts_with("/data/title/0/0"), "{pointer}");
    let latin: &[u8] = b"{\"entityId\":\"\xe4\"}";
    let answer = raw(
        &app.host(),
        "author",
        ("POST", "/v1/instances"),
        "application/json",
        latin,
    )
    .await;
    answer.problem(400, "malformed_json");
    assert_eq!(rows(&app).await, before);
}

/// The body of a start with one member replaced, or removed by null.
fn start_with(member: &str, value: Value) -> Value {
    let mut body = approval_start("doc-2");
    let members = body.as_object_mut().expect("an object");
    if value.is_null() {
        members.remove(member);
    } else {
        members.insert(member.to_owned(), value);
    }
    body
}

#[track_caller]
fn points_to(answer: Answer, code: &str, pointer: &str) {
    let problem = answer.problem(422, "invalid_request");
    let error = &problem["errors"][0];
    let found = (error["code"].as_str(), error["pointer"].as_str());
    assert_eq!(found, (Some(code), Some(pointer)), "{problem}");
}

#[tokio::test]
async fn fields_of_a_start_are_known_typed_and_limited() {
    let app = TestApp::start().await;
    let before = rows(&app).await;
    let (long_id, long_note) = ("ä".repeat(201), "x".repeat(66_000));
    for (member, value, code, pointer) in [
        ("colour", json!("red"), "unknown_field", "/colour"),
        ("a/b~c", json!(1), "unknown_field", "/a~1b~0c"),
        ("entityId", json!(5), "malformed", "/entityId"),
        ("entityId", json!(""), "malformed", "/entityId"),
        ("entityId", json!(long_id), "malformed", "/entityId"),
        ("entityId", Value::Null, "required", "/entityId"),
        ("entityType", json!("a\nb"), "malformed", "/entityType"),
        ("data", json!({ "note": long_note }), "too_long", "/data"),
        ("data", json!([1]), "malformed", "/data"),
    ] {
        let body = start_with(member, value);
        let answer = app.post("author", "/v1/instances", body).await;
        points_to(answer, code, pointer);
    }
    let array = json!(["document-approval", "document", "doc-2", { "title": "A plan" }]);
    let answer = app.post("author", "/v1/instances", array).await;
    points_to(answer, "malformed", "");
    assert_eq!(rows(&app).await, before);

    // Violations of the flow's own schema have pointers into the request, too.
    let body = start_with("data", json!({ "title": 7, "link": [] }));
    let problem = app.post("author", "/v1/instances", body).await;
    let problem = problem.problem(422, "invalid_input");
    let errors = problem["errors"].as_array().expect("errors").iter();
    let pointers: Vec<_> = errors.map(|error| error["pointer"].clone()).collect();
    assert_eq!(pointers, [json!("/data/link"), json!("/data/title")]);
}

#[tokio::test]
async fn fields_of_other_commands_are_known_typed_and_limited() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let task = claimed(&app, "reviewer", &instance).await;
    let before = rows(&app).await;
    let decide = format!("/v1/tasks/{task}/decide");
    let claim = format!("/v1/tasks/{task}/claim");
    let cancel = format!(
        "/v1/instances/{}/cancel",
        instance["id"].as_str().expect("an id")
    );
    let long = "x".repeat(66_000);
    let approve = |member: &str, value: Value| json!({ "outcome": "APPROVE", member: value });
    for (path, body, code, pointer) in [
        (
            &decide,
            approve("reason", json!("")),
            "unknown_field",
            "/reason",
        ),
        (
            &decide,
            approve("comment", json!(["fine"])),
            "malformed",
            "/comment",
        ),
        (
            &decide,
            approve("comment", json!(long)),
            "too_long",
            "/comment",
        ),
        (
            &decide,
            approve("input", json!({ "note": long })),
            "too_long",
            "/input",
        ),
        (&decide, approve("input", json!([1])), "malformed", "/input"),
        (
            &decide,
            json!({ "comment": "fine" }),
            "required",
            "/outcome",
        ),
        (
            &claim,
            json!({ "for": "reviewer2" }),
            "unknown_field",
            "/for",
        ),
        (&claim, json!([]), "malformed", ""),
        (&claim, json!(null), "malformed", ""),
        (&cancel, json!({}), "required", "/reason"),
        (&cancel, json!({ "reason": "" }), "required", "/reason"),
    ] {
        points_to(app.post("admin", path, body).await, code, pointer);
    }
    assert_eq!(rows(&app).await, before);
}

#[tokio::test]
async fn fields_of_the_directory_are_known_and_typed() {
    let app = TestApp::start().await;
    let before = rows(&app).await;
    let grouped = json!({ "name": "X", "groups": [] });
    for (path, body, code, pointer) in [
        ("/v1/people/x", grouped, "unknown_field", "/groups"),
        (
            "/v1/people/x",
            json!({ "name": "a\tb" }),
            "malformed",
            "/name",
        ),
        (
            "/v1/groups/a%0Ab",
            json!({ "name": "X" }),
            "malformed",
            "/id",
        ),
    ] {
        points_to(app.put("admin", path, body).await, code, pointer);
    }
    assert_eq!(rows(&app).await, before);
}

#[tokio::test]
async fn requests_have_largest_sizes() {
    let app = TestApp::start().await;
    let host = app.host();
    let large = format!("\"{}\"", "x".repeat(256 * 1024));
    start(&app, &with_data(&large))
        .await
        .problem(413, "too_large");
    let padding = "x".repeat(17 * 1024);
    let headers = [("x-padding", padding.as_str())];
    let answer = host
        .send("author", "GET", "/v1/instances", &headers, None)
        .await;
    answer.problem(431, "headers_too_large");
    let fitting = "x".repeat(10 * 1024);
    let headers = [("x-padding", fitting.as_str())];
    host.send("author", "GET", "/v1/instances", &headers, None)
        .await
        .expect(200);
}

#[tokio::test]
async fn a_body_needs_the_content_type_json() {
    let app = TestApp::start().await;
    let body = approval_start("doc-1").to_string();
    let line = ("POST", "/v1/instances?dryRun=true");
    for wrong in [
        "text/plain",
        "application/xml",
        "text/json-ish",
        "application/json, application/a+json",
        "application/x-www-form-urlencoded",
        "",
        "json",
    ] {
        let answer = raw(&app.host(), "author", line, wrong, body.clone()).await;
        answer.problem(415, "unsupported_media_type");
    }
    for right in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/vnd.acme+json",
    ] {
        raw(&app.host(), "author", line, right, body.clone())
            .await
            .expect(200);
    }
    // An empty body needs no content type.
    let instance = app.started("doc-1").await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    app.host()
        .send("reviewer", "POST", &claim, &[], None)
        .await
        .expect(200);
}

#[tokio::test]
async fn paths_without_parameters_take_none() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let id = instance["id"].as_str().expect("an id");
    for path in [
        format!("/v1/instances/{id}?expand=all"),
        format!("/v1/instances/{id}/actions?user=reviewer"),
        format!("/v1/tasks/{}?x", task_of(&instance)),
        "/v1/people/author?x=1".into(),
        "/v1/definitions/document-approval/versions/1?x=1".into(),
    ] {
        app.get("admin", &path)
            .await
            .problem(400, "malformed_request");
    }
    for path in [
        "/v1/people/a%00b",
        "/v1/groups/%00",
        "/v1/definitions/a%00/versions",
    ] {
        app.get("admin", path).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn requests_have_distinct_ids() {
    let app = TestApp::start().await;
    let host = app.host();
    let get = async |path: &str, id: &str| {
        let answer = host
            .send("author", "GET", path, &[("x-request-id", id)], None)
            .await;
        let echoed = answer.headers["x-request-id"]
            .to_str()
            .expect("text")
            .to_owned();
        (echoed, answer.body["requestId"].clone())
    };
    assert_eq!(get("/v1/instances", "caller-7").await.0, "caller-7");
    assert_eq!(
        get("/v1/nothing", "caller-7").await,
        ("caller-7".to_owned(), json!("caller-7"))
    );
    for unfit in ["", "with space", "ümlaut", &"x".repeat(129)] {
        let (id, shown) = get("/v1/nothing", unfit).await;
        assert!(uuid::Uuid::parse_str(&id).is_ok(), "{id}");
        assert_eq!(shown, json!(id));
    }
    let (one, other) = (app.get("", "/livez").await, app.get("", "/livez").await);
    assert_ne!(one.headers["x-request-id"], other.headers["x-request-id"]);
}

/// The host nests a document in payloads, events and evidence, which become deeper than the limit of requests.
#[tokio::test]
async fn data_of_the_maximum_depth_is_accepted_everywhere() {
    let app = TestApp::start().await;
    // The body itself and `data` are the outer two of 64 levels.
    let deep = format!("{}{}", "[".repeat(62), "]".repeat(62));
    let instance = start(
        &app,
        &with_data(&format!(r#"{{"title":"A plan","deep":{deep}}}"#)),
    )
    .await
    .started();
    let id = instance["id"].as_str().expect("an id");
    let task = claimed(&app, "reviewer", &instance).await;
    let decide = format!("/v1/tasks/{task}/decide");
    app.post("reviewer", &decide, json!({ "outcome": "APPROVE" }))
        .await
        .expect(200);
    for path in ["", "/history", "/actions", "/audit"] {
        let path = format!("/v1/instances/{id}{path}");
        app.get("admin", &path).await.expect(200);
    }
    let events = app.events().await;
    assert!(
        events
            .iter()
            .any(|event| event["data"]["actor"] == "author")
    );
}

#[tokio::test]
async fn missing_things_are_reported_as_missing() {
    let app = TestApp::start().await;
    let nobody = "01890000-0000-7000-8000-000000000000";
    for path in [
        "/v1".to_owned(),
        "/v1/nothing".into(),
        "/v1/instances/".into(),
        "/v1/instances/5".into(),
        format!("/v1/instances/{nobody}"),
        format!("/v1/instances/{nobody}/history"),
        format!("/v1/instances/{nobody}/audit"),
        format!("/v1/instances/{nobody}/actions"),
        format!("/v1/instances/{nobody}/diagram.svg"),
        format!("/v1/tasks/{nobody}"),
        "/v1/people/nobody".into(),
        "/v1/groups/nobody".into(),
        "/schemas/v1/none".into(),
    ] {
        app.get("admin", &path).await.problem(404, "not_found");
    }
    let approve = json!({ "outcome": "APPROVE" });
    for (what, body) in [
        ("claim", json!({})),
        ("release", json!({})),
        ("decide", approve),
    ] {
        let path = format!("/v1/tasks/{nobody}/{what}");
        app.post("reviewer", &path, body)
            .await
            .problem(404, "not_found");
    }
    app.put("admin", "/v1/groups/authors/members/nobody", json!({}))
        .await
        .problem(404, "not_found");
    for (method, path, allowed) in [
        ("DELETE", "/v1/instances", "GET,HEAD,POST"),
        ("PATCH", "/v1/people/author", "GET,HEAD,PUT"),
        ("GET", "/v1/groups/authors/members/author", "PUT,DELETE"),
        ("POST", "/livez", "GET,HEAD"),
    ] {
        let answer = app.host().send("admin", method, path, &[], None).await;
        let listed = answer.headers["allow"]
            .to_str()
            .expect("text")
            .replace(' ', "");
        let sorted = |list: &str| {
            let mut list: Vec<_> = list.split(',').map(str::to_owned).collect();
            list.sort();
            list
        };
        assert_eq!(sorted(&listed), sorted(allowed), "{method} {path}");
        answer.problem(405, "method_not_allowed");
    }
}
