//! Activating, retiring and reinstating versions.

use super::definitions::{VERSIONS, publish_next, standing};
use super::*;

/// The host has cached the version. Then the database was restored to a moment without it.
#[tokio::test]
async fn a_lost_version_is_not_shown_with_facts_of_an_earlier_one() {
    let app = TestApp::start().await;
    publish_next(&app, "approvers").await;
    let path = format!("{VERSIONS}/2");
    app.get("author", &path).await.expect(200);
    sql(&app, "delete from definition_version where version = 2").await;
    app.get("author", &path).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_retired_version_starts_no_instance() {
    let app = TestApp::start().await;
    let running = app.started("doc-1").await;
    let retired = standing(&app, "retire", 1).await.expect(200);
    assert_eq!(
        (&retired["retired"], &retired["changed"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        standing(&app, "retire", 1).await.expect(200)["changed"],
        false
    );
    standing(&app, "activate", 1)
        .await
        .problem(409, "version_retired");
    let start = app
        .post("author", "/v1/instances", approval_start("doc-2"))
        .await;
    let problem = start.problem(409, "no_active_version");
    assert!(
        problem["detail"]
            .as_str()
            .expect("text")
            .contains("document-approval")
    );
    let shown = app
        .get("author", &format!("{VERSIONS}/1"))
        .await
        .expect(200);
    assert_eq!(
        (&shown["active"], shown["retiredAt"].is_string()),
        (&json!(false), true)
    );
    // Running instances go on.
    app.decided("reviewer", &running, json!({ "outcome": "APPROVE" }))
        .await;

    // Retiring another version does not affect the active one.
    publish_next(&app, "approvers").await;
    publish_next(&app, "authors").await;
    standing(&app, "activate", 3).await.expect(200);
    standing(&app, "retire", 2).await.expect(200);
    let body = approval_start("doc-3");
    let started = app.post("author", "/v1/instances", body).await.started();
    assert_eq!(started["definitionVersion"], 3);
}

#[tokio::test]
async fn a_version_that_was_never_activated_starts_no_instance() {
    let app = TestApp::empty().await;
    publish_next(&app, "reviewers").await;
    let start = app
        .post("author", "/v1/instances", approval_start("doc-1"))
        .await;
    start.problem(409, "no_active_version");
    sql(
        &app,
        "delete from definition_version; delete from definition",
    )
    .await;
    let start = app
        .post("author", "/v1/instances", approval_start("doc-1"))
        .await;
    start.problem(404, "not_found");
}

#[tokio::test]
async fn activating_own_work_needs_a_permission_of_its_own() {
    let app = TestApp::empty().await;
    publish_next(&app, "reviewers").await;
    grant(&app, "activator", &["definition:activate"]).await;
    let host = app.host();
    let (name, token) = bearer(&host, "ann", "default", &["activator"]);
    let path = format!("{VERSIONS}/1/activate");
    let headers = [(name, token.as_str())];
    let activate = || host.send("", "POST", &path, &headers, Some(json!({})));
    let problem = activate().await.problem(403, "permission_missing");
    assert_eq!(problem["reason"], "definition:activate-own-work");

    // A flow without own work needs only the normal permission.
    app.publish("hostile", guests::hostile(), &json!({}))
        .await
        .expect(201);
    let other = "/v1/definitions/hostile/versions/1/activate";
    host.send("", "POST", other, &headers, Some(json!({})))
        .await
        .expect(200);
    grant(&app, "activator", &["definition:activate-own-work"]).await;
    activate().await.expect(200);
}

#[tokio::test]
async fn a_stopped_version_is_activated_once_it_is_resumed() {
    let app = TestApp::start().await;
    publish_next(&app, "approvers").await;
    let why = json!({ "reason": "It decides wrongly." });
    for version in [1, 2] {
        let stop = format!("{VERSIONS}/{version}/stop");
        app.post("admin", &stop, why.clone()).await.expect(200);
        for what in ["activate", "activate?dryRun=true"] {
            standing(&app, what, version)
                .await
                .problem(409, "version_stopped");
        }
    }
    standing(&app, "resume", 2).await.expect(200);
    standing(&app, "activate", 2).await.expect(200);
    assert_eq!(app.started("doc-1").await["definitionVersion"], 2);
}

/// The permission to migrate is not enough to choose which version instances use.
#[tokio::test]
async fn a_migration_needs_the_permission_to_activate_its_version() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    publish_next(&app, "approvers").await;
    let host = app.host();
    let (name, token) = bearer(&host, "ann", "default", &["mover"]);
    let headers = [(name, token.as_str())];
    let id = instance["id"].as_str().expect("an id");
    let one = format!("/v1/instances/{id}/migrate");
    let many = "/v1/migrations".to_owned();
    let to_two = json!({ "version": 2 });
    let all = json!({ "definitionKey": "document-approval", "fromVersion": 1, "version": 2 });
    let send = async |path: &str, body: &Value| {
        host.send("", "POST", path, &headers, Some(body.clone()))
            .await
    };
    for (granted, missing) in [
        ("instance:migrate", "definition:activate"),
        ("definition:activate", "definition:activate-own-work"),
    ] {
        grant(&app, "mover", &[granted]).await;
        for query in ["", "?dryRun=true"] {
            for (path, body) in [(&one, &to_two), (&many, &all)] {
                let path = format!("{path}{query}");
                let refused = send(&path, body).await.problem(403, "permission_missing");
                assert_eq!(refused["reason"], missing, "{path}");
            }
        }
    }
    grant(&app, "mover", &["definition:activate-own-work"]).await;
    for (path, body) in [(&one, &to_two), (&many, &all)] {
        let path = format!("{path}?dryRun=true");
        send(&path, body).await.expect(200);
    }

    // The version is active, so a person with these permissions has already approved it for instances.
    standing(&app, "activate", 2).await.expect(200);
    grant(&app, "operator", &["instance:migrate"]).await;
    let (name, token) = bearer(&host, "bob", "default", &["operator"]);
    let headers = [(name, token.as_str())];
    let migrated = host.send("", "POST", &one, &headers, Some(to_two));
    let migrated = migrated.await.expect(200);
    assert_eq!(migrated["instance"]["definitionVersion"], 2);
}

#[tokio::test]
async fn changes_of_a_versions_status_are_audited_once_each() {
    let app = TestApp::start().await;
    publish_next(&app, "approvers").await;
    for (what, version) in [
        ("activate", 2),
        ("activate", 2),
        ("retire", 1),
        ("retire", 1),
        ("reinstate", 1),
        ("reinstate", 1),
        ("retire", 1),
        ("retire", 2),
        ("reinstate", 2),
    ] {
        standing(&app, what, version).await.expect(200);
    }
    let entries =
        "select type, actor from audit_entry where stream_kind = 'definition' order by seq";
    let entries: Vec<(String, String)> = sqlx::query_as(entries)
        .fetch_all(app.database.admin_pool())
        .await
        .expect("entries");
    let kinds: Vec<&str> = entries.iter().map(|(kind, _)| kind.as_str()).collect();
    let published = ["VERSION_PUBLISHED", "VERSION_ACTIVATED"];
    let changed = [
        "VERSION_PUBLISHED",
        "VERSION_ACTIVATED",
        "VERSION_RETIRED",
        "VERSION_REINSTATED",
        "VERSION_RETIRED",
        "VERSION_RETIRED",
        "VERSION_REINSTATED",
    ];
    assert_eq!(kinds, [&published[..], &changed[..]].concat());
    assert!(entries.iter().all(|(_, actor)| actor == "admin"));
    // The rows of both versions equal the entries.
    let (_, findings) = crate::audit::everything(&app).await;
    assert_eq!(findings, []);
}

#[tokio::test]
async fn a_dry_run_of_an_activation_shows_its_effects_and_an_activation_is_undone() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    publish_next(&app, "approvers").await;
    publish_next(&app, "nobody-knows").await;
    let before = rows(&app).await;
    let tried = async |user: &'static str, version: u32| {
        let path = format!("{VERSIONS}/{version}/activate?dryRun=true");
        app.post(user, &path, json!({})).await
    };
    let effects = json!({
        "before": 1,
        "running": { "versions": [{ "version": 1, "running": 1 }], "more": false },
        "unknown": [],
    });
    let expected = json!({
        "key": "document-approval", "version": 2, "active": true, "changed": true, "dryRun": true,
        "effects": effects,
    });
    assert_eq!(tried("admin", 2).await.expect(200), expected);
    let again = tried("admin", 1).await.expect(200);
    assert_eq!(again["changed"], false, "it is active already");
    // Refused like the activation itself.
    tried("author", 2).await.problem(403, "permission_missing");
    tried("admin", 9).await.problem(404, "not_found");
    assert_eq!(rows(&app).await, before, "nothing is written");
    standing(&app, "retire", 3).await.expect(200);
    tried("admin", 3).await.problem(409, "version_retired");

    standing(&app, "activate", 2).await.expect(200);
    assert_eq!(app.started("doc-2").await["definitionVersion"], 2);
    let undo = tried("admin", 1).await.expect(200);
    assert_eq!(undo["effects"]["before"], 2);
    standing(&app, "activate", 1).await.expect(200);
    assert_eq!(app.started("doc-3").await["definitionVersion"], 1);
}

#[tokio::test]
async fn a_reinstated_version_is_activated_again() {
    let app = TestApp::start().await;
    let untouched = standing(&app, "reinstate", 1).await.expect(200);
    assert_eq!(
        (&untouched["retired"], &untouched["changed"]),
        (&json!(false), &json!(false))
    );
    let active = async || {
        let path = format!("{VERSIONS}/1");
        app.get("author", &path).await.expect(200)["active"].clone()
    };
    assert_eq!(
        active().await,
        true,
        "reinstating an active version leaves it active"
    );

    standing(&app, "retire", 1).await.expect(200);
    let reinstated = standing(&app, "reinstate", 1).await.expect(200);
    assert_eq!(
        (&reinstated["retired"], &reinstated["changed"]),
        (&json!(false), &json!(true))
    );
    let path = format!("{VERSIONS}/1");
    let shown = app.get("author", &path).await.expect(200);
    assert_eq!(
        (&shown["active"], &shown["retiredAt"]),
        (&json!(false), &Value::Null)
    );
    // It does not become active.
    app.post("author", "/v1/instances", approval_start("doc-1"))
        .await
        .problem(409, "no_active_version");
    standing(&app, "activate", 1).await.expect(200);
    app.started("doc-1").await;

    let path = format!("{VERSIONS}/1/reinstate");
    app.post("author", &path, json!({}))
        .await
        .problem(403, "permission_missing");
    standing(&app, "reinstate", 9)
        .await
        .problem(404, "not_found");
}
