//! Webhooks: messages that receivers can verify, failed deliveries, and forbidden addresses.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wrkflw_core::cloudevent::Naming;
use wrkflw_core::subscription::AllowedAddresses;
use wrkflw_relay::webhook::Notifier;
use wrkflw_relay::webhook::settings::Settings;
use wrkflw_runtime::clock::Clock;
use wrkflw_store::deliveries::{self, DeliveryQueue};

use super::notifications::{notifier, notifier_of, settings};
use super::*;
use crate::support::receiver::{Received, Receiver};

const TIMEOUT: Duration = Duration::from_secs(20);
const AT_ONCE: Duration = Duration::ZERO;

pub(super) async fn subscribe(app: &TestApp, url: &str, types: &[&str]) -> Value {
    let body = json!({ "url": url, "types": types });
    app.post("admin", "/v1/subscriptions", body)
        .await
        .expect(201)
}

fn path(subscription: &Value, rest: &str) -> String {
    let id = subscription["id"].as_str().expect("an id");
    format!("/v1/subscriptions/{id}{rest}")
}

pub(super) async fn deliveries(app: &TestApp, subscription: &Value, query: &str) -> Vec<Value> {
    let path = path(subscription, &format!("/deliveries{query}"));
    let page = app.get("admin", &path).await.expect(200);
    page["data"].as_array().expect("data").clone()
}

/// The deliveries in a state, once there are this many.
pub(super) async fn waiting(
    app: &TestApp,
    subscription: &Value,
    state: &str,
    count: usize,
) -> Vec<Value> {
    let query = format!("?limit=100&state={state}");
    let looking = async {
        loop {
            let found = deliveries(app, subscription, &query).await;
            if found.len() == count {
                return found;
            }
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, looking)
        .await
        .unwrap_or_else(|_| panic!("no {count} {state} deliveries"))
}

fn types(received: &[Received]) -> BTreeSet<&str> {
    received
        .iter()
        .map(|one| one.body["type"].as_str().expect("a type"))
        .collect()
}

#[tokio::test]
async fn events_and_notifications_are_signed() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    let subscription = subscribe(&app, &hook.url, &["task.created", "notification.*"]).await;
    let secret = subscription["secret"].as_str().expect("a secret");
    let _working = notifier(&app, settings(&[]));
    let started = app.started("doc-1").await;
    let received = [hook.next().await, hook.next().await];
    assert_eq!(
        types(&received),
        BTreeSet::from([
            "dev.wrkflw.notification.assignment_created",
            "dev.wrkflw.task.created"
        ])
    );
    let now = app.engine.clock().now().as_second();
    for one in &received {
        assert!(one.is_signed_with(secret));
        assert!(!one.is_signed_with("whsec_b3RoZXI="));
        assert_eq!(one.id(), one.body["id"]);
        assert_eq!(
            one.header("content-type"),
            "application/cloudevents+json; charset=UTF-8"
        );
        let sent: i64 = one.header("webhook-timestamp").parse().expect("seconds");
        assert!((now - 60..=now).contains(&sent));
        assert_eq!(one.body["subject"], started["id"]);
    }
    waiting(&app, &subscription, "pending", 0).await;
    let notification = received
        .iter()
        .find(|one| one.body["data"]["kind"] == "ASSIGNMENT_CREATED");
    let notification = notification.expect("a notification");
    let expected = json!({ "type": "group", "id": "reviewers" });
    assert_eq!(notification.body["data"]["recipient"], expected);
    assert_eq!(notification.body["data"]["taskId"], task_of(&started));
    assert_eq!(notification.body["data"]["instanceTitle"], "A plan");
    let listed = app.get("reviewer", "/v1/notifications").await.expect(200);
    assert_eq!(listed["data"][0]["id"], notification.id());
    assert!(listed["data"][0]["sentAt"].is_string(), "{listed}");
    // The schema is at the address that the event contains.
    let schema = notification.body["dataschema"].as_str().expect("a URL");
    let schema = schema.strip_prefix("http://localhost:8080").expect("ours");
    app.get("", schema).await.expect(200);
}

/// The event behind the notification is not sent instead, because the receiver did not subscribe to it.
#[tokio::test]
async fn an_expired_notification_is_not_sent() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    hook.answers(&[500]);
    let subscription = subscribe(&app, &hook.url, &["notification.*"]).await;
    let _working = notifier(&app, settings(&[]));
    app.started("doc-1").await;
    hook.next().await;
    waiting(&app, &subscription, "dead", 1).await;
    sql(&app, "delete from notification").await;
    let retry = path(&subscription, "/deliveries/retry");
    app.post("admin", &retry, json!({})).await.expect(200);
    let again = async {
        loop {
            let dead = waiting(&app, &subscription, "dead", 1).await;
            if dead[0]["lastError"] == "the notification has expired" {
                return;
            }
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, again).await.expect("in time");
    assert!(hook.rest().is_empty());
    // The receiver has refused nothing since the retry.
    let failures: i32 = sqlx::query_scalar("select failures from subscription")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a subscription");
    assert_eq!(failures, 0);
}

#[tokio::test]
async fn a_refused_message_is_sent_again_under_the_same_id() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    hook.answers(&[500, 302]);
    let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
    let _working = notifier(&app, settings(&[AT_ONCE, AT_ONCE]));
    app.started("doc-1").await;
    let received = [hook.next().await, hook.next().await, hook.next().await];
    assert_eq!(received[0].id(), received[2].id());
    assert_eq!(received[0].body, received[2].body);
    assert_eq!(received[1].id(), received[2].id());
    let delivered = waiting(&app, &subscription, "delivered", 1).await;
    assert_eq!(
        (&delivered[0]["attempts"], &delivered[0]["lastStatus"]),
        (&json!(3), &json!(200))
    );
    assert_eq!(deliveries(&app, &subscription, "").await, delivered);
    assert!(hook.rest().is_empty());
}

#[tokio::test]
async fn a_message_that_is_never_accepted_is_kept_until_a_retry() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    hook.answers(&[500, 503]);
    let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
    let _working = notifier(&app, settings(&[AT_ONCE]));
    app.started("doc-1").await;
    let dead = waiting(&app, &subscription, "dead", 1).await;
    assert_eq!(
        (&dead[0]["attempts"], &dead[0]["lastStatus"]),
        (&json!(2), &json!(503))
    );
    assert_eq!(
        dead[0]["lastError"],
        "the receiver answered 503; only 2xx accepts"
    );
    let failed = [hook.next().await, hook.next().await];
    assert!(hook.rest().is_empty());
    let shown = app.get("admin", &path(&subscription, "")).await.expect(200);
    assert_eq!(
        (&shown["failures"], &shown["active"]),
        (&json!(1), &json!(true))
    );

    let retry = path(&subscription, "/deliveries/retry");
    let retried = app.post("admin", &retry, json!({})).await.expect(200);
    assert_eq!(retried, json!({ "retried": 1, "more": false }));
    assert_eq!(hook.next().await.id(), failed[0].id());
    waiting(&app, &subscription, "pending", 0).await;
    waiting(&app, &subscription, "dead", 0).await;
    let retried = app.post("admin", &retry, json!({})).await.expect(200);
    assert_eq!(retried, json!({ "retried": 0, "more": false }));
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_not_called_any_more() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    hook.answers(&[410]);
    let gone = subscribe(&app, &hook.url, &["task.created"]).await;
    let _working = notifier(&app, settings(&[AT_ONCE]));
    app.started("doc-1").await;
    let dead = waiting(&app, &gone, "dead", 1).await;
    assert_eq!(
        (&dead[0]["attempts"], &dead[0]["lastStatus"]),
        (&json!(1), &json!(410))
    );
    let shown = app.get("admin", &path(&gone, "")).await.expect(200);
    assert_eq!(
        (&shown["active"], &shown["disabledReason"]),
        (&json!(false), &json!("the receiver answered 410 Gone"))
    );
    hook.next().await;

    // The same holds for a receiver that accepted nothing many times. Later events make no deliveries for the other one.
    let subscribed = subscribe(&app, &hook.url, &["task.created"]).await;
    sql(&app, "update subscription set failures = 19 where active").await;
    hook.answers(&[500, 500]);
    app.started("doc-2").await;
    waiting(&app, &subscribed, "dead", 1).await;
    let shown = app.get("admin", &path(&subscribed, "")).await.expect(200);
    assert_eq!(
        (&shown["active"], &shown["failures"]),
        (&json!(false), &json!(20))
    );
    let reason = shown["disabledReason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("given up 20 deliveries in a row"),
        "{reason}"
    );
    assert_eq!(deliveries(&app, &gone, "").await.len(), 1);

    app.post("admin", &path(&subscribed, "/deliveries/retry"), json!({}))
        .await
        .expect(200);
    waiting(&app, &subscribed, "dead", 0).await;
    waiting(&app, &subscribed, "pending", 0).await;
    let shown = app.get("admin", &path(&subscribed, "")).await.expect(200);
    assert_eq!(
        (
            &shown["active"],
            &shown["failures"],
            &shown["disabledReason"]
        ),
        (&json!(true), &json!(0), &Value::Null)
    );
}

/// A notifier with a stopped clock.
fn frozen_at(app: &TestApp, milliseconds: i64) -> JoinSet<()> {
    let clock = Clock::Manual(Arc::new(AtomicI64::new(milliseconds)));
    let store = app.store().clone();
    let notifier = Notifier::new(store, clock, Naming::default(), settings(&[AT_ONCE]));
    let mut tasks = JoinSet::new();
    let commits = watch::channel(0).1;
    tasks.spawn(
        notifier
            .expect("settings")
            .run(CancellationToken::new(), commits),
    );
    tasks
}

#[tokio::test]
async fn a_delivery_of_a_host_that_dies_is_not_lost() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
    app.started("doc-1").await;
    let pending = "insert into webhook_delivery (tenant_id, subscription_id, message_id, notifies, instance_id, seq, created_at, due_at)
        select e.tenant_id, s.id, e.id, false, e.stream_id, e.seq, e.occurred_at, e.occurred_at
        from audit_entry e join subscription s using (tenant_id) where e.type = 'TASK_CREATED'";
    sql(&app, pending).await;
    sql(
        &app,
        "insert into notifier_cursor select id, 1, '9000000000', 0, 'epoch' from tenant",
    )
    .await;
    let (store, now) = (app.store(), app.engine.clock().now());
    let lease = now + Duration::from_secs(30);
    let queues = async |at| {
        let queues = deliveries::queues(store, at, DeliveryQueue::FIRST, 10, 4).await;
        queues.expect("queues")
    };
    let due = queues(now).await;
    assert_eq!(due.iter().map(|(_, due)| *due).collect::<Vec<_>>(), [1]);
    let claimed = deliveries::claim(store, now, lease, &due).await;
    let claimed = claimed.expect("claims");
    assert_eq!(claimed.len(), 1);
    let before = lease - Duration::from_millis(1);
    assert_eq!(queues(before).await, [(due[0].0, 0)]);
    let again = deliveries::claim(store, before, lease, &due).await;
    let again = again.expect("claims");
    assert!(again.is_empty(), "a delivery has one lease at a time");

    let _working = frozen_at(&app, lease.as_millisecond());
    assert_eq!(hook.next().await.id(), claimed[0].message.to_string());
    waiting(&app, &subscription, "pending", 0).await;
    assert!(hook.rest().is_empty());
}

#[tokio::test]
async fn two_notifiers_send_each_message_once() {
    const INSTANCES: usize = 10;
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    let subscription = subscribe(&app, &hook.url, &["*"]).await;
    let (_, other) = app.beside_with_engine(app.database.url(), TIMEOUT).await;
    let working = [
        notifier(&app, settings(&[])),
        notifier_of(&app, &other, settings(&[])),
    ];
    let mut events = BTreeSet::new();
    for number in 0..INSTANCES {
        let started = app.start_answer(&format!("doc-{number}")).await;
        let ids = started["events"].as_array().expect("events").iter();
        events.extend(ids.map(|event| event["id"].as_str().expect("an id").to_owned()));
    }
    let mut received = BTreeSet::new();
    while received.len() < events.len() + INSTANCES {
        let one = hook.next().await;
        assert!(
            received.insert(one.id().to_owned()),
            "{} came twice",
            one.id()
        );
    }
    assert!(events.is_subset(&received));
    waiting(&app, &subscription, "pending", 0).await;
    assert!(hook.rest().is_empty());
    // Both stop when asked.
    for mut one in working {
        one.cancel.cancel();
        let stopping = one.tasks.join_next();
        tokio::time::timeout(TIMEOUT, stopping)
            .await
            .expect("an end");
    }
}

#[tokio::test]
async fn subscribers_get_the_chosen_types_and_no_earlier_events() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    app.started("doc-1").await;
    let others = json!({ "url": hook.url, "types": ["*"], "definitionKey": "another-flow" });
    let others = app
        .post("admin", "/v1/subscriptions", others)
        .await
        .expect(201);
    let deleted = subscribe(&app, &hook.url, &["*"]).await;
    let delete = path(&deleted, "");
    app.host()
        .send("admin", "DELETE", &delete, &[], None)
        .await
        .expect(204);
    app.get("admin", &delete).await.problem(404, "not_found");
    let subscription =
        json!({ "url": hook.url, "types": ["flow.started"], "definitionKey": "document-approval" });
    let subscription = app
        .post("admin", "/v1/subscriptions", subscription)
        .await
        .expect(201);
    let second = app.started("doc-2").await;
    let _working = notifier(&app, settings(&[]));
    assert_eq!(hook.next().await.body["subject"], second["id"]);
    waiting(&app, &subscription, "pending", 0).await;
    assert!(hook.rest().is_empty());
    assert_eq!(deliveries(&app, &others, "").await, [Value::Null; 0]);
    let listed = app.get("admin", "/v1/subscriptions").await.expect(200);
    let ids: Vec<_> = listed["data"]
        .as_array()
        .expect("data")
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, [&subscription["id"], &others["id"]]);
    let entries = "select count(*) from audit_entry where stream_kind = 'operation' and type like 'SUBSCRIPTION_%'";
    let count: i64 = sqlx::query_scalar(entries)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(count, 4, "three were made and one deleted");
}

#[tokio::test]
async fn webhooks_call_only_permitted_addresses() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    let unencrypted = subscribe(&app, &hook.url, &["task.created"]).await;
    // The name looks public, but resolves to a private address.
    let port = hook.url.rsplit(':').next().expect("a port");
    let by_name = subscribe(
        &app,
        &format!("https://localhost:{port}"),
        &["task.created"],
    )
    .await;
    let strict = Settings {
        reach: AllowedAddresses::Public,
        ..settings(&[])
    };
    let _working = notifier(&app, strict);
    app.started("doc-1").await;
    for (subscription, reason) in [
        (&unencrypted, "the URL is not https"),
        (&by_name, "localhost has no address that webhooks may call"),
    ] {
        let dead = waiting(&app, subscription, "dead", 1).await;
        assert_eq!(dead[0]["lastError"], reason);
    }
    assert!(hook.rest().is_empty());
}

#[tokio::test]
async fn invalid_subscriptions_are_refused() {
    let app = TestApp::start().await;
    let post = async |user, body: Value| app.post(user, "/v1/subscriptions", body).await;
    let long = format!("https://example.org/{}", "x".repeat(2_000));
    for (body, pointer) in [
        (json!({ "url": "example.org", "types": ["*"] }), "/url"),
        (
            json!({ "url": "ftp://example.org/", "types": ["*"] }),
            "/url",
        ),
        (
            json!({ "url": "https://ada:x@example.org/", "types": ["*"] }),
            "/url",
        ),
        (
            json!({ "url": "http://93.184.215.14/", "types": ["*"] }),
            "/url",
        ),
        (json!({ "url": long, "types": ["*"] }), "/url"),
        (
            json!({ "url": "https://example.org/", "types": [] }),
            "/types/0",
        ),
        (
            json!({ "url": "https://example.org/", "types": ["task.*", "tsk.*"] }),
            "/types/1",
        ),
        (
            json!({ "url": "https://example.org/", "types": ["*"], "definitionKey": "" }),
            "/definitionKey",
        ),
        (json!({ "url": "https://example.org/" }), "/types"),
    ] {
        let problem = post("admin", body).await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    let sound = json!({ "url": "https://example.org/hook", "types": ["task.*"] });
    post("author", sound.clone())
        .await
        .problem(403, "permission_missing");
    let subscription = post("admin", sound).await.expect(201);
    let secret = subscription["secret"].as_str().expect("a secret");
    for path in ["/v1/subscriptions".to_owned(), path(&subscription, "")] {
        let shown = app.get("admin", &path).await;
        assert!(
            !shown.text.contains(secret) && !shown.text.contains("whsec_"),
            "{}",
            shown.text
        );
        shown.expect(200);
    }
    let mut reader = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a transaction");
    sqlx::raw_sql("set local role wrkflw_reader")
        .execute(&mut *reader)
        .await
        .expect("a role");
    let peek = sqlx::query("select secret from subscription")
        .execute(&mut *reader)
        .await;
    let error = peek.expect_err("secrets are the writer's");
    let code = error
        .as_database_error()
        .and_then(|error| error.code().map(String::from));
    assert_eq!(code.as_deref(), Some("42501"));
}
