//! Signals by correlation, sent before and after an instance waits under the name.

use serde_json::{Value, json};
use tokio::task::JoinSet;
use wrkflw_runtime::clock;
use wrkflw_store::signals::{self, Keeping, NewSignal};

use super::*;
use wrkflw_store::directory::tenants;
use wrkflw_store::receipts;

fn waiting(correlation: &str, buffered: bool) -> Value {
    json!({ "payments": 2, "wait": { "correlation": correlation, "bufferSignals": buffered } })
}

async fn send(app: &TestApp, correlation: &str, id: &str) -> Answer {
    let body = json!({ "correlation": correlation, "id": id });
    app.post("author", "/v1/signals/PAID", body).await
}

#[tokio::test]
async fn the_instance_that_waits_under_the_name_takes_the_signal_once() {
    let app = fixture().await;
    let subflow = begin(&app, "1", waiting("order 7", false)).await;
    let subscription =
        |trigger: &str| json!({ "trigger": trigger, "correlation": "order 7", "buffered": false });
    assert_eq!(
        shown(&app, &subflow).await["states"][0]["subscriptions"],
        json!([subscription("PAID"), subscription("LEAVE")])
    );
    let taken = send(&app, "order 7", "p-1").await.expect(200);
    assert_eq!(
        (&taken["instance"]["id"], &taken["instance"]["data"]["paid"]),
        (&json!(subflow), &json!(1))
    );
    let again = send(&app, "order 7", "p-1").await.expect(200);
    assert_eq!(
        (&again["instance"]["data"]["paid"], &again["events"]),
        (&json!(1), &json!([]))
    );
    send(&app, "order 7", "p-2").await.expect(200);
    assert_eq!(shown(&app, &subflow).await["outcome"], "DONE");
    proven(&app, &subflow).await;
}

#[tokio::test]
async fn a_buffered_signal_is_delivered_when_an_instance_waits() {
    let app = fixture().await;
    let timers = app.timers();
    let mut signals = Vec::new();
    for id in ["p-1", "p-1", "p-2"] {
        let kept = send(&app, "order 7", id).await.expect(202);
        let signal = kept["signal"]["signalId"].clone();
        assert_eq!(
            kept,
            json!({
                "result": "accepted", "dryRun": false,
                "signal": { "signalId": signal, "correlation": "order 7", "id": id, "trigger": "PAID" },
            })
        );
        signals.push(signal);
    }
    assert!(signals[0].is_string() && signals[0] == signals[1] && signals[1] != signals[2]);
    let subflow = begin(&app, "1", waiting("order 7", true)).await;
    until_status(&app, &subflow, "COMPLETED").await;
    settled(&app).await;
    assert_eq!(audited(&app, &subflow, "SIGNAL_RECEIVED").await.len(), 2);
    let again = send(&app, "order 7", "p-1").await.expect(200);
    assert_eq!(again["instance"]["id"], json!(subflow));
    timers.stop().await;
    proven(&app, &subflow).await;
}

#[tokio::test]
async fn a_state_without_buffered_signals_ignores_earlier_ones() {
    let app = fixture().await;
    send(&app, "order 7", "p-1").await.expect(202);
    let timers = app.timers();
    let subflow = begin(&app, "1", waiting("order 7", false)).await;
    settled(&app).await;
    assert_eq!(shown(&app, &subflow).await["revision"], 1);
    send(&app, "order 7", "p-2").await.expect(200);
    timers.stop().await;
}

#[tokio::test]
async fn the_oldest_waiting_instance_of_the_definition_takes_the_signal() {
    let app = fixture().await;
    let older = begin(&app, "1", waiting("order 7", false)).await;
    let younger = begin(&app, "2", waiting("order 7", false)).await;
    for id in ["p-1", "p-2"] {
        let taken = send(&app, "order 7", id).await.expect(200);
        assert_eq!(taken["instance"]["id"], json!(older));
    }
    app.publish("others", subflows(), &json!({}))
        .await
        .expect(201);
    let path = "/v1/definitions/others/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    let body = json!({ "correlation": "order 7", "id": "p-3", "definitionKey": "others" });
    app.post("author", "/v1/signals/PAID", body)
        .await
        .expect(202);
    let body = json!({ "correlation": "order 7", "id": "p-4", "definitionKey": "subflows" });
    let taken = app
        .post("author", "/v1/signals/PAID", body)
        .await
        .expect(200);
    assert_eq!(taken["instance"]["id"], json!(younger));
    // No state instance takes this signal.
    let body = json!({ "correlation": "order 7", "id": "w-1" });
    app.post("author", "/v1/signals/WITHDRAW", body)
        .await
        .expect(202);
}

#[tokio::test]
async fn a_full_reply_is_repeated_only_for_callers_who_may_read_instances() {
    let app = fixture().await;
    begin(&app, "1", waiting("order 7", false)).await;
    let grant = "insert into role_permission select id, 'sender', 'instance:signal' from tenant where name = 'default'";
    sqlx::query(grant)
        .execute(app.database.admin_pool())
        .await
        .expect("a grant");
    let host = app.host();
    let send = async |role: &str| {
        let token = format!("Bearer {}", host.token_of("author", "default", &[role]));
        let headers = [
            ("idempotency-key", "k-1"),
            ("authorization", token.as_str()),
        ];
        let body = json!({ "correlation": "order 7", "id": "p-1" });
        let sent = host.send("", "POST", "/v1/signals/PAID", &headers, Some(body));
        sent.await
    };
    let first = send("user").await;
    let again = send("user").await;
    assert_eq!((again.status, &again.text), (200, &first.text));
    let refused = send("sender").await.problem(403, "permission_missing");
    assert_eq!(refused["reason"], "instance:read");
}

#[tokio::test]
async fn a_refused_signal_leaves_nothing_and_its_id_free() {
    let app = fixture().await;
    let subflow = begin(&app, "1", waiting("order 7", false)).await;
    let body = json!({ "correlation": "order 7", "id": "p-1", "input": { "refuse": true } });
    let refused = app.post("author", "/v1/signals/PAID", body).await;
    assert_eq!(refused.problem(403, "forbidden")["reason"], "refused");
    assert_eq!(counted(&app, "select count(*) from signal_inbox").await, 0);
    let dry = json!({ "correlation": "order 7", "id": "p-1" });
    let would = app
        .post("author", "/v1/signals/PAID?dryRun=true", dry)
        .await
        .expect(200);
    assert_eq!(would["dryRun"], true);
    assert_eq!(shown(&app, &subflow).await["revision"], 1);
    send(&app, "order 7", "p-1").await.expect(200);
    let nobody = format!("Bearer {}", app.host().token_of("nobody", "default", &[]));
    let headers = [("authorization", nobody.as_str())];
    let body = json!({ "correlation": "order 7", "id": "p-2" });
    let host = app.host();
    let sent = host
        .send("", "POST", "/v1/signals/PAID", &headers, Some(body))
        .await;
    sent.problem(403, "permission_missing");
}

#[tokio::test]
async fn kept_signals_under_one_name_are_limited() {
    let app = fixture().await;
    for number in 0..100 {
        send(&app, "order 7", &number.to_string()).await.expect(202);
    }
    send(&app, "order 7", "one more")
        .await
        .problem(409, "limit_reached");
    // A repetition of a kept signal is no new one, and another name has its own limit.
    send(&app, "order 7", "42").await.expect(202);
    send(&app, "order 8", "1").await.expect(202);
}

/// One delivery settled the signal while another one released it from its instance. The repetition ends, though an instance waits.
#[tokio::test]
async fn a_settled_signal_without_an_instance_is_assigned_to_none() {
    let app = fixture().await;
    let kept = send(&app, "order 7", "p-1").await.expect(202);
    let settling = sqlx::raw_sql("update signal_inbox set delivered_at = now()");
    let settled = settling.execute(app.database.admin_pool()).await;
    settled.expect("a change");
    let subflow = begin(&app, "1", waiting("order 7", false)).await;
    let again = tokio::time::timeout(TIMEOUT, send(&app, "order 7", "p-1"));
    let again = again.await.expect("in time");
    assert_eq!(again.expect(202), kept);
    assert_eq!(shown(&app, &subflow).await["revision"], 1);
}

/// A host assigned the signal to an instance and died before it delivered it.
#[tokio::test]
async fn a_signal_of_a_lost_host_is_delivered_in_the_senders_name() {
    let app = fixture().await;
    let subflow = begin(&app, "1", waiting("order 7", false)).await;
    let (store, now) = (app.store(), app.engine.clock().now());
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
        input: wrkflw_core::json::Json::empty(),
        to_all: false,
        sender_id: "payer".into(),
        sender: wrkflw_core::json::Json::of(&json!({ "id": "payer", "roles": ["user"] })),
    };
    let found = signals::keep(store, tenant, &new, now).await;
    let Keeping::Kept(kept) = found.expect("a signal") else {
        panic!("there is room");
    };
    assert_eq!((kept.signal, kept.instance), (new.signal, None));
    let instance = InstanceId(subflow.parse().expect("an id"));
    for expected in [true, false] {
        let assigned = receipts::assign(store, tenant, kept.signal, instance, now).await;
        assert_eq!(assigned.expect("an answer"), expected);
    }
    let timers = app.timers();
    until(&app, &subflow, |found| found["data"]["paid"] == 1).await;
    settled(&app).await;
    timers.stop().await;
    let received = audited(&app, &subflow, "SIGNAL_RECEIVED").await;
    assert_eq!(received[0]["sender"]["id"], "payer");
    proven(&app, &subflow).await;
}

/// Senders, the start and the worker, all concurrently: in every order the signal counts once.
#[tokio::test]
async fn of_twenty_equal_signals_around_the_start_one_counts() {
    let app = fixture().await;
    let second = app.beside().await;
    let timers = app.timers();
    for round in 0..5 {
        let correlation = format!("order {round}");
        let mut sending = JoinSet::new();
        for number in 0..20 {
            let host = if number % 2 == 0 {
                app.host()
            } else {
                second.clone()
            };
            let body = json!({ "correlation": correlation, "id": "the same" });
            sending.spawn(async move {
                host.send("author", "POST", "/v1/signals/PAID", &[], Some(body))
                    .await
            });
        }
        let subflow = begin(&app, &correlation, waiting(&correlation, true)).await;
        let answers = sending.join_all().await;
        assert!(
            answers.iter().all(|answer| answer.status < 300),
            "{answers:?}"
        );
        until(&app, &subflow, |found| found["data"]["paid"] == 1).await;
        assert_eq!(audited(&app, &subflow, "SIGNAL_RECEIVED").await.len(), 1);
        proven(&app, &subflow).await;
    }
    timers.stop().await;
}

#[tokio::test]
async fn a_sender_who_may_not_read_instances_is_shown_no_data() {
    let app = fixture().await;
    let subflow = begin(&app, "1", waiting("order 7", false)).await;
    let role = json!({ "permissions": ["instance:signal"] });
    app.put("admin", "/v1/roles/sender", role).await.expect(200);
    let host = app.host();
    let token = format!("Bearer {}", host.token_of("author", "default", &["sender"]));
    let headers = [("authorization", token.as_str())];
    for path in ["/v1/signals/PAID?dryRun=true", "/v1/signals/PAID"] {
        let body = json!({ "correlation": "order 7", "id": "p-1" });
        let sent = host.send("", "POST", path, &headers, Some(body)).await;
        assert!(sent.headers.get("preference-applied").is_none());
        let sent = sent.expect(200);
        assert_eq!(sent["instance"]["id"], json!(subflow));
        let whole = [sent.get("events"), sent["instance"].get("data")];
        assert_eq!(whole, [None, None], "{path}: {sent}");
    }
}

#[tokio::test]
async fn correlation_keys_of_one_tenant_do_not_exist_in_another() {
    let app = fixture().await;
    let subflow = begin(&app, "1", waiting("order 7", true)).await;
    let roles = std::collections::BTreeMap::from([("user", &["instance:signal"][..])]);
    let (store, now) = (app.store(), app.engine.clock().now());
    tenants::ensure_tenant(store, "other", &roles, now)
        .await
        .expect("a tenant");
    // The other tenant has the same definition.
    let copy = "insert into definition select t.id, d.key, gen_random_uuid(), d.active_version, d.revision, d.created_at
            from definition d, tenant t where t.name = 'other';
        insert into definition_version (tenant_id, key, version, digest, config, config_digest, graph, sdk, wit, published_at, published_by)
        select t.id, v.key, v.version, v.digest, v.config, v.config_digest, v.graph, v.sdk, v.wit, v.published_at, v.published_by
            from definition_version v, tenant t where t.name = 'other'";
    sqlx::raw_sql(copy)
        .execute(app.database.admin_pool())
        .await
        .expect("a definition");
    let host = app.host();
    let token = format!("Bearer {}", host.token_of("author", "other", &["user"]));
    let headers = [("authorization", token.as_str())];
    let body = json!({ "correlation": "order 7", "id": "p-1" });
    let sent = host
        .send("", "POST", "/v1/signals/PAID", &headers, Some(body))
        .await;
    sent.expect(202);
    let timers = app.timers();
    settled(&app).await;
    timers.stop().await;
    assert_eq!(shown(&app, &subflow).await["revision"], 1);
    // The same id is another signal in this tenant.
    send(&app, "order 7", "p-1").await.expect(200);
}
