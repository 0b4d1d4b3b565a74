//! A task for each member of a group: joining, leaving, and the quorum.

use super::unassignable::becoming;
use super::*;

/// A board of these people.
async fn board(app: &TestApp, people: &[&str]) {
    group(app, "board").await;
    for person in people {
        member(app, "board", person).await;
    }
}

fn each(needed: Value) -> Value {
    json!({ "offers": [{ "eachMember": "board" }], "needed": needed, "exclude": ["boris"] })
}

/// The candidates of each task that was not withdrawn, in order.
fn voters(instance: &Value) -> Vec<&str> {
    let tasks = tasks(instance).iter();
    let open = tasks.filter(|task| task["status"] != "CANCELLED");
    open.map(|task| {
        let candidate = &task["candidates"][0];
        assert_eq!(
            (&candidate["type"], &candidate["group"]),
            (&json!("member"), &json!("board"))
        );
        candidate["id"].as_str().expect("a person")
    })
    .collect()
}

fn needed(instance: &Value) -> &Value {
    &instance["states"][0]["needed"]
}

/// The task of this person.
fn task_for<'a>(instance: &'a Value, person: &str) -> &'a Value {
    let mut tasks = tasks(instance).iter();
    let task = tasks.find(|task| task["candidates"][0]["id"] == person);
    task.expect("a task")
}

#[tokio::test]
async fn each_member_votes_and_one_rejection_does_not_end_the_vote() {
    let app = chambers().await;
    board(
        &app,
        &["benny", "betty", "bodo", "boris", "bruno", "author"],
    )
    .await;
    let data = json!({ "assign": each(json!({ "atLeast": [2, 3] })) });
    let instance = vote(&app, "each", data).await;
    // The initiator and the excluded person get no task.
    assert_eq!(voters(&instance), ["benny", "betty", "bodo", "bruno"]);
    assert_eq!(needed(&instance), 3);
    let listed = app
        .get("benny", "/v1/tasks?view=available")
        .await
        .expect(200);
    assert_eq!(listed["data"][0]["id"], task_for(&instance, "benny")["id"]);
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1));
    let path = format!("/v1/tasks/{}/claim", id(task_for(&instance, "benny")));
    app.post("betty", &path, json!({}))
        .await
        .problem(403, "forbidden");

    let yes = json!({ "outcome": "YES" });
    let no = json!({ "outcome": "NO" });
    let after = decide(&app, "benny", task_for(&instance, "benny"), no).await;
    assert_eq!(after["status"], "RUNNING");
    for person in ["betty", "bodo"] {
        let after = decide(&app, person, task_for(&instance, person), yes.clone()).await;
        assert_eq!(after["status"], "RUNNING");
    }
    let ended = decide(&app, "bruno", task_for(&instance, "bruno"), yes).await;
    assert_eq!(ended["outcome"], "APPROVED");
    prove_all(&app).await;
}

#[tokio::test]
async fn a_former_member_loses_the_task_and_a_new_one_gets_a_task_when_it_is_offered_anew() {
    let app = chambers().await;
    board(&app, &["benny", "betty", "bodo"]).await;
    let data = json!({
        "assign": each(json!({ "moreThan": [1, 2] })),
        "reoffer": each(json!({ "moreThan": [1, 2] })),
    });
    let instance = vote(&app, "changing", data).await;
    assert_eq!(needed(&instance), 2);
    claim(&app, "benny", task_for(&instance, "benny")).await;
    let timers = app.timers();
    member(&app, "board", "brita").await;
    leave(&app, "board", "benny").await;
    let left = becoming(&app, &instance, |now| voters(now).len() == 2).await;
    assert_eq!(voters(&left), ["betty", "bodo"]);
    let cancelled = audited(&app, &instance, "TASK_CANCELLED").await;
    assert_eq!(cancelled[0]["reason"], "left_group", "{cancelled:?}");
    let path = format!("/v1/tasks/{}/decide", id(task_for(&instance, "benny")));
    app.post("benny", &path, json!({ "outcome": "YES" }))
        .await
        .problem(409, "task_taken");

    let more = json!({ "outcome": "MORE" });
    decide(&app, "betty", task_for(&left, "betty"), more).await;
    let grown = shown(&app, &instance).await;
    assert_eq!(voters(&grown), ["betty", "bodo", "brita"]);
    assert_eq!(needed(&grown), 2);
    let yes = json!({ "outcome": "YES" });
    decide(&app, "bodo", task_for(&grown, "bodo"), yes.clone()).await;
    // Two of the three tasks must be decided YES; `betty` decided MORE.
    let ended = decide(&app, "brita", task_for(&grown, "brita"), yes).await;
    assert_eq!(ended["outcome"], "APPROVED");
    timers.stop().await;
    prove_all(&app).await;
}

#[tokio::test]
async fn a_group_with_too_few_members_uses_the_fallback_and_one_with_too_many_is_refused() {
    let app = chambers().await;
    board(&app, &["benny"]).await;
    let mut assign = each(json!(2));
    assign["fallback"] = json!("approvers");
    let instance = vote(&app, "small", json!({ "assign": assign })).await;
    let tasks = tasks(&instance);
    assert_eq!(tasks.len(), 2);
    assert_eq!(
        tasks[1]["candidates"],
        json!([{ "type": "group", "id": "approvers" }])
    );

    for number in 0..201 {
        let person = format!("person-{number:03}");
        member(&app, "board", &person).await;
    }
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": "large",
        "data": { "assign": each(json!(1)) },
    });
    let problem = app.post("author", "/v1/instances", body).await;
    let problem = problem.problem(409, "limit_reached");
    let detail = problem["detail"].as_str().expect("a text");
    assert!(detail.contains("each member of board"), "{detail}");
    prove_all(&app).await;
}
