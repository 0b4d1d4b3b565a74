//! Several subscriptions of one state: of a wait and of open tasks, by different triggers and keys.

use serde_json::{Value, json};

use super::*;

async fn send(app: &TestApp, trigger: &str, correlation: &str) -> Answer {
    let body = json!({ "correlation": correlation, "id": format!("{trigger} {correlation}") });
    app.post("author", &format!("/v1/signals/{trigger}"), body)
        .await
}

fn to(trigger: &str, correlation: &str) -> Value {
    json!({ "trigger": trigger, "correlation": correlation, "buffered": false })
}

async fn subscriptions(app: &TestApp) -> i64 {
    counted(app, "select count(*) from signal_subscription").await
}

#[tokio::test]
async fn a_wait_is_found_by_each_pair_of_trigger_and_key_until_it_ends() {
    let app = fixture().await;
    let subscribed = json!([
        to("PAID", "invoice 1"),
        to("PAID", "invoice 2"),
        to("LEAVE", "order 7")
    ]);
    let data = json!({ "payments": 9, "wait": { "subscriptions": subscribed } });
    let subflow = begin(&app, "1", data).await;
    let state = shown(&app, &subflow).await["states"][0].clone();
    assert_eq!(state["subscriptions"], subscribed);
    assert_eq!(subscriptions(&app).await, 3);
    for (trigger, key) in [
        ("PAID", "order 7"),
        ("LEAVE", "invoice 1"),
        ("PAID", "invoice 3"),
    ] {
        send(&app, trigger, key).await.expect(202);
    }
    for (trigger, key, paid) in [
        ("PAID", "invoice 2", 1),
        ("PAID", "invoice 1", 2),
        ("LEAVE", "order 7", 2),
    ] {
        let taken = send(&app, trigger, key).await.expect(200);
        assert_eq!(taken["instance"]["id"], json!(subflow));
        assert_eq!(taken["instance"]["data"]["paid"], paid);
    }
    assert_eq!(shown(&app, &subflow).await["states"][0]["name"], "Work");
    assert_eq!(subscriptions(&app).await, 0);
    assert_eq!(counted(&app, "select count(*) from job").await, 0);
    proven(&app, &subflow).await;
}

/// A signal that has no subscription can still be sent to the instance.
#[tokio::test]
async fn open_work_is_found_by_a_key_and_takes_earlier_signals() {
    let app = fixture().await;
    let work = |key: &str, buffered: bool| {
        let one = json!({ "trigger": "WITHDRAW", "correlation": key, "buffered": buffered });
        json!({ "first": "Work", "work": { "subscriptions": [one] } })
    };
    let open = begin(&app, "1", work("claim 1", false)).await;
    let taken = send(&app, "WITHDRAW", "claim 1").await.expect(200);
    assert_eq!(taken["instance"]["id"], json!(open));
    assert_eq!(shown(&app, &open).await["outcome"], "DROPPED");
    send(&app, "WITHDRAW", "claim 2").await.expect(202);
    send(&app, "WITHDRAW", "claim 3").await.expect(202);
    let timers = app.timers();
    let early = begin(&app, "2", work("claim 2", true)).await;
    let late = begin(&app, "3", work("claim 3", false)).await;
    until_status(&app, &early, "COMPLETED").await;
    settled(&app).await;
    assert_eq!(shown(&app, &late).await["revision"], 1);
    signal(&app, &late, "WITHDRAW", json!({})).await.expect(200);
    timers.stop().await;
    assert_eq!(subscriptions(&app).await, 0);
    for subflow in [open, early, late] {
        proven(&app, &subflow).await;
    }
}

#[tokio::test]
async fn a_subscription_without_effect_in_the_state_is_a_fault() {
    let app = fixture().await;
    for (one, says) in [
        (to("GO", "order 7"), "which is declared for no signal there"),
        (
            json!({ "trigger": "WITHDRAW" }),
            "the subscription has no effect",
        ),
    ] {
        let data = json!({ "first": "Work", "work": { "subscriptions": [one] } });
        let body = json!({ "definitionKey": "subflows", "entityType": "errand", "entityId": "1", "data": data });
        let fault = app
            .post("author", "/v1/instances", body)
            .await
            .problem(424, "logic_fault");
        let text = fault.to_string();
        assert!(text.contains(says), "{text}");
    }
}

/// Migrates the instance to a new version, whose work takes WITHDRAW under this key and counts what was sent before.
async fn resubscribed(app: &TestApp, subflow: &str, correlation: &str) {
    let one = json!({ "trigger": "WITHDRAW", "correlation": correlation, "buffered": true });
    let config = json!({ "work": { "subscriptions": [one] } });
    app.publish("subflows", subflows(), &config)
        .await
        .expect(201);
    let path = format!("/v1/instances/{subflow}/migrate");
    app.post("admin", &path, json!({ "version": 2 }))
        .await
        .expect(200);
}

/// The next version subscribes its work under another key. What was sent under that key before is taken then.
#[tokio::test]
async fn a_migration_replaces_the_keys_of_open_work() {
    let app = fixture().await;
    let work = json!({ "subscriptions": [to("WITHDRAW", "claim 1")] });
    let subflow = begin(&app, "1", json!({ "first": "Work", "work": work })).await;
    send(&app, "WITHDRAW", "claim 2").await.expect(202);
    resubscribed(&app, &subflow, "claim 2").await;
    assert_eq!(subscriptions(&app).await, 1);
    send(&app, "WITHDRAW", "claim 1").await.expect(202);
    proven(&app, &subflow).await;
    let timers = app.timers();
    until_status(&app, &subflow, "COMPLETED").await;
    timers.stop().await;
    proven(&app, &subflow).await;
}

/// The next version keeps the key, and counts what was sent before the work began.
#[tokio::test]
async fn a_migration_lets_open_work_take_earlier_signals() {
    let app = fixture().await;
    send(&app, "WITHDRAW", "claim 1").await.expect(202);
    let work = json!({ "subscriptions": [to("WITHDRAW", "claim 1")] });
    let subflow = begin(&app, "1", json!({ "first": "Work", "work": work })).await;
    let timers = app.timers();
    settled(&app).await;
    assert_eq!(shown(&app, &subflow).await["status"], "RUNNING");
    resubscribed(&app, &subflow, "claim 1").await;
    until_status(&app, &subflow, "COMPLETED").await;
    timers.stop().await;
    assert_eq!(subscriptions(&app).await, 0);
    proven(&app, &subflow).await;
}
