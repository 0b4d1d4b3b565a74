//! A request that is sent again does nothing again.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::app::{Answer, Host, TestApp, task_of};

const KEY: (&str, &str) = ("idempotency-key", "k-1");

fn start_body(entity: &str) -> Value {
    json!({ "definitionKey": "document-approval", "entityType": "document", "entityId": entity, "data": { "title": "A plan" } })
}

async fn start(host: &Host, entity: &str) -> Answer {
    host.send(
        "author",
        "POST",
        "/v1/instances",
        &[KEY],
        Some(start_body(entity)),
    )
    .await
}

#[tokio::test]
async fn a_repeat_gets_the_stored_reply() {
    let app = TestApp::start().await;
    let first = start(&app.host(), "doc-1").await;
    assert_eq!(
        (first.status, first.headers.get("idempotency-replayed")),
        (201, None)
    );
    let again = start(&app.beside().await, "doc-1").await;
    assert_eq!((again.status, &again.text), (201, &first.text));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.headers["etag"], first.headers["etag"]);
    assert_eq!(again.headers["location"], first.headers["location"]);

    let task = task_of(&first.body);
    let claim = format!("/v1/tasks/{task}/claim");
    let claimed = app
        .host()
        .send("reviewer", "POST", &claim, &[KEY], Some(json!({})))
        .await;
    let repeated = app
        .host()
        .send("reviewer", "POST", &claim, &[KEY], Some(json!({})))
        .await;
    assert_eq!(
        (claimed.status, repeated.status, &repeated.text),
        (200, 200, &claimed.text)
    );
}

/// Repeats a request as this person, with these roles.
async fn repeat(host: &Host, person: &str, roles: &[&str], path: &str, body: &Value) -> Answer {
    let token = format!("Bearer {}", host.token_of(person, "default", roles));
    let headers = [KEY, ("authorization", token.as_str())];
    host.send("", "POST", path, &headers, Some(body.clone()))
        .await
}

#[tokio::test]
async fn a_reply_is_shown_to_those_alone_who_may_still_have_it() {
    let app = TestApp::start().await;
    let host = app.host();
    let first = start(&host, "doc-1").await;
    let task = task_of(&first.body);
    let claim = format!("/v1/tasks/{task}/claim");
    let many = json!({ "action": "release", "tasks": [task] });
    for (path, body) in [
        (claim.as_str(), json!({})),
        ("/v1/tasks/bulk", many.clone()),
    ] {
        repeat(&host, "reviewer", &["user"], path, &body)
            .await
            .expect(200);
    }
    let start = start_body("doc-1");
    let begin = "/v1/instances";
    for (person, path, body) in [("author", begin, &start), ("reviewer", &claim, &json!({}))] {
        let known = repeat(&host, person, &["user"], path, body).await;
        assert_eq!(known.headers["idempotency-replayed"], "true");
        // The roles are gone, by the token; and the refusal tells nothing of what there was.
        let answer = repeat(&host, person, &["nobody"], path, body).await;
        assert!(!answer.text.contains("\"states\""), "{}", answer.text);
        answer.problem(403, "permission_missing");
    }
    let one = async |roles: &[&str]| {
        let many = repeat(&host, "reviewer", roles, "/v1/tasks/bulk", &many);
        many.await
    };
    let known = one(&["user"]).await.expect(200);
    assert_eq!(known["results"][0]["replayed"], true);
    one(&["nobody"]).await.problem(403, "permission_missing");
    // By the tenant's table, as well.
    sqlx::query("delete from role_permission where permission = 'instance:start'")
        .execute(app.database.admin_pool())
        .await
        .expect("fewer permissions");
    repeat(&host, "author", &["user"], begin, &start)
        .await
        .problem(403, "permission_missing");
}

#[tokio::test]
async fn a_key_stands_for_one_request() {
    let app = TestApp::start().await;
    start(&app.host(), "doc-1").await.expect(201);
    start(&app.host(), "doc-2")
        .await
        .problem(422, "idempotency_key_reused");
    // Another principal's key is another key.
    let other = app
        .host()
        .send(
            "admin",
            "POST",
            "/v1/instances",
            &[KEY],
            Some(start_body("doc-3")),
        )
        .await;
    other.problem(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn twins_in_flight_get_the_same_reply() {
    let app = TestApp::start().await;
    let hosts = [app.host(), app.beside().await];
    let mut twins = JoinSet::new();
    for twin in 0..20 {
        let host = hosts[twin % 2].clone();
        twins.spawn(async move { start(&host, "doc-1").await });
    }
    let replies = twins.join_all().await;
    for reply in &replies {
        assert_eq!((reply.status, &reply.text), (201, &replies[0].text));
    }
    let fresh = replies
        .iter()
        .filter(|reply| !reply.headers.contains_key("idempotency-replayed"))
        .count();
    assert_eq!(fresh, 1);

    let claim = format!("/v1/tasks/{}/claim", task_of(&replies[0].body));
    let mut twins = JoinSet::new();
    for twin in 0..20 {
        let (host, claim) = (hosts[twin % 2].clone(), claim.clone());
        twins.spawn(async move {
            host.send("reviewer", "POST", &claim, &[KEY], Some(json!({})))
                .await
        });
    }
    let replies = twins.join_all().await;
    for reply in &replies {
        assert_eq!((reply.status, &reply.text), (200, &replies[0].text));
    }
}

#[tokio::test]
async fn a_refused_request_keeps_no_reply() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    app.host()
        .send("outsider", "POST", &claim, &[KEY], Some(json!({})))
        .await
        .problem(403, "forbidden");
    app.put(
        "admin",
        "/v1/people/outsider",
        json!({ "name": "now inside" }),
    )
    .await
    .expect(200);
    app.put("admin", "/v1/groups/reviewers/members/outsider", json!({}))
        .await
        .expect(200);
    app.host()
        .send("outsider", "POST", &claim, &[KEY], Some(json!({})))
        .await
        .expect(200);
}

#[tokio::test]
async fn keys_are_forgotten_after_a_day() {
    let app = TestApp::start().await;
    let first = start(&app.host(), "doc-1").await.expect(201);
    let pool = app.database.admin_pool();
    sqlx::query("update idempotency_key set created_at = created_at - interval '25 hours'")
        .execute(pool)
        .await
        .expect("older");
    sqlx::query("update instance set started_at = started_at - interval '25 hours'")
        .execute(pool)
        .await
        .expect("older");
    app.engine.purge().await.expect("a purge");
    let second = start(&app.host(), "doc-2").await.expect(201);
    assert_ne!(first["id"], second["id"]);
}

#[tokio::test]
async fn a_dry_run_keeps_no_key() {
    let app = TestApp::start().await;
    let dry = app
        .host()
        .send(
            "author",
            "POST",
            "/v1/instances?dryRun=true",
            &[KEY],
            Some(start_body("doc-1")),
        )
        .await;
    assert_eq!(dry.expect(200)["dryRun"], true);
    start(&app.host(), "doc-2").await.expect(201);
}
