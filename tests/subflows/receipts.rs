//! What the sender of a signal by correlation may rely on: one answer for one content, a refusal that lists the existing
//! triggers, idempotency keys, and the status of the signal.

use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use wrkflw_core::json::Json;
use wrkflw_runtime::clock;
use wrkflw_store::signals::{self, Keeping, NewSignal, StoredSignal};

use super::*;
use wrkflw_store::directory::tenants;
use wrkflw_store::jobs;
use wrkflw_store::receipts;

const PAID: &str = "/v1/signals/PAID";

fn waiting(buffered: bool) -> Value {
    json!({ "payments": 9, "wait": { "correlation": "order 7", "bufferSignals": buffered } })
}

fn payment(id: &str, amount: u32) -> Value {
    json!({ "correlation": "order 7", "id": id, "input": { "amount": amount } })
}

async fn pay(app: &TestApp, id: &str, amount: u32) -> Answer {
    app.post("author", PAID, payment(id, amount)).await
}

async fn receipt(app: &TestApp, who: &str, signal: &Value) -> Answer {
    let signal = signal.as_str().expect("the host's id");
    app.get(who, &format!("/v1/signals/{signal}")).await
}

async fn sql(app: &TestApp, text: &'static str) {
    let done = sqlx::raw_sql(text).execute(app.database.admin_pool()).await;
    done.expect("a change");
}

#[tokio::test]
async fn a_repeat_with_other_content_is_refused_and_names_the_first() {
    let app = fixture().await;
    let kept = pay(&app, "p-1", 100).await.expect(202);
    let again = pay(&app, "p-1", 100).await.expect(202);
    assert_eq!(again, kept, "a true repeat gets the same answer");
    for body in [
        payment("p-1", 999),
        json!({ "correlation": "order 7", "id": "p-1", "input": { "amount": 100 }, "definitionKey": "subflows" }),
    ] {
        for path in [PAID, "/v1/signals/PAID?dryRun=true"] {
            let refused = app.post("author", path, body.clone()).await;
            let refused = refused.problem(409, "signal_id_reused");
            assert_eq!(
                refused["conflict"]["signalId"], kept["signal"]["signalId"],
                "{refused}"
            );
            assert!(refused["conflict"]["at"].is_string(), "{refused}");
        }
    }
    assert_eq!(counted(&app, "select count(*) from signal_inbox").await, 1);
    // The same after an instance has taken it.
    let subflow = begin(&app, "1", waiting(false)).await;
    pay(&app, "p-2", 100).await.expect(200);
    pay(&app, "p-2", 100).await.expect(200);
    let refused = pay(&app, "p-2", 999).await.problem(409, "signal_id_reused");
    assert_eq!(refused["conflict"]["instanceId"], json!(subflow));
    // The same for a signal to the instance itself, where the id is independent.
    let direct = |amount: u32| json!({ "id": "p-2", "input": { "amount": amount } });
    let received = signal(&app, &subflow, "PAID", direct(1)).await.expect(200);
    assert_eq!(received["instance"]["data"]["paid"], 2);
    signal(&app, &subflow, "PAID", direct(1)).await.expect(200);
    let refused = signal(&app, &subflow, "PAID", direct(2)).await;
    let refused = refused.problem(409, "signal_id_reused");
    assert_eq!(
        refused["conflict"]["eventId"], received["events"][0]["id"],
        "{refused}"
    );
    assert_eq!(shown(&app, &subflow).await["data"]["paid"], 2);
}

#[tokio::test]
async fn a_trigger_that_nothing_takes_is_refused_with_those_that_exist() {
    let app = fixture().await;
    let junk = app
        .post("author", "/v1/signals/JUNK", payment("p-1", 1))
        .await;
    let junk = junk.problem(422, "invalid_input");
    assert_eq!(junk["errors"][0]["code"], "unknown_signal");
    let detail = junk["detail"].as_str().expect("text");
    assert!(detail.contains("LEAVE, PAID, WITHDRAW"), "{detail}");
    // A trigger of decisions is no signal.
    let decision = app
        .post("author", "/v1/signals/GO", payment("p-1", 1))
        .await;
    decision.problem(422, "invalid_input");
    let mut body = payment("p-1", 1);
    body["definitionKey"] = json!("others");
    let others = app
        .post("author", PAID, body)
        .await
        .problem(422, "invalid_input");
    assert_eq!(others["errors"][0]["code"], "unknown_definition");
    assert_eq!(counted(&app, "select count(*) from signal_inbox").await, 0);
    // The triggers of a version that takes no new instances exist as long as one of its instances runs.
    let subflow = begin(&app, "1", json!({ "first": "Work" })).await;
    let retire = "/v1/definitions/subflows/versions/1/retire";
    app.post("admin", retire, json!({})).await.expect(200);
    pay(&app, "p-1", 1).await.expect(202);
    let cancel = format!("/v1/instances/{subflow}/cancel");
    app.post("admin", &cancel, json!({ "reason": "a trial" }))
        .await
        .expect(200);
    pay(&app, "p-2", 1).await.problem(422, "invalid_input");
}

/// As on other routes: the same request gets the same response, and another request under the key is refused.
#[tokio::test]
async fn an_idempotency_key_is_honoured() {
    let app = fixture().await;
    let host = app.host();
    let keyed = async |key: &'static str, body: Value| {
        let headers = [("idempotency-key", key)];
        host.send("author", "POST", PAID, &headers, Some(body))
            .await
    };
    let kept = keyed("k-1", payment("p-1", 1)).await;
    assert!(!kept.headers.contains_key("idempotency-replayed"));
    let kept = kept.expect(202);
    keyed("k-1", payment("p-2", 1))
        .await
        .problem(422, "idempotency_key_reused");
    let timers = app.timers();
    let subflow = begin(&app, "1", waiting(true)).await;
    until(&app, &subflow, |found| found["data"]["paid"] == 1).await;
    // The signal has been taken since. The key still returns the first response.
    let again = keyed("k-1", payment("p-1", 1)).await;
    assert!(again.headers.contains_key("idempotency-replayed"));
    assert_eq!(again.expect(202), kept);
    // A signal that is taken at once.
    let taken = keyed("k-2", payment("p-2", 1)).await;
    let place = taken.headers["location"].clone();
    let taken = taken.expect(200);
    let again = keyed("k-2", payment("p-2", 1)).await;
    assert!(again.headers.contains_key("idempotency-replayed"));
    assert_eq!(again.headers["location"], place);
    assert_eq!(again.expect(200), taken);
    keyed("k-2", payment("p-2", 2))
        .await
        .problem(422, "idempotency_key_reused");
    // A signal that was received before.
    let counted = keyed("k-3", payment("p-2", 2)).await;
    counted.problem(409, "signal_id_reused");
    let counted = keyed("k-3", payment("p-2", 1)).await.expect(200);
    let again = keyed("k-3", payment("p-2", 1)).await;
    assert!(again.headers.contains_key("idempotency-replayed"));
    assert_eq!(again.expect(200), counted);
    keyed("k-3", payment("p-3", 1))
        .await
        .problem(422, "idempotency_key_reused");
    assert_eq!(audited(&app, &subflow, "SIGNAL_RECEIVED").await.len(), 2);
    timers.stop().await;
}

#[tokio::test]
async fn only_the_sender_sees_the_status_of_a_signal() {
    let app = fixture().await;
    let kept = pay(&app, "p-1", 1).await;
    assert_eq!(
        kept.headers["location"].to_str().expect("text"),
        format!(
            "/v1/signals/{}",
            kept.body["signal"]["signalId"].as_str().expect("an id")
        )
    );
    let kept = kept.expect(202)["signal"]["signalId"].clone();
    let waits = receipt(&app, "author", &kept).await.expect(200);
    assert_eq!(
        (
            &waits["status"],
            &waits["id"],
            &waits["trigger"],
            &waits["correlation"]
        ),
        (
            &json!("KEPT"),
            &json!("p-1"),
            &json!("PAID"),
            &json!("order 7")
        )
    );
    receipt(&app, "reviewer", &kept)
        .await
        .problem(404, "not_found");
    receipt(&app, "admin", &kept).await.expect(200);
    let refused = json!({ "correlation": "order 7", "id": "p-2", "input": { "refuse": true } });
    let refused = app.post("author", PAID, refused).await.expect(202)["signal"]["signalId"].clone();
    let timers = app.timers();
    let subflow = begin(&app, "1", waiting(true)).await;
    settled(&app).await;
    let delivered = receipt(&app, "author", &kept).await.expect(200);
    assert_eq!(
        (&delivered["status"], &delivered["instanceId"]),
        (&json!("DELIVERED"), &json!(subflow))
    );
    let path = format!("/v1/instances/{subflow}/audit?limit=100");
    let entries = app.get("admin", &path).await.expect(200);
    let entries = entries["data"].as_array().expect("entries");
    let received = entries
        .iter()
        .find(|entry| entry["type"] == "SIGNAL_RECEIVED");
    assert_eq!(delivered["eventId"], received.expect("an entry")["id"]);
    let refused = receipt(&app, "author", &refused).await.expect(200);
    assert_eq!(
        (&refused["status"], &refused["refusal"]["code"]),
        (&json!("REFUSED"), &json!("refused"))
    );
    // Its id is free again, as a dry run says, too.
    let dry = "/v1/signals/PAID?dryRun=true";
    let tried = app.post("author", dry, payment("p-2", 1)).await;
    assert_eq!(tried.expect(200)["dryRun"], true);
    pay(&app, "p-2", 1).await.expect(200);
    timers.stop().await;
    proven(&app, &subflow).await;
}

#[tokio::test]
async fn a_signal_expires_and_is_forgotten_later() {
    let app = fixture().await;
    let old = pay(&app, "old", 1).await.expect(202)["signal"]["signalId"].clone();
    sql(
        &app,
        "update signal_inbox set received_at = received_at - interval '31 days'",
    )
    .await;
    pay(&app, "new", 1).await.expect(202);
    app.engine.purge().await.expect("a sweep");
    assert_eq!(
        receipt(&app, "author", &old).await.expect(200)["status"],
        "EXPIRED"
    );
    let timers = app.timers();
    let subflow = begin(&app, "1", waiting(true)).await;
    settled(&app).await;
    assert_eq!(shown(&app, &subflow).await["data"]["paid"], 1);
    // Its id is free again, and identifies another signal.
    let anew = pay(&app, "old", 2).await.expect(200);
    assert_eq!(anew["instance"]["data"]["paid"], 2);
    assert_eq!(counted(&app, "select count(*) from signal").await, 2);
    sql(
        &app,
        "update signal_inbox set received_at = received_at - interval '61 days';
        update signal set received_at = received_at - interval '61 days'",
    )
    .await;
    pay(&app, "last", 1).await.expect(200);
    app.engine.purge().await.expect("a sweep");
    timers.stop().await;
    for table in [
        "select count(*) from signal_inbox",
        "select count(*) from signal",
    ] {
        assert_eq!(counted(&app, table).await, 1, "{table}");
    }
}

/// One sender reaches the limit of a sender, under different names. Another sender is not affected.
#[tokio::test]
async fn kept_signals_of_one_sender_are_limited() {
    let app = fixture().await;
    pay(&app, "p-1", 1).await.expect(202);
    sql(
        &app,
        "insert into signal_inbox (tenant_id, correlation, signal_id, trigger, input, sender, received_at)
        select tenant_id, 'order ' || n, signal_id, trigger, input, sender, received_at
        from signal_inbox, generate_series(1000, 10998) n",
    )
    .await;
    let full = pay(&app, "p-2", 1).await.problem(409, "limit_reached");
    assert!(
        full["detail"]
            .as_str()
            .expect("text")
            .contains("10000 signals of yours"),
        "{full}"
    );
    pay(&app, "p-1", 1).await.expect(202);
    app.post("reviewer", PAID, payment("p-2", 1))
        .await
        .expect(202);
}

/// A buffered signal that a dead host had assigned to the instance.
async fn given(app: &TestApp, instance: &str) -> StoredSignal {
    let (store, clock) = (app.store(), app.engine.clock());
    let tenant = tenants::find(store, "default")
        .await
        .expect("a query")
        .expect("a tenant");
    let new = NewSignal {
        signal: clock::new_id(),
        correlation: "order 7".into(),
        id: "p-1".into(),
        trigger: "PAID".into(),
        definition: None,
        input: Json::empty(),
        to_all: false,
        sender_id: "author".into(),
        sender: Json::of(&json!({ "id": "author", "roles": ["user"] })),
    };
    let Keeping::Kept(kept) = signals::keep(store, tenant, &new, clock.now())
        .await
        .expect("a signal")
    else {
        panic!("there is room");
    };
    let instance = InstanceId(instance.parse().expect("an id"));
    let assigned = receipts::assign(store, tenant, kept.signal, instance, clock.now()).await;
    assert!(assigned.expect("an answer"));
    *kept
}

/// The instance that a dead host assigned the signal to ends before the job delivers it. The next waiting one gets it.
#[tokio::test]
async fn a_signal_assigned_to_an_ending_instance_goes_to_the_next() {
    let app = fixture().await;
    let older = begin(&app, "1", waiting(false)).await;
    let younger = begin(&app, "2", waiting(false)).await;
    settled_by_hand(&app).await;
    let kept = given(&app, &older).await;
    let cancel = format!("/v1/instances/{older}/cancel");
    app.post("admin", &cancel, json!({ "reason": "a trial" }))
        .await
        .expect(200);
    let timers = app.timers();
    until(&app, &younger, |found| found["data"]["paid"] == 1).await;
    settled(&app).await;
    timers.stop().await;
    let receipt = receipt(&app, "author", &json!(kept.signal))
        .await
        .expect(200);
    assert_eq!(
        (&receipt["status"], &receipt["instanceId"]),
        (&json!("DELIVERED"), &json!(younger))
    );
    proven(&app, &younger).await;
}

/// The same for a suspended instance, which is passed over.
#[tokio::test]
async fn a_signal_assigned_to_a_suspended_instance_goes_to_the_next() {
    let app = fixture().await;
    let older = begin(&app, "1", waiting(false)).await;
    let younger = begin(&app, "2", waiting(false)).await;
    given(&app, &older).await;
    let suspend = format!("/v1/instances/{older}/suspend");
    app.post("admin", &suspend, json!({ "reason": "an audit" }))
        .await
        .expect(200);
    let timers = app.timers();
    until(&app, &younger, |found| found["data"]["paid"] == 1).await;
    timers.stop().await;
}

/// No other instance waits. The signal is kept for a later one.
#[tokio::test]
async fn a_signal_without_a_waiting_instance_is_kept() {
    let app = fixture().await;
    let older = begin(&app, "1", waiting(false)).await;
    let kept = given(&app, &older).await;
    let cancel = format!("/v1/instances/{older}/cancel");
    app.post("admin", &cancel, json!({ "reason": "a trial" }))
        .await
        .expect(200);
    let timers = app.timers();
    settled(&app).await;
    assert_eq!(
        receipt(&app, "author", &json!(kept.signal))
            .await
            .expect(200)["status"],
        "KEPT"
    );
    let subflow = begin(&app, "2", waiting(true)).await;
    until(&app, &subflow, |found| found["data"]["paid"] == 1).await;
    timers.stop().await;
}

/// A host that dies before it delivers a signal delays it by seconds: the timeout of a request, and a little more.
#[tokio::test]
async fn a_job_delivers_the_signal_of_a_dead_host() {
    let app = fixture().await;
    let subflow = begin(&app, "1", waiting(false)).await;
    settled_by_hand(&app).await;
    let id = InstanceId(subflow.parse().expect("an id"));
    let mut holder = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a transaction");
    sqlx::query("select from instance where id = $1 for update")
        .bind(id.0)
        .execute(&mut *holder)
        .await
        .expect("a lock");
    let host = app.host();
    let mut sent = JoinSet::new();
    sent.spawn(async move {
        host.send("author", "POST", PAID, &[], Some(payment("p-1", 1)))
            .await
    });
    let begun = app.engine.clock().now();
    let waiting = async {
        while counted(
            &app,
            "select count(*) from job where kind = 'deliver_signal'",
        )
        .await
            == 0
        {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting)
        .await
        .expect("in time");
    let due = jobs::next_due(app.store())
        .await
        .expect("an answer")
        .expect("a job");
    let timeout = SignedDuration::try_from(app.engine.timeout()).expect("a while");
    let late = due.duration_since(begun);
    assert!(late >= timeout, "{late}: the request may still go on");
    let margin = app.engine.clock().now().duration_since(begun) + SignedDuration::from_secs(5);
    assert!(late <= timeout + margin, "{late}");
    holder.rollback().await.expect("the lock is free");
    sent.join_all().await.remove(0).expect(200);
    assert_eq!(counted(&app, "select count(*) from job").await, 0);
}

/// Runs the due jobs without a worker that keeps running.
async fn settled_by_hand(app: &TestApp) {
    let timers = app.timers();
    settled(app).await;
    timers.stop().await;
}

/// A sender must not be able to block the later jobs of an instance.
#[tokio::test]
async fn a_signal_over_which_flow_logic_fails_leaves_nothing() {
    let app = fixture().await;
    begin(&app, "1", waiting(false)).await;
    let body = json!({ "correlation": "order 7", "id": "p-1", "input": { "refuse": "badly" } });
    let failed = app.post("author", PAID, body).await;
    failed.problem(424, "logic_fault");
    assert_eq!(counted(&app, "select count(*) from signal_inbox").await, 0);
    let jobs = "select count(*) from job where kind = 'deliver_signal'";
    assert_eq!(counted(&app, jobs).await, 0);
}
