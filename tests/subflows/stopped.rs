//! A version that an operator has stopped: none of its instances runs, none is lost, and all can be cancelled.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use serde_json::{Value, json};

use super::*;
use crate::support::app::task_of;

const SUBFLOWS: &str = "/v1/definitions/subflows/versions/1";

/// The same flow under another key.
async fn another(app: &TestApp) {
    let published = app.publish("others", subflows(), &json!({})).await;
    published.expect(201);
    let path = "/v1/definitions/others/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
}

async fn stop(app: &TestApp, version: &str) -> Value {
    let body = json!({ "reason": "it starts itself in a circle" });
    app.post("admin", &format!("{version}/stop"), body)
        .await
        .expect(200)
}

async fn resume(app: &TestApp, version: &str) -> Value {
    app.post("admin", &format!("{version}/resume"), json!({}))
        .await
        .expect(200)
}

/// Waits until the worker has claimed all due jobs once: a child of the other flow is started.
async fn gone_round(app: &TestApp, entity: &str) {
    let body = json!({
        "definitionKey": "others", "entityType": "errand", "entityId": entity,
        "data": { "wait": { "children": [{ "key": "others", "entity": format!("{entity} child"), "data": {}, "onEnd": "ENDED" }] } },
    });
    let parent = id(&app.post("author", "/v1/instances", body).await.started());
    children(app, &parent, 1).await;
}

fn jobs_of(instance: &str) -> String {
    format!("select count(*) from job where instance_id = '{instance}' and attempts = 0")
}

async fn untouched(app: &TestApp, instance: &str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(jobs_of(instance)))
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count")
}

#[tokio::test]
async fn nothing_of_a_stopped_version_runs_until_it_is_resumed() {
    let app = fixture().await;
    another(&app).await;
    let data =
        json!({ "wait": { "swarm": 1, "late": 0, "correlation": "1", "bufferSignals": true } });
    let subflow = begin(&app, "1", data.clone()).await;
    let stopped = stop(&app, SUBFLOWS).await;
    assert_eq!(
        stopped,
        json!({ "key": "subflows", "version": 1, "stopped": true, "changed": true })
    );
    assert_eq!(stop(&app, SUBFLOWS).await["changed"], false);
    // A job that the stop did not put off, as if its host had died meanwhile.
    sqlx::raw_sql("update job set lease_until = null")
        .execute(app.database.admin_pool())
        .await
        .expect("a release");
    let timers = app.timers();
    gone_round(&app, "first").await;
    gone_round(&app, "second").await;
    let found = shown(&app, &subflow).await;
    assert_eq!(
        (&found["revision"], &found["states"][0]["name"]),
        (&json!(1), &json!("Wait"))
    );
    assert_eq!(untouched(&app, &subflow).await, 3, "none was claimed");
    assert_eq!(
        counted(
            &app,
            "select count(*) from instance where definition_key = 'subflows'"
        )
        .await,
        1
    );

    resume(&app, SUBFLOWS).await;
    // The deadline that was due meanwhile runs at once.
    until_status(&app, &subflow, "COMPLETED").await;
    timers.stop().await;
    proven(&app, &subflow).await;
    let audit = app
        .get("admin", "/v1/definitions/subflows/versions")
        .await
        .expect(200);
    assert_eq!(audit["data"][0]["stoppedAt"], Value::Null);
    let kinds: Vec<(String, String)> = sqlx::query_as(
        "select type, payload from audit_entry where stream_kind = 'definition' and type like 'VERSION_%' and payload like '%subflows%'
        and type in ('VERSION_STOPPED', 'VERSION_RESUMED') order by seq",
    )
    .fetch_all(app.database.admin_pool())
    .await
    .expect("entries");
    assert_eq!(kinds.len(), 2);
    assert!(
        kinds[0].1.contains("it starts itself in a circle"),
        "{kinds:?}"
    );
}

#[tokio::test]
async fn commands_of_people_are_refused_with_a_code_of_their_own() {
    let app = fixture().await;
    let subflow = begin(&app, "1", json!({ "first": "Work" })).await;
    let path = format!("/v1/tasks/{}", task_of(&shown(&app, &subflow).await));
    app.post("reviewer", &format!("{path}/claim"), json!({}))
        .await
        .expect(200);
    stop(&app, SUBFLOWS).await;
    // Read after the stop, then cached; and read by another host.
    let beside = app.beside().await;
    for host in [app.host(), app.host(), beside] {
        let answer = host
            .send(
                "reviewer",
                "POST",
                &format!("{path}/release"),
                &[],
                Some(json!({})),
            )
            .await;
        let problem = answer.problem(409, "version_stopped");
        let detail = problem["detail"].as_str().expect("text");
        assert!(
            detail.ends_with("can only be commented on, suspended, cancelled or migrated"),
            "{detail}"
        );
    }
    signal(&app, &subflow, "WITHDRAW", json!({}))
        .await
        .problem(409, "version_stopped");
    let body =
        json!({ "definitionKey": "subflows", "entityType": "errand", "entityId": "2", "data": {} });
    let started = app.post("author", "/v1/instances", body).await;
    started.problem(409, "version_stopped");
    let actions = app
        .get("reviewer", &format!("/v1/instances/{subflow}/actions"))
        .await
        .expect(200);
    let actions = actions["actions"].as_array().expect("actions").clone();
    let release = actions.iter().find(|action| action["action"] == "release");
    let release = release.expect("a release");
    assert_eq!(
        (&release["allowed"], &release["refusal"]["code"]),
        (&json!(false), &json!("version_stopped"))
    );
    // Callers without the permission learn nothing of it.
    let path_to_stop = format!("{SUBFLOWS}/stop");
    let refused = app
        .post("author", &path_to_stop, json!({ "reason": "mine" }))
        .await;
    refused.problem(403, "permission_missing");
    resume(&app, SUBFLOWS).await;
    app.post("reviewer", &format!("{path}/release"), json!({}))
        .await
        .expect(200);
}

/// Otherwise its deadlines would act at once when the version is resumed.
#[tokio::test]
async fn an_instance_of_a_stopped_version_can_be_commented_on_and_suspended() {
    let app = fixture().await;
    let subflow = begin(&app, "1", json!({ "wait": { "late": 3600 } })).await;
    let due = async || {
        let shown = shown(&app, &subflow).await;
        let due = shown["states"][0]["dueAt"].as_str().map(str::to_owned);
        let due = due.expect("it is due").parse::<jiff::Timestamp>();
        (shown["status"].clone(), due.expect("a moment"))
    };
    let (status, before) = due().await;
    assert_eq!(status, "RUNNING");
    stop(&app, SUBFLOWS).await;
    let path = format!("/v1/instances/{subflow}");
    let reason = json!({ "reason": "its version is stopped" });
    let remark = json!({ "comment": "its version is stopped" });
    let commented = app.post("admin", &format!("{path}/comment"), remark).await;
    commented.expect(200);
    let suspended = app.post("admin", &format!("{path}/suspend"), reason).await;
    assert_eq!(suspended.expect(200)["instance"]["status"], "SUSPENDED");
    let resumption = format!("{path}/resume");
    let refused = app.post("admin", &resumption, json!({})).await;
    refused.problem(409, "version_stopped");
    resume(&app, SUBFLOWS).await;
    assert_eq!(due().await, (json!("SUSPENDED"), before));
    app.post("admin", &resumption, json!({})).await.expect(200);
    let (status, after) = due().await;
    assert_eq!(status, "RUNNING");
    assert!(after > before, "{after} is not after {before}");
    proven(&app, &subflow).await;
}

/// A change of groups affects the tasks of a stopped version when the version is resumed, without retries until then.
#[tokio::test]
async fn a_change_of_groups_waits_until_the_version_is_resumed() {
    let app = fixture().await;
    let mut claimed = Vec::new();
    for entity in ["1", "2"] {
        let subflow = begin(&app, entity, json!({ "first": "Work" })).await;
        let path = format!("/v1/tasks/{}/claim", task_of(&shown(&app, &subflow).await));
        app.post("reviewer2", &path, json!({})).await.expect(200);
        claimed.push(subflow);
    }
    stop(&app, SUBFLOWS).await;
    let member = "/v1/groups/reviewers/members/reviewer2";
    let left = app.host().send("admin", "DELETE", member, &[], None).await;
    left.expect(200);
    // A host with a command timeout of a second, so that the last walk comes soon.
    let timeout = Duration::from_secs(1);
    let (_host, engine) = app.beside_with_engine(app.database.url(), timeout).await;
    let timers = Timers::start(&engine, std::sync::Arc::new(engine.clone()));
    let walked = async {
        while counted(&app, "select count(*) from reassessment").await > 0 {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, walked)
        .await
        .expect("in time");
    let jobs: Vec<(String, i32, Option<String>)> =
        sqlx::query_as("select kind, attempts, last_error from job")
            .fetch_all(app.database.admin_pool())
            .await
            .expect("jobs");
    let waits = ("reassess_instance".to_owned(), 0, None);
    assert_eq!(jobs, [waits.clone(), waits], "none was claimed");
    let owner = |instance: &Value| instance["states"][0]["tasks"][0]["owner"].clone();
    assert_eq!(owner(&shown(&app, &claimed[0]).await), "reviewer2");

    // A cancelled instance needs no reassessment.
    let path = format!("/v1/instances/{}/cancel", claimed[1]);
    let body = json!({ "reason": "a circle" });
    app.post("admin", &path, body).await.expect(200);
    assert_eq!(counted(&app, "select count(*) from job").await, 1);
    resume(&app, SUBFLOWS).await;
    until(&app, &claimed[0], |found| owner(found) == Value::Null).await;
    settled(&app).await;
    timers.stop().await;
    proven(&app, &claimed[0]).await;
}

#[tokio::test]
async fn the_instances_of_a_stopped_version_are_cancelled_at_once() {
    let app = fixture().await;
    for root in 0..30 {
        begin(
            &app,
            &root.to_string(),
            json!({ "wait": { "swarm": 10, "late": 600 } }),
        )
        .await;
    }
    stop(&app, SUBFLOWS).await;
    let body = json!({ "definitionKey": "subflows", "version": 1, "reason": "a circle" });
    let tried = app
        .post("admin", "/v1/cancellations?dryRun=true", body.clone())
        .await
        .expect(200);
    assert_eq!((&tried["total"], &tried["done"]), (&json!(30), &json!(20)));
    let refused = app.post("author", "/v1/cancellations", body.clone()).await;
    refused.problem(403, "permission_missing");
    for (member, value) in [
        ("state", "0"),
        ("entityType", "a\u{9b}"),
        ("entityId", "\n"),
    ] {
        let mut astray = body.clone();
        astray["filter"] = json!({ member: value });
        let astray = app.post("admin", "/v1/cancellations", astray).await;
        let problem = astray.problem(422, "invalid_request");
        let pointer = format!("/filter/{member}");
        assert_eq!(problem["errors"][0]["pointer"], pointer);
    }
    let begun = app
        .post("admin", "/v1/cancellations", body)
        .await
        .expect(201);
    let timers = app.timers();
    let path = format!("/v1/operations/{}", begun["id"].as_str().expect("an id"));
    let ended = async {
        loop {
            let found = app.get("admin", &path).await.expect(200);
            if found["status"] == "DONE" {
                return found;
            }
            crate::support::pause().await;
        }
    };
    let ended = tokio::time::timeout(TIMEOUT, ended).await.expect("in time");
    assert_eq!(
        (&ended["action"], &ended["done"]),
        (&json!("cancel"), &json!(30))
    );
    settled(&app).await;
    timers.stop().await;
    assert_eq!(
        counted(
            &app,
            "select count(*) from instance where status = 'CANCELLED'"
        )
        .await,
        30
    );
    assert_eq!(counted(&app, "select count(*) from instance").await, 30);
}

/// Failing jobs are listed for callers with the permission.
#[tokio::test]
async fn jobs_that_fail_are_listed_and_go_on_by_themselves() {
    let app = fixture().await;
    another(&app).await;
    stop(&app, "/v1/definitions/others/versions/1").await;
    let data = json!({ "wait": { "children": [{ "key": "others", "entity": "1", "data": {}, "onEnd": "ENDED" }] } });
    let subflow = begin(&app, "1", data).await;
    let timers = app.timers();
    let listed = async {
        loop {
            let page = app.get("admin", "/v1/jobs?state=failing").await.expect(200);
            if page["data"][0].is_object() {
                return page["data"][0].clone();
            }
            crate::support::pause().await;
        }
    };
    let job = tokio::time::timeout(TIMEOUT, listed)
        .await
        .expect("in time");
    assert_eq!(
        (&job["kind"], &job["instanceId"]),
        (&json!("start_child"), &json!(subflow))
    );
    assert_eq!(
        (&job["definitionKey"], &job["definitionVersion"]),
        (&json!("subflows"), &json!(1))
    );
    let error = job["error"].as_str().expect("an error");
    assert!(error.contains("version 1 of others is stopped"), "{error}");
    let refused = app.get("author", "/v1/jobs?state=failing").await;
    refused.problem(403, "permission_missing");
    resume(&app, "/v1/definitions/others/versions/1").await;
    children(&app, &subflow, 1).await;
    timers.stop().await;
}

/// The limit holds for versions of different definitions that are stopped at the same moment.
#[tokio::test]
async fn no_more_than_a_hundred_versions_are_stopped() {
    let app = fixture().await;
    another(&app).await;
    let pool = app.database.admin_pool();
    let stopped = r"insert into definition_version
        select (jsonb_populate_record(v, jsonb_build_object(
            'version', n, 'config_digest', '\x' || encode(sha256(n::text::bytea), 'hex'),
            'stopped_at', now(), 'stopped_by', 'admin', 'stop_reason', 'test'
        ))).*
        from definition_version v, generate_series(2, 100) n where v.key = 'others' and v.version = 1";
    sqlx::query(stopped)
        .execute(pool)
        .await
        .expect("99 versions");
    // Both requests wait for these rows and go on at the same moment.
    let mut held = pool.begin().await.expect("a transaction");
    let lock = "select from definition for update";
    sqlx::query(lock).execute(&mut *held).await.expect("locks");
    let stop = async |key: &str| {
        let path = format!("/v1/definitions/{key}/versions/1/stop");
        let body = json!({ "reason": "at the same moment" });
        app.post("admin", &path, body).await.status
    };
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let release = async {
        let both_wait = async {
            while sqlx::query_scalar::<_, i64>(waiting)
                .fetch_one(pool)
                .await
                .expect("a count")
                < 2
            {
                crate::support::pause().await;
            }
        };
        let both_wait = tokio::time::timeout(TIMEOUT, both_wait).await;
        both_wait.expect("two requests that wait");
        held.commit().await.expect("a commit");
    };
    let (first, second, ()) = tokio::join!(stop("subflows"), stop("others"), release);
    let mut statuses = [first, second];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}

#[tokio::test]
async fn the_repeat_of_a_kept_signal_does_not_end_it() {
    let app = fixture().await;
    let paid = async || {
        let body = json!({ "correlation": "order 7", "id": "p-1", "input": {} });
        app.post("author", "/v1/signals/PAID", body).await
    };
    paid().await.expect(202);
    let data = json!({ "wait": { "correlation": "order 7", "bufferSignals": true } });
    let subflow = begin(&app, "1", data).await;
    stop(&app, SUBFLOWS).await;
    paid().await.expect(202);
    resume(&app, SUBFLOWS).await;
    let timers = app.timers();
    until_status(&app, &subflow, "COMPLETED").await;
    timers.stop().await;
}

/// The clock of the host that entered the state is an hour behind.
#[tokio::test]
async fn a_state_without_buffered_signals_takes_no_earlier_signal() {
    let app = fixture().await;
    let body = json!({ "correlation": "order 7", "id": "p-1", "input": {} });
    let kept = app.post("author", "/v1/signals/PAID", body).await;
    kept.expect(202);
    let behind = app.engine.clock().now().as_millisecond() - 3_600_000;
    let clock = Clock::Manual(Arc::new(AtomicI64::new(behind)));
    let host = app.beside_with_clock(clock).await;
    let body = json!({
        "definitionKey": "subflows", "entityType": "errand", "entityId": "1",
        "data": { "wait": { "correlation": "order 7" } },
    });
    let started = host.send("author", "POST", "/v1/instances", &[], Some(body));
    let subflow = id(&started.await.started());
    let timers = app.timers();
    let matched = async {
        while counted(&app, "select count(*) from job").await > 0 {
            crate::support::pause().await;
        }
    };
    let matched = tokio::time::timeout(TIMEOUT, matched).await;
    matched.expect("the signal is looked for");
    timers.stop().await;
    assert_eq!(shown(&app, &subflow).await["status"], "RUNNING");
}
