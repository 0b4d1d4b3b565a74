//! Flows that start instances without end: the limits of one start, and how fast cancelling its root ends everything.

use serde_json::{Value, json};
use wrkflw_engine::budgets::Budgets;
use wrkflw_runtime::clock::Clock;

use super::*;
use crate::support::app::task_of;

/// Each instance starts so many instances of the same flow.
fn swarm(count: u32) -> Value {
    json!({ "wait": { "swarm": count } })
}

/// The same host with low limits.
async fn within(app: TestApp, budgets: Budgets) -> TestApp {
    let engine = app.engine_with_clock(Clock::System).await.budgeted(budgets);
    let store = app.store().clone();
    app.with_engine(store, engine)
}

async fn instances(app: &TestApp) -> i64 {
    counted(app, "select count(*) from instance").await
}

/// A flow that starts itself five times in each instance ends by the limit.
#[tokio::test]
async fn one_start_makes_no_more_instances_than_its_budget() {
    let budgets = Budgets {
        descendants_started_max: 12,
        ..Budgets::default()
    };
    let app = within(fixture().await, budgets).await;
    // Two hosts start children concurrently.
    let (_, engine) = app.beside_with_engine(app.database.url(), TIMEOUT).await;
    let beside = engine.budgeted(budgets);
    let timers = [
        app.timers(),
        Timers::start(&beside, std::sync::Arc::new(beside.clone())),
    ];
    let root = begin(&app, "1", swarm(5)).await;
    until_status(&app, &root, "COMPLETED").await;
    settled(&app).await;
    for timers in timers {
        timers.stop().await;
    }
    assert_eq!(instances(&app).await, 13);
    assert_eq!(
        counted(&app, "select sum(started)::int8 from descendant_count").await,
        12
    );
    // The parent gets the refusal, its audit records it, and the root can still be verified.
    let refused = "select count(*) from audit_entry where type = 'CHILD_ENDED' and payload like '%12 instances have been started below%raise descendants_max%'";
    assert_eq!(counted(&app, refused).await, 13 * 5 - 12);
    proven(&app, &root).await;
}

/// A root that has used up its limit starts no more instances. Another root has its own limit.
#[tokio::test]
async fn each_root_has_a_budget_of_its_own() {
    let budgets = Budgets {
        descendants_started_max: 1,
        ..Budgets::default()
    };
    let app = within(fixture().await, budgets).await;
    let timers = app.timers();
    for entity in ["1", "2"] {
        let data = json!({ "wait": { "children": [
            { "entity": format!("{entity} a"), "data": {}, "onEnd": "ENDED" },
            { "entity": format!("{entity} b"), "data": {}, "onEnd": "ENDED" },
        ] } });
        let root = begin(&app, entity, data).await;
        let one = children(&app, &root, 1).await.remove(0);
        let refused = until(&app, &root, |found| {
            let children = found["states"][0]["children"].as_array().expect("children");
            children
                .iter()
                .any(|child| child["outcome"] == "NOT_STARTED")
        });
        refused.await;
        signal(&app, &one, "PAID", json!({})).await.expect(200);
        until_status(&app, &root, "COMPLETED").await;
    }
    settled(&app).await;
    timers.stop().await;
}

/// The outcome and the reason of each child's end that was reported to the parent.
async fn ends(app: &TestApp, parent: &str) -> Vec<(String, String)> {
    let ended = audited(app, parent, "CHILD_ENDED").await.into_iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ended
        .map(|end| (text(&end["outcome"]), text(&end["reason"])))
        .collect()
}

/// A flow may start its child again and again: an ended child releases its place.
#[tokio::test]
async fn an_ended_child_releases_its_place() {
    let budgets = Budgets {
        descendants_max: 1,
        descendants_started_max: 4,
        ..Budgets::default()
    };
    let app = within(fixture().await, budgets).await;
    let timers = app.timers();
    let child = json!({ "entity": "child", "data": {}, "onEnd": "ENDED" });
    let data = json!({ "first": "Work", "wait": { "children": [child] } });
    let root = begin(&app, "root", data).await;
    for day in 1..=5 {
        let task = task_of(&shown(&app, &root).await);
        for (verb, body) in [("claim", json!({})), ("decide", json!({ "outcome": "GO" }))] {
            let path = format!("/v1/tasks/{task}/{verb}");
            app.post("reviewer", &path, body).await.expect(200);
        }
        if day == 5 {
            break;
        }
        let started = children(&app, &root, day).await;
        signal(&app, &root, "LEAVE", json!({})).await.expect(200);
        until_status(&app, &started[day - 1], "CANCELLED").await;
        assert_eq!(
            counted(&app, "select count(*) from descendant_place").await,
            0
        );
    }
    // The number of all starts is limited, too, and the refusal says what helps.
    until_status(&app, &root, "COMPLETED").await;
    let (outcome, reason) = ends(&app, &root).await.remove(0);
    assert_eq!(outcome, "NOT_STARTED");
    assert_eq!(
        reason,
        format!(
            "4 instances have been started below {root}, as many as may be from its start to its end; \
            go on in a new instance, or raise descendants_max"
        )
    );
    settled(&app).await;
    timers.stop().await;
    proven(&app, &root).await;
}

/// One of two children has a place. The parent learns why the other has none.
#[tokio::test]
async fn running_instances_below_a_root_are_limited() {
    let budgets = Budgets {
        descendants_max: 1,
        ..Budgets::default()
    };
    let app = within(fixture().await, budgets).await;
    let timers = app.timers();
    let child = |entity: &str| json!({ "entity": entity, "data": {}, "onEnd": "ENDED" });
    let data = json!({ "wait": { "children": [child("a"), child("b")] } });
    let root = begin(&app, "root", data).await;
    let started = children(&app, &root, 1).await.remove(0);
    let refused = until(&app, &root, |found| {
        let children = found["states"][0]["children"].as_array().expect("children");
        children
            .iter()
            .any(|child| child["outcome"] == "NOT_STARTED")
    });
    refused.await;
    let expected = format!(
        "1 instances below {root} run, as many as may at a time (descendants_max); try again when some of them have ended"
    );
    assert_eq!(ends(&app, &root).await[0].1, expected);
    signal(&app, &started, "PAID", json!({})).await.expect(200);
    until_status(&app, &root, "COMPLETED").await;
    settled(&app).await;
    timers.stop().await;
    assert_eq!(
        counted(&app, "select count(*) from descendant_place").await,
        0
    );
    proven(&app, &root).await;
}

#[tokio::test]
async fn a_child_that_its_flow_refuses_keeps_no_place() {
    let app = fixture().await;
    let timers = app.timers();
    let child = json!({ "entity": "a", "data": { "refuse": true }, "onEnd": "ENDED" });
    let root = begin(&app, "root", json!({ "wait": { "children": [child] } })).await;
    until_status(&app, &root, "COMPLETED").await;
    settled(&app).await;
    timers.stop().await;
    let started = "select sum(started)::int8 from descendant_count";
    assert_eq!(counted(&app, started).await, 1, "it had one");
    assert_eq!(
        counted(&app, "select count(*) from descendant_place").await,
        0
    );
}

/// The parent leaves the state between a first attempt, which took the place, and the second.
#[tokio::test]
async fn a_start_without_effect_releases_its_place() {
    let app = fixture().await;
    let root = begin(&app, "root", swarm(1)).await;
    sqlx::raw_sql(
        "insert into descendant_place select tenant_id, id, instance_id from job;
        update job set attempts = 1",
    )
    .execute(app.database.admin_pool())
    .await
    .expect("a first attempt");
    signal(&app, &root, "LEAVE", json!({})).await.expect(200);
    let timers = app.timers();
    settled(&app).await;
    timers.stop().await;
    assert_eq!(
        counted(&app, "select count(*) from descendant_place").await,
        0
    );
    assert_eq!(instances(&app).await, 1);
}

#[tokio::test]
async fn open_jobs_of_an_instance_are_limited() {
    let budgets = Budgets {
        open_jobs_max: 3,
        ..Budgets::default()
    };
    let app = within(fixture().await, budgets).await;
    let start_with = |count: u32| {
        let body = json!({
            "definitionKey": "subflows", "entityType": "errand", "entityId": "1",
            "data": { "wait": {
                "swarm": count, "late": 600, "subscriptions": [{ "trigger": "PAID", "correlation": "1" }],
            } },
        });
        app.post("author", "/v1/instances", body)
    };
    let problem = start_with(2).await.problem(409, "limit_reached");
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("have 4 deadlines, children, service calls and waits"),
        "{detail}"
    );
    assert_eq!(instances(&app).await, 0);
    let started = id(&start_with(1).await.started());
    assert_eq!(counted(&app, "select count(*) from job").await, 3);

    // Under a lower limit it keeps what it has, can end, and opens nothing more.
    let closer = Budgets {
        open_jobs_max: 1,
        ..Budgets::default()
    };
    let app = within(app, closer).await;
    for (verb, body) in [
        ("suspend", json!({ "reason": "an audit" })),
        ("resume", json!({})),
    ] {
        let path = format!("/v1/instances/{started}/{verb}");
        app.post("admin", &path, body).await.expect(200);
    }
    signal(&app, &started, "LEAVE", json!({})).await.expect(200);
    let work = shown(&app, &started).await;
    let task = task_of(&work);
    for verb in ["claim", "release"] {
        let path = format!("/v1/tasks/{task}/{verb}");
        app.post("reviewer", &path, json!({})).await.expect(200);
    }

    // Its restart would open more, and the list of actions says so.
    let path = format!("/v1/instances/{started}");
    let ended = json!({ "reason": "done" });
    app.post("admin", &format!("{path}/cancel"), ended)
        .await
        .expect(200);
    let listed = app.get("author", &format!("{path}/actions")).await;
    let listed = listed.expect(200);
    let mut actions = listed["actions"].as_array().expect("actions").iter();
    let restart = actions.find(|action| action["action"] == "restart");
    assert_eq!(
        restart.expect("a restart")["refusal"]["code"],
        "limit_reached"
    );
    app.post("author", &format!("{path}/restart"), json!({}))
        .await
        .problem(409, "limit_reached");
}

/// Soon after a root was cancelled nothing that it started is left, not even starts that were due.
#[tokio::test]
async fn the_end_of_a_root_ends_all_that_it_started() {
    let app = fixture().await;
    let timers = app.timers();
    let root = begin(&app, "1", swarm(20)).await;
    let many = async {
        while instances(&app).await < 30 {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, many).await.expect("in time");
    timers.stop().await;
    let path = format!("/v1/instances/{root}/cancel");
    let body = json!({ "reason": "too many" });
    app.post("admin", &path, body).await.expect(200);
    // Its own start jobs are deleted in the same commit.
    let left = format!("select count(*) from job where instance_id = '{root}'");
    let left: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(left))
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(left, 0);
    let before = instances(&app).await;
    let timers = app.timers();
    settled(&app).await;
    timers.stop().await;
    assert_eq!(
        counted(
            &app,
            "select count(*) from instance where status = 'RUNNING'"
        )
        .await,
        0
    );
    let after = instances(&app).await;
    assert!(after <= before + 20, "{before} instances became {after}");
}

#[tokio::test]
async fn a_left_state_instance_has_no_jobs() {
    let app = fixture().await;
    let data = json!({ "wait": { "swarm": 20, "late": 600, "correlation": "1" } });
    let subflow = begin(&app, "1", data).await;
    assert_eq!(counted(&app, "select count(*) from job").await, 22);
    signal(&app, &subflow, "LEAVE", json!({})).await.expect(200);
    assert_eq!(counted(&app, "select count(*) from job").await, 0);
}

/// The start in flight may still take place, so the child is to be cancelled.
#[tokio::test]
async fn a_start_in_flight_stays_until_it_is_done() {
    let app = fixture().await;
    let subflow = begin(&app, "1", swarm(2)).await;
    sqlx::raw_sql(
        "update job set attempts = 1, lease_until = now() + interval '1 hour'
        where id = (select id from job order by id limit 1)",
    )
    .execute(app.database.admin_pool())
    .await
    .expect("a claim");
    signal(&app, &subflow, "LEAVE", json!({})).await.expect(200);
    let kinds: Vec<String> = sqlx::query_scalar("select kind from job order by kind")
        .fetch_all(app.database.admin_pool())
        .await
        .expect("jobs");
    assert_eq!(kinds, ["cancel_child", "start_child"]);
}

/// A detached child keeps its place when its parent has left the state, so it does not bypass the limit.
#[tokio::test]
async fn a_detached_child_keeps_its_place() {
    let budgets = Budgets {
        descendants_max: 1,
        ..Budgets::default()
    };
    let app = within(fixture().await, budgets).await;
    let timers = app.timers();
    let child = json!({ "entity": "child", "data": {}, "onEnd": "ENDED", "detached": true });
    let root = begin(&app, "root", json!({ "wait": { "children": [child] } })).await;
    let detached = children(&app, &root, 1).await.remove(0);
    signal(&app, &root, "LEAVE", json!({})).await.expect(200);
    settled(&app).await;
    assert_eq!(shown(&app, &detached).await["status"], "RUNNING");
    let task = task_of(&shown(&app, &root).await);
    for (verb, body) in [("claim", json!({})), ("decide", json!({ "outcome": "GO" }))] {
        let path = format!("/v1/tasks/{task}/{verb}");
        app.post("reviewer", &path, body).await.expect(200);
    }
    until_status(&app, &root, "COMPLETED").await;
    let (outcome, reason) = ends(&app, &root).await.remove(0);
    assert_eq!(outcome, "NOT_STARTED");
    assert!(
        reason.starts_with(&format!("1 instances below {root} run")),
        "{reason}"
    );
    settled(&app).await;
    timers.stop().await;
    proven(&app, &root).await;
}
