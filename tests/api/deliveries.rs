//! A webhook delivery: its attempts, its retry and its discard.

use std::time::Duration;

use sqlx::{Postgres, Transaction};

use super::notifications::{notifier, settings};
use super::webhooks::{subscribe, waiting};
use super::*;
use crate::support::plug::{count, within};
use crate::support::receiver::Receiver;

const AT_ONCE: Duration = Duration::ZERO;

fn path(subscription: &Value, delivery: &Value, what: &str) -> String {
    let id = |of: &Value| of["id"].as_str().expect("an id").to_owned();
    format!(
        "/v1/subscriptions/{}/deliveries/{}/{what}",
        id(subscription),
        id(delivery)
    )
}

async fn attempts(app: &TestApp, subscription: &Value, delivery: &Value) -> Vec<Value> {
    let path = path(subscription, delivery, "attempts");
    let listed = app.get("admin", &path).await.expect(200);
    listed["data"].as_array().expect("attempts").clone()
}

#[tokio::test]
async fn attempts_are_recorded_and_a_delivery_is_retried_or_discarded() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    hook.answers(&[500, 503]);
    let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
    let _working = notifier(&app, settings(&[AT_ONCE]));
    app.started("doc-1").await;
    let dead = waiting(&app, &subscription, "dead", 1).await.remove(0);
    let tried = attempts(&app, &subscription, &dead).await;
    let listed: Vec<_> = tried
        .iter()
        .map(|one| (one["status"].clone(), one["error"].clone()))
        .collect();
    let refused = |status: u32| {
        let error = format!("the receiver answered {status}; only 2xx accepts");
        (json!(status), json!(error))
    };
    assert_eq!(listed, [refused(503), refused(500)], "the newest first");
    let timed = |one: &Value| one["at"].is_string() && one["durationMs"].is_u64();
    assert!(tried.iter().all(timed), "{tried:?}");

    let discard = path(&subscription, &dead, "discard");
    let reason = json!({ "reason": "Nobody reads it" });
    app.post("author", &discard, reason.clone())
        .await
        .problem(403, "permission_missing");
    for none in [json!({ "reason": " " }), json!({})] {
        let refused = app.post("admin", &discard, none).await;
        assert!(matches!(refused.status, 400 | 422));
    }
    waiting(&app, &subscription, "dead", 1).await;
    let done = app.post("admin", &discard, reason.clone()).await;
    assert_eq!(done.status, 204);
    let kept = "select actor || ': ' || (payload::json ->> 'reason') from audit_entry where type = 'DELIVERY_DISCARDED'";
    let kept: Vec<String> = sqlx::query_scalar(kept)
        .fetch_all(app.database.admin_pool())
        .await
        .expect("entries");
    assert_eq!(kept, ["admin: Nobody reads it"]);
    waiting(&app, &subscription, "discarded", 1).await;
    // A retry of all dead deliveries leaves it out. It can be retried by itself.
    let id = subscription["id"].as_str().expect("an id");
    let all = format!("/v1/subscriptions/{id}/deliveries/retry");
    let retried = app.post("admin", &all, json!({})).await.expect(200);
    assert_eq!(retried, json!({ "retried": 0, "more": false }));
    let (first, _) = (hook.next().await, hook.next().await);
    let retry = path(&subscription, &dead, "retry");
    assert_eq!(app.post("admin", &retry, json!({})).await.status, 204);
    assert_eq!(hook.next().await.id(), first.id());
    let delivered = waiting(&app, &subscription, "delivered", 1).await.remove(0);
    assert_eq!(
        (&delivered["id"], &delivered["attempts"]),
        (&dead["id"], &json!(1))
    );
    let tried = attempts(&app, &subscription, &delivered).await;
    assert_eq!(
        (tried.len(), &tried[0]["status"], &tried[0]["error"]),
        (3, &json!(200), &Value::Null)
    );
    // A delivered message cannot be discarded, but can be sent again.
    app.post("admin", &discard, reason)
        .await
        .problem(409, "delivery_ended");
    assert_eq!(app.post("admin", &retry, json!({})).await.status, 204);
    assert_eq!(hook.next().await.id(), first.id());
}

#[tokio::test]
async fn a_test_event_reaches_the_receiver_whatever_it_subscribes_to() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    let subscription = subscribe(&app, &hook.url, &["flow.completed"]).await;
    let id = subscription["id"].as_str().expect("an id");
    let test = format!("/v1/subscriptions/{id}/test");
    app.post("author", &test, json!({}))
        .await
        .problem(403, "permission_missing");
    let answer = app.post("admin", &test, json!({})).await.expect(202);
    let working = notifier(&app, settings(&[AT_ONCE]));
    let received = hook.next().await;
    assert_eq!(received.id(), answer["id"].as_str().expect("an id"));
    assert_eq!(received.body["type"], "dev.wrkflw.webhook.test");
    assert_eq!(received.body["data"], json!({ "subscriptionId": id }));
    let schema = received.body["dataschema"].as_str().expect("a URL");
    let schema = schema.strip_prefix("http://localhost:8080").expect("ours");
    let schema = app.get("", schema).await.expect(200);
    assert!(jsonschema::is_valid(&schema, &received.body["data"]));
    let delivered = waiting(&app, &subscription, "delivered", 1).await.remove(0);
    assert_eq!(
        (&delivered["id"], &delivered["instanceId"]),
        (&answer["id"], &Value::Null)
    );
    drop(working);
    for _ in 0..10 {
        app.post("admin", &test, json!({})).await.expect(202);
    }
    app.post("admin", &test, json!({}))
        .await
        .problem(409, "limit_reached");
}

#[tokio::test]
async fn an_unknown_delivery_is_not_found() {
    let app = TestApp::start().await;
    let subscription = subscribe(&app, "http://127.0.0.1:9/", &["task.created"]).await;
    let unknown = json!({ "id": "00000000-0000-0000-0000-000000000000" });
    for what in ["retry", "discard"] {
        let body = match what {
            "discard" => json!({ "reason": "Nobody reads it" }),
            _ => json!({}),
        };
        app.post("admin", &path(&subscription, &unknown, what), body)
            .await
            .problem(404, "not_found");
    }
    app.get("admin", &path(&subscription, &unknown, "attempts"))
        .await
        .problem(404, "not_found");
}

/// The deliveries of the events of a start, in order, once the feed has all of them.
async fn of_events(app: &TestApp, started: &Value) -> Vec<Value> {
    let id = started["instance"]["id"].as_str().expect("an id");
    let count = started["events"].as_array().expect("events").len();
    let path = format!("/v1/events?instanceId={id}&include=deliveries&limit=100");
    let reading = async {
        loop {
            let page = app.get("admin", &path).await.expect(200);
            let events = page["data"].as_array().expect("events");
            if events.len() == count {
                let ids = events
                    .iter()
                    .map(|event| event["id"].as_str().expect("an id"));
                return ids.map(|id| page["deliveries"][id].clone()).collect();
            }
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading)
        .await
        .expect("the feed goes on")
}

fn kafka(deliveries: &[Value]) -> Vec<&str> {
    let states = deliveries.iter();
    states
        .map(|one| one["kafka"]["state"].as_str().expect("a state"))
        .collect()
}

#[tokio::test]
async fn events_show_on_request_whether_kafka_has_them() {
    let app = TestApp::start().await;
    let started = app.start_answer("doc-1").await;
    app.started("doc-2").await;
    let events = of_events(&app, &started).await;
    let count = events.len();
    assert!(count >= 3, "{events:?}");
    assert_eq!(kafka(&events), vec!["waiting"; count]);
    let park = "with moved as (delete from outbox_event where instance_id in (select id from instance where entity_id = 'doc-1') returning *)
        insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
        select tenant_id, instance_id, seq, partition, pos, 'too large', 3, '2026-01-05T09:00Z' from moved";
    sql(&app, park).await;
    let events = of_events(&app, &started).await;
    assert_eq!(kafka(&events), vec!["parked"; count]);
    let expected = json!({
        "state": "parked", "error": "too large", "attempts": 3, "parkedAt": "2026-01-05T09:00:00Z",
    });
    assert_eq!(events[0]["kafka"], expected);
    // The first event is discarded, and the later ones are sent.
    let id = started["instance"]["id"].as_str().expect("an id");
    let letters = app.get("admin", &format!("/v1/dead-letters/{id}")).await;
    let entry = letters.expect(200)["data"][0]["entry"].clone();
    let body = json!({ "entry": entry, "reason": "Nobody reads it" });
    let discard = format!("/v1/dead-letters/{id}/discard");
    app.post("admin", &discard, body).await.expect(200);
    let rest = vec!["waiting"; count - 1];
    let events = of_events(&app, &started).await;
    assert_eq!(kafka(&events), [&["discarded"][..], &rest].concat());
    sql(&app, "delete from outbox_event").await;
    let rest = vec!["published"; count - 1];
    let events = of_events(&app, &started).await;
    assert_eq!(kafka(&events), [&["discarded"][..], &rest].concat());
    // A replayed event was published before.
    let replay = json!({ "after": "earliest", "instanceId": id, "reason": "They lost it" });
    app.post("admin", "/v1/events/replay", replay)
        .await
        .expect(200);
    let events = of_events(&app, &started).await;
    assert_eq!(kafka(&events), [&["discarded"][..], &rest].concat());
}

#[tokio::test]
async fn events_show_on_request_their_deliveries_to_each_webhook() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    hook.answers(&[503, 200]);
    let subscription = subscribe(&app, &hook.url, &["flow.started"]).await;
    let _working = notifier(&app, settings(&[]));
    let first = app.start_answer("doc-1").await;
    waiting(&app, &subscription, "dead", 1).await;
    let second = app.start_answer("doc-2").await;
    waiting(&app, &subscription, "delivered", 1).await;
    let _ = (hook.next().await, hook.next().await);
    for (started, state, status) in [(&first, "dead", 503), (&second, "delivered", 200)] {
        let events = of_events(&app, started).await;
        let deliveries = events[0]["webhooks"].as_array().expect("deliveries");
        assert_eq!(deliveries.len(), 1, "{deliveries:?}");
        let one = &deliveries[0];
        let expected = (
            &subscription["id"],
            &json!(hook.url),
            &json!(state),
            &json!(status),
        );
        assert_eq!(
            (
                &one["subscriptionId"],
                &one["url"],
                &one["state"],
                &one["lastStatus"]
            ),
            expected
        );
        assert_eq!(one["lastError"].is_string(), state == "dead");
        // The subscription has no other type.
        assert!(events[1..].iter().all(|one| one["webhooks"] == json!([])));
    }
    // Only operators may see this.
    let path = "/v1/events?include=deliveries";
    app.get("author", path)
        .await
        .problem(403, "permission_missing");
    let plain = app.get("admin", "/v1/events").await.expect(200);
    assert!(plain.get("deliveries").is_none());
    app.get("admin", "/v1/events?include=nothing")
        .await
        .problem(400, "malformed_request");
}

/// Waits until a statement waits for a lock.
async fn awaited(app: &TestApp) {
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let awaited = async {
        while count(&app.database, waiting).await == 0 {
            crate::support::pause().await;
        }
    };
    within(awaited).await;
}

async fn begun(app: &TestApp, change: &'static str) -> Transaction<'static, Postgres> {
    let mut transaction = app.database.admin_pool().begin().await.expect("one");
    let changed = sqlx::raw_sql(change).execute(&mut *transaction).await;
    changed.expect(change);
    transaction
}

/// A delivery that survives the deletion of its subscription would stay pending for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_of_a_deleted_subscription_is_not_sent() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    for what in ["test", "retry"] {
        let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
        let working = notifier(&app, settings(&[]));
        app.started(&format!("doc-{what}")).await;
        hook.next().await;
        let delivered = waiting(&app, &subscription, "delivered", 1).await.remove(0);
        drop(working);
        let path = match what {
            "test" => format!(
                "/v1/subscriptions/{}/test",
                subscription["id"].as_str().expect("an id")
            ),
            _ => path(&subscription, &delivered, "retry"),
        };
        let deletion = begun(&app, "delete from subscription").await;
        let request = app.post("admin", &path, json!({}));
        let committed = async {
            awaited(&app).await;
            deletion.commit().await.expect("committed");
        };
        let (answer, ()) = tokio::join!(request, committed);
        answer.problem(404, "not_found");
        let left = "select count(*) from webhook_delivery where state <> 'delivered'";
        assert_eq!(count(&app.database, left).await, 0, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_can_be_deleted_while_a_failure_is_stored() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    hook.answers(&[500]);
    let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
    let _working = notifier(&app, settings(&[Duration::from_hours(1)]));
    app.started("doc-1").await;
    hook.next().await;
    waiting(&app, &subscription, "pending", 1).await;
    let mut failure = begun(&app, "update webhook_delivery set attempts = attempts + 1").await;
    let storing = async {
        awaited(&app).await;
        let counted = sqlx::query("update subscription set failures = failures + 1");
        counted.execute(&mut *failure).await.expect("no deadlock");
        failure.commit().await.expect("committed");
    };
    let id = subscription["id"].as_str().expect("an id");
    let path = format!("/v1/subscriptions/{id}");
    let host = app.host();
    let deletion = host.send("admin", "DELETE", &path, &[], None);
    let (deleted, ()) = within(async { tokio::join!(deletion, storing) }).await;
    deleted.expect(204);
    assert_eq!(
        count(&app.database, "select count(*) from webhook_delivery").await,
        0
    );
}
