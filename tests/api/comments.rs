//! Comments on an instance: who may write them, whom they mention, and where they are shown.

use super::people::known;
use super::*;

fn comment_on(id: &str) -> String {
    format!("/v1/instances/{id}/comment")
}

async fn started(app: &TestApp) -> String {
    let instance = app.started("doc-1").await;
    instance["id"].as_str().expect("an id").to_owned()
}

/// The instance as its author reads it.
async fn read(app: &TestApp, id: &str, what: &str) -> Value {
    let path = format!("/v1/instances/{id}/{what}");
    app.get("author", &path).await.expect(200)
}

/// The texts of a page of comments.
fn texts(page: &Value) -> Vec<&str> {
    let comments = page["data"].as_array().expect("data").iter();
    comments
        .map(|one| one["comment"].as_str().expect("a text"))
        .collect()
}

#[tokio::test]
async fn a_comment_is_published_listed_and_in_the_history() {
    let app = TestApp::start().await;
    known(&app, &["dee", "eli"]).await;
    let id = started(&app).await;
    let host = app.host();
    let prefer = [("prefer", "return=representation")];
    let body = json!({ "comment": "Where is the receipt?", "mentions": ["dee", "eli", "dee"] });
    let path = comment_on(&id);
    let answer = host.send("reviewer", "POST", &path, &prefer, Some(body));
    let answer = answer.await.expect(200);
    assert_eq!(
        (&answer["result"], &answer["instance"]["revision"]),
        (&json!("changed"), &json!(2))
    );
    let [event] = answer["events"].as_array().expect("events").as_slice() else {
        panic!("{answer}");
    };
    assert_eq!(event["type"], "dev.wrkflw.flow.commented");
    assert_eq!(event["data"]["comment"], "Where is the receipt?");
    assert_eq!(event["data"]["mentions"], json!(["dee", "eli"]));
    assert_eq!(event["data"]["actor"], "reviewer");

    let listed = read(&app, &id, "comments").await;
    let [comment] = listed["data"].as_array().expect("data").as_slice() else {
        panic!("{listed}");
    };
    assert_eq!(comment["id"], event["id"]);
    assert_eq!(comment["actor"], "reviewer");
    assert_eq!(comment["comment"], "Where is the receipt?");
    assert_eq!(comment["mentions"], json!(["dee", "eli"]));
    assert_eq!(comment["createdAt"], event["time"]);
    let history = read(&app, &id, "history").await;
    assert_eq!(history["comments"], listed["data"]);
    assert_eq!(history["commentsOmitted"], false);
}

#[tokio::test]
async fn an_unknown_person_cannot_be_mentioned() {
    let app = TestApp::start().await;
    let id = started(&app).await;
    let path = comment_on(&id);
    let before = rows(&app).await;
    let many: Vec<_> = (0..21).map(|_| "author").collect();
    for (body, status, pointer, code) in [
        (
            json!({ "comment": "Hm.", "mentions": ["author", "stranger"] }),
            422,
            "/mentions/1",
            "unknown_person",
        ),
        (
            json!({ "comment": "Hm.", "mentions": [""] }),
            422,
            "/mentions/0",
            "malformed",
        ),
        (
            json!({ "comment": "Hm.", "mentions": many }),
            422,
            "/mentions",
            "too_many",
        ),
        (json!({ "comment": " " }), 422, "/comment", "required"),
        (
            json!({ "comment": "x".repeat((16 << 10) + 1) }),
            422,
            "/comment",
            "too_long",
        ),
    ] {
        let answer = app.post("reviewer", &path, body).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        let error = &answer.body["errors"][0];
        assert_eq!(
            (&error["pointer"], &error["code"]),
            (&json!(pointer), &json!(code))
        );
    }
    assert_eq!(rows(&app).await, before);
}

#[tokio::test]
async fn a_comment_supports_keys_revisions_and_dry_runs() {
    let app = TestApp::start().await;
    let id = started(&app).await;
    let (path, host) = (comment_on(&id), app.host());
    let body = || Some(json!({ "comment": "Once." }));
    let before = rows(&app).await;
    let dry = format!("{path}?dryRun=true");
    let dry = host.send("reviewer", "POST", &dry, &[], body()).await;
    let dry = dry.expect(200);
    assert_eq!(dry["dryRun"], true);
    assert_eq!(dry["events"][0]["data"]["comment"], "Once.");
    assert_eq!(rows(&app).await, before);
    let key = [("idempotency-key", "k-1")];
    for replayed in [false, true] {
        let answer = host.send("reviewer", "POST", &path, &key, body()).await;
        assert_eq!(
            answer.headers.contains_key("idempotency-replayed"),
            replayed
        );
        answer.expect(200);
    }
    let stale = [("if-match", "\"1\"")];
    let answer = host.send("reviewer", "POST", &path, &stale, body()).await;
    answer.problem(412, "stale_revision");
    let listed = read(&app, &id, "comments").await;
    assert_eq!(texts(&listed), ["Once."]);
}

#[tokio::test]
async fn suspended_and_ended_instances_take_comments() {
    let app = TestApp::start().await;
    let id = started(&app).await;
    let reason = || json!({ "reason": "withdrawn" });
    for (what, text) in [("suspend", "Why so long?"), ("cancel", "A pity.")] {
        let path = format!("/v1/instances/{id}/{what}");
        app.post("admin", &path, reason()).await.expect(200);
        let body = json!({ "comment": text, "mentions": ["author"] });
        app.post("reviewer", &comment_on(&id), body)
            .await
            .expect(200);
    }
    let shown = app.get("author", &format!("/v1/instances/{id}")).await;
    let shown = shown.expect(200);
    assert_eq!(shown["status"], "CANCELLED");
    let actions = read(&app, &id, "actions").await;
    let mut actions = actions["actions"].as_array().expect("actions").iter();
    let comment = actions.find(|one| one["action"] == "comment");
    assert_eq!(comment.expect("an action")["allowed"], true);
    // Newest first, page by page.
    let path = format!("/v1/instances/{id}/comments?limit=1");
    let first = app.get("author", &path).await.expect(200);
    assert_eq!(texts(&first), ["A pity."]);
    let next = first["page"]["next"].as_str().expect("a cursor");
    let second = app.get("author", &format!("{path}&after={next}")).await;
    let second = second.expect(200);
    assert_eq!(texts(&second), ["Why so long?"]);
    assert_eq!(second["page"]["next"], Value::Null);
}

#[tokio::test]
async fn an_unreadable_comment_is_listed_without_its_text() {
    let app = TestApp::start().await;
    let id = started(&app).await;
    let body = json!({ "comment": "My number is 555." });
    app.post("reviewer", &comment_on(&id), body)
        .await
        .expect(200);
    let erased = "set session_replication_role = replica;
        update audit_entry set payload = '' where type = 'FLOW_COMMENTED'; reset session_replication_role";
    sqlx::raw_sql(AssertSqlSafe(erased))
        .execute(app.database.admin_pool())
        .await
        .expect("an update");
    let listed = read(&app, &id, "comments").await;
    assert_eq!(listed["data"][0]["comment"], Value::Null);
    assert_eq!(listed["data"][0]["actor"], "reviewer");
}
