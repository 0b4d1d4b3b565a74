//! Publishing versions, and which version instances use. `versions` tests the change of their status.

use wrkflw::sample::DOCUMENT_APPROVAL;

use super::*;

pub(super) const VERSIONS: &str = "/v1/definitions/document-approval/versions";

/// Code and pointer of every field error. Each must have a message, too.
fn errors(problem: &Value) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for error in problem["errors"].as_array().expect("errors") {
        let text = |member: &str| error[member].as_str().expect("text");
        assert!(text("detail").len() > 5, "{problem}");
        found.push((text("code"), text("pointer")));
    }
    found
}

pub(super) async fn standing(app: &TestApp, what: &str, version: u32) -> Answer {
    app.post("admin", &format!("{VERSIONS}/{version}/{what}"), json!({}))
        .await
}

/// Publishes document approval with another config as its next version.
pub(super) async fn publish_next(app: &TestApp, reviewers: &str) -> Value {
    let config = json!({ "reviewers": reviewers });
    let published = app.publish("document-approval", DOCUMENT_APPROVAL, &config);
    published.await.expect(201)
}

#[tokio::test]
async fn identical_content_makes_no_new_version() {
    let app = TestApp::empty().await;
    let config = json!({});
    let publish = || app.publish("document-approval", DOCUMENT_APPROVAL, &config);
    let first = publish().await.expect(201);
    assert_eq!(
        (&first["key"], &first["version"]),
        (&json!("document-approval"), &json!(1))
    );
    assert_eq!(
        (&first["created"], &first["ownWork"]),
        (&json!(true), &json!(["ReworkRequested"]))
    );
    let before = rows(&app).await;
    let again = publish().await.expect(200);
    assert_eq!(
        (&again["version"], &again["created"]),
        (&json!(1), &json!(false))
    );
    assert_eq!(again["digest"], first["digest"]);
    assert_eq!(rows(&app).await, before);

    // Another config is other content, and so is a component with a changed byte that is never executed.
    assert_eq!(publish_next(&app, "approvers").await["version"], 2);
    let other = guests::another(DOCUMENT_APPROVAL, "note");
    let third = app
        .publish("document-approval", &other, &json!({}))
        .await
        .expect(201);
    assert_eq!(third["version"], 3);
    assert_ne!(third["digest"], first["digest"]);
    let config = br#"{ "reviewers" : "approvers" }"#;
    let fields: &[(&str, &[u8])] = &[("component", DOCUMENT_APPROVAL), ("config", config)];
    let reordered = upload(&app.host(), "admin", "document-approval", fields).await;
    assert_eq!(reordered.expect(200)["version"], 2);
}

#[tokio::test]
async fn lists_and_the_audit_show_the_note_of_a_version() {
    let app = TestApp::empty().await;
    let host = app.host();
    let publish = async |config: &str, note: &[u8]| {
        let fields: &[(&str, &[u8])] = &[
            ("component", DOCUMENT_APPROVAL),
            ("config", config.as_bytes()),
            ("note", note),
        ];
        upload(&host, "admin", "document-approval", fields).await
    };
    let why = "Reviewers of the plant ä\nand \"others\"";
    publish("{}", why.as_bytes()).await.expect(201);
    // The same content keeps its version and its note.
    publish("{}", b"Another reason").await.expect(200);
    publish_next(&app, "approvers").await;
    let notes = json!([null, why]);
    for path in ["/v1/definitions", VERSIONS] {
        let page = app.get("author", path).await.expect(200);
        let data = page["data"].as_array().expect("versions");
        let listed: Vec<_> = data.iter().map(|one| one["note"].clone()).collect();
        assert_eq!(json!(listed), notes, "{path}");
    }
    let shown = app
        .get("author", &format!("{VERSIONS}/1"))
        .await
        .expect(200);
    assert_eq!(
        (&shown["note"], &shown["publishedBy"]),
        (&json!(why), &json!("admin"))
    );
    let audited = "select payload::json ->> 'note' from audit_entry where type = 'VERSION_PUBLISHED' order by seq";
    let audited: Vec<Option<String>> = sqlx::query_scalar(audited)
        .fetch_all(app.database.admin_pool())
        .await
        .expect("entries");
    assert_eq!(audited, [Some(why.to_owned()), None]);
    let (_, findings) = crate::audit::everything(&app).await;
    assert_eq!(findings, []);

    let before = rows(&app).await;
    let longest = "ä".repeat(500);
    for (note, code) in [
        (format!("{longest}ä").into_bytes(), "too_long"),
        (b" \n ".to_vec(), "required"),
        (b"a\0b".to_vec(), "malformed"),
        (b"\xff".to_vec(), "malformed"),
    ] {
        let refused = fault(publish(r#"{"reviewers": "authors"}"#, &note).await);
        assert_eq!(refused, ("/note".to_owned(), code.to_owned()));
    }
    assert_eq!(rows(&app).await, before);
    publish(r#"{"reviewers": "authors"}"#, longest.as_bytes())
        .await
        .expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_publications_of_the_same_content_make_one_version() {
    let app = TestApp::empty().await;
    let config = json!({});
    let answers = futures_util::future::join_all(
        // As many as a tenant may send concurrently.
        (0..6).map(|_| app.publish("document-approval", DOCUMENT_APPROVAL, &config)),
    );
    let answers = answers.await;
    let created = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(created, 1);
    assert!(
        answers.iter().all(|answer| answer.body["version"] == 1),
        "{answers:?}"
    );
}

#[tokio::test]
async fn an_invalid_graph_is_refused_with_all_its_problems() {
    let app = TestApp::empty().await;
    let before = rows(&app).await;
    let config = json!({ "behaviour": "broken_graph" });
    let refused = app.publish("hostile", guests::hostile(), &config).await;
    let problem = refused.problem(422, "unpublishable");
    let found = errors(&problem);
    for expected in [
        ("initial_missing", "/initial"),
        ("template_malformed", "/instanceTitle"),
        ("no_way_out", "Lost"),
        ("trigger_repeated", "Work/GO"),
        ("target_missing", "Work/GO"),
        ("source_not_of_kind", "Work/GO"),
    ] {
        assert!(
            found.contains(&expected),
            "{expected:?} is missing in {found:?}"
        );
    }
    assert!(
        found
            .iter()
            .any(|(code, at)| *code == "schema_invalid" && at.starts_with("/dataSchema"))
    );
    assert_eq!(
        problem["detail"],
        format!("the version has {} problems", found.len())
    );
    assert_eq!(rows(&app).await, before);
}

#[tokio::test]
async fn a_file_that_is_no_flow_is_refused_with_its_kind() {
    let app = TestApp::empty().await;
    let before = rows(&app).await;
    let module = wat::parse_str("(module)").expect("a module");
    let importing = wat::parse_str(r#"(component (import "wasi:cli/run" (func)))"#).expect("one");
    for (bytes, code, named) in [
        (&module[..], "not_a_component", "core WebAssembly module"),
        (
            b"\xde\xad\xbe\xef random bytes",
            "not_a_component",
            "no WebAssembly",
        ),
        (b"(component)", "not_a_component", "WebAssembly text"),
        (b"", "not_a_component", "no bytes at all"),
        (&importing, "component_imports", "`wasi:cli/run`"),
    ] {
        let problem = app.publish("thing", bytes, &json!({})).await;
        let problem = problem.problem(422, "unpublishable");
        assert_eq!(problem["errors"][0]["code"], code);
        let detail = problem["errors"][0]["detail"].as_str().expect("a detail");
        assert!(detail.contains(named), "{detail}");
    }
    assert_eq!(rows(&app).await, before);
}

#[tokio::test]
async fn a_config_is_refused_with_the_flows_own_message() {
    let app = TestApp::empty().await;
    let config = json!({ "reviewer": "peers" });
    let refused = app
        .publish("document-approval", DOCUMENT_APPROVAL, &config)
        .await;
    let problem = refused.problem(422, "unpublishable");
    assert_eq!(errors(&problem), [("config_invalid", "/reviewer")]);

    let component: &[u8] = DOCUMENT_APPROVAL;
    for (config, pointer) in [
        (&b"{\"reviewers\": "[..], "/config/reviewers"),
        (b"{\"a\": {\"b\": 1, \"b\": 2}}", "/config/a/b"),
        (b"", "/config"),
    ] {
        let fields = [("component", component), ("config", config)];
        let answer = upload(&app.host(), "admin", "document-approval", &fields).await;
        let problem = answer.problem(400, "malformed_json");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
}

#[tokio::test]
async fn a_form_has_exactly_two_fields() {
    let app = TestApp::empty().await;
    let host = app.host();
    let component: (&str, &[u8]) = ("component", DOCUMENT_APPROVAL);
    for (fields, code, pointer) in [
        (&[("config", &b"{}"[..])][..], "required", "/component"),
        (&[], "required", "/component"),
        (&[component, ("colour", b"red")], "unknown_field", "/colour"),
        (&[component, component], "repeated", "/component"),
        (
            &[component, ("config", b"{}"), ("config", b"{}")],
            "repeated",
            "/config",
        ),
    ] {
        let answer = upload(&host, "admin", "document-approval", fields).await;
        let problem = answer.problem(422, "invalid_request");
        assert_eq!(errors(&problem), [(code, pointer)]);
    }
    let plain = raw(&host, "admin", ("POST", VERSIONS), "application/json", "{}").await;
    plain.problem(415, "unsupported_media_type");
    let form = "multipart/form-data; boundary=x";
    let cut = raw(
        &host,
        "admin",
        ("POST", VERSIONS),
        form,
        "--x\r\nContent-Dis",
    )
    .await;
    cut.problem(400, "malformed_request");
}

#[tokio::test]
async fn a_component_is_published_again_with_another_config() {
    let app = TestApp::start().await;
    let host = app.host();
    let config: (&str, &[u8]) = ("config", br#"{"rejectionNeedsComment": false}"#);
    let key = "document-approval";
    let again = upload(&host, "admin", key, &[config, ("componentVersion", b"1")]).await;
    let again = again.expect(201);
    assert_eq!(again["version"], 2);
    let versions = app.get("admin", VERSIONS).await.expect(200);
    assert_eq!(versions["data"][0]["digest"], versions["data"][1]["digest"]);
    for (version, status, code) in [
        (&b"9"[..], 404, "not_found"),
        (b"one", 422, "invalid_request"),
        (b"-1", 422, "invalid_request"),
    ] {
        let answer = upload(
            &host,
            "admin",
            key,
            &[config, ("componentVersion", version)],
        )
        .await;
        answer.problem(status, code);
    }
    let both = [("component", DOCUMENT_APPROVAL), ("componentVersion", b"1")];
    let both = upload(&host, "admin", key, &both).await;
    both.problem(422, "invalid_request");
    let fields = [config, ("componentVersion", &b"1"[..])];
    upload(&host, "author", key, &fields)
        .await
        .problem(403, "permission_missing");
}

#[tokio::test]
async fn a_key_is_well_formed() {
    let app = TestApp::empty().await;
    for key in ["1st", "-", &"k".repeat(256), "%C3%A4"] {
        let problem = app.publish(key, DOCUMENT_APPROVAL, &json!({})).await;
        let problem = problem.problem(422, "unpublishable");
        assert_eq!(problem["errors"][0]["code"], "malformed_key", "{key}");
    }
}

/// Nobody could follow a transition whose permission no role has. So the permission is reported like other unknown names.
#[tokio::test]
async fn a_permission_that_no_role_has_is_reported_before_it_is_needed() {
    let app = TestApp::empty().await;
    let config = json!({ "transitions": { "YES": { "permission": "plan:sign" } } });
    let published = app.publish("vote", guests::committee(), &config).await;
    let unknown = json!([{
        "kind": "permission", "name": "plan:sign", "message": "no role gives the permission plan:sign",
        "pointer": "/transitions/YES/permission",
    }]);
    assert_eq!(published.expect(201)["warnings"], unknown);
    let path = "/v1/definitions/vote/versions/1/activate";
    let refused = app.post("admin", path, json!({})).await;
    let refused = refused.problem(409, "unknown_names");
    assert_eq!(errors(&refused), [("unknown_permission", "/force")]);
    let permissions = json!({ "permissions": ["plan:sign"] });
    app.put("admin", "/v1/roles/signer", permissions)
        .await
        .expect(200);
    app.post("admin", path, json!({})).await.expect(200);
}

#[tokio::test]
async fn an_upload_has_a_size_limit() {
    let app = TestApp::empty().await;
    let large = vec![0; 27 << 20];
    let answer = upload(
        &app.host(),
        "admin",
        "document-approval",
        &[("component", &large)],
    )
    .await;
    answer.problem(413, "too_large");
    // Larger than any JSON body may be, but allowed for a form.
    let other = vec![0; 1 << 20];
    let answer = upload(
        &app.host(),
        "admin",
        "document-approval",
        &[("component", &other)],
    )
    .await;
    answer.problem(422, "unpublishable");
}

#[tokio::test]
async fn new_instances_use_the_active_version_and_running_ones_keep_theirs() {
    let app = TestApp::start().await;
    let neighbour = app.beside().await;
    let old = app.started("doc-1").await;
    publish_next(&app, "approvers").await;
    let shown = app.get("author", VERSIONS).await.expect(200);
    let standing_of = |version: &Value| (version["version"].clone(), version["active"].clone());
    let versions = shown["data"]
        .as_array()
        .expect("versions")
        .iter()
        .map(standing_of);
    assert_eq!(
        versions.collect::<Vec<_>>(),
        [(json!(2), json!(false)), (json!(1), json!(true))]
    );
    assert_eq!(app.started("doc-2").await["definitionVersion"], 1);

    let activated = standing(&app, "activate", 2).await.expect(200);
    let expected = json!({ "key": "document-approval", "version": 2, "active": true, "changed": true, "dryRun": false });
    assert_eq!(activated, expected);
    assert_eq!(
        standing(&app, "activate", 2).await.expect(200)["changed"],
        false
    );
    // The other host uses it at once, because each start reads the active version.
    let body = approval_start("doc-3");
    let new = neighbour
        .send("author", "POST", "/v1/instances", &[], Some(body))
        .await
        .started();
    assert_eq!(new["definitionVersion"], 2);
    assert_eq!(
        new["states"][0]["tasks"][0]["candidates"][0]["id"],
        "approvers"
    );

    // The second review of the old instance follows the first version.
    let decided = app
        .decided("reviewer", &old, json!({ "outcome": "APPROVE" }))
        .await;
    assert_eq!(decided["definitionVersion"], 1);
    let rejected = json!({ "outcome": "REJECT", "comment": "again" });
    let rework = app.decided("approver", &decided, rejected).await;
    let again = app
        .decided("author", &rework, json!({ "outcome": "SUBMIT" }))
        .await;
    assert_eq!(
        again["states"][0]["tasks"][0]["candidates"][0]["id"],
        "reviewers"
    );
}

#[tokio::test]
async fn versions_and_their_diagrams_are_shown() {
    let app = TestApp::start().await;
    let shown = app
        .get("author", &format!("{VERSIONS}/1"))
        .await
        .expect(200);
    assert_eq!(shown["graph"]["initial"], "Submitted");
    assert_eq!(
        (&shown["config"], &shown["publishedBy"]),
        (&json!({}), &json!("admin"))
    );
    assert_eq!(shown["wit"], "wrkflw:flow@0.1.0");
    let drawn = app
        .get("author", &format!("{VERSIONS}/1/diagram.svg"))
        .await;
    assert_eq!(
        (drawn.status, &drawn.headers["content-type"]),
        (200, &"image/svg+xml".parse().expect("one"))
    );
    assert!(
        drawn.text.starts_with("<svg") && drawn.text.contains("First review"),
        "{}",
        drawn.text
    );

    for missing in [
        "/v1/definitions/none/versions",
        &format!("{VERSIONS}/9"),
        &format!("{VERSIONS}/9/diagram.svg"),
    ] {
        app.get("author", missing).await.problem(404, "not_found");
    }
    for what in ["activate", "retire"] {
        standing(&app, what, 9).await.problem(404, "not_found");
        standing(&app, what, 0).await.problem(404, "not_found");
    }
    for version in ["latest", "-1", "4294967296", "4294967295", "2147483648"] {
        let path = format!("{VERSIONS}/{version}");
        app.get("author", &path).await.problem(404, "not_found");
    }
}
