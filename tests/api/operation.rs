//! Operators reassign, reset, release, suspend and resume work, and restart ended instances.

use super::people::{inbox, known, member, post_action};
use super::*;

fn reason() -> Value {
    json!({ "reason": "as agreed" })
}

async fn operate(app: &TestApp, user: &str, instance: &str, what: &str, body: Value) -> Answer {
    let path = format!("/v1/instances/{instance}/{what}");
    app.post(user, &path, body).await
}

fn id(instance: &Value) -> String {
    instance["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn an_operator_reassigns_resets_and_releases() {
    let app = TestApp::start().await;
    known(&app, &["dee"]).await;
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    let to = |person: &str| json!({ "to": person, "reason": "as agreed" });
    for (what, body) in [("reassign", to("dee")), ("reset", reason())] {
        let refused = post_action(&app, "reviewer", &task, what, body).await;
        let problem = refused.problem(403, "permission_missing");
        assert_eq!(problem["reason"], "task:assign");
    }
    let pending = post_action(&app, "admin", &task, "reset", reason()).await;
    pending.problem(409, "not_claimed");
    let given = post_action(&app, "admin", &task, "reassign", to("dee")).await;
    let given = given.expect(200);
    assert_eq!(
        (
            &given["task"]["owner"],
            &given["task"]["ownership"]["assigned"]
        ),
        (&json!("dee"), &json!(true))
    );
    assert_eq!(given["events"][0]["type"], "dev.wrkflw.task.reassigned");
    assert_eq!(
        inbox(&app, "dee", "mine").await,
        [(task.clone(), Value::Null)]
    );
    let again = post_action(&app, "admin", &task, "reassign", to("dee")).await;
    let again = again.problem(422, "invalid_input");
    assert_eq!(again["errors"][0]["code"], "already_owner");
    let unknown = post_action(&app, "admin", &task, "reassign", to("stranger")).await;
    let unknown = unknown.problem(422, "invalid_input");
    assert_eq!(
        (
            &unknown["errors"][0]["pointer"],
            &unknown["errors"][0]["code"]
        ),
        (&json!("/to"), &json!("unknown_person"))
    );
    let reset = post_action(&app, "admin", &task, "reset", reason()).await;
    let reset = reset.expect(200);
    assert_eq!(reset["task"]["status"], "PENDING");
    assert_eq!(
        (
            &reset["events"][0]["data"]["previousOwner"],
            &reset["events"][0]["data"]["reason"]
        ),
        (&json!("dee"), &json!("as agreed"))
    );
    claimed(&app, "reviewer", &instance).await;
    let released = post_action(&app, "admin", &task, "release", json!({})).await;
    let released = released.expect(200);
    assert_eq!(
        (
            &released["task"]["status"],
            &released["events"][0]["data"]["reason"]
        ),
        (&json!("PENDING"), &json!("by_operator"))
    );
    // A person chosen by an operator may decide without being a candidate.
    let given = post_action(&app, "admin", &task, "reassign", to("dee")).await;
    given.expect(200);
    let approve = json!({ "outcome": "APPROVE" });
    post_action(&app, "dee", &task, "decide", approve)
        .await
        .expect(200);
}

#[tokio::test]
async fn a_suspended_instance_stands_still_until_it_is_resumed() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let (id, task) = (id(&instance), task_of(&instance));
    let early = operate(&app, "admin", &id, "resume", json!({})).await;
    early.problem(409, "not_suspended");
    let refused = operate(&app, "reviewer", &id, "suspend", reason()).await;
    refused.problem(403, "permission_missing");
    let suspended = operate(&app, "admin", &id, "suspend", reason()).await;
    let suspended = suspended.expect(200)["instance"].clone();
    assert_eq!(
        (&suspended["status"], &suspended["suspended"]["by"]),
        (&json!("SUSPENDED"), &json!("admin"))
    );
    let claim = post_action(&app, "reviewer", &task, "claim", json!({})).await;
    let problem = claim.problem(409, "instance_suspended");
    assert_eq!(
        (&problem["conflict"]["by"], &problem["conflict"]["reason"]),
        (&json!("admin"), &json!("as agreed"))
    );
    assert_eq!(inbox(&app, "reviewer", "available").await, []);
    // It still occupies its entity.
    let other = app
        .post("author", "/v1/instances", approval_start("doc-1"))
        .await;
    other.problem(409, "already_running");
    let shown = app.get("author", &format!("/v1/instances/{id}")).await;
    assert_eq!(shown.expect(200)["suspended"], suspended["suspended"]);
    let resumed = operate(&app, "admin", &id, "resume", json!({})).await;
    let resumed = resumed.expect(200)["instance"].clone();
    assert_eq!(
        (&resumed["status"], &resumed["suspended"]),
        (&json!("RUNNING"), &Value::Null)
    );
    claimed(&app, "reviewer", &instance).await;
    operate(&app, "admin", &id, "suspend", reason())
        .await
        .expect(200);
    let cancelled = operate(&app, "admin", &id, "cancel", reason()).await;
    assert_eq!(cancelled.expect(200)["instance"]["status"], "CANCELLED");
}

#[tokio::test]
async fn an_ended_instance_is_restarted() {
    let app = TestApp::start().await;
    member(&app, "authors", "writer").await;
    let first = app.started("doc-1").await;
    let old = id(&first);
    let running = operate(&app, "writer", &old, "restart", json!({})).await;
    running.problem(409, "instance_running");
    operate(&app, "admin", &old, "cancel", reason())
        .await
        .expect(200);

    let wrong = json!({ "data": { "title": 7 } });
    let wrong = operate(&app, "writer", &old, "restart", wrong).await;
    let wrong = wrong.problem(422, "invalid_input");
    assert_eq!(wrong["errors"][0]["pointer"], "/data/title");
    let outsider = operate(&app, "reviewer", &old, "restart", json!({})).await;
    let outsider = outsider.problem(403, "forbidden");
    assert_eq!(outsider["reason"], "not_an_initiator");
    let path = format!("/v1/instances/{old}/restart");
    let (stale, keyed) = ([("if-match", "\"1\"")], [("idempotency-key", "k")]);
    let host = app.host();
    let send = async |headers: &[(&str, &str)]| {
        host.send("writer", "POST", &path, headers, Some(json!({})))
            .await
    };
    send(&stale).await.problem(412, "stale_revision");
    let restarted = send(&keyed).await;
    assert_eq!(send(&keyed).await.headers["idempotency-replayed"], "true");
    let answer = restarted.expect(201);
    let restarted = &answer["instance"];
    let new = id(restarted);
    assert_eq!(
        (&restarted["predecessorId"], &restarted["initiator"]),
        (&json!(old), &json!("writer"))
    );
    assert_eq!(restarted["requesters"], json!(["writer", "author"]));
    assert_eq!(restarted["data"], first["data"]);
    let types: Vec<_> = answer["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|event| event["type"].as_str().expect("a type").to_owned())
        .collect();
    assert_eq!(
        types[..2],
        ["dev.wrkflw.flow.started", "dev.wrkflw.flow.restarted"]
    );
    assert_eq!(answer["events"][1]["data"]["predecessorId"], json!(old));
    let path = format!("/v1/instances/{new}/audit");
    let audit = app.get("admin", &path).await.expect(200);
    assert_eq!(audit["data"][1]["type"], "FLOW_RESTARTED");

    // Only one instance of the chain runs at a time.
    let twice = operate(&app, "author", &old, "restart", json!({})).await;
    let twice = twice.problem(409, "already_running");
    let conflict = &twice["conflict"];
    assert_eq!(conflict["instanceId"], json!(new));
    assert_eq!(
        (&conflict["by"], &conflict["at"]),
        (&restarted["initiator"], &restarted["startedAt"])
    );
    // With other data, and the requesters of both predecessors.
    operate(&app, "admin", &new, "cancel", reason())
        .await
        .expect(200);
    member(&app, "authors", "third").await;
    let data = json!({ "data": { "title": "Another plan" } });
    let third = operate(&app, "third", &new, "restart", data).await;
    let third = third.started();
    assert_eq!(third["data"], json!({ "title": "Another plan" }));
    assert_eq!(third["requesters"], json!(["third", "writer", "author"]));
}

/// A comment increases the revision of an ended instance. A repeated restart is not refused because of that.
#[tokio::test]
async fn a_repeated_restart_gets_the_first_response() {
    let app = TestApp::start().await;
    let old = id(&app.started("doc-1").await);
    operate(&app, "admin", &old, "cancel", reason())
        .await
        .expect(200);
    let path = format!("/v1/instances/{old}/restart");
    let headers = [("if-match", "\"2\""), ("idempotency-key", "k")];
    let host = app.host();
    let send = async || {
        host.send("author", "POST", &path, &headers, Some(json!({})))
            .await
    };
    let first = send().await.expect(201);
    let remark = json!({ "comment": "There is a new one." });
    operate(&app, "author", &old, "comment", remark)
        .await
        .expect(200);
    let again = send().await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.expect(201), first);
    // No reply is stored for another request.
    let stale = host.send("author", "POST", &path, &headers[..1], Some(json!({})));
    stale.await.problem(412, "stale_revision");
}

#[tokio::test]
async fn who_may_not_read_instances_learns_only_that_one_is_running() {
    let app = TestApp::start().await;
    let running = id(&app.started("doc-1").await);
    grant(&app, "starter", &["instance:start"]).await;
    let host = app.host();
    let (name, starter) = bearer(&host, "author", "default", &["starter"]);
    let body = Some(approval_start("doc-1"));
    let blind = host
        .send("", "POST", "/v1/instances", &[(name, &starter)], body)
        .await;
    let blind = blind.problem(409, "already_running");
    assert_eq!(blind["conflict"], json!({ "instanceId": running }));
}
