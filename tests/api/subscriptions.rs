//! What receivers get while subscriptions and versions change: from which event on, and with which version.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_runtime::clock::Clock;
use wrkflw_store::deliveries::{DeliveryQueue, Refusal, Settlement};

use super::notifications::{notifier, settings};
use super::webhooks::{deliveries, subscribe, waiting};
use super::*;
use crate::support::receiver::Receiver;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Returns once the first attempt of the only delivery has failed.
async fn refused(app: &TestApp, subscription: &Value) {
    let refused = async {
        while deliveries(app, subscription, "").await[0]["attempts"] != 1 {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, refused)
        .await
        .expect("a refusal");
}

/// Clocks of hosts do not matter. The hosts that wrote the events may be hours behind or ahead of the one that stored the
/// subscription.
#[tokio::test]
async fn events_after_a_subscription_are_sent_whatever_the_clocks_of_hosts_show() {
    const HOUR: i64 = 3_600_000;
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    let now = app.engine.clock().now().as_millisecond();
    let at = async |milliseconds| {
        let clock = Clock::Manual(Arc::new(AtomicI64::new(milliseconds)));
        app.beside_with_clock(clock).await
    };
    let start = async |host: &Host, entity: &str| {
        let body = Some(approval_start(entity));
        let answer = host.send("author", "POST", "/v1/instances", &[], body);
        answer.await.started()["id"].clone()
    };
    let (behind, ahead) = (at(now - HOUR).await, at(now + HOUR).await);
    start(&ahead, "doc-1").await;
    let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
    let second = start(&behind, "doc-2").await;
    let _working = notifier(&app, settings(&[]));
    assert_eq!(hook.next().await.body["subject"], second);
    waiting(&app, &subscription, "pending", 0).await;
    assert!(hook.rest().is_empty(), "earlier events are not sent");
}

#[tokio::test]
async fn a_body_has_the_version_of_its_event() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    hook.answers(&[500]);
    let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
    let _working = notifier(&app, settings(&[Duration::from_hours(1)]));
    let started = app.started("doc-1").await;
    let first = hook.next().await;
    assert_eq!(first.body["data"]["definitionVersion"], 1);
    waiting(&app, &subscription, "pending", 1).await;
    let config = json!({ "rejectionNeedsComment": false });
    let published = app.publish("document-approval", DOCUMENT_APPROVAL, &config);
    let version = published.await.expect(201)["version"].clone();
    let path = format!(
        "/v1/instances/{}/migrate",
        started["id"].as_str().expect("an id")
    );
    let migrated = app
        .post("admin", &path, json!({ "version": version }))
        .await;
    assert_eq!(migrated.expect(200)["instance"]["definitionVersion"], 2);
    refused(&app, &subscription).await;
    sql(&app, "update webhook_delivery set due_at = created_at").await;
    // The tasks that the migration offered anew may come first.
    let again = loop {
        let next = hook.next().await;
        if next.body["id"] == first.body["id"] {
            break next;
        }
    };
    assert_eq!(again.body, first.body);
}

#[tokio::test]
async fn events_during_a_disabled_subscription_are_never_sent() {
    let app = TestApp::start().await;
    let (mut hook, mut other) = (Receiver::start().await, Receiver::start().await);
    hook.answers(&[410]);
    let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
    subscribe(&app, &other.url, &["task.created"]).await;
    let _working = notifier(&app, settings(&[]));
    let first = app.started("doc-1").await;
    for hook in [&mut hook, &mut other] {
        assert_eq!(hook.next().await.body["subject"], first["id"]);
    }
    waiting(&app, &subscription, "dead", 1).await;
    app.started("doc-2").await;
    // The entries are read for all subscriptions at once.
    other.next().await;
    enable(&app, &subscription).await;
    assert_eq!(hook.next().await.body["subject"], first["id"]);
    let third = app.started("doc-3").await;
    assert_eq!(hook.next().await.body["subject"], third["id"]);
    assert_eq!(deliveries(&app, &subscription, "").await.len(), 2);
}

/// Makes the dead deliveries due again, too.
async fn enable(app: &TestApp, subscription: &Value) {
    let id = subscription["id"].as_str().expect("an id");
    let retry = format!("/v1/subscriptions/{id}/deliveries/retry");
    app.post("admin", &retry, json!({})).await.expect(200);
}

/// The receiver answers the only pending delivery with 410. No notifier runs.
async fn disable(app: &TestApp) {
    let now = app.engine.clock().now() + Duration::from_hours(2);
    let store = app.store();
    let queues = wrkflw_store::deliveries::queues(store, now, DeliveryQueue::FIRST, 1, 1);
    let queues = queues.await.expect("queues");
    let lease_end = now + Duration::from_mins(1);
    let claimed = wrkflw_store::deliveries::claim(store, now, lease_end, &queues).await;
    let claimed = claimed.expect("a claim");
    let gone = Settlement::Gone(Refusal {
        status: Some(410),
        error: "gone".to_owned(),
    });
    let settled = wrkflw_store::deliveries::settle(store, &claimed[0], &gone, Duration::ZERO, now);
    settled.await.expect("a settlement");
}

/// A subscription that was disabled twice. The events are read after the second time, or even after it was enabled again. Only the
/// second time counts, so the event that was committed during the first one is sent.
#[tokio::test]
async fn the_events_of_a_subscription_do_not_depend_on_when_they_are_read() {
    for enabled_first in [false, true] {
        let app = TestApp::start().await;
        let mut hook = Receiver::start().await;
        hook.answers(&[500]);
        let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
        let working = notifier(&app, settings(&[Duration::from_hours(1)]));
        let first = app.started("doc-1").await;
        hook.next().await;
        refused(&app, &subscription).await;
        drop(working);

        let second = app.started("doc-2").await;
        disable(&app).await;
        let third = app.started("doc-3").await;
        enable(&app, &subscription).await;
        let fourth = app.started("doc-4").await;
        disable(&app).await;
        app.started("doc-5").await;
        if enabled_first {
            enable(&app, &subscription).await;
        }
        let _working = notifier(&app, settings(&[]));
        if !enabled_first {
            waiting(&app, &subscription, "dead", 4).await;
            enable(&app, &subscription).await;
        }
        let sixth = app.started("doc-6").await;
        waiting(&app, &subscription, "delivered", 5).await;
        let sent = hook.rest().into_iter();
        let mut sent: Vec<_> = sent.map(|one| one.body["subject"].to_string()).collect();
        sent.sort_unstable();
        let expected = [&first, &second, &third, &fourth, &sixth];
        let mut expected = expected.map(|started| started["id"].to_string());
        expected.sort_unstable();
        assert_eq!(sent, expected, "enabled first: {enabled_first}");
    }
}
