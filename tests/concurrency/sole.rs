//! Definitions that are sole per entity: while an instance runs, no other instance of any definition runs about the same entity.

use tokio::task::JoinSet;

use super::*;
use crate::audit::commands::prove_all;
use crate::support::guests::subflows;

/// Entities about which two hosts start at once.
const ENTITIES: usize = 25;

/// A host with the flow of sub-flows under three keys: two are sole about their entity, `plain` is not.
async fn fixture() -> TestApp {
    let app = TestApp::empty().await;
    for (key, config) in [
        ("sole", json!({ "sole": true })),
        ("other-sole", json!({ "sole": true })),
        ("plain", json!({})),
    ] {
        publish(&app, key, &config).await;
    }
    app
}

/// Publishes the flow as the next version of the key, and activates it.
async fn publish(app: &TestApp, key: &str, config: &Value) {
    let published = app.publish(key, subflows(), config).await.expect(201);
    let path = format!(
        "/v1/definitions/{key}/versions/{}/activate",
        published["version"]
    );
    app.post("admin", &path, json!({})).await.expect(200);
}

fn body(key: &str, entity: &str) -> Value {
    json!({
        "definitionKey": key, "entityType": "errand", "entityId": entity, "data": { "first": "Work" },
    })
}

async fn start(app: &TestApp, key: &str, entity: &str) -> Answer {
    app.post("author", "/v1/instances", body(key, entity)).await
}

async fn command(app: &TestApp, instance: &Value, what: &str, body: Value) -> Answer {
    let path = format!("/v1/instances/{}/{what}", id(instance));
    app.post("admin", &path, body).await
}

async fn cancel(app: &TestApp, instance: &Value) {
    let reason = json!({ "reason": "no longer needed" });
    command(app, instance, "cancel", reason).await.expect(200);
}

/// The start or migration is refused, and the answer names the instance in the way.
#[track_caller]
fn lost_to(answer: Answer, running: &Value) {
    let problem = answer.problem(409, "already_running");
    assert_eq!(
        problem["conflict"]["instanceId"], running["id"],
        "{problem}"
    );
}

#[tokio::test]
async fn a_sole_instance_blocks_others_of_any_definition() {
    let app = fixture().await;
    let sole = start(&app, "sole", "1").await.started();
    for key in ["sole", "other-sole", "plain"] {
        lost_to(start(&app, key, "1").await, &sole);
        let dry = "/v1/instances?dryRun=true";
        lost_to(app.post("author", dry, body(key, "1")).await, &sole);
    }
    // Another entity is free. This entity is free once the instance has ended, but not while it is suspended.
    start(&app, "plain", "2").await.expect(201);
    let reason = json!({ "reason": "wait" });
    command(&app, &sole, "suspend", reason).await.expect(200);
    lost_to(start(&app, "plain", "1").await, &sole);
    cancel(&app, &sole).await;
    let plain = start(&app, "plain", "1").await.started();
    lost_to(start(&app, "sole", "1").await, &plain);
    // It can be restarted only if nothing else runs.
    let restart = format!("/v1/instances/{}/restart", id(&sole));
    lost_to(app.post("author", &restart, json!({})).await, &plain);
    cancel(&app, &plain).await;
    app.post("author", &restart, json!({})).await.expect(201);
    prove_all(&app).await;
}

#[tokio::test]
async fn definitions_that_are_not_sole_run_concurrently() {
    let app = fixture().await;
    publish(&app, "plain-too", &json!({})).await;
    let first = start(&app, "plain", "1").await.started();
    start(&app, "plain-too", "1").await.expect(201);
    lost_to(start(&app, "plain", "1").await, &first);
    prove_all(&app).await;
}

/// In any order of arrival, one of two starts through two hosts wins, and the response to the other one names the winner.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_concurrent_starts_one_wins() {
    let app = fixture().await;
    let hosts = [app.host(), app.beside().await];
    for (round, keys) in [
        ["sole", "other-sole"],
        ["sole", "plain"],
        ["plain", "sole"],
        ["sole", "sole"],
    ]
    .iter()
    .enumerate()
    {
        let entity = |number: usize| format!("{round} {number}");
        let requests = (0..ENTITIES).flat_map(|number| {
            keys.map(|key| HostRequest::new("author", "/v1/instances", body(key, &entity(number))))
        });
        let mut answers = at_once(&hosts, requests.collect()).await;
        for _ in 0..ENTITIES {
            let pair = answers.drain(..2).collect();
            let (won, lost) = winner(pair, 201);
            for lost in lost {
                lost_to(lost, &won["instance"]);
            }
        }
    }
    prove_all(&app).await;
}

/// The start reads after it has waited for the concurrent one, and finds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_waits_for_a_concurrent_one() {
    let app = fixture().await;
    let model = start(&app, "sole", "model").await.started();
    let cases = [("plain", true, 1), ("sole", false, 2), ("sole", true, 3)];
    for (key, as_sole, number) in cases {
        let entity = format!("{key} beside {as_sole}");
        let other = uuid::Uuid::from_u128(number);
        let mut under_way = app
            .database
            .admin_pool()
            .begin()
            .await
            .expect("a transaction");
        let free = "select entity_is_free(tenant_id, 'errand', $2, $3, $4) from instance where id = $1::uuid";
        let is_free: bool = sqlx::query_scalar(free)
            .bind(id(&model))
            .bind(&entity)
            .bind(as_sole)
            .bind(other)
            .fetch_one(&mut *under_way)
            .await
            .expect("a look");
        assert!(is_free);
        let insert = "insert into instance select (jsonb_populate_record(i, jsonb_build_object(
            'id', $4, 'entity_id', $2, 'sole', $3, 'definition_key', 'third'))).* from instance i where id = $1::uuid";
        sqlx::query(insert)
            .bind(id(&model))
            .bind(&entity)
            .bind(as_sole)
            .bind(other)
            .execute(&mut *under_way)
            .await
            .expect("a row");
        let (host, request) = (app.host(), body(key, &entity));
        let mut starting = JoinSet::new();
        starting.spawn(async move {
            host.send("author", "POST", "/v1/instances", &[], Some(request))
                .await
        });
        blocked(&app).await;
        under_way.commit().await.expect("a commit");
        let answers = starting.join_all().await;
        let answer = answers.into_iter().next().expect("an answer");
        lost_to(answer, &json!({ "id": other }));
    }
}

/// Waits until a start waits for the lock of an entity.
async fn blocked(app: &TestApp) {
    let waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted
        and database = (select oid from pg_database where datname = current_database())";
    let waiting = async {
        loop {
            let count: i64 = sqlx::query_scalar(waits)
                .fetch_one(app.database.admin_pool())
                .await
                .expect("a count");
            if count > 0 {
                return;
            }
            crate::support::pause().await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(30), waiting).await;
    waited.expect("a start waits");
}

#[tokio::test]
async fn a_migration_to_a_sole_version_needs_a_free_entity() {
    let app = fixture().await;
    let instance = start(&app, "plain", "1").await.started();
    publish(&app, "plain", &json!({ "sole": true })).await;
    publish(&app, "beside", &json!({})).await;
    let beside = start(&app, "beside", "1").await.started();
    let to = |version: u32| json!({ "version": version });
    for what in ["migrate?dryRun=true", "migrate"] {
        lost_to(command(&app, &instance, what, to(2)).await, &beside);
    }
    cancel(&app, &beside).await;
    command(&app, &instance, "migrate", to(2)).await.expect(200);
    lost_to(start(&app, "beside", "1").await, &instance);
    // The migration back.
    command(&app, &instance, "migrate", to(1)).await.expect(200);
    start(&app, "beside", "1").await.expect(201);
    prove_all(&app).await;
}
