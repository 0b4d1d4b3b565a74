//! Substitutes of absent people: what they see and may do, and until when.

use super::people::{absent, absent_during, all_back, inbox, known, member, post_action};
use super::*;
use crate::support::until_so;

const NOTHING: [(String, Value); 0] = [];

#[tokio::test]
async fn a_substitute_claims_and_decides_for_an_absent_candidate() {
    let app = TestApp::start().await;
    absent(&app, "reviewer", "sue", None).await;
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    let for_reviewer = [(task.clone(), json!("reviewer"))];
    assert_eq!(inbox(&app, "sue", "available").await, for_reviewer);
    // The absent person may act as well.
    assert_eq!(
        inbox(&app, "reviewer", "available").await,
        [(task.clone(), Value::Null)]
    );
    let claim = post_action(&app, "sue", &task, "claim", json!({})).await;
    let claim = claim.expect(200);
    assert_eq!(claim["task"]["ownership"]["onBehalfOf"], "reviewer");
    assert_eq!(claim["events"][0]["data"]["onBehalfOf"], "reviewer");
    assert_eq!(inbox(&app, "sue", "mine").await, for_reviewer);
    let approve = json!({ "outcome": "APPROVE" });
    let decided = post_action(&app, "sue", &task, "decide", approve).await;
    let decision = decided.expect(200)["task"]["decision"].clone();
    assert_eq!(
        (&decision["actor"], &decision["onBehalfOf"]),
        (&json!("sue"), &json!("reviewer"))
    );
}

#[tokio::test]
async fn a_substitute_works_on_what_the_absent_person_owns() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let task = claimed(&app, "reviewer", &instance).await;
    let approve = || json!({ "outcome": "APPROVE" });
    let stranger = post_action(&app, "sue", &task, "decide", approve()).await;
    assert_eq!(stranger.problem(403, "forbidden")["reason"], "not_owner");
    assert_eq!(inbox(&app, "sue", "mine").await, NOTHING);
    absent(&app, "reviewer", "sue", Some("document-approval")).await;
    assert_eq!(
        inbox(&app, "sue", "mine").await,
        [(task.clone(), json!("reviewer"))]
    );
    let decided = post_action(&app, "sue", &task, "decide", approve()).await;
    let decision = decided.expect(200)["task"]["decision"].clone();
    assert_eq!(
        (&decision["actor"], &decision["onBehalfOf"]),
        (&json!("sue"), &json!("reviewer"))
    );
}

#[tokio::test]
async fn the_rights_of_a_substitute_end_with_the_absence_and_with_the_membership() {
    let app = TestApp::start().await;
    absent(&app, "reviewer", "sue", None).await;
    let instance = app.started("doc-1").await;
    let task = claimed(&app, "sue", &instance).await;
    all_back(&app).await;
    let approve = || json!({ "outcome": "APPROVE" });
    let late = post_action(&app, "sue", &task, "decide", approve()).await;
    assert_eq!(
        late.problem(403, "forbidden")["reason"],
        "no_longer_substitute"
    );
    // She can release it, and may decide it as a candidate herself.
    member(&app, "reviewers", "sue").await;
    let decided = post_action(&app, "sue", &task, "decide", approve()).await;
    assert_eq!(
        decided.expect(200)["task"]["decision"]["onBehalfOf"],
        Value::Null
    );

    let instance = app.started("doc-2").await;
    let task = claimed(&app, "reviewer2", &instance).await;
    let membership = "/v1/groups/reviewers/members/reviewer2";
    app.host()
        .send("admin", "DELETE", membership, &[], None)
        .await
        .expect(200);
    let left = post_action(&app, "reviewer2", &task, "decide", approve()).await;
    assert_eq!(left.problem(403, "forbidden")["reason"], "not_a_candidate");
    let released = post_action(&app, "reviewer2", &task, "release", json!({})).await;
    released.expect(200);
}

/// Names a substitute by the API, for an hour from now. Returns the path of the absence.
async fn away(app: &TestApp, person: &str, substitute: &str) -> String {
    let now = app.engine.clock().now();
    let until = now + jiff::SignedDuration::from_hours(1);
    let body = json!({ "substitute": substitute, "from": now, "until": until });
    let path = format!("/v1/people/{person}/absences");
    let added = app.post("admin", &path, body).await.expect(201);
    let id = added["absence"]["id"].as_str().expect("an id");
    format!("{path}/{id}")
}

/// The owner of the only task of the instance.
pub(super) async fn owner(app: &TestApp, instance: &Value) -> Value {
    let id = instance["id"].as_str().expect("an id");
    let shown = app.get("admin", &format!("/v1/instances/{id}")).await;
    shown.expect(200)["states"][0]["tasks"][0]["owner"].clone()
}

/// Starts an instance whose only task this person claims.
async fn taken(app: &TestApp, user: &str, entity: &str) -> Value {
    let instance = app.started(entity).await;
    claimed(app, user, &instance).await;
    assert_eq!(owner(app, &instance).await, user);
    instance
}

pub(super) async fn until_released(app: &TestApp, instance: &Value) {
    let look = async || owner(app, instance).await;
    until_so(look, Value::is_null).await;
}

#[tokio::test]
async fn tasks_claimed_by_a_substitute_are_released_when_the_absence_ends() {
    let app = TestApp::start().await;
    known(&app, &["sue", "tom"]).await;
    let timers = app.timers();

    // The absence is ended early.
    let absence = away(&app, "reviewer", "sue").await;
    let instance = taken(&app, "sue", "doc-1").await;
    delete(&app, "admin", &absence).await.expect(200);
    until_released(&app, &instance).await;
    claimed(&app, "reviewer2", &instance).await;

    // The absence ends at its time.
    away(&app, "reviewer", "sue").await;
    let instance = taken(&app, "sue", "doc-2").await;
    sql(
        &app,
        "update absence set active_until = now() where ended_at is null;
        update reassessment set due_at = now() where due_at > now()",
    )
    .await;
    app.engine.wake_workers();
    until_released(&app, &instance).await;

    // One link of a chain ends.
    away(&app, "reviewer", "sue").await;
    let link = away(&app, "sue", "tom").await;
    let instance = taken(&app, "tom", "doc-3").await;
    delete(&app, "admin", &link).await.expect(200);
    until_released(&app, &instance).await;
    timers.stop().await;
}

#[tokio::test]
async fn an_absence_counts_in_its_period_and_for_its_definition() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    absent_during(&app, ("reviewer", "over", None), (-5, -1)).await;
    absent_during(&app, ("reviewer", "early", None), (1, 5)).await;
    absent(&app, "reviewer", "other", Some("another-flow")).await;
    for user in ["over", "early", "other"] {
        assert_eq!(inbox(&app, user, "available").await, NOTHING, "{user}");
        let refused = post_action(&app, user, &task, "claim", json!({})).await;
        assert_eq!(
            refused.problem(403, "forbidden")["reason"],
            "not_a_candidate"
        );
    }
}

#[tokio::test]
async fn chains_end_after_the_third_substitute() {
    let app = TestApp::start().await;
    for (person, substitute) in [
        ("reviewer", "one"),
        ("one", "two"),
        ("two", "three"),
        ("three", "four"),
    ] {
        absent(&app, person, substitute, None).await;
    }
    let instance = app.started("doc-1").await;
    let task = task_of(&instance);
    let claim = async |user: &str| {
        let path = format!("/v1/tasks/{task}/claim?dryRun=true");
        app.post(user, &path, json!({})).await
    };
    for user in ["one", "two", "three"] {
        let answer = claim(user).await.expect(200);
        assert_eq!(
            answer["task"]["ownership"]["onBehalfOf"], "reviewer",
            "{user}"
        );
    }
    let fourth = claim("four").await;
    assert_eq!(
        fourth.problem(403, "forbidden")["reason"],
        "not_a_candidate"
    );
    assert_eq!(inbox(&app, "four", "available").await, NOTHING);
}

#[tokio::test]
async fn inboxes_offer_no_way_to_decide_on_an_own_request() {
    let app = TestApp::start().await;
    // The author is a substitute of a reviewer. The author is a reviewer, too, and has a substitute.
    absent(&app, "reviewer", "author", None).await;
    absent(&app, "author", "sue", None).await;
    member(&app, "authors", "writer").await;
    let task = &task_of(&app.started("doc-1").await);
    // Her chain of substitution for the reviewer ends at the author, who requested it.
    for person in ["author", "sue"] {
        assert_eq!(inbox(&app, person, "available").await, NOTHING, "{person}");
        let refused = post_action(&app, person, task, "claim", json!({})).await;
        refused.problem(403, "forbidden");
    }
    post_action(&app, "reviewer", task, "claim", json!({}))
        .await
        .expect(200);
    for person in ["author", "sue"] {
        assert_eq!(inbox(&app, person, "mine").await, NOTHING, "{person}");
    }

    // Nobody else gets the rework of the author.
    let reject = json!({ "outcome": "REJECT", "comment": "too short" });
    let decided = post_action(&app, "reviewer", task, "decide", reject).await;
    let rework = task_of(&decided.expect(200)["instance"]);
    assert_eq!(
        inbox(&app, "author", "available").await,
        [(rework.clone(), Value::Null)]
    );
    assert_eq!(inbox(&app, "sue", "available").await, NOTHING);
    let refused = post_action(&app, "sue", &rework, "claim", json!({})).await;
    assert_eq!(
        refused.problem(403, "forbidden")["reason"],
        "not_a_candidate"
    );

    // If nobody in the chain is a requester, she sees the work of the reviewer.
    let other = approval_start("doc-2");
    let other = app.post("writer", "/v1/instances", other).await.started();
    let found = inbox(&app, "sue", "available").await;
    let ids: Vec<_> = found.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(ids, [task_of(&other)]);
}
