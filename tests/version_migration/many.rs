//! Many instances: an operation in the background, on any host. Each item runs once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_engine::job_handlers::JobHandlers;
use wrkflw_engine::{Engine, Error};
use wrkflw_store::bulk::{Batch, Outcome};
use wrkflw_store::jobs::Job;

use super::*;
use crate::support::app::Timers;
use crate::support::plug::Plug;
use crate::support::until_so;

/// How long an operation may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);
/// The longest time for which a thread is blocked. A task waits a shorter time for a thread, also on a busy machine.
const BLOCKED_MAX: Duration = Duration::from_secs(20);

fn all_over(version: u32) -> Value {
    let mut body = json!({ "definitionKey": "committee", "fromVersion": 1, "version": version });
    if version == 2 {
        body["states"] = json!({ "Vote": "Ballot" });
    }
    body
}

async fn begun(app: &TestApp, body: Value) -> String {
    let begun = app.post("admin", "/v1/migrations", body).await.expect(201);
    begun["id"].as_str().expect("an id").to_owned()
}

async fn operation(app: &TestApp, id: &str) -> Value {
    let path = format!("/v1/operations/{id}");
    app.get("admin", &path).await.expect(200)
}

/// Polls until the condition holds, because other hosts do not notify this one.
async fn until(app: &TestApp, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until_so(async || operation(app, id).await, is_so).await
}

async fn count(app: &TestApp, sql: &'static str) -> i64 {
    let count = sqlx::query_scalar(sql).fetch_one(app.database.admin_pool());
    count.await.expect("a count")
}

/// Runs items like the engine, up to a limit. Then it hangs, like a host that is about to die.
struct Dying {
    engine: Engine,
    left: Semaphore,
    /// The next item is executed, but its result is not recorded.
    last_words: Semaphore,
}

impl JobHandlers for Dying {
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>> {
        panic!("there is no job, and here is {job:?}");
    }

    fn item<'a>(
        &'a self,
        batch: &'a Batch,
        instance: InstanceId,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            if let Ok(permit) = self.left.try_acquire() {
                permit.forget();
                return JobHandlers::item(&self.engine, batch, instance).await;
            }
            if let Ok(permit) = self.last_words.try_acquire() {
                permit.forget();
                JobHandlers::item(&self.engine, batch, instance).await?;
            }
            std::future::pending().await
        })
    }

    fn reassessment(&self, _: TenantId, _: InstanceId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
}

/// Each item blocks its thread until another one has begun.
#[derive(Default)]
struct Blocking {
    begun: Mutex<u32>,
    another: Condvar,
    /// The number of items that waited in vain.
    alone: AtomicU32,
}

impl JobHandlers for Blocking {
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>> {
        panic!("there is no job, and here is {job:?}");
    }

    fn item<'a>(&'a self, _: &'a Batch, _: InstanceId) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            tokio::task::block_in_place(|| {
                let mut begun = self.begun.lock().expect("a lock");
                *begun += 1;
                self.another.notify_all();
                let wait = self
                    .another
                    .wait_timeout_while(begun, BLOCKED_MAX, |begun| *begun < 2);
                let is_alone = wait.expect("a lock").1.timed_out();
                self.alone.fetch_add(is_alone.into(), Ordering::Relaxed);
            });
            Ok(Outcome::Done { revision: 1 })
        })
    }

    fn reassessment(&self, _: TenantId, _: InstanceId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
}

/// An item may block what others wait for: another tenant's commit in the same batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_blocks_its_thread_blocks_no_other_item() {
    let app = chambers().await;
    for entity in ["m-1", "m-2"] {
        vote(&app, entity).await;
    }
    let id = begun(&app, all_over(2)).await;
    let blocking = Arc::new(Blocking::default());
    let timers = app.timers_with(blocking.clone());
    let done = until(&app, &id, |now| now["status"] == "DONE").await;
    timers.stop().await;
    assert_eq!(done["done"], 2);
    assert_eq!(blocking.alone.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_migrate_two_hundred_instances_although_one_dies() {
    const INSTANCES: usize = 200;
    let app = chambers().await;
    for number in 0..INSTANCES {
        vote(&app, &format!("m-{number}")).await;
    }
    let id = begun(&app, all_over(2)).await;
    assert_eq!(operation(&app, &id).await["total"], INSTANCES);

    let dying = Arc::new(Dying {
        engine: app.engine.clone(),
        left: Semaphore::new(30),
        last_words: Semaphore::new(1),
    });
    let first = app.timers_with(dying);
    let (_, second) = app.beside_with_engine(app.database.url(), TIMEOUT).await;
    until(&app, &id, |now| now["done"] == 30).await;
    let committed = "select count(*) from audit_entry where type = 'FLOW_MIGRATED'";
    // The last commit is one that nobody noted.
    let look = async || count(&app, committed).await;
    until_so(look, |commits: &i64| *commits >= 31).await;
    // It is gone, with all it had in hand; its leases are over some time later.
    drop(first);
    let over = "update bulk_item set lease_until = 'epoch' where result is null";
    sqlx::query(over)
        .execute(app.database.admin_pool())
        .await
        .expect("an update");
    let timers = Timers::start(&second, Arc::new(second.clone()));
    let done = until(&app, &id, |now| now["status"] == "DONE").await;
    timers.stop().await;
    assert_eq!(
        (&done["done"], &done["refused"], &done["failed"]),
        (&json!(INSTANCES), &json!(0), &json!(0))
    );
    // No item ran twice, none was left out.
    assert_eq!(count(&app, committed).await, 200);
    let each = "select count(distinct stream_id) from audit_entry where type = 'FLOW_MIGRATED'";
    assert_eq!(count(&app, each).await, 200);
    let over = "select count(*) from instance where definition_version = 2";
    assert_eq!(count(&app, over).await, 200);

    // All items can be read page by page.
    let (mut seen, mut after) = (BTreeSet::new(), String::new());
    loop {
        let path = format!("/v1/operations/{id}/items?result=done&limit=90{after}");
        let page = app.get("admin", &path).await.expect(200);
        for item in page["data"].as_array().expect("items") {
            assert_eq!(item["revision"], 2);
            assert!(seen.insert(item["instanceId"].to_string()));
        }
        match page["page"]["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), INSTANCES);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_item_has_its_own_result() {
    let app = chambers().await;
    let (fits, lacks) = (vote(&app, "m-1").await, vote(&app, "m-2").await);
    let ended = vote(&app, "m-3").await;
    let cancel = format!("/v1/instances/{}/cancel", id(&ended));
    app.post("admin", &cancel, json!({ "reason": "Moot." }))
        .await
        .expect(200);
    // The fourth version requires a member that no plan of the flow adds.
    let sql = "update instance set revision = 2, data = '{\"assign\":{\"offers\":[{\"groups\":[\"voters\"]}]},\"budget\":1}' where id = $1::uuid";
    sqlx::query(sql)
        .bind(id(&fits))
        .execute(app.database.admin_pool())
        .await
        .expect("an update");

    // A dry run counts and tries items, and writes nothing.
    let dry = app
        .post("admin", "/v1/migrations?dryRun=true", all_over(4))
        .await
        .expect(200);
    assert_eq!(
        (&dry["total"], &dry["tried"], &dry["done"], &dry["refused"]),
        (&json!(2), &json!(2), &json!(1), &json!(1))
    );
    assert_eq!(dry["sample"][1]["code"], "invalid_input");
    assert_eq!(count(&app, "select count(*) from bulk_operation").await, 0);
    assert_eq!(shown(&app, &fits).await["definitionVersion"], 1);

    let timers = app.timers();
    let id = begun(&app, all_over(4)).await;
    let done = until(&app, &id, |now| now["status"] == "DONE").await;
    assert_eq!(
        (
            &done["total"],
            &done["done"],
            &done["refused"],
            &done["failed"]
        ),
        (&json!(2), &json!(1), &json!(1), &json!(0))
    );
    let path = format!("/v1/operations/{id}/items?result=refused");
    let refused = app.get("admin", &path).await.expect(200);
    assert_eq!(refused["data"][0]["instanceId"], lacks["id"]);
    assert_eq!(refused["data"][0]["code"], "invalid_input");
    let detail = refused["data"][0]["detail"].as_str().expect("a detail");
    assert!(detail.contains("/data/budget"), "{detail}");
    timers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_are_filtered_repeated_stopped_and_limited() {
    let app = chambers().await;
    let wanted = vote(&app, "m-1").await;
    vote(&app, "m-2").await;
    let mut narrow = all_over(2);
    narrow["filter"] = json!({ "entityId": "m-1", "state": "Vote", "initiator": "author" });
    let host = app.host();
    let key = [("idempotency-key", "all-over")];
    let first = host.send(
        "admin",
        "POST",
        "/v1/migrations",
        &key,
        Some(narrow.clone()),
    );
    let first = first.await.expect(201);
    assert_eq!(first["total"], 1);
    let again = host
        .send("admin", "POST", "/v1/migrations", &key, Some(narrow))
        .await;
    assert_eq!(again.expect(201), first);
    host.send("admin", "POST", "/v1/migrations", &key, Some(all_over(2)))
        .await
        .problem(422, "idempotency_key_reused");

    // No worker runs. A stopped operation is not started.
    let path = format!(
        "/v1/operations/{}/stop",
        first["id"].as_str().expect("an id")
    );
    app.post("author", &path, json!({}))
        .await
        .problem(403, "permission_missing");
    let stopped = app.post("admin", &path, json!({})).await.expect(200);
    assert_eq!(
        (&stopped["status"], &stopped["stoppedBy"]),
        (&json!("STOPPED"), &json!("admin"))
    );
    for _ in 0..10 {
        begun(&app, all_over(2)).await;
    }
    let eleventh = app.post("admin", "/v1/migrations", all_over(2)).await;
    eleventh.problem(409, "too_many_operations");
    let unknown = format!("/v1/operations/{}", id(&wanted));
    app.get("admin", &unknown).await.problem(404, "not_found");
    let permitted = app.post("author", "/v1/migrations", all_over(2)).await;
    permitted.problem(403, "permission_missing");

    // One of the ten operations migrates each instance. The others are refused, because it is migrated already.
    let timers = app.timers();
    let left = "select count(*) from bulk_operation where ended_at is null";
    until_so(async || count(&app, left).await, |left: &i64| *left == 0).await;
    timers.stop().await;
    let totals = "select sum(done) * 100 + sum(refused) from bulk_operation";
    assert_eq!(count(&app, totals).await, 2 * 100 + 18);
}

/// A host has claimed all items. Its next batch begins after these.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_operation_leaves_unstarted_items_alone() {
    const MANY: usize = 60;
    const BEGUN_MAX: i64 = 32;
    let app = chambers().await;
    for number in 0..MANY {
        vote(&app, &format!("plug-{number}")).await;
    }
    let plug = Plug::put(&app.database).await;
    let cancel = async |filter: Value| {
        let body = json!({ "definitionKey": "committee", "version": 1, "reason": "Moot.", "filter": filter });
        let begun = app
            .post("admin", "/v1/cancellations", body)
            .await
            .expect(201);
        begun["id"].as_str().expect("an id").to_owned()
    };
    let first = cancel(json!({})).await;
    let timers = app.timers();
    plug.is_met().await;
    let path = format!("/v1/operations/{first}/stop");
    app.post("admin", &path, json!({})).await.expect(200);
    plug.pull().await;
    vote(&app, "other").await;
    let second = cancel(json!({ "entityId": "other" })).await;
    until(&app, &second, |now| now["status"] == "DONE").await;
    timers.stop().await;
    let cancelled =
        "select count(*) from instance where status = 'CANCELLED' and entity_id <> 'other'";
    let cancelled = count(&app, cancelled).await;
    assert!((1..=BEGUN_MAX).contains(&cancelled), "{cancelled}");
}

/// The time of the request ends with the first page. The other instances are for another operation.
#[tokio::test(flavor = "multi_thread")]
async fn a_selection_ends_with_the_time_of_the_request() {
    let app = chambers().await;
    vote(&app, "m-1").await;
    let copies = "insert into instance
        select (jsonb_populate_record(i, jsonb_build_object('id', gen_random_uuid(), 'entity_id', 'copy ' || n))).*
        from instance i, generate_series(1, 1000) n";
    let copying = sqlx::raw_sql(copies).execute(app.database.admin_pool());
    copying.await.expect("copies");
    let body = json!({ "definitionKey": "committee", "version": 1, "reason": "Moot." });
    let hasty = app.beside_at(app.database.url(), Duration::ZERO).await;
    let mut last = Value::Null;
    for (host, total, more) in [
        (app.host(), 1_001, false),
        (hasty, 1_000, true),
        (app.host(), 1, false),
    ] {
        let mut body = body.clone();
        let filter = json!({ "afterInstanceId": last });
        if total == 1 {
            // After those of the operation before, which still exist.
            body["filter"] = filter.clone();
        }
        let begun = host.send("admin", "POST", "/v1/cancellations", &[], Some(body));
        let begun = begun.await.expect(201);
        assert_eq!(
            (&begun["total"], &begun["more"]),
            (&json!(total), &json!(more))
        );
        if total == 1 {
            assert_eq!(begun["settings"]["filter"], filter);
        }
        last = begun["lastInstanceId"].clone();
    }
}

/// Two instances change before the operation reaches them: one is migrated to another version, one is suspended.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_skips_instances_that_do_not_match_any_more() {
    let app = chambers().await;
    let (moved, suspended) = (vote(&app, "m-1").await, vote(&app, "m-2").await);
    let meant = vote(&app, "m-3").await;
    let body = json!({
        "definitionKey": "committee", "version": 1, "reason": "Moot.",
        "filter": { "state": "Vote", "status": "RUNNING" }
    });
    let begun = app.post("admin", "/v1/cancellations", body).await;
    let begun = begun.expect(201);
    assert_eq!(begun["total"], 3);
    let act = async |instance: &Value, what: &str, body: Value| {
        let path = format!("/v1/instances/{}/{what}", id(instance));
        app.post("admin", &path, body).await.expect(200);
    };
    let to_two = json!({ "version": 2, "states": { "Vote": "Ballot" } });
    act(&moved, "migrate", to_two).await;
    act(&suspended, "suspend", json!({ "reason": "Wait." })).await;
    let timers = app.timers();
    let operation = begun["id"].as_str().expect("an id");
    let done = until(&app, operation, |now| now["status"] == "DONE").await;
    timers.stop().await;
    assert_eq!((&done["done"], &done["refused"]), (&json!(1), &json!(2)));
    let path = format!("/v1/operations/{operation}/items?result=refused");
    let refused = app.get("admin", &path).await.expect(200);
    let refused = refused["data"].as_array().expect("items");
    let mut codes: Vec<_> = refused.iter().map(|item| &item["code"]).collect();
    codes.sort_by_key(ToString::to_string);
    assert_eq!(codes, ["no_longer_matches", "other_version"]);
    for (instance, status) in [
        (&moved, "RUNNING"),
        (&suspended, "SUSPENDED"),
        (&meant, "CANCELLED"),
    ] {
        assert_eq!(shown(&app, instance).await["status"], status);
    }
}
