//! Minimal and full responses to commands, and decisions without a claim.

use std::collections::BTreeSet;

use super::*;
use crate::audit::commands::prove_all;

/// The response for this `Prefer` header, or without one.
async fn post(app: &TestApp, user: &str, path: &str, prefer: &[&str], body: Value) -> Answer {
    let host = app.host();
    let mut request = host.request(user, "POST", path);
    let headers = request.headers_mut().expect("headers");
    headers.remove("prefer");
    for value in prefer {
        headers.append("prefer", value.parse().expect("a value"));
    }
    headers.insert("content-type", "application/json".parse().expect("a value"));
    let body = Body::from(body.to_string());
    host.answer(request.body(body).expect("a request")).await
}

fn names(value: &Value) -> BTreeSet<&str> {
    let members = value.as_object().expect("an object");
    members.keys().map(String::as_str).collect()
}

#[tokio::test]
async fn an_approval_takes_three_requests_with_short_responses() {
    let app = TestApp::start().await;
    let started = post(
        &app,
        "author",
        "/v1/instances",
        &[],
        approval_start("doc-1"),
    )
    .await;
    assert!(started.text.len() < 1024, "{}", started.text);
    assert!(started.headers.get("preference-applied").is_none());
    let started = started.expect(201);
    assert_eq!(started["result"], "started");
    let started = &started["instance"];
    let path = |instance: &Value| format!("/v1/tasks/{}/decide", task_of(instance));
    let approve = || json!({ "outcome": "APPROVE" });
    let first = post(&app, "reviewer", &path(started), &[], approve()).await;
    assert!(first.text.len() < 1024, "{}", first.text);
    assert_eq!(first.headers["etag"], "\"2\"");
    let first = first.expect(200);
    assert_eq!(
        names(&first),
        ["dryRun", "instance", "result", "task"].into()
    );
    let wanted = [
        "definitionKey",
        "definitionVersion",
        "id",
        "outcome",
        "revision",
        "states",
        "status",
    ];
    assert_eq!(names(&first["instance"]), wanted.into());
    assert_eq!(first["task"]["status"], "COMPLETED");
    assert_eq!(first["task"]["owner"], "reviewer");
    assert_eq!(first["task"]["outcome"], "APPROVE");
    let second = post(&app, "approver", &path(&first["instance"]), &[], approve()).await;
    let ended = &second.expect(200)["instance"];
    assert_eq!(
        (&ended["status"], &ended["revision"], &ended["states"]),
        (&json!("COMPLETED"), &json!(3), &json!([]))
    );
    // The audit has claims and decisions as if they had been sent one by one.
    let events = app.events().await;
    let kinds: Vec<_> = events
        .iter()
        .filter_map(|event| event["type"].as_str()?.strip_prefix("dev.wrkflw."))
        .filter(|kind| kind.starts_with("task.") || kind.starts_with("decision."))
        .collect();
    let each = ["task.claimed", "decision.recorded", "task.created"];
    assert_eq!(kinds, [&each[2..], &each[..], &each[..2]].concat());
    prove_all(&app).await;
}

#[tokio::test]
async fn the_caller_chooses_the_size_of_a_response() {
    let app = TestApp::start().await;
    let start = |entity: &str| approval_start(entity);
    let path = "/v1/instances";
    let whole = post(&app, "author", path, &["return=representation"], start("a")).await;
    assert_eq!(whole.headers["preference-applied"], "return=representation");
    let whole = whole.expect(201);
    assert_eq!(
        names(&whole),
        ["dryRun", "events", "instance", "result"].into()
    );
    let members = names(&whole["instance"]);
    assert!(members.is_superset(&["data", "requesters"].into()));
    let short = post(
        &app,
        "author",
        path,
        &["respond-async", "return=minimal"],
        start("b"),
    )
    .await;
    assert_eq!(short.headers["preference-applied"], "return=minimal");
    let short = short.expect(201);
    assert_eq!(names(&short), ["dryRun", "instance", "result"].into());
    assert!(names(&short["instance"]).is_subset(&members), "{short}");
    // Without a preference, a dry run has the full response, because nothing else shows its result.
    let dry = format!("{path}?dryRun=true");
    let unasked = post(&app, "author", &dry, &[], start("c"))
        .await
        .expect(200);
    assert_eq!(names(&unasked), names(&whole));
    assert_eq!(names(&unasked["instance"]), members);
    let answer = post(&app, "author", &dry, &["return=minimal"], start("c")).await;
    let answer = answer.expect(200);
    assert_eq!(
        (names(&answer), &answer["dryRun"]),
        (names(&short), &json!(true))
    );
}

/// Each request prefers the full response.
#[tokio::test]
async fn who_may_not_read_instances_gets_short_responses() {
    let app = TestApp::start().await;
    let permissions = ["instance:start", "task:act", "task:read"];
    grant(&app, "clerk", &permissions).await;
    let host = app.host();
    let send = async |user: &str, method: &str, path: &str, body: Option<Value>| {
        let (name, token) = bearer(&host, user, "default", &["clerk"]);
        host.send("", method, path, &[(name, &token)], body).await
    };
    let short = |answer: Answer, status: u16| {
        assert!(answer.headers.get("preference-applied").is_none());
        let answer = answer.expect(status);
        let whole = [answer.get("events"), answer["instance"].get("data")];
        assert_eq!(whole, [None, None], "{answer}");
        answer
    };
    let start = || Some(approval_start("doc-1"));
    short(
        send("author", "POST", "/v1/instances?dryRun=true", start()).await,
        200,
    );
    let started = send("author", "POST", "/v1/instances", start()).await;
    let started = short(started, 201);
    let task = task_of(&started["instance"]);
    let approve = Some(json!({ "outcome": "APPROVE" }));
    let path = format!("/v1/tasks/{task}/decide?dryRun=true");
    let decided = short(send("reviewer", "POST", &path, approve).await, 200);
    assert_eq!(
        names(&decided["task"]),
        ["id", "label", "outcome", "owner", "status"].into()
    );
    // They find their work in the list. A single task comes with its instance.
    let listed = send("reviewer", "GET", "/v1/tasks?view=available", None).await;
    assert_eq!(listed.expect(200)["data"][0]["id"], json!(task));
    let path = format!("/v1/tasks/{task}");
    let refused = send("reviewer", "GET", &path, None).await;
    let refused = refused.problem(403, "permission_missing");
    assert_eq!(refused["reason"], "instance:read");
    app.get("reviewer", &path).await.expect(200);
}

#[tokio::test]
async fn a_key_repeats_the_stored_response() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let path = format!("/v1/tasks/{}/claim", task_of(&instance));
    let send = async |prefer: &str| {
        let headers = [("idempotency-key", "once")];
        let host = app.host();
        let mut request = host.request("reviewer", "POST", &path);
        let map = request.headers_mut().expect("headers");
        map.insert("prefer", prefer.parse().expect("a value"));
        for (name, value) in headers {
            map.insert(name, value.parse().expect("a value"));
        }
        map.insert("content-type", "application/json".parse().expect("a value"));
        host.answer(request.body(Body::from("{}")).expect("a request"))
            .await
    };
    let first = send("return=minimal").await;
    let again = send("return=representation").await;
    assert_eq!((again.status, &again.text), (200, &first.text));
    assert_eq!(again.headers["preference-applied"], "return=minimal");
    assert_eq!(again.headers["idempotency-replayed"], "true");
}

#[tokio::test]
async fn actions_explain_decisions_without_a_claim() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    let decide = async |user: &str| {
        let path = format!("/v1/instances/{}/actions", instance["id"].as_str().unwrap());
        let answer = app.get(user, &path).await.expect(200);
        let actions = answer["actions"].as_array().expect("actions").clone();
        let found = actions.into_iter().find(|action| {
            (&action["action"], &action["outcome"]) == (&json!("decide"), &json!("APPROVE"))
        });
        found.expect("the decision is explained")
    };
    assert_eq!(decide("reviewer").await["allowed"], true);
    assert_eq!(decide("author").await["refusal"]["code"], "own_request");
    assert_eq!(
        decide("outsider").await["refusal"]["code"],
        "not_a_candidate"
    );
    let path = format!("/v1/tasks/{task}/decide?dryRun=true");
    let dry = app.post("reviewer", &path, json!({ "outcome": "APPROVE" }));
    let dry = dry.await.expect(200);
    let kinds = dry["events"].as_array().expect("events").iter();
    let kinds: Vec<_> = kinds.map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds[..2],
        ["dev.wrkflw.task.claimed", "dev.wrkflw.decision.recorded"]
    );
    let shown = app.get("reviewer", &format!("/v1/tasks/{task}")).await;
    assert_eq!(shown.expect(200)["task"]["status"], "PENDING");
}

#[tokio::test]
async fn of_concurrent_decisions_on_an_unclaimed_task_one_wins() {
    let app = TestApp::start().await;
    for round in 0..8 {
        let instance = app.started(&format!("doc-{round}")).await;
        let path = format!("/v1/tasks/{}/decide", task_of(&instance));
        let approve = || json!({ "outcome": "APPROVE" });
        let (one, other) = tokio::join!(
            app.post("reviewer", &path, approve()),
            app.post("reviewer2", &path, approve()),
        );
        let (won, lost) = if one.status == 200 {
            (one, other)
        } else {
            (other, one)
        };
        let owner = won.expect(200)["task"]["owner"].clone();
        let conflict = lost.problem(409, "task_taken")["conflict"].clone();
        assert_eq!(
            (&conflict["by"], &conflict["action"]),
            (&owner, &json!("decided"))
        );
    }
    prove_all(&app).await;
}

#[tokio::test]
async fn whoever_has_a_task_claims_it_again_without_effect() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let id = instance["id"].as_str().expect("an id");
    let path = format!("/v1/tasks/{}/claim", task_of(&instance));
    let first = app.post("reviewer", &path, json!({})).await.expect(200);
    assert_eq!(first["result"], "changed");
    let audit = async || {
        let path = format!("/v1/instances/{id}/audit");
        app.get("admin", &path).await.expect(200)["data"].clone()
    };
    let before = audit().await;
    for query in ["", "?dryRun=true"] {
        let address = format!("{path}{query}");
        let again = app.post("reviewer", &address, json!({})).await.expect(200);
        let outcome = (&again["result"], &again["task"]["owner"]);
        assert_eq!(
            outcome,
            (&json!("unchanged"), &json!("reviewer")),
            "{query}"
        );
        assert_eq!(again["instance"]["revision"], first["instance"]["revision"]);
    }
    assert_eq!(audit().await, before, "nothing is recorded");
    // Nobody else can, nor the owner with an outdated revision.
    let other = app.post("reviewer2", &path, json!({})).await;
    assert_eq!(
        other.problem(409, "task_taken")["conflict"]["by"],
        "reviewer"
    );
    let late = app.host();
    let late = late.send(
        "reviewer",
        "POST",
        &path,
        &[("if-match", "\"1\"")],
        Some(json!({})),
    );
    late.await.problem(412, "stale_revision");
    // It is not offered, because it does nothing.
    let offered = async |person: &str| {
        let path = format!("/v1/instances/{id}/actions");
        let answer = app.get(person, &path).await.expect(200)["actions"].clone();
        let actions = answer.as_array().expect("actions").clone();
        actions.iter().any(|one| one["action"] == "claim")
    };
    assert!(!offered("reviewer").await);
    assert!(offered("reviewer2").await, "with the reason why not");
}
