//! Bulk commands on tasks: each task has a result of its own, and none fails because of another.

use super::*;

async fn motions(app: &TestApp, count: usize) -> Vec<Value> {
    let mut motions = Vec::new();
    for number in 0..count {
        let assign =
            json!({ "offers": [{ "groups": ["reviewers"], "label": "vote" }], "needed": 1 });
        motions.push(vote(app, &format!("b-{number}"), json!({ "assign": assign })).await);
    }
    motions
}

fn ids(motions: &[Value]) -> Vec<Value> {
    motions
        .iter()
        .map(|motion| tasks(motion)[0]["id"].clone())
        .collect()
}

async fn bulk(app: &TestApp, who: &str, body: Value) -> Value {
    app.post(who, "/v1/tasks/bulk", body).await.expect(200)
}

/// Status and code of each result.
fn outcomes(results: &Value) -> Vec<(u64, String)> {
    let results = results["results"].as_array().expect("results").iter();
    let one = |result: &Value| {
        let code = result["code"].as_str().unwrap_or_default();
        (
            result["status"].as_u64().expect("a status"),
            code.to_owned(),
        )
    };
    results.map(one).collect()
}

fn fine(count: usize) -> Vec<(u64, String)> {
    vec![(200, String::new()); count]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_task_has_its_own_result_in_the_given_order() {
    let app = chambers().await;
    let motions = motions(&app, 3).await;
    let mut all = ids(&motions);
    let taken = format!("/v1/tasks/{}/claim", all[1].as_str().expect("an id"));
    app.post("reviewer2", &taken, json!({})).await.expect(200);
    all.push(motions[0]["id"].clone());
    let claim = json!({ "action": "claim", "taskIds": all });

    // A dry run has no effect.
    let dry = app
        .post("reviewer", "/v1/tasks/bulk?dryRun=true", claim.clone())
        .await;
    let dry = dry.expect(200);
    assert_eq!((&dry["dryRun"], &dry["done"]), (&json!(true), &json!(2)));
    assert_eq!(shown(&app, &motions[0]).await["revision"], 1);

    let claimed = bulk(&app, "reviewer", claim).await;
    let expected = [
        (200, ""),
        (409, "task_taken"),
        (200, ""),
        (404, "not_found"),
    ];
    assert_eq!(
        outcomes(&claimed),
        expected.map(|(status, code)| (status, code.to_owned()))
    );
    assert_eq!(
        (&claimed["done"], &claimed["refused"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(claimed["results"][0]["revision"], 2);
    let named: Vec<_> = claimed["results"]
        .as_array()
        .expect("results")
        .iter()
        .collect();
    assert!(
        named
            .iter()
            .zip(&all_of(&motions))
            .all(|(one, task)| one["taskId"] == *task)
    );
}

fn all_of(motions: &[Value]) -> Vec<Value> {
    let mut all = ids(motions);
    all.push(motions[0]["id"].clone());
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repetition_returns_every_reply() {
    let app = chambers().await;
    let motions = motions(&app, 12).await;
    let host = app.host();
    let key = [("idempotency-key", "take-all")];
    let claim = json!({ "action": "claim", "taskIds": ids(&motions) });
    let first = host.send(
        "reviewer",
        "POST",
        "/v1/tasks/bulk",
        &key,
        Some(claim.clone()),
    );
    assert_eq!(outcomes(&first.await.expect(200)), fine(12));
    let again = host.send("reviewer", "POST", "/v1/tasks/bulk", &key, Some(claim));
    let again = again.await.expect(200);
    assert_eq!(outcomes(&again), fine(12));
    let replayed = again["results"].as_array().expect("results").iter();
    assert!(
        replayed
            .clone()
            .all(|one| one["replayed"] == true && one["revision"] == 2)
    );
    let other = json!({ "action": "release", "taskIds": ids(&motions[..1]) });
    let other = host
        .send("reviewer", "POST", "/v1/tasks/bulk", &key, Some(other))
        .await;
    other.problem(422, "idempotency_key_reused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_identifies_one_bulk_request() {
    let app = chambers().await;
    let motions = motions(&app, 3).await;
    let host = app.host();
    let claim = |of: &[Value]| Some(json!({ "action": "claim", "taskIds": ids(of) }));
    let send = async |key: &str, body: Option<Value>| {
        let key = [("idempotency-key", key)];
        let path = "/v1/tasks/bulk";
        host.send("reviewer", "POST", path, &key, body).await
    };
    // A dry run stores no key.
    let dry = [("idempotency-key", "many")];
    let path = "/v1/tasks/bulk?dryRun=true";
    let tried = host.send("reviewer", "POST", path, &dry, claim(&motions[1..]));
    assert_eq!(outcomes(&tried.await.expect(200)), fine(2));
    let claimed = send("many", claim(&motions[..1])).await.expect(200);
    assert_eq!(outcomes(&claimed), fine(1));
    let other = send("many", claim(&motions[1..2])).await;
    other.problem(422, "idempotency_key_reused");

    // A command on one task has used the key.
    let one = format!(
        "/v1/tasks/{}/claim",
        ids(&motions)[1].as_str().expect("an id")
    );
    let key = [("idempotency-key", "one")];
    let claimed = host.send("reviewer", "POST", &one, &key, Some(json!({})));
    claimed.await.expect(200);
    let many = send("one", claim(&motions[2..])).await;
    many.problem(422, "idempotency_key_reused");
    let still = shown(&app, &motions[2]).await;
    assert_eq!(still["revision"], 1, "nobody has claimed it");

    // The reverse case.
    let key = [("idempotency-key", "many")];
    let one = one.replace("claim", "release");
    let released = host.send("reviewer", "POST", &one, &key, Some(json!({})));
    released.await.problem(422, "idempotency_key_reused");
}

/// A refusal is not stored under the key: a repetition tries the task again.
#[tokio::test(flavor = "multi_thread")]
async fn a_repetition_does_what_the_first_request_did_not() {
    let app = chambers().await;
    let motions = motions(&app, 2).await;
    let host = app.host();
    let key = [("idempotency-key", "take-all")];
    let claim = json!({ "action": "claim", "taskIds": ids(&motions) });
    let send = async || {
        let path = "/v1/tasks/bulk";
        let sent = host.send("reviewer", "POST", path, &key, Some(claim.clone()));
        sent.await.expect(200)
    };
    let taken = format!(
        "/v1/tasks/{}/claim",
        ids(&motions)[1].as_str().expect("an id")
    );
    app.post("reviewer2", &taken, json!({})).await.expect(200);
    let first = send().await;
    let refused = (409, "task_taken".to_owned());
    assert_eq!(outcomes(&first), [fine(1)[0].clone(), refused]);
    let free = taken.replace("claim", "release");
    app.post("reviewer2", &free, json!({})).await.expect(200);
    let again = send().await;
    assert_eq!(outcomes(&again), fine(2));
    let replayed = |number: usize| again["results"][number]["replayed"] == true;
    assert_eq!((replayed(0), replayed(1)), (true, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_selected_reassigned_decided_and_released() {
    let app = chambers().await;
    let motions = motions(&app, 4).await;
    let found = json!({ "view": "available", "definitionKey": "committee", "state": "Vote", "label": "vote" });
    let claimed = bulk(
        &app,
        "reviewer",
        json!({ "action": "claim", "filter": found }),
    )
    .await;
    assert_eq!(
        (outcomes(&claimed), &claimed["more"]),
        (fine(4), &json!(false))
    );
    let none = json!({ "action": "claim", "filter": { "view": "available", "label": "other" } });
    assert_eq!(bulk(&app, "reviewer", none).await["results"], json!([]));

    let away = json!({ "action": "reassign", "taskIds": ids(&motions[..2]), "to": "reviewer2", "reason": "A holiday." });
    assert_eq!(outcomes(&bulk(&app, "admin", away.clone()).await), fine(2));
    let refused = app.post("reviewer", "/v1/tasks/bulk", away).await;
    refused.problem(403, "permission_missing");
    let back = json!({ "action": "release", "taskIds": ids(&motions[2..3]) });
    assert_eq!(outcomes(&bulk(&app, "reviewer", back).await), fine(1));
    let decide = json!({ "action": "decide", "filter": { "view": "mine" }, "outcome": "YES", "comment": "Fine." });
    assert_eq!(
        outcomes(&bulk(&app, "reviewer2", decide.clone()).await),
        fine(2)
    );
    assert_eq!(outcomes(&bulk(&app, "reviewer", decide).await), fine(1));
    for (number, status) in ["COMPLETED", "COMPLETED", "RUNNING", "COMPLETED"]
        .iter()
        .enumerate()
    {
        assert_eq!(shown(&app, &motions[number]).await["status"], *status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_filter_accepts_the_filters_of_the_list_of_open_tasks() {
    let app = chambers().await;
    motions(&app, 3).await;
    for (narrowed, found) in [
        (json!({ "entityType": "motion", "entityId": "b-1" }), 1),
        (json!({ "entityType": "other" }), 0),
        (json!({ "q": "b-2" }), 1),
        (json!({ "owner": "reviewer" }), 0),
        (json!({ "minPriority": 1000 }), 0),
        (json!({ "dueBefore": "2020-01-01T00:00:00Z" }), 0),
        (json!({ "suspended": true }), 0),
        (json!({ "suspended": false }), 3),
    ] {
        let mut filter = narrowed;
        filter["view"] = json!("all");
        let claim = json!({ "action": "claim", "filter": filter });
        let path = "/v1/tasks/bulk?dryRun=true";
        let claimed = app.post("reviewer", path, claim).await.expect(200);
        assert_eq!(outcomes(&claimed), fine(found), "{filter}");
    }
    // A reason has the same length limit as for one task: in characters.
    for (length, status) in [(2_000, 200), (2_001, 422)] {
        let reason = "д".repeat(length);
        let body = json!({ "action": "reassign", "to": "reviewer", "reason": reason, "filter": { "view": "all" } });
        // A dry run ignores the key, so it permits a filter.
        let host = app.host();
        let key = [("idempotency-key", "a-key")];
        let answer = host.send(
            "admin",
            "POST",
            "/v1/tasks/bulk?dryRun=true",
            &key,
            Some(body),
        );
        assert_eq!(answer.await.status, status, "{length}");
    }
    let half = json!({ "action": "claim", "filter": { "view": "all", "entityId": "b-1" } });
    let refused = app.post("reviewer", "/v1/tasks/bulk", half).await;
    let refused = refused.problem(422, "invalid_request");
    assert_eq!(refused["errors"][0]["pointer"], "/filter/entityId");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_decides_on_their_own_request_in_bulk() {
    let app = chambers().await;
    // `author` is a reviewer, too, and requested the first two.
    let own = motions(&app, 2).await;
    let assign = json!({ "offers": [{ "groups": ["reviewers"] }], "needed": 1 });
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": "other", "data": { "assign": assign },
    });
    let other = app.post("approver", "/v1/instances", body).await.started();
    let mut all = own.clone();
    all.push(other);
    let claimed = bulk(
        &app,
        "author",
        json!({ "action": "claim", "taskIds": ids(&all) }),
    )
    .await;
    assert_eq!(outcomes(&claimed)[2], (200, String::new()));
    for refused in &claimed["results"].as_array().expect("results")[..2] {
        assert_eq!(
            (&refused["status"], &refused["reason"]),
            (&json!(403), &json!("own_request"))
        );
    }
    let given =
        json!({ "action": "reassign", "taskIds": ids(&own), "to": "author", "reason": "Try." });
    let given = bulk(&app, "admin", given).await;
    assert!(outcomes(&given).iter().all(|(status, _)| *status >= 400));
    let decide = json!({ "action": "decide", "taskIds": ids(&all), "outcome": "YES" });
    let decided = bulk(&app, "author", decide).await;
    let statuses: Vec<_> = outcomes(&decided)
        .into_iter()
        .map(|(status, _)| status)
        .collect();
    assert_eq!(statuses, [403, 403, 200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_bulk_request_is_refused_as_a_whole() {
    let app = chambers().await;
    let motion = motions(&app, 1).await;
    let task = ids(&motion);
    let twice = [task[0].clone(), task[0].clone()];
    for (body, pointer) in [
        (json!({ "action": "claim" }), "/taskIds"),
        (json!({ "action": "claim", "taskIds": [] }), "/taskIds"),
        (json!({ "action": "claim", "taskIds": twice }), "/taskIds"),
        (
            json!({ "action": "claim", "taskIds": task, "filter": {} }),
            "/taskIds",
        ),
        (json!({ "action": "decide", "taskIds": task }), "/outcome"),
        (
            json!({ "action": "reassign", "taskIds": task, "to": "reviewer" }),
            "/reason",
        ),
        (
            json!({ "action": "claim", "taskIds": task, "outcome": "YES" }),
            "/outcome",
        ),
        (json!({ "action": "steal", "taskIds": task }), "/action"),
    ] {
        let problem = app.post("reviewer", "/v1/tasks/bulk", body).await;
        let problem = problem.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], pointer);
    }
    let host = app.host();
    let key = [("idempotency-key", "found")];
    let found = json!({ "action": "claim", "filter": { "view": "available" } });
    let refused = host
        .send("reviewer", "POST", "/v1/tasks/bulk", &key, Some(found))
        .await;
    refused.problem(422, "invalid_request");
}
