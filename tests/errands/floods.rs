//! Flows that make more work than anybody wants: how far one start gets, and how soon its end is the end of all.

use serde_json::{Value, json};
use wrkflw::clock::Clock;
use wrkflw::engine::budgets::Budgets;

use super::*;

/// Each instance of the flow starts so many like itself.
fn swarm(count: u32) -> Value {
    json!({ "wait": { "swarm": count } })
}

/// The same host, within bounds that a test can reach.
async fn within(app: TestApp, budgets: Budgets) -> TestApp {
    let engine = app.engine_with_clock(Clock::System).await.budgeted(budgets);
    app.with_engine(engine)
}

async fn instances(app: &TestApp) -> i64 {
    counted(app, "select count(*) from instance").await
}

/// A flow that starts itself anew, five times in each: it comes to an end of itself.
#[tokio::test]
async fn one_start_makes_no_more_instances_than_its_budget() {
    let budgets = Budgets {
        descendants_max: 12,
        ..Budgets::default()
    };
    let app = within(field().await, budgets).await;
    // Two hosts start children at the same moment.
    let (_, engine) = app.beside_with_engine(app.database.url(), PATIENCE).await;
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
    // The parent is told, its audit keeps it, and the root can be proven as ever.
    let refused = "select count(*) from audit_entry where type = 'CHILD_ENDED' and payload like '%12 instances below%descendants_max%'";
    assert_eq!(counted(&app, refused).await, 13 * 5 - 12);
    proven(&app, &root).await;
}

/// A root that has none left has none left; another one has its own.
#[tokio::test]
async fn each_root_has_a_budget_of_its_own() {
    let budgets = Budgets {
        descendants_max: 1,
        ..Budgets::default()
    };
    let app = within(field().await, budgets).await;
    let timers = app.timers();
    for entity in ["1", "2"] {
        let asked = json!({ "wait": { "children": [
            { "entity": format!("{entity} a"), "data": {}, "onEnd": "ENDED" },
            { "entity": format!("{entity} b"), "data": {}, "onEnd": "ENDED" },
        ] } });
        let root = begin(&app, entity, asked).await;
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

#[tokio::test]
async fn what_an_instance_has_open_is_bounded() {
    let budgets = Budgets {
        open_jobs_max: 3,
        ..Budgets::default()
    };
    let app = within(field().await, budgets).await;
    let asked = |count: u32| {
        let body = json!({
            "definitionKey": "errands", "entityType": "errand", "entityId": "1",
            "data": { "wait": { "swarm": count, "late": 600, "correlation": "1" } },
        });
        app.post("author", "/v1/instances", body)
    };
    let problem = asked(2).await.problem(409, "limit_reached");
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("have 4 deadlines, children and waits"),
        "{detail}"
    );
    assert_eq!(instances(&app).await, 0);
    let started = id(&asked(1).await.expect(201));
    assert_eq!(counted(&app, "select count(*) from job").await, 3);

    // Under a closer bound it stays as it is, ends, and makes nothing more.
    let closer = Budgets {
        open_jobs_max: 1,
        ..Budgets::default()
    };
    let app = within(app, closer).await;
    signal(&app, &started, "LEAVE", json!({})).await.expect(200);
    let work = shown(&app, &started).await;
    let task = crate::support::app::task_of(&work);
    for verb in ["claim", "release"] {
        let path = format!("/v1/tasks/{task}/{verb}");
        app.post("reviewer", &path, json!({})).await.expect(200);
    }
}

/// Whatever it has begun, nothing of it is left soon after its root has been cancelled: not even what was to be started.
#[tokio::test]
async fn the_end_of_a_root_ends_what_it_has_begun() {
    let app = field().await;
    let timers = app.timers();
    let root = begin(&app, "1", swarm(20)).await;
    let many = async {
        while instances(&app).await < 30 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, many).await.expect("in time");
    timers.stop().await;
    let path = format!("/v1/instances/{root}/cancel");
    let body = json!({ "reason": "too many" });
    app.post("admin", &path, body).await.expect(200);
    // Its own starts are gone with it, in the same commit.
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
async fn a_stay_that_is_over_leaves_no_job() {
    let app = field().await;
    let asked = json!({ "wait": { "swarm": 20, "late": 600, "correlation": "1" } });
    let errand = begin(&app, "1", asked).await;
    assert_eq!(counted(&app, "select count(*) from job").await, 22);
    signal(&app, &errand, "LEAVE", json!({})).await.expect(200);
    assert_eq!(counted(&app, "select count(*) from job").await, 0);
}

/// The start may take place all the same, so the child is to be cancelled.
#[tokio::test]
async fn a_start_in_hand_stays_until_it_is_done() {
    let app = field().await;
    let errand = begin(&app, "1", swarm(2)).await;
    sqlx::raw_sql(
        "update job set attempts = 1, lease_until = now() + interval '1 hour'
        where id = (select id from job order by id limit 1)",
    )
    .execute(app.database.admin_pool())
    .await
    .expect("a claim");
    signal(&app, &errand, "LEAVE", json!({})).await.expect(200);
    let kinds: Vec<String> = sqlx::query_scalar("select kind from job order by kind")
        .fetch_all(app.database.admin_pool())
        .await
        .expect("jobs");
    assert_eq!(kinds, ["cancel_child", "start_child"]);
}
