//! Kinds of candidates, assigned owners, priorities and labels.

use super::*;

/// Claims and decides.
async fn voted(app: &TestApp, user: &str, task: &Value, outcome: &str) -> Value {
    let task = task["id"].as_str().expect("an id");
    let claim = format!("/v1/tasks/{task}/claim");
    app.post(user, &claim, json!({})).await.expect(200);
    let decide = format!("/v1/tasks/{task}/decide");
    let decision = json!({ "outcome": outcome });
    app.post(user, &decide, decision).await.expect(200)["instance"].clone()
}

/// The only task is offered to these candidates. Of the three, only `able` may claim it.
async fn reaches(app: &TestApp, entity: &str, data: Value, candidates: Value, able: &str) {
    let instance = vote(app, entity, data).await;
    let task = &tasks(&instance)[0];
    assert_eq!(task["candidates"], candidates, "{entity}");
    for user in ["reviewer", "approver", "author"] {
        let path = format!(
            "/v1/tasks/{}/claim?dryRun=true",
            task["id"].as_str().expect("an id")
        );
        let answer = app.post(user, &path, json!({})).await;
        assert_eq!(
            answer.status == 200,
            user == able,
            "{entity}: {user}: {}",
            answer.text
        );
    }
    let ended = voted(app, able, task, "YES").await;
    assert_eq!(ended["outcome"], "APPROVED");
}

#[tokio::test]
async fn each_kind_of_candidate_reaches_its_people() {
    let app = chambers().await;
    manager(&app, "reviewer2", "approver").await;
    let of = |offer: Value| json!({ "assign": { "offers": [offer] }, "managerId": "reviewer" });
    let user = |id: &str| json!([{ "type": "user", "id": id }]);
    let cases = [
        (
            "user",
            json!({ "users": ["reviewer"] }),
            user("reviewer"),
            "reviewer",
        ),
        (
            "role",
            json!({ "groups": ["approvers"] }),
            json!([{ "type": "group", "id": "approvers" }]),
            "approver",
        ),
        (
            "dynamic",
            json!({ "from": "managerId" }),
            user("reviewer"),
            "reviewer",
        ),
        (
            "manager",
            json!({ "managersOf": ["reviewer2"] }),
            user("approver"),
            "approver",
        ),
    ];
    for (entity, offer, candidates, able) in cases {
        reaches(&app, entity, of(offer), candidates, able).await;
    }
}

#[tokio::test]
async fn any_of_a_list_decide_until_the_quorum_is_reached() {
    let app = chambers().await;
    let of = |needed: u32| {
        let offers = ["reviewer", "reviewer2", "approver"].map(|user| json!({ "users": [user] }));
        json!({ "assign": { "offers": offers, "needed": needed } })
    };
    let instance = vote(&app, "two-of-three", of(2)).await;
    let [first, second, third] = &tasks(&instance)[..] else {
        panic!("three tasks: {instance}")
    };
    let after = voted(&app, "reviewer", first, "YES").await;
    assert_eq!(
        (&after["status"], tasks(&after).len()),
        (&json!("RUNNING"), 3)
    );
    let after = voted(&app, "approver", third, "YES").await;
    assert_eq!(after["outcome"], "APPROVED");
    let cancelled = audited(&app, &instance, "TASK_CANCELLED").await;
    assert_eq!(
        cancelled
            .iter()
            .map(|entry| &entry["task"])
            .collect::<Vec<_>>(),
        [&second["id"]]
    );
    let late = format!("/v1/tasks/{}/claim", second["id"].as_str().expect("an id"));
    let problem = app
        .post("reviewer2", &late, json!({}))
        .await
        .problem(409, "task_taken");
    assert_eq!(problem["conflict"]["action"], "cancelled");

    // Too many rejections end it early, too.
    let instance = vote(&app, "three-of-three", of(3)).await;
    let after = voted(&app, "reviewer", &tasks(&instance)[0], "NO").await;
    assert_eq!(after["outcome"], "REJECTED");
    assert_eq!(audited(&app, &instance, "TASK_CANCELLED").await.len(), 2);
    // A quorum must not exceed the number of tasks.
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": "four-of-three", "data": of(4),
    });
    let answer = app.post("author", "/v1/instances", body).await;
    assert_eq!(answer.body["code"], "logic_fault", "{}", answer.text);
}

#[tokio::test]
async fn work_has_owners_labels_and_priorities() {
    let app = chambers().await;
    let offer = json!({ "owner": "reviewer", "label": "Check the sum" });
    let assign = json!({ "offers": [offer], "priority": 7 });
    let instance = vote(&app, "owned", json!({ "assign": assign })).await;
    let task = &tasks(&instance)[0];
    assert_eq!(
        (&task["status"], &task["owner"], &task["label"]),
        (
            &json!("CLAIMED"),
            &json!("reviewer"),
            &json!("Check the sum")
        )
    );
    let listed = app.get("reviewer", "/v1/tasks").await.expect(200);
    assert_eq!(
        (&listed["data"][0]["id"], &listed["data"][0]["priority"]),
        (&task["id"], &json!(7))
    );
    let path = format!("/v1/tasks/{}/decide", id(task));
    let decision = json!({ "outcome": "YES" });
    app.post("reviewer2", &path, decision)
        .await
        .problem(403, "forbidden");
}
