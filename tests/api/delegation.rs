//! Tasks that are delegated and returned.

use super::people::{inbox, known, post_action, refused};
use super::substitutes::{owner, until_released};
use super::*;

fn to(person: &str) -> Value {
    json!({ "to": person, "reason": "on a journey" })
}

/// A started instance whose first task `reviewer` owns, and people without groups.
async fn owned(app: &TestApp) -> String {
    known(app, &["dee", "eli", "fay"]).await;
    let instance = app.started("doc-1").await;
    claimed(app, "reviewer", &instance).await
}

#[tokio::test]
async fn a_delegate_decides_on_behalf_of_the_owner() {
    let app = TestApp::start().await;
    let task = owned(&app).await;
    let answer = post_action(&app, "reviewer", &task, "delegate", to("dee")).await;
    let answer = answer.expect(200);
    let link = &answer["task"]["ownership"]["delegations"][0];
    assert_eq!(answer["task"]["owner"], "dee");
    assert_eq!(
        (&link["from"], &link["to"], &link["reason"]),
        (&json!("reviewer"), &json!("dee"), &json!("on a journey"))
    );
    let event = &answer["events"][0];
    assert_eq!(event["type"], "dev.wrkflw.task.delegated");
    assert_eq!(
        (&event["data"]["previousOwner"], &event["data"]["owner"]),
        (&json!("reviewer"), &json!("dee"))
    );
    assert_eq!(
        inbox(&app, "dee", "mine").await,
        [(task.clone(), json!("reviewer"))]
    );
    assert_eq!(inbox(&app, "reviewer", "mine").await, []);

    let approve = json!({ "outcome": "APPROVE" });
    let gone = post_action(&app, "reviewer", &task, "decide", approve.clone()).await;
    assert_eq!(gone.problem(403, "forbidden")["reason"], "not_owner");
    let decided = post_action(&app, "dee", &task, "decide", approve).await;
    let decision = &decided.expect(200)["task"]["decision"];
    assert_eq!(
        (&decision["actor"], &decision["onBehalfOf"]),
        (&json!("dee"), &json!("reviewer"))
    );
}

#[tokio::test]
async fn a_delegated_task_is_returned_once() {
    let app = TestApp::start().await;
    let task = owned(&app).await;
    let early = post_action(&app, "reviewer", &task, "resolve", json!({})).await;
    early.problem(409, "not_delegated");
    for (from, person) in [("reviewer", "dee"), ("dee", "eli")] {
        let answer = post_action(&app, from, &task, "delegate", to(person)).await;
        answer.expect(200);
    }
    let circle = post_action(&app, "eli", &task, "delegate", to("reviewer")).await;
    let circle = circle.problem(422, "invalid_input");
    assert_eq!(circle["errors"][0]["code"], "delegation_circle");
    for (from, owner) in [("eli", "dee"), ("dee", "reviewer")] {
        let back = post_action(&app, from, &task, "resolve", json!({})).await;
        assert_eq!(back.expect(200)["task"]["owner"], owner);
    }
    let again = post_action(&app, "dee", &task, "resolve", json!({})).await;
    assert_eq!(again.problem(403, "forbidden")["reason"], "not_owner");
}

#[tokio::test]
async fn a_returned_task_is_released_if_its_owner_may_not_decide_it_any_more() {
    let app = TestApp::start().await;
    known(&app, &["dee"]).await;
    let instance = app.started("doc-1").await;
    let task = claimed(&app, "reviewer", &instance).await;
    let answer = post_action(&app, "reviewer", &task, "delegate", to("dee")).await;
    answer.expect(200);
    let left = delete(&app, "admin", "/v1/groups/reviewers/members/reviewer").await;
    left.expect(200);
    // The reassessments of that change do not touch the task, which the delegate owns. They end before it is returned.
    sql(&app, "delete from reassessment").await;
    let back = post_action(&app, "dee", &task, "resolve", json!({})).await;
    back.expect(200);
    assert_eq!(owner(&app, &instance).await, "reviewer");
    let timers = app.timers();
    until_released(&app, &instance).await;
    timers.stop().await;
}

#[tokio::test]
async fn a_task_is_delegated_only_to_known_and_eligible_people() {
    let app = TestApp::start().await;
    let task = owned(&app).await;
    let before = rows(&app).await;
    for (person, pointer, code) in [
        ("stranger", "/to", "unknown_person"),
        ("reviewer", "/to", "delegation_to_self"),
        ("", "/to", "malformed"),
    ] {
        let answer = post_action(&app, "reviewer", &task, "delegate", to(person)).await;
        assert_eq!(answer.status, 422, "{person}");
        let error = &answer.body["errors"][0];
        assert_eq!(
            (&error["pointer"], &error["code"]),
            (&json!(pointer), &json!(code))
        );
    }
    for (reason, code) in [
        (" ".to_owned(), "required"),
        ("x".repeat(2_001), "too_long"),
    ] {
        let body = json!({ "to": "dee", "reason": reason });
        let answer = post_action(&app, "reviewer", &task, "delegate", body).await;
        let problem = answer.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["code"], code);
    }
    assert_eq!(rows(&app).await, before);
    let own = post_action(&app, "reviewer", &task, "delegate", to("author")).await;
    assert_eq!(own.problem(403, "forbidden")["reason"], "own_request");
    assert_eq!(
        refused(&app, "reviewer", Some(&task), "own_request").await,
        1
    );
}

#[tokio::test]
async fn delegation_supports_revisions_keys_and_dry_runs() {
    let app = TestApp::start().await;
    let task = owned(&app).await;
    let path = format!("/v1/tasks/{task}/delegate");
    let host = app.host();
    let send = async |path: &str, headers: &[(&str, &str)]| {
        host.send("reviewer", "POST", path, headers, Some(to("dee")))
            .await
    };
    let dry = send(&format!("{path}?dryRun=true"), &[]).await.expect(200);
    assert_eq!(
        (&dry["dryRun"], &dry["task"]["owner"]),
        (&json!(true), &json!("dee"))
    );
    send(&path, &[("if-match", "\"1\"")])
        .await
        .problem(412, "stale_revision");
    let keyed = [("idempotency-key", "k"), ("if-match", "\"2\"")];
    let first = send(&path, &keyed).await;
    let again = send(&path, &keyed).await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(first.expect(200), again.expect(200));
}
