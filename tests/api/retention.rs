//! Retention uses the clock of the database, for the time of a row and for the present time, because clocks of hosts may jump.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use jiff::SignedDuration;
use wrkflw_runtime::clock::Clock;

use super::notifications::{notifier, notifier_of, settings};
use super::webhooks::{subscribe, waiting};
use super::*;
use crate::audit::everything;
use crate::support::app::Timers;
use crate::support::plug::count;
use crate::support::receiver::Receiver;
use crate::support::until_so;

const ITEMS: &str = "select count(*) from bulk_item";

/// A clock that is this many days ahead.
fn days(days: i64) -> Clock {
    let time = Clock::System.now() + SignedDuration::from_hours(24 * days);
    Clock::Manual(Arc::new(AtomicI64::new(time.as_millisecond())))
}

/// Sweeps with a host whose clock is far ahead, and counts the remaining rows.
async fn left(app: &TestApp, sql: &'static str) -> i64 {
    let ahead = app.engine_with_clock(days(100)).await;
    ahead.purge().await.expect("a sweep");
    count(&app.database, sql).await
}

/// Makes all rows of a table older by this many days.
async fn aged(app: &TestApp, table: &str, column: &str, days: i64) {
    let older = format!("update {table} set {column} = {column} - interval '{days} days'");
    let older = sqlx::raw_sql(AssertSqlSafe(older)).execute(app.database.admin_pool());
    older.await.expect("older");
}

async fn until(app: &TestApp, sql: &'static str, wanted: i64) {
    let look = async || (sql, count(&app.database, sql).await);
    until_so(look, |(_, found): &(&'static str, i64)| *found == wanted).await;
}

#[tokio::test]
async fn notifications_are_kept_for_ninety_days_of_the_database() {
    const ALL: &str = "select count(*) from notification";
    let app = TestApp::start().await;
    let _working = notifier(&app, settings(&[]));
    let behind = app.beside_with_clock(days(-100)).await;
    let body = Some(approval_start("doc-1"));
    let started = behind.send("author", "POST", "/v1/instances", &[], body);
    started.await.expect(201);
    until(&app, ALL, 1).await;
    assert_eq!(left(&app, ALL).await, 1);
    aged(&app, "notification", "made_at", 89).await;
    assert_eq!(left(&app, ALL).await, 1);
    aged(&app, "notification", "made_at", 2).await;
    assert_eq!(left(&app, ALL).await, 0);
}

#[tokio::test]
async fn dead_deliveries_are_kept_for_thirty_days_of_the_database() {
    const DEAD: &str = "select count(*) from webhook_delivery where state = 'dead'";
    let app = TestApp::start().await;
    let hook = Receiver::start().await;
    hook.answers(&[500]);
    let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
    let behind = app.engine_with_clock(days(-100)).await;
    let _working = notifier_of(&app, &behind, settings(&[]));
    app.started("doc-1").await;
    waiting(&app, &subscription, "dead", 1).await;
    assert_eq!(left(&app, DEAD).await, 1);
    aged(&app, "webhook_delivery", "due_at", 29).await;
    assert_eq!(left(&app, DEAD).await, 1);
    aged(&app, "webhook_delivery", "due_at", 2).await;
    assert_eq!(left(&app, DEAD).await, 0);
}

/// Each attempt of a delivery, too, by its own time.
#[tokio::test]
async fn deliveries_and_their_attempts_are_kept_for_thirty_days_of_the_database() {
    const DELIVERED: &str = "select count(*) from webhook_delivery where state = 'delivered'";
    const ATTEMPTS: &str = "select count(*) from webhook_attempt";
    let app = TestApp::start().await;
    let hook = Receiver::start().await;
    let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
    let behind = app.engine_with_clock(days(-100)).await;
    let _working = notifier_of(&app, &behind, settings(&[]));
    app.started("doc-1").await;
    waiting(&app, &subscription, "delivered", 1).await;
    let both = async || (left(&app, ATTEMPTS).await, left(&app, DELIVERED).await);
    assert_eq!(both().await, (1, 1));
    aged(&app, "webhook_attempt", "at", 29).await;
    assert_eq!(both().await, (1, 1));
    aged(&app, "webhook_attempt", "at", 2).await;
    assert_eq!(both().await, (0, 1));
    aged(&app, "webhook_delivery", "due_at", 29).await;
    assert_eq!(both().await, (0, 1));
    aged(&app, "webhook_delivery", "due_at", 2).await;
    assert_eq!(both().await, (0, 0));
}

/// A second version, and an instance of the first.
async fn to_migrate() -> TestApp {
    let app = TestApp::start().await;
    let config = json!({ "reviewers": "approvers" });
    let component = wrkflw::sample::DOCUMENT_APPROVAL;
    let published = app.publish("document-approval", component, &config);
    published.await.expect(201);
    app.started("doc-1").await;
    app
}

/// Migrates all instances to the second version, by a host with this clock.
async fn migrated(app: &TestApp, clock: Clock) {
    let host = app.beside_with_clock(clock.clone()).await;
    let many = json!({ "definitionKey": "document-approval", "fromVersion": 1, "version": 2 });
    let begun = host.send("admin", "POST", "/v1/migrations", &[], Some(many));
    begun.await.expect(201);
    let engine = app.engine_with_clock(clock).await;
    let timers = Timers::start(&engine, Arc::new(engine.clone()));
    let open = "select count(*) from bulk_operation where ended_at is null";
    until(app, open, 0).await;
    timers.stop().await;
}

#[tokio::test]
async fn items_of_operations_are_kept_for_ninety_days_of_the_database() {
    let app = to_migrate().await;
    migrated(&app, days(-100)).await;
    assert_eq!(left(&app, ITEMS).await, 1);
    aged(&app, "bulk_operation", "ended_at", 89).await;
    assert_eq!(left(&app, ITEMS).await, 1);
    aged(&app, "bulk_operation", "ended_at", 2).await;
    assert_eq!(left(&app, ITEMS).await, 0);
    // The operation began as long ago, so its missing items are no finding.
    assert_eq!(everything(&app).await.1, []);
}

#[tokio::test]
async fn items_that_disappear_too_early_are_a_finding() {
    let app = to_migrate().await;
    migrated(&app, days(-88)).await;
    assert_eq!(everything(&app).await.1, []);
    sql(&app, "delete from bulk_item").await;
    let (_, findings) = everything(&app).await;
    let found: Vec<_> = findings
        .iter()
        .map(|finding| (finding.code, finding.detail.split(' ').next()))
        .collect();
    assert_eq!(found, [("operation", Some("bulk_item"))], "{findings:#?}");
}
