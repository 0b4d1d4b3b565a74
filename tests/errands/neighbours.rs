//! What a tenant that floods its jobs, within its budgets, costs another one: its decisions, its children and its early
//! signals, timed with and without the flood.
//!
//! The machine may be busy with other things, so only the ratio within a trial is judged, and the best of a few counts.

use std::time::Instant;

use serde_json::json;

use super::*;
use crate::support::app::{Host, task_of};

/// Times that each thing is done in a half.
const ROUNDS: usize = 20;
const TRIALS: usize = 3;
/// How often slower the slowest may be beside the flood. Before tenants took turns, a child was not started at all while it
/// lasted.
const RATIO_MAX: f64 = 3.0;
/// What counts as no time, whatever the ratio: a few turns of a machine with two cores that others use as well.
const NOTHING: Duration = Duration::from_millis(40);

/// Starts of the flood. Each makes as many instances as its budget lets it.
const ROOTS: usize = 40;

/// A second tenant with the people and the flow of the first.
async fn second_tenant(app: &TestApp) {
    let roles =
        std::collections::BTreeMap::from([("user", &["instance:start", "instance:read"][..])]);
    let (store, now) = (app.engine.store(), app.engine.clock().now());
    store
        .ensure_tenant("other", &roles, now)
        .await
        .expect("a tenant");
    for table in [
        "person",
        "\"group\"",
        "membership",
        "definition",
        "definition_version",
    ] {
        let copy = format!(
            "insert into {table} select (jsonb_populate_record(null::{table}, to_jsonb(x) || jsonb_build_object('tenant_id', o.id))).*
            from {table} x join tenant d on d.id = x.tenant_id and d.name = 'default' join tenant o on o.name = 'other'"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(copy))
            .execute(app.database.admin_pool())
            .await
            .expect("a copy");
    }
}

async fn flood(host: &Host) {
    let token = format!("Bearer {}", host.token_of("author", "other", &["user"]));
    for root in 0..ROOTS {
        let headers = [("authorization", token.as_str())];
        let body = json!({
            "definitionKey": "errands", "entityType": "errand", "entityId": format!("flood {root}"),
            "data": { "wait": { "swarm": 20 } },
        });
        let started = host
            .send("", "POST", "/v1/instances", &headers, Some(body))
            .await;
        started.expect(201);
    }
}

/// How long each decision, each child and each early signal takes; the slowest but one of each, as one in twenty.
async fn measured(app: &TestApp, name: &str) -> [Duration; 3] {
    let mut took = [const { Vec::new() }; 3];
    let work = begin(app, &format!("{name} work"), json!({ "first": "Work" })).await;
    let task = task_of(&shown(app, &work).await);
    for round in 0..ROUNDS {
        let begun = Instant::now();
        for verb in ["claim", "release"] {
            let path = format!("/v1/tasks/{task}/{verb}");
            app.post("reviewer", &path, json!({})).await.expect(200);
        }
        took[0].push(begun.elapsed());

        let begun = Instant::now();
        let entity = format!("{name} child {round}");
        let asked =
            json!({ "wait": { "children": [{ "entity": entity, "data": {}, "onEnd": "ENDED" }] } });
        let parent = begin(app, &format!("{name} parent {round}"), asked).await;
        children(app, &parent, 1).await;
        took[1].push(begun.elapsed());

        let correlation = format!("{name} {round}");
        let body = json!({ "correlation": correlation, "id": "early" });
        app.post("author", "/v1/signals/PAID", body)
            .await
            .expect(202);
        let begun = Instant::now();
        let asked = json!({ "wait": { "correlation": correlation, "keepEarly": true } });
        let waits = begin(app, &format!("{name} waits {round}"), asked).await;
        until_status(app, &waits, "COMPLETED").await;
        took[2].push(begun.elapsed());
    }
    took.map(|mut took| {
        took.sort_unstable();
        took[ROUNDS - 2]
    })
}

#[tokio::test]
async fn a_tenant_that_floods_its_jobs_holds_up_no_other() {
    let mut seen = Vec::new();
    for _ in 0..TRIALS {
        let app = field().await;
        second_tenant(&app).await;
        let timers = app.timers();
        let quiet = measured(&app, "quiet").await;
        flood(&app.host()).await;
        let loud = measured(&app, "loud").await;
        // It lasted all the while.
        let due =
            "select count(*) from job j join tenant t on t.id = j.tenant_id where t.name = 'other'";
        assert!(counted(&app, due).await > 500, "the flood is over");
        timers.kill().await;
        let fair = quiet
            .iter()
            .zip(&loud)
            .all(|(quiet, loud)| *loud <= quiet.mul_f64(RATIO_MAX) + NOTHING);
        if fair {
            return;
        }
        seen.push((quiet, loud));
    }
    panic!("in none of the trials: {seen:?}");
}
