//! Deadlines over HTTP: each action, with real flow logic, at the time of the host's clock.

use super::*;
use wrkflw_engine::budgets::Budgets;

/// A vote of the reviewers whose task has one deadline.
fn under(deadline: &Value) -> Value {
    let offer = json!({ "groups": ["reviewers"], "deadlines": [deadline] });
    json!({
        "assign": { "offers": [offer] },
        "overdue": { "offers": [{ "groups": ["approvers"] }] },
    })
}

async fn passed(app: &TestApp, instance: &Value) -> Vec<Value> {
    audited(app, instance, "DEADLINE_PASSED").await
}

/// Types and data of the published events about this instance with one of these names.
async fn published(app: &TestApp, instance: &Value, kinds: &[&str]) -> Vec<(String, Value)> {
    let events = app.events().await;
    let about = events.iter().filter(|event| {
        event["subject"]
            .as_str()
            .is_some_and(|of| of.contains(id(instance)))
    });
    let found: Vec<_> = about
        .filter_map(|event| {
            let kind = event["type"].as_str().expect("a type");
            let kind = kind.trim_start_matches("dev.wrkflw.").to_owned();
            kinds
                .contains(&&*kind)
                .then(|| (kind, event["data"].clone()))
        })
        .collect();
    assert!(found.len() >= kinds.len(), "{kinds:?} are not told");
    found
}

#[tokio::test]
async fn the_owner_of_late_work_is_reminded_repeatedly() {
    let (app, time) = chambers_at().await;
    let data = under(&json!({ "after": 60, "every": 3600, "do": "remind" }));
    let instance = vote(&app, "remind", data).await;
    let task = &tasks(&instance)[0];
    assert_eq!(task["dueAt"], "2026-01-05T09:01:00Z");
    let timers = app.timers();
    time.work(&app, &[&app.engine], 59).await;
    assert_eq!(passed(&app, &instance).await, [] as [Value; 0]);
    time.work(&app, &[&app.engine], 1).await;
    claim(&app, "reviewer", task).await;
    // Five minutes late, after two missed reminders.
    time.work(&app, &[&app.engine], 3 * 3600 + 300).await;
    timers.stop().await;

    let passed = passed(&app, &instance).await;
    let told_of = |entry: &Value| {
        let next = entry["next"].clone();
        (entry["count"].clone(), entry["late"].clone(), next)
    };
    let expected = [
        (json!(1), json!(0), json!("2026-01-05T10:01:00Z")),
        (
            json!(2),
            json!(2 * 3600 + 300),
            json!("2026-01-05T13:01:00Z"),
        ),
    ];
    assert_eq!(passed.iter().map(told_of).collect::<Vec<_>>(), expected);
    assert_eq!(
        tasks(&shown(&app, &instance).await)[0]["dueAt"],
        "2026-01-05T13:01:00Z"
    );
    let reminders = published(&app, &instance, &["task.reminded", "task.reminded"]).await;
    let recipients = [
        json!([{ "type": "group", "id": "reviewers" }]),
        json!([{ "type": "user", "id": "reviewer" }]),
    ];
    let dues = ["2026-01-05T09:01:00Z", "2026-01-05T10:01:00Z"];
    for (number, (_, data)) in reminders.iter().enumerate() {
        assert_eq!(data["recipients"], recipients[number]);
        assert_eq!(data["dueAt"], dues[number]);
        assert_eq!(data["count"], number + 1);
        assert_eq!(data["taskId"], task["id"]);
    }
    prove_all(&app).await;
}

#[tokio::test]
async fn late_work_goes_back_to_the_queue() {
    let (app, time) = chambers_at().await;
    let data = under(&json!({ "after": 60, "do": "release" }));
    let instance = vote(&app, "release", data).await;
    let task = tasks(&instance)[0].clone();
    claim(&app, "reviewer", &task).await;
    let timers = app.timers();
    time.work(&app, &[&app.engine], 60).await;
    timers.stop().await;
    let path = format!("/v1/tasks/{}/decide", id(&task));
    let stranger = app.post("author", &path, json!({ "outcome": "YES" }));
    let problem = stranger.await.problem(403, "forbidden");
    assert_eq!(problem["reason"], "own_request");
    let released = audited(&app, &instance, "TASK_RELEASED").await;
    assert_eq!(
        (&released[0]["owner"], &released[0]["reason"]),
        (&json!("reviewer"), &json!("overdue"))
    );
    let ended = decide(&app, "reviewer2", &task, json!({ "outcome": "YES" })).await;
    assert_eq!(ended["outcome"], "APPROVED");
    prove_all(&app).await;
}

/// A task that is claimed for too long is released, whenever it was claimed.
#[tokio::test]
async fn a_task_that_is_claimed_for_too_long_is_released() {
    let (app, time) = chambers_at().await;
    let data = under(&json!({ "after": 600, "since": "claim", "do": "release" }));
    let instance = vote(&app, "claims", data).await;
    let task = tasks(&instance)[0].clone();
    let now = |instance: &Value| {
        let task = &tasks(instance)[0];
        (task["status"].clone(), task["dueAt"].clone())
    };
    assert_eq!(now(&instance), (json!("PENDING"), Value::Null));
    let timers = app.timers();
    // Nobody owns it for an hour, so nothing is due.
    time.work(&app, &[&app.engine], 3600).await;
    for (round, person) in ["reviewer", "reviewer2", "reviewer"]
        .into_iter()
        .enumerate()
    {
        claim(&app, person, &task).await;
        let claimed = shown(&app, &instance).await;
        assert_eq!(now(&claimed).0, "CLAIMED");
        assert!(now(&claimed).1.is_string(), "{claimed}");
        time.work(&app, &[&app.engine], 599).await;
        assert_eq!(passed(&app, &instance).await.len(), round);
        time.work(&app, &[&app.engine], 1).await;
        let passed = passed(&app, &instance).await;
        assert_eq!(
            (passed.len(), &passed[round]["count"]),
            (round + 1, &json!(round + 1))
        );
        let back = shown(&app, &instance).await;
        assert_eq!(now(&back), (json!("PENDING"), Value::Null));
        // The time without an owner does not count.
        time.work(&app, &[&app.engine], 900).await;
    }
    // Released early, then claimed by another person: the rest of the first claim does not count.
    claim(&app, "reviewer", &task).await;
    time.work(&app, &[&app.engine], 500).await;
    let path = format!("/v1/tasks/{}/release", id(&task));
    app.post("reviewer", &path, json!({})).await.expect(200);
    let jobs = "select count(*) from job where kind = 'deadline'";
    let jobs = sqlx::query_scalar::<_, i64>(jobs).fetch_one(app.database.admin_pool());
    assert_eq!(jobs.await.expect("a count"), 0);
    claim(&app, "reviewer2", &task).await;
    time.work(&app, &[&app.engine], 599).await;
    assert_eq!(passed(&app, &instance).await.len(), 3);
    time.work(&app, &[&app.engine], 1).await;
    timers.stop().await;
    assert_eq!(passed(&app, &instance).await.len(), 4);
    assert_eq!(audited(&app, &instance, "TASK_RELEASED").await.len(), 5);
    prove_all(&app).await;
}

/// In working days, from a claim on a Friday evening. A state as a whole has no claim.
#[tokio::test]
async fn working_days_since_a_claim_follow_the_calendar() {
    let (app, time) = chambers_at().await;
    app.put("admin", "/v1/calendars/office", office_week())
        .await
        .expect(200);
    let deadline = json!({ "days": 1, "working": "office", "since": "claim", "do": "release" });
    let instance = vote(&app, "friday", under(&deadline)).await;
    let task = tasks(&instance)[0].clone();
    time.pass(4 * 86_400 + 10 * 3600);
    // A dry run returns the same, and changes nothing.
    let path = format!("/v1/tasks/{}/claim?dryRun=true", id(&task));
    let tried = app.post("reviewer", &path, json!({})).await.expect(200);
    let monday = "2026-01-12T16:30:00Z";
    assert_eq!(tasks(&tried["instance"])[0]["dueAt"], monday);
    assert!(tasks(&shown(&app, &instance).await)[0]["dueAt"].is_null());
    claim(&app, "reviewer", &task).await;
    assert_eq!(tasks(&shown(&app, &instance).await)[0]["dueAt"], monday);

    let of_state =
        json!({ "assign": { "offers": [{ "groups": ["reviewers"] }], "deadlines": [deadline] } });
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": "whole", "data": of_state,
    });
    let refused = app.post("author", "/v1/instances", body).await;
    let problem = refused.problem(424, "logic_fault");
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(detail.contains("only a deadline of a task can"), "{detail}");
    prove_all(&app).await;
}

#[tokio::test]
async fn late_work_goes_to_others() {
    let (app, time) = chambers_at().await;
    let data = under(&json!({ "after": 60, "do": "escalate" }));
    let instance = vote(&app, "escalate", data).await;
    let task = tasks(&instance)[0].clone();
    claim(&app, "reviewer", &task).await;
    let timers = app.timers();
    time.work(&app, &[&app.engine], 90).await;
    timers.stop().await;
    let after = shown(&app, &instance).await;
    let all = tasks(&after);
    let open: Vec<_> = all
        .iter()
        .filter(|one| one["status"] == "PENDING")
        .collect();
    assert_eq!(open.len(), 1);
    assert_eq!(
        open[0]["candidates"],
        json!([{ "type": "group", "id": "approvers" }])
    );
    let cancelled = audited(&app, &instance, "TASK_CANCELLED").await;
    assert_eq!(
        (&cancelled[0]["task"], &cancelled[0]["reason"]),
        (&task["id"], &json!("escalated"))
    );
    let (_, escalation) = published(&app, &instance, &["task.escalated"])
        .await
        .remove(0);
    assert_eq!(
        escalation["previousCandidates"],
        json!([{ "type": "user", "id": "reviewer" }])
    );
    assert_eq!(
        (&escalation["dueAt"], &escalation["count"]),
        (&json!("2026-01-05T09:01:00Z"), &json!(1))
    );
    let ended = decide(&app, "approver", open[0], json!({ "outcome": "YES" })).await;
    assert_eq!(ended["outcome"], "APPROVED");
    prove_all(&app).await;
}

#[tokio::test]
async fn a_deadline_fires_a_trigger_or_is_refused() {
    let (app, time) = chambers_at().await;
    let deadline = json!({ "after": 60, "do": "LATE" });
    let ends = vote(&app, "ends", under(&deadline)).await;
    let mut data = under(&deadline);
    data["patient"] = json!(true);
    let goes_on = vote(&app, "goes_on", data).await;
    let timers = app.timers();
    time.work(&app, &[&app.engine], 60).await;
    timers.stop().await;
    assert_eq!(shown(&app, &ends).await["outcome"], "REJECTED");
    let after = shown(&app, &goes_on).await;
    assert_eq!(after["status"], "RUNNING");
    let refused = audited(&app, &goes_on, "TRIGGER_REFUSED").await;
    assert_eq!(
        (&refused[0]["trigger"], &refused[0]["code"]),
        (&json!("LATE"), &json!("patient"))
    );
    assert_eq!(passed(&app, &goes_on).await.len(), 1);
    prove_all(&app).await;
}

#[tokio::test]
async fn working_time_counts_by_the_tenants_calendar() {
    let (app, time) = chambers_at().await;
    let deadline = json!({ "after": 9 * 3600, "working": "office", "do": "remind" });
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": "early", "data": under(&deadline),
    });
    let answer = app.post("author", "/v1/instances", body).await;
    assert!(
        answer.status >= 400 && answer.text.contains("no calendar"),
        "{}",
        answer.text
    );
    let hours = json!([{ "from": "09:00", "until": "17:00" }]);
    let office = json!({ "timeZone": "UTC", "hours": { "monday": hours, "wednesday": hours } });
    app.put("admin", "/v1/calendars/office", office)
        .await
        .expect(200);
    let instance = vote(&app, "working", under(&deadline)).await;
    let wednesday = "2026-01-07T10:00:00Z";
    assert_eq!(tasks(&instance)[0]["dueAt"], wednesday);
    let timers = app.timers();
    time.work(&app, &[&app.engine], 48 * 3600 + 3600).await;
    timers.stop().await;
    assert_eq!(passed(&app, &instance).await[0]["dueAt"], wednesday);
    prove_all(&app).await;
}

/// Monday to Friday, with a holiday on the sixth and a short day on the fifteenth.
fn office_week() -> Value {
    let hours =
        json!([{ "from": "09:00", "until": "12:00" }, { "from": "13:00", "until": "17:30" }]);
    json!({
        "timeZone": "Europe/Berlin",
        "hours": { "monday": hours, "tuesday": hours, "wednesday": hours, "thursday": hours, "friday": hours },
        "holidays": ["2026-01-06"],
        "exceptions": { "2026-01-15": [{ "from": "09:00", "until": "15:00" }] },
    })
}

/// Receipts are due after seven working days, with a holiday and two weekends in between.
#[tokio::test]
async fn the_last_working_day_ends_with_its_hours() {
    let (app, time) = chambers_at().await;
    app.put("admin", "/v1/calendars/office", office_week())
        .await
        .expect(200);
    let deadline = json!({ "days": 7, "working": "office", "do": "LATE" });
    let instance = vote(&app, "receipts", under(&deadline)).await;
    // The first day is Monday, the fifth. The sixth is a holiday.
    let due_at = "2026-01-15T14:00:00Z";
    assert_eq!(tasks(&instance)[0]["dueAt"], due_at);
    let timers = app.timers();
    time.work(&app, &[&app.engine], 10 * 86_400 + 5 * 3600 - 1)
        .await;
    assert_eq!(passed(&app, &instance).await, [] as [Value; 0]);
    time.work(&app, &[&app.engine], 1).await;
    timers.stop().await;
    assert_eq!(passed(&app, &instance).await[0]["dueAt"], due_at);
    assert_eq!(shown(&app, &instance).await["outcome"], "REJECTED");

    for (days, calendar, why) in [
        (0, "office", "counts no working day"),
        (7, "home", "no calendar \"home\""),
        (9_000, "office", "fewer than 9000 working days"),
    ] {
        let deadline = json!({ "days": days, "working": calendar, "do": "remind" });
        let body = json!({
            "definitionKey": "committee", "entityType": "motion", "entityId": why, "data": under(&deadline),
        });
        let refused = app.post("author", "/v1/instances", body).await;
        let problem = refused.problem(424, "logic_fault");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(why), "{detail}");
    }
    prove_all(&app).await;
}

#[tokio::test]
async fn deadlines_rest_while_an_instance_is_suspended() {
    let (app, time) = chambers_at().await;
    let instance = vote(
        &app,
        "rests",
        under(&json!({ "after": 60, "do": "remind" })),
    )
    .await;
    let path = |action: &str| format!("/v1/instances/{}/{action}", id(&instance));
    time.pass(20);
    let reason = json!({ "reason": "a question" });
    app.post("admin", &path("suspend"), reason)
        .await
        .expect(200);
    let timers = app.timers();
    time.work(&app, &[&app.engine], 3600).await;
    assert_eq!(passed(&app, &instance).await, [] as [Value; 0]);
    app.post("admin", &path("resume"), json!({}))
        .await
        .expect(200);
    time.work(&app, &[&app.engine], 39).await;
    assert_eq!(passed(&app, &instance).await, [] as [Value; 0]);
    time.work(&app, &[&app.engine], 1).await;
    timers.stop().await;
    assert_eq!(passed(&app, &instance).await[0]["late"], 0);
    prove_all(&app).await;
}

#[tokio::test]
async fn work_escalated_to_its_requester_is_not_theirs_to_decide() {
    let (app, time) = chambers_at().await;
    let offer =
        json!({ "groups": ["reviewers"], "deadlines": [{ "after": 60, "do": "escalate" }] });
    let data = json!({
        "assign": { "offers": [offer] },
        "overdue": { "offers": [{ "users": ["author", "approver"] }] },
    });
    let instance = vote(&app, "own", data).await;
    let timers = app.timers();
    time.work(&app, &[&app.engine], 60).await;
    timers.stop().await;
    let instance = shown(&app, &instance).await;
    let open = tasks(&instance)
        .iter()
        .find(|task| task["status"] == "PENDING")
        .expect("the work goes to others");
    let path = format!("/v1/tasks/{}/claim", id(open));
    let own = app.post("author", &path, json!({})).await;
    assert_eq!(own.problem(403, "forbidden")["reason"], "own_request");
    let noted: i64 = sqlx::query_scalar(
        "select count(*) from refused_attempt where actor = 'author' and code = 'own_request'",
    )
    .fetch_one(app.database.admin_pool())
    .await
    .expect("a count");
    assert_eq!(noted, 1);
    app.post("approver", &path, json!({})).await.expect(200);
    prove_all(&app).await;
}

/// A refusal would be retried for ever, and block the later jobs of the instance.
#[tokio::test]
async fn the_effects_of_a_deadline_may_open_more_jobs_than_a_command() {
    let (app, time) = chambers_at().await;
    let budgets = Budgets {
        open_jobs_max: 1,
        ..Budgets::default()
    };
    let engine = app.engine_with_clock(time.clock()).await.budgeted(budgets);
    let store = app.store().clone();
    let app = app.with_engine(store, engine);
    let later = [600, 700].map(|after| json!({ "after": after, "do": "remind" }));
    let offer =
        json!({ "groups": ["reviewers"], "deadlines": [{ "after": 60, "do": "escalate" }] });
    let data = json!({
        "assign": { "offers": [offer] },
        "overdue": { "offers": [{ "groups": ["approvers"], "deadlines": later }] },
    });
    let instance = vote(&app, "many", data).await;
    let timers = app.timers();
    time.work(&app, &[&app.engine], 60).await;
    timers.stop().await;
    assert_eq!(passed(&app, &instance).await.len(), 1);
    let open = "select count(*) from job where kind = 'deadline'";
    let open: i64 = sqlx::query_scalar(open)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(open, 2);
}
