//! Signals by correlation: for whoever waits under a name, before and after somebody does.

use serde_json::{Value, json};
use tokio::task::JoinSet;
use wrkflw::clock;
use wrkflw::store::signals::{Keeping, NewSignal};

use super::*;

fn waiting(correlation: &str, keep_early: bool) -> Value {
    json!({ "payments": 2, "wait": { "correlation": correlation, "keepEarly": keep_early } })
}

async fn send(app: &TestApp, correlation: &str, id: &str) -> Answer {
    let body = json!({ "correlation": correlation, "id": id });
    app.post("author", "/v1/signals/PAID", body).await
}

#[tokio::test]
async fn the_instance_that_waits_under_the_name_takes_the_signal_once() {
    let app = field().await;
    let errand = begin(&app, "1", waiting("order 7", false)).await;
    assert_eq!(
        shown(&app, &errand).await["states"][0]["correlation"],
        "order 7"
    );
    let taken = send(&app, "order 7", "p-1").await.expect(200);
    assert_eq!(
        (&taken["instance"]["id"], &taken["instance"]["data"]["paid"]),
        (&json!(errand), &json!(1))
    );
    let again = send(&app, "order 7", "p-1").await.expect(200);
    assert_eq!(
        (&again["instance"]["data"]["paid"], &again["events"]),
        (&json!(1), &json!([]))
    );
    send(&app, "order 7", "p-2").await.expect(200);
    assert_eq!(shown(&app, &errand).await["outcome"], "DONE");
    proven(&app, &errand).await;
}

#[tokio::test]
async fn one_that_comes_before_is_delivered_when_somebody_waits() {
    let app = field().await;
    let timers = app.timers();
    let mut signals = Vec::new();
    for id in ["p-1", "p-1", "p-2"] {
        let kept = send(&app, "order 7", id).await.expect(202);
        let signal = kept["signal"].clone();
        assert_eq!(
            kept,
            json!({ "signal": signal, "correlation": "order 7", "id": id, "dryRun": false })
        );
        signals.push(signal);
    }
    assert!(signals[0].is_string() && signals[0] == signals[1] && signals[1] != signals[2]);
    let errand = begin(&app, "1", waiting("order 7", true)).await;
    until_status(&app, &errand, "COMPLETED").await;
    settled(&app).await;
    assert_eq!(audited(&app, &errand, "SIGNAL_RECEIVED").await.len(), 2);
    let again = send(&app, "order 7", "p-1").await.expect(200);
    assert_eq!(again["instance"]["id"], json!(errand));
    timers.stop().await;
    proven(&app, &errand).await;
}

#[tokio::test]
async fn a_state_that_counts_none_from_before_is_not_moved_by_them() {
    let app = field().await;
    send(&app, "order 7", "p-1").await.expect(202);
    let timers = app.timers();
    let errand = begin(&app, "1", waiting("order 7", false)).await;
    settled(&app).await;
    assert_eq!(shown(&app, &errand).await["revision"], 1);
    send(&app, "order 7", "p-2").await.expect(200);
    timers.stop().await;
}

#[tokio::test]
async fn of_several_the_oldest_takes_it_and_a_definition_narrows() {
    let app = field().await;
    let older = begin(&app, "1", waiting("order 7", false)).await;
    let younger = begin(&app, "2", waiting("order 7", false)).await;
    for id in ["p-1", "p-2"] {
        let taken = send(&app, "order 7", id).await.expect(200);
        assert_eq!(taken["instance"]["id"], json!(older));
    }
    app.publish("others", errands(), &json!({}))
        .await
        .expect(201);
    let path = "/v1/definitions/others/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    let body = json!({ "correlation": "order 7", "id": "p-3", "definition": "others" });
    app.post("author", "/v1/signals/PAID", body)
        .await
        .expect(202);
    let body = json!({ "correlation": "order 7", "id": "p-4", "definition": "errands" });
    let taken = app
        .post("author", "/v1/signals/PAID", body)
        .await
        .expect(200);
    assert_eq!(taken["instance"]["id"], json!(younger));
    // Nobody takes this one now.
    let body = json!({ "correlation": "order 7", "id": "w-1" });
    app.post("author", "/v1/signals/WITHDRAW", body)
        .await
        .expect(202);
}

#[tokio::test]
async fn a_refused_one_leaves_nothing_and_may_be_sent_better() {
    let app = field().await;
    let errand = begin(&app, "1", waiting("order 7", false)).await;
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
    assert_eq!(shown(&app, &errand).await["revision"], 1);
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
async fn so_many_are_kept_under_one_name_and_no_more() {
    let app = field().await;
    for number in 0..100 {
        send(&app, "order 7", &number.to_string()).await.expect(202);
    }
    send(&app, "order 7", "one more")
        .await
        .problem(409, "limit_reached");
    // One that is kept already is not one more, and another name has room.
    send(&app, "order 7", "42").await.expect(202);
    send(&app, "order 8", "1").await.expect(202);
}

/// A host gave the signal to an instance and died before it delivered it.
#[tokio::test]
async fn what_a_lost_host_left_behind_is_delivered_in_the_senders_name() {
    let app = field().await;
    let errand = begin(&app, "1", waiting("order 7", false)).await;
    let (store, now) = (app.engine.store(), app.engine.clock().now());
    let tenant = store
        .tenant("default")
        .await
        .expect("a query")
        .expect("a tenant");
    let new = NewSignal {
        signal: clock::new_id(),
        correlation: "order 7".into(),
        id: "p-1".into(),
        trigger: "PAID".into(),
        definition: None,
        input: wrkflw::domain::json::Json::empty(),
        sender_id: "payer".into(),
        sender: wrkflw::domain::json::Json::of(&json!({ "id": "payer", "roles": ["user"] })),
    };
    let found = store.keep_signal(tenant, &new).await;
    let Keeping::Kept(kept) = found.expect("a signal") else {
        panic!("there is room");
    };
    assert_eq!((kept.signal, kept.instance), (new.signal, None));
    let instance = InstanceId(errand.parse().expect("an id"));
    for expected in [true, false] {
        let assigned = store.assign_signal(tenant, &kept, instance, now).await;
        assert_eq!(assigned.expect("an answer"), expected);
    }
    let timers = app.timers();
    until(&app, &errand, |found| found["data"]["paid"] == 1).await;
    settled(&app).await;
    timers.stop().await;
    let received = audited(&app, &errand, "SIGNAL_RECEIVED").await;
    assert_eq!(received[0]["sender"]["id"], "payer");
    proven(&app, &errand).await;
}

/// Senders, the start and the worker all at once: whoever comes first, the signal counts once.
#[tokio::test]
async fn of_twenty_equal_signals_around_the_start_one_counts() {
    let app = field().await;
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
        let errand = begin(&app, &correlation, waiting(&correlation, true)).await;
        let answers = sending.join_all().await;
        assert!(
            answers.iter().all(|answer| answer.status < 300),
            "{answers:?}"
        );
        until(&app, &errand, |found| found["data"]["paid"] == 1).await;
        assert_eq!(audited(&app, &errand, "SIGNAL_RECEIVED").await.len(), 1);
        proven(&app, &errand).await;
    }
    timers.stop().await;
}

#[tokio::test]
async fn names_of_one_tenant_mean_nothing_in_another() {
    let app = field().await;
    let errand = begin(&app, "1", waiting("order 7", true)).await;
    let roles = std::collections::BTreeMap::from([("user", &["instance:signal"][..])]);
    let (store, now) = (app.engine.store(), app.engine.clock().now());
    store
        .ensure_tenant("other", &roles, now)
        .await
        .expect("a tenant");
    // It has the same definition.
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
    assert_eq!(shown(&app, &errand).await["revision"], 1);
    // The same id is another signal here.
    send(&app, "order 7", "p-1").await.expect(200);
}
