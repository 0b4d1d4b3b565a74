//! One sender's signals in the inbox do not affect another sender's: ids, limits, order. The second waiting instance gets the
//! signal if the first one ends.

use serde_json::{Value, json};
use sqlx::PgConnection;
use tokio::task::JoinSet;

use super::*;

fn waiting(correlation: &str, buffered: bool) -> Value {
    json!({ "payments": 9, "wait": { "correlation": correlation, "bufferSignals": buffered } })
}

async fn send_as(app: &TestApp, who: &str, trigger: &str, body: Value) -> Answer {
    app.post(who, &format!("/v1/signals/{trigger}"), body).await
}

fn named(id: &str) -> Value {
    json!({ "correlation": "order 7", "id": id })
}

/// Another sender's signal has the same id as the payer's, and came first.
#[tokio::test]
async fn an_id_of_another_senders_signal_is_independent() {
    let app = fixture().await;
    let timers = app.timers();
    // Another sender, the same trigger; another trigger, the same sender; and both.
    send_as(&app, "reviewer", "PAID", named("payment-1"))
        .await
        .expect(202);
    send_as(&app, "author", "LEAVE", named("payment-2"))
        .await
        .expect(202);
    send_as(&app, "reviewer", "WITHDRAW", named("payment-3"))
        .await
        .expect(202);
    let data = json!({ "payments": 3, "wait": { "correlation": "order 7" } });
    let subflow = begin(&app, "1", data).await;
    settled(&app).await;
    for (number, id) in [(1, "payment-1"), (2, "payment-2"), (3, "payment-3")] {
        let taken = send_as(&app, "author", "PAID", named(id)).await.expect(200);
        assert_eq!(taken["instance"]["data"]["paid"], number, "{taken}");
    }
    timers.stop().await;
    assert_eq!(shown(&app, &subflow).await["outcome"], "DONE");
    proven(&app, &subflow).await;
}

/// The same for signals to an instance, where the other signal is buffered for a later state.
#[tokio::test]
async fn an_id_of_another_senders_signal_to_the_instance_is_independent() {
    let app = fixture().await;
    let data = json!({ "first": "Work", "payments": 2, "wait": { "bufferSignals": true } });
    let subflow = begin(&app, "1", data).await;
    let path = |trigger: &str| format!("/v1/instances/{subflow}/signals/{trigger}");
    let body = json!({ "id": "payment-1" });
    app.post("author", &path("LEAVE"), body.clone())
        .await
        .expect(202);
    app.post("author", &path("PAID"), body.clone())
        .await
        .expect(202);
    let paid = app
        .post("reviewer", &path("PAID"), body.clone())
        .await
        .expect(202);
    assert_eq!(paid["events"].as_array().map(Vec::len), Some(1), "{paid}");
    let shown = shown(&app, &subflow).await;
    app.decided("reviewer", &shown, json!({ "outcome": "GO" }))
        .await;
    let received = audited(&app, &subflow, "SIGNAL_RECEIVED").await;
    assert_eq!(received.len(), 3, "{received:?}");
    // LEAVE came first and led back to work, while the payments are buffered. Each is taken once, and none instead of another.
    let shown = super::shown(&app, &subflow).await;
    let done = app
        .decided("reviewer", &shown, json!({ "outcome": "GO" }))
        .await;
    assert_eq!(
        (&done["outcome"], &done["data"]["paid"]),
        (&json!("DONE"), &json!(2))
    );
    proven(&app, &subflow).await;
}

/// A sender who has as many signals waiting under a name as allowed does not block another sender.
#[tokio::test]
async fn a_hundred_of_one_sender_do_not_keep_out_another() {
    let app = fixture().await;
    for number in 0..100 {
        send_as(&app, "reviewer", "WITHDRAW", named(&number.to_string()))
            .await
            .expect(202);
    }
    send_as(&app, "reviewer", "WITHDRAW", named("one more"))
        .await
        .problem(409, "limit_reached");
    send_as(&app, "author", "PAID", named("payment-1"))
        .await
        .expect(202);
    let timers = app.timers();
    let subflow = begin(&app, "1", waiting("order 7", true)).await;
    until(&app, &subflow, |found| found["data"]["paid"] == 1).await;
    timers.stop().await;
}

/// The oldest instance ends while the signal waits for its commit. The next one gets it.
#[tokio::test]
async fn a_signal_for_an_ending_instance_goes_to_the_next() {
    let app = fixture().await;
    let older = begin(&app, "1", waiting("order 7", false)).await;
    let younger = begin(&app, "2", waiting("order 7", false)).await;
    let id = InstanceId(older.parse().expect("an id"));
    let mut holder = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a transaction");
    hold(&mut holder, id).await;
    let host = app.host();
    let (cancelling, sending) = (host.clone(), host.clone());
    let path = format!("/v1/instances/{older}/cancel");
    let mut cancelled = JoinSet::new();
    cancelled.spawn(async move {
        let body = Some(json!({ "reason": "a trial" }));
        cancelling.send("admin", "POST", &path, &[], body).await
    });
    let look = async || counted(&app, WAITS_FOR_LOCK).await;
    until_so(look, |waiting: &i64| *waiting > 0).await;
    let mut sent = JoinSet::new();
    sent.spawn(async move {
        let body = Some(named("payment-1"));
        sending
            .send("author", "POST", "/v1/signals/PAID", &[], body)
            .await
    });
    until_so(
        async || app.engine.waiting(id),
        |waiting: &usize| *waiting > 0,
    )
    .await;
    holder.rollback().await.expect("the lock is free");
    cancelled.join_all().await.remove(0).expect(200);
    let taken = sent.join_all().await.remove(0).expect(200);
    assert_eq!(taken["instance"]["id"], json!(younger));
    assert_eq!(
        counted(
            &app,
            "select count(*) from job where payload like '%receipt%'"
        )
        .await,
        0
    );
    proven(&app, &younger).await;
}

const WAITS_FOR_LOCK: &str = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";

async fn hold(connection: &mut PgConnection, instance: InstanceId) {
    sqlx::query("select from instance where id = $1 for update")
        .bind(instance.0)
        .execute(connection)
        .await
        .expect("a lock");
}

/// A suspended instance takes no signal. The next waiting one does.
#[tokio::test]
async fn a_suspended_instance_is_passed_over() {
    let app = fixture().await;
    let older = begin(&app, "1", waiting("order 7", false)).await;
    let path = format!("/v1/instances/{older}/suspend");
    app.post("admin", &path, json!({ "reason": "an audit" }))
        .await
        .expect(200);
    // No other instance waits: the sender is refused, and nothing is stored.
    let refused = send_as(&app, "author", "PAID", named("payment-1")).await;
    refused.problem(409, "instance_suspended");
    let younger = begin(&app, "2", waiting("order 7", false)).await;
    let taken = send_as(&app, "author", "PAID", named("payment-1"))
        .await
        .expect(200);
    assert_eq!(taken["instance"]["id"], json!(younger));
}

/// Many state instances subscribe under the key to another trigger, and many of suspended instances to the same.
#[tokio::test]
async fn state_instances_that_do_not_take_a_signal_hide_none_that_does() {
    let app = fixture().await;
    let other = begin(&app, "1", waiting("order 7", false)).await;
    let path = format!("/v1/instances/{other}/suspend");
    app.post("admin", &path, json!({ "reason": "an audit" }))
        .await
        .expect(200);
    let subflow = begin(&app, "2", waiting("order 7", false)).await;
    let strangers = "insert into signal_subscription
        select tenant_id, correlation, trigger, entered_at - interval '1 hour', gen_random_uuid(), instance_id
        from signal_subscription, generate_series(1, 1200) n where instance_id = $1";
    sqlx::query(strangers)
        .bind(InstanceId(other.parse().expect("an id")).0)
        .execute(app.database.admin_pool())
        .await
        .expect("subscriptions");
    let taken = send_as(&app, "author", "PAID", named("payment-1"))
        .await
        .expect(200);
    assert_eq!(taken["instance"]["id"], json!(subflow));
}
