//! One instance: what it keeps, refusals, and dry runs.

use super::*;

/// The pointers of a problem's errors.
fn pointers(problem: &Value) -> Vec<&str> {
    let errors = problem["errors"].as_array().expect("errors").iter();
    errors
        .map(|error| error["pointer"].as_str().expect("a pointer"))
        .collect()
}

fn open(instance: &Value) -> Vec<(&str, &Value)> {
    let tasks = instance["states"][0]["tasks"].as_array().expect("tasks");
    let open = tasks
        .iter()
        .filter(|task| ["PENDING", "CLAIMED"].contains(&task["status"].as_str().expect("one")));
    open.map(|task| (task["label"].as_str().expect("a label"), &task["owner"]))
        .collect()
}

/// The types of all events, each with its version.
async fn versions(app: &TestApp) -> Vec<(String, Option<u64>)> {
    let events = app.events().await;
    let listed = events.iter().map(|event| {
        let kind = event["type"].as_str().expect("a type");
        (kind.to_owned(), event["data"]["definitionVersion"].as_u64())
    });
    listed.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn votes_and_owners_are_kept_and_the_new_version_applies() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    let (first, second) = (task(&instance, 0), task(&instance, 1));
    act(&app, "ida", first, "claim", json!({}))
        .await
        .expect(200);
    act(&app, "ida", first, "decide", json!({ "outcome": "YES" }))
        .await
        .expect(200);
    act(&app, "jim", second, "claim", json!({}))
        .await
        .expect(200);

    let migrated = migrate(&app, &instance, ballot()).await.expect(200);
    let after = &migrated["instance"];
    assert_eq!(after["definitionVersion"], 2);
    assert_eq!(after["states"][0]["name"], "Ballot");
    assert_eq!(after["states"][0]["id"], instance["states"][0]["id"]);
    let vote = &after["states"][0]["tasks"][0];
    assert_eq!(
        (&vote["id"], &vote["decision"]["actor"]),
        (&json!(first), &json!("ida"))
    );
    let owned = &after["states"][0]["tasks"][1];
    assert_eq!(
        (&owned["id"], &owned["owner"]),
        (&json!(second), &json!("jim"))
    );
    assert_eq!(as_answered(shown(&app, &instance).await), *after);

    // The second equal vote ends it, by the rules of the new version.
    let done = act(&app, "jim", second, "decide", json!({ "outcome": "YES" })).await;
    assert_eq!(done.expect(200)["instance"]["outcome"], "APPROVED");
    let history = format!("/v1/instances/{}/history", id(&instance));
    let history = app.get("admin", &history).await.expect(200);
    assert_eq!(history["data"][0]["name"], "Ballot");

    // Each event has the version under which it happened.
    let versions = versions(&app).await;
    let place = versions
        .iter()
        .position(|(kind, _)| kind.ends_with("flow.migrated"));
    let place = place.expect("a migration");
    assert!(place > 0 && place + 1 < versions.len());
    assert!(
        versions[..place]
            .iter()
            .all(|(_, version)| *version == Some(1)),
        "{versions:?}"
    );
    assert!(
        versions[place..]
            .iter()
            .all(|(_, version)| *version == Some(2)),
        "{versions:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_impossible_migration_is_refused_with_the_reason() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    let refused = async |body: Value| {
        let problem = migrate(&app, &instance, body).await;
        problem.problem(422, "invalid_input")
    };
    assert_eq!(
        pointers(&refused(json!({ "version": 2 })).await),
        ["/states/Vote"]
    );
    let astray = json!({ "version": 3, "states": { "Ballot": "Vote" } });
    assert_eq!(pointers(&refused(astray).await), ["/states/Ballot"]);
    let wrong = json!({ "version": 2, "states": { "Vote": "Approved" } });
    assert_eq!(pointers(&refused(wrong).await), ["/states/Vote"]);
    assert_eq!(
        pointers(&refused(json!({ "version": 4 })).await),
        ["/data/budget"]
    );
    assert_eq!(
        pointers(&refused(json!({ "version": 1 })).await),
        ["/version"]
    );

    migrate(&app, &instance, json!({ "version": 99 }))
        .await
        .problem(404, "not_found");
    let retire = "/v1/definitions/committee/versions/5/retire";
    app.post("admin", retire, json!({})).await.expect(200);
    migrate(&app, &instance, json!({ "version": 5 }))
        .await
        .problem(409, "version_retired");
    let path = format!("/v1/instances/{}/migrate", id(&instance));
    app.post("author", &path, ballot())
        .await
        .problem(403, "permission_missing");
    let stale = app.host();
    let stale = stale.send(
        "admin",
        "POST",
        &path,
        &[("if-match", "\"7\"")],
        Some(ballot()),
    );
    stale.await.problem(412, "stale_revision");
    assert_eq!(
        shown(&app, &instance).await["revision"],
        instance["revision"]
    );
    let reinstate = "/v1/definitions/committee/versions/5/reinstate";
    app.post("admin", reinstate, json!({})).await.expect(200);
    migrate(&app, &instance, json!({ "version": 5 }))
        .await
        .expect(200);
}

/// The refusal reveals neither instances nor versions. A dry run shows no more than the migration.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_migrate_does_not_learn_what_exists() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    let missing = "00000000-0000-7000-8000-000000000000";
    for (id, version) in [(missing, 2), (id(&instance), 99)] {
        for query in ["", "?dryRun=true"] {
            let path = format!("/v1/instances/{id}/migrate{query}");
            let to = json!({ "version": version });
            let refused = app.post("author", &path, to.clone()).await;
            let refused = refused.problem(403, "permission_missing");
            assert_eq!(refused["reason"], "instance:migrate", "{path}");
            let missed = app.post("admin", &path, to).await;
            missed.problem(404, "not_found");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_leaves_work_to_nobody_is_refused() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    let bench = json!({ "version": 3 });
    let path = format!("/v1/instances/{}/suspend", id(&instance));
    for suspends in [false, true] {
        if suspends {
            app.post("admin", &path, json!({ "reason": "A recess." }))
                .await
                .expect(200);
        }
        let before = shown(&app, &instance).await;
        let problem = migrate(&app, &instance, bench.clone()).await;
        assert_eq!(
            pointers(&problem.problem(422, "nobody_left")),
            ["/states/Vote"]
        );
        assert_eq!(shown(&app, &instance).await, before);
    }
    // A suspended instance stays suspended under the new version.
    let migrated = migrate(&app, &instance, ballot()).await.expect(200);
    assert_eq!(migrated["instance"]["status"], "SUSPENDED");
    let path = format!("/v1/instances/{}/resume", id(&instance));
    app.post("admin", &path, json!({})).await.expect(200);
    let now = shown(&app, &instance).await;
    assert_eq!(open(&now).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_both_sides_and_writes_nothing() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    act(&app, "ida", task(&instance, 0), "claim", json!({}))
        .await
        .expect(200);
    let before = shown(&app, &instance).await;
    let path = format!("/v1/instances/{}/migrate?dryRun=true", id(&instance));
    let others = json!({ "version": 5 });
    let shown_dry = app.post("admin", &path, others.clone()).await.expect(200);
    assert_eq!(shown_dry["dryRun"], true);
    assert_eq!(shown_dry["before"]["instance"], as_answered(before.clone()));
    let after = &shown_dry["after"]["instance"];
    assert_eq!(after["definitionVersion"], 5);
    // She is no reviewer.
    let nobody = json!(null);
    assert_eq!(
        open(after),
        [("one", &nobody), ("two", &nobody), ("three", &nobody)]
    );
    let offered = after["states"][0]["tasks"]
        .as_array()
        .expect("tasks")
        .last();
    assert_eq!(offered.expect("a task")["candidates"][0]["id"], "reviewers");
    let claims = |side: &str| {
        let actions = shown_dry[side]["actions"].as_array().expect("actions");
        let claims = actions.iter().filter(|action| action["action"] == "claim");
        claims.count()
    };
    assert_eq!((claims("before"), claims("after")), (3, 3));
    assert!(shown_dry["after"]["deadlines"].is_array());
    assert_eq!(shown(&app, &instance).await, before);
    // A dry run is refused for the same reasons.
    app.post("admin", &path, json!({ "version": 3 }))
        .await
        .problem(422, "nobody_left");

    // The migration has the shown result, and a repetition changes nothing more.
    let path = format!("/v1/instances/{}/migrate", id(&instance));
    let host = app.host();
    let key = [("idempotency-key", "go-over")];
    let real = host.send("admin", "POST", &path, &key, Some(others.clone()));
    let real = real.await.expect(200);
    let labels = |instance: &Value| -> Vec<String> {
        open(instance)
            .iter()
            .map(|(label, owner)| format!("{label} {owner}"))
            .collect()
    };
    assert_eq!(labels(&real["instance"]), labels(after));
    let again = host.send("admin", "POST", &path, &key, Some(others)).await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.expect(200), real);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_leaves_out_the_deadlines_of_suspended_tasks() {
    let app = chambers().await;
    let offer = |label: &str| {
        let reminder = json!({ "after": 3_600, "do": "remind" });
        json!({ "groups": ["voters"], "label": label, "deadlines": [reminder] })
    };
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": "m-1",
        "data": { "assign": { "offers": [offer("one"), offer("two")], "needed": 2 } },
    });
    let instance = app.post("author", "/v1/instances", body).await.started();
    let path = format!("/v1/instances/{}/migrate?dryRun=true", id(&instance));
    let counting = async || -> Vec<Value> {
        let shown = app.post("admin", &path, ballot()).await.expect(200);
        let deadlines = shown["before"]["deadlines"].as_array();
        let deadlines = deadlines.expect("deadlines").iter();
        deadlines.map(|one| one["taskId"].clone()).collect()
    };
    let (one, two) = (task(&instance, 0), task(&instance, 1));
    assert_eq!(counting().await.len(), 2);
    for action in ["claim", "suspend"] {
        act(&app, "ida", one, action, json!({})).await.expect(200);
    }
    assert_eq!(counting().await, [two]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_both_sides_only_to_who_may_read_instances() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    let role = json!({ "permissions": ["instance:migrate", "definition:activate"] });
    let put = app.put("admin", "/v1/roles/migrator", role).await;
    put.expect(200);
    let host = app.host();
    let token = host.token_of("author", "default", &["migrator"]);
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let path = format!("/v1/instances/{}/migrate?dryRun=true", id(&instance));
    let shown = host.send("", "POST", &path, &headers, Some(ballot())).await;
    let shown = shown.expect(200);
    assert_eq!(shown["instance"]["definitionVersion"], 2);
    for member in ["before", "after", "events"] {
        assert_eq!(shown.get(member), None, "{shown}");
    }
}

/// A candidate of only the old version no longer sees the task.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_hidden_from_candidates_of_the_old_version() {
    let app = chambers().await;
    app.put("admin", "/v1/groups/reviewers/members/kay", json!({}))
        .await
        .expect(200);
    let instance = vote(&app, "m-1").await;
    let kept = task(&instance, 0);
    act(&app, "kay", kept, "claim", json!({})).await.expect(200);
    let migrated = migrate(&app, &instance, json!({ "version": 5 })).await;
    migrated.expect(200);
    // Her claim is kept. Then she releases it to the new candidates.
    act(&app, "kay", kept, "release", json!({}))
        .await
        .expect(200);
    let seen = async |who: &str| {
        let tasks = app.get(who, "/v1/tasks?view=available").await.expect(200);
        tasks["data"].as_array().expect("tasks").len()
    };
    assert_eq!(seen("jim").await, 0);
    assert_eq!(seen("reviewer").await, 3);
    let refused = act(&app, "jim", kept, "claim", json!({})).await;
    refused.problem(403, "forbidden");
    let candidates = "select count(*) from task_candidate where principal <> 'reviewers'";
    let left = sqlx::query_scalar::<_, i64>(candidates).fetch_one(app.database.admin_pool());
    assert_eq!(left.await.expect("a count"), 0);
}
