//! A suspended task over HTTP: who suspends it, refused commands, and its deadlines.

use super::*;

/// A vote of the reviewers under a deadline of 60 s of its task, and of 2 hours of the state.
async fn voted(app: &TestApp, entity: &str) -> (Value, Value) {
    let deadline = json!({ "after": 60, "do": "remind" });
    let offer = json!({ "groups": ["reviewers"], "deadlines": [deadline] });
    let of_state = json!([{ "after": 7200, "do": "release" }]);
    let data = json!({ "assign": { "offers": [offer], "deadlines": of_state } });
    let instance = vote(app, entity, data).await;
    let task = tasks(&instance)[0].clone();
    (instance, task)
}

async fn post(app: &TestApp, user: &str, task: &Value, what: &str, body: Value) -> Answer {
    let path = format!("/v1/tasks/{}/{what}", id(task));
    app.post(user, &path, body).await
}

async fn passed(app: &TestApp, instance: &Value) -> usize {
    audited(app, instance, "DEADLINE_PASSED").await.len()
}

/// The task in a list of all open tasks.
async fn listed(app: &TestApp, task: &Value) -> Value {
    let page = app.get("admin", "/v1/tasks?view=all").await.expect(200);
    let mut tasks = page["data"].as_array().expect("tasks").iter();
    let found = tasks.find(|one| one["id"] == task["id"]);
    found.expect("an open task").clone()
}

#[tokio::test]
async fn an_owner_suspends_a_task_and_its_deadline_pauses() {
    let (app, time) = chambers_at().await;
    let (instance, task) = voted(&app, "waits").await;
    claim(&app, "reviewer", &task).await;
    time.pass(20);
    let stranger = post(&app, "reviewer2", &task, "suspend", json!({})).await;
    assert_eq!(stranger.problem(403, "forbidden")["reason"], "not_owner");
    let why = json!({ "reason": "a page is missing" });
    let answer = post(&app, "reviewer", &task, "suspend", why.clone()).await;
    let answer = answer.expect(200);
    let expected = json!({
        "by": "reviewer", "at": "2026-01-05T09:00:20Z", "reason": "a page is missing", "until": null,
    });
    assert_eq!(answer["task"]["suspended"], expected);
    assert_eq!(answer["events"][0]["type"], "dev.wrkflw.task.suspended");
    let mut shown_in_list = listed(&app, &task).await["suspended"].clone();
    shown_in_list["until"] = Value::Null;
    assert_eq!(shown_in_list, expected);

    let yes = json!({ "outcome": "YES" });
    for (what, body) in [
        ("decide", yes.clone()),
        ("release", json!({})),
        ("delegate", json!({ "to": "reviewer2", "reason": "away" })),
        ("suspend", why),
    ] {
        let refused = post(&app, "reviewer", &task, what, body).await;
        let problem = refused.problem(409, "task_suspended");
        assert_eq!(problem["conflict"]["by"], "reviewer");
        assert_eq!(problem["conflict"]["at"], "2026-01-05T09:00:20Z");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains("a page is missing"), "{detail}");
    }
    let path = format!("/v1/instances/{}/actions", id(&instance));
    let actions = app.get("reviewer", &path).await.expect(200);
    let about = actions["actions"].as_array().expect("actions").iter();
    let about = about.filter(|one| one["taskId"] == task["id"]);
    let allowed = about.filter(|one| one["allowed"] == true);
    let allowed: Vec<_> = allowed.map(|one| one["action"].clone()).collect();
    assert_eq!(allowed, ["resume"]);

    let timers = app.timers();
    time.work(&app, &[&app.engine], 3600).await;
    assert_eq!(passed(&app, &instance).await, 0);
    let resumed = post(&app, "reviewer", &task, "resume", json!({})).await;
    assert_eq!(resumed.expect(200)["task"]["suspended"], Value::Null);
    time.work(&app, &[&app.engine], 39).await;
    assert_eq!(passed(&app, &instance).await, 0);
    time.work(&app, &[&app.engine], 1).await;
    timers.stop().await;
    let passed = audited(&app, &instance, "DEADLINE_PASSED").await;
    assert_eq!((passed.len(), &passed[0]["late"]), (1, &json!(0)));
    let again = post(&app, "reviewer", &task, "resume", json!({})).await;
    again.problem(409, "not_suspended");
    let decided = post(&app, "reviewer", &task, "decide", yes).await;
    assert_eq!(decided.expect(200)["instance"]["outcome"], "APPROVED");
    prove_all(&app).await;
}

#[tokio::test]
async fn the_host_resumes_a_task_at_the_time_that_was_set() {
    let (app, time) = chambers_at().await;
    let (instance, task) = voted(&app, "until").await;
    // Only operators can suspend a task without an owner.
    let until = json!({ "until": "2026-01-05T10:00:00Z" });
    let own = post(&app, "reviewer", &task, "suspend", until.clone()).await;
    own.problem(403, "forbidden");
    for (wrong, code) in [
        ("2026-01-05T09:00:00Z", "not_in_future"),
        ("2027-01-07T09:00:00Z", "too_late"),
    ] {
        let answer = post(&app, "admin", &task, "suspend", json!({ "until": wrong })).await;
        let problem = answer.problem(422, "invalid_input");
        let error = &problem["errors"][0];
        assert_eq!(
            (&error["pointer"], &error["code"]),
            (&json!("/until"), &json!(code))
        );
    }
    post(&app, "admin", &task, "suspend", until)
        .await
        .expect(200);
    let claimed = post(&app, "reviewer", &task, "claim", json!({})).await;
    claimed.problem(409, "task_suspended");
    let timers = app.timers();
    time.work(&app, &[&app.engine], 3599).await;
    assert!(tasks(&shown(&app, &instance).await)[0]["suspended"].is_object());
    time.work(&app, &[&app.engine], 1).await;
    let resumed = shown(&app, &instance).await;
    assert_eq!(tasks(&resumed)[0]["suspended"], Value::Null);
    assert_eq!(tasks(&resumed)[0]["dueAt"], "2026-01-05T10:01:00Z");
    assert_eq!(audited(&app, &instance, "TASK_RESUMED").await.len(), 1);
    claim(&app, "reviewer", &task).await;
    time.work(&app, &[&app.engine], 60).await;
    timers.stop().await;
    assert_eq!(passed(&app, &instance).await, 1);
    let decided = post(
        &app,
        "reviewer",
        &task,
        "decide",
        json!({ "outcome": "YES" }),
    )
    .await;
    assert_eq!(decided.expect(200)["instance"]["outcome"], "APPROVED");
    let jobs = sqlx::query_scalar::<_, i64>("select count(*) from job");
    let jobs = jobs.fetch_one(app.database.admin_pool()).await;
    assert_eq!(jobs.expect("a count"), 0);
    prove_all(&app).await;
}

/// The state's deadline is not paused. It releases the task, which ends the suspension; so does an operator.
#[tokio::test]
async fn a_suspension_ends_when_the_owner_loses_the_task() {
    let (app, time) = chambers_at().await;
    let (instance, task) = voted(&app, "loses").await;
    let (other, second) = voted(&app, "reassigned").await;
    for task in [&task, &second] {
        claim(&app, "reviewer", task).await;
        let until = json!({ "until": "2026-02-01T00:00:00Z" });
        post(&app, "reviewer", task, "suspend", until)
            .await
            .expect(200);
    }
    let to = json!({ "to": "reviewer2", "reason": "ill" });
    let given = post(&app, "admin", &second, "reassign", to).await;
    assert_eq!(given.expect(200)["task"]["suspended"], Value::Null);
    let timers = app.timers();
    time.work(&app, &[&app.engine], 7200).await;
    timers.stop().await;
    let released = audited(&app, &instance, "TASK_RELEASED").await;
    assert_eq!(released[0]["reason"], "overdue");
    let free = shown(&app, &instance).await;
    assert_eq!(tasks(&free)[0]["suspended"], Value::Null);
    for (task, person) in [(&task, "reviewer2"), (&second, "reviewer2")] {
        let yes = json!({ "outcome": "YES" });
        let decided = post(&app, person, task, "decide", yes).await;
        assert_eq!(decided.expect(200)["instance"]["outcome"], "APPROVED");
    }
    assert_eq!(shown(&app, &other).await["status"], "COMPLETED");
    prove_all(&app).await;
}
