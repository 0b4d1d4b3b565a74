//! Notifications: each recipient gets each one once, also if hosts die or work concurrently.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wrkflw_core::cloudevent::Naming;
use wrkflw_core::subscription::AllowedAddresses;
use wrkflw_engine::Engine;
use wrkflw_relay::webhook::Notifier;
use wrkflw_relay::webhook::settings::Settings;
use wrkflw_store::notifier::{self, OnDuplicate, Reading};

use super::webhooks::{deliveries, subscribe, waiting};
use super::*;
use crate::support::receiver::Receiver;
use crate::support::until_so;

/// The longest time for which transactions of other tests on the same server delay the feed.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A notifier that works until it is dropped.
pub(crate) struct Working {
    pub(super) cancel: CancellationToken,
    pub(super) tasks: JoinSet<()>,
}

/// Starts a notifier beside this host.
pub(crate) fn notifier(app: &TestApp, settings: Settings) -> Working {
    notifier_of(app, &app.engine, settings)
}

/// Starts a notifier with the clock of another engine, on the same database.
pub(crate) fn notifier_of(app: &TestApp, engine: &Engine, settings: Settings) -> Working {
    let notifier = Notifier::new(
        app.store().clone(),
        engine.clock().clone(),
        Naming::default(),
        settings,
    );
    let (cancel, mut tasks) = (CancellationToken::new(), JoinSet::new());
    let notifier = notifier.expect("settings");
    tasks.spawn(notifier.run(cancel.clone(), engine.commits()));
    Working { cancel, tasks }
}

/// A sender to receivers on this machine, with one attempt more than there are pauses.
pub(crate) fn settings(pauses: &[Duration]) -> Settings {
    Settings {
        reach: AllowedAddresses::Private,
        pauses: pauses.to_vec(),
        ..Settings::default()
    }
}

async fn page(app: &TestApp, user: &str, query: &str) -> Value {
    app.get(user, &format!("/v1/notifications?{query}"))
        .await
        .expect(200)
}

/// The newest notifications of a person, once there are this many.
async fn notified(app: &TestApp, user: &str, count: usize) -> Vec<Value> {
    let look = async || {
        let page = page(app, user, "limit=100").await;
        let data = page["data"].as_array().expect("data").clone();
        assert!(data.len() <= count, "{data:?}");
        data
    };
    until_so(look, |all: &Vec<Value>| all.len() == count).await
}

fn kinds(all: &[Value]) -> Vec<(&str, &str, &str)> {
    let text = |one: &Value, name: &str| one[name].as_str().expect("text").len();
    all.iter()
        .map(|one| {
            assert!(text(one, "id") == 36 && text(one, "eventId") == 36);
            let member = |name: &str| one[name].as_str().expect("text");
            (member("kind"), member("recipientType"), member("recipient"))
        })
        .collect()
}

#[tokio::test]
async fn candidates_are_notified_of_work_and_requesters_of_the_status() {
    let app = TestApp::start().await;
    let _working = notifier(&app, settings(&[]));
    let started = app.started("doc-1").await;
    let task = task_of(&started);
    let of_group = notified(&app, "reviewer", 1).await;
    assert_eq!(
        kinds(&of_group),
        [("ASSIGNMENT_CREATED", "group", "reviewers")]
    );
    let expected = json!({
        "id": of_group[0]["id"], "eventId": of_group[0]["eventId"], "createdAt": of_group[0]["createdAt"],
        "kind": "ASSIGNMENT_CREATED", "recipientType": "group", "recipient": "reviewers", "instanceId": started["id"],
        "instanceTitle": "A plan", "stateId": started["states"][0]["id"], "taskId": task, "dueAt": null, "sentAt": null,
        "readAt": null, "definitionKey": "document-approval", "definitionVersion": 1, "state": "Submitted",
        "stateTitle": "First review", "priority": 0,
    });
    assert_eq!(of_group[0], expected);
    app.decided("reviewer", &started, json!({ "outcome": "APPROVE" }))
        .await;
    assert_eq!(
        kinds(&notified(&app, "approver", 1).await),
        [("ASSIGNMENT_CREATED", "group", "approvers")]
    );
    // The author is in the group of reviewers, too. A decision that does not end the instance notifies the author of nothing.
    let of_author = notified(&app, "author", 1).await;
    let of_reviewers = ("ASSIGNMENT_CREATED", "group", "reviewers");
    assert_eq!(kinds(&of_author), [of_reviewers]);
    notified(&app, "outsider", 0).await;
    let id = started["id"].as_str().expect("an id");
    for (what, reason) in [
        ("suspend", json!({ "reason": "audit" })),
        ("resume", json!({})),
        ("cancel", json!({ "reason": "withdrawn" })),
    ] {
        let path = format!("/v1/instances/{id}/{what}");
        app.post("admin", &path, reason).await.expect(200);
    }
    let of_author = notified(&app, "author", 4).await;
    let changed = ("STATUS_CHANGED", "user", "author");
    assert_eq!(kinds(&of_author), [changed, changed, changed, of_reviewers]);
    assert_eq!(of_author[0]["taskId"], Value::Null);

    // Former members of a group do not see its notifications any more.
    let member = "/v1/groups/reviewers/members/author";
    app.host()
        .send("admin", "DELETE", member, &[], None)
        .await
        .expect(200);
    notified(&app, "author", 3).await;
}

/// Three instances with two decisions each: one row for each task and one for each end, none for decisions.
#[tokio::test]
async fn a_decision_makes_no_notification() {
    let app = TestApp::start().await;
    let _working = notifier(&app, settings(&[]));
    for entity in ["doc-1", "doc-2", "doc-3"] {
        let mut instance = app.started(entity).await;
        for person in ["reviewer", "approver"] {
            let approve = json!({ "outcome": "APPROVE" });
            instance = app.decided(person, &instance, approve).await;
        }
        assert_eq!(instance["status"], "COMPLETED");
    }
    notified(&app, "author", 3 + 3).await;
    notified(&app, "approver", 3).await;
    let count = sqlx::query_scalar::<_, i64>("select count(*) from notification");
    let count = count.fetch_one(app.database.admin_pool()).await;
    assert_eq!(count.expect("a count"), 3 * (2 + 1));
}

#[tokio::test]
async fn a_mention_notifies_people_who_have_not_muted_it() {
    let app = TestApp::start().await;
    super::people::known(&app, &["dee"]).await;
    let mut hook = Receiver::start().await;
    let subscription = subscribe(&app, &hook.url, &["notification.mention"]).await;
    let _working = notifier(&app, settings(&[]));
    let started = app.started("doc-1").await;
    let comment = format!(
        "/v1/instances/{}/comment",
        started["id"].as_str().expect("an id")
    );
    let preferences = "/v1/me/preferences";
    let none = app.get("approver", preferences).await.expect(200);
    assert_eq!(none["mutedNotifications"], json!([]));
    let muted = || json!({ "mutedNotifications": ["MENTION", "ASSIGNMENT_CREATED"] });
    let kept = app.put("approver", preferences, muted()).await;
    let kept = kept.expect(200);
    assert_eq!(
        kept["mutedNotifications"],
        json!(["ASSIGNMENT_CREATED", "MENTION"])
    );
    let body = json!({ "comment": "Look.", "mentions": ["approver", "dee", "reviewer"] });
    app.post("reviewer", &comment, body).await.expect(200);
    // The webhook is called about one person. All deliveries of a comment are made at once.
    let sent = hook.next().await;
    assert_eq!(sent.body["data"]["recipient"]["id"], "dee");
    waiting(&app, &subscription, "delivered", 1).await;
    assert_eq!(deliveries(&app, &subscription, "").await.len(), 1);
    let mentioned = notified(&app, "dee", 1).await;
    assert_eq!(kinds(&mentioned), [("MENTION", "user", "dee")]);
    // The writer of the comment is not notified, nor a person who muted mentions, nor about work of a group.
    notified(&app, "reviewer", 1).await;
    app.decided("reviewer", &started, json!({ "outcome": "APPROVE" }))
        .await;
    let six = json!({ "mutedNotifications": ["MENTION", "MENTION", "MENTION", "MENTION", "MENTION", "MENTION"] });
    let six = app.put("approver", preferences, six).await;
    let problem = six.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/mutedNotifications");
    let all = json!({ "mutedNotifications": ["MENTION"] });
    app.put("approver", preferences, all).await.expect(200);
    let of_group = notified(&app, "approver", 1).await;
    assert_eq!(
        kinds(&of_group),
        [("ASSIGNMENT_CREATED", "group", "approvers")]
    );
    app.put("approver", preferences, muted()).await.expect(200);
    notified(&app, "approver", 0).await;
    let only = page(&app, "dee", "kind=MENTION").await;
    assert_eq!(only["data"], json!(mentioned));
    let other = page(&app, "dee", "kind=ESCALATION").await;
    assert_eq!(other["data"], json!([]));
}

#[tokio::test]
async fn notifications_are_read_once_by_their_recipients() {
    let app = TestApp::start().await;
    let _working = notifier(&app, settings(&[]));
    for entity in ["doc-1", "doc-2", "doc-3"] {
        app.started(entity).await;
    }
    let all = notified(&app, "reviewer", 3).await;
    let path = |one: &Value| {
        format!(
            "/v1/notifications/{}/read",
            one["id"].as_str().expect("an id")
        )
    };
    app.post("outsider", &path(&all[1]), json!({}))
        .await
        .problem(404, "not_found");
    app.post("reviewer", &path(&all[1]), json!({}))
        .await
        .expect(204);
    app.post("reviewer2", &path(&all[1]), json!({}))
        .await
        .expect(204);
    let unread = page(&app, "reviewer2", "unread=true").await;
    assert_eq!(unread["data"], json!([all[0], all[2]]));
    let seen = notified(&app, "reviewer", 3).await;
    assert!(seen[1]["readAt"].is_string() && seen[0]["readAt"].is_null());

    let first = page(&app, "reviewer", "limit=2").await;
    let next = first["page"]["next"].as_str().expect("a cursor");
    let second = page(&app, "reviewer", &format!("limit=2&after={next}")).await;
    assert_eq!(first["data"], json!(seen[..2]));
    assert_eq!(second["data"], json!(seen[2..]));
    assert_eq!(second["page"]["next"], Value::Null);
}

/// The entries that a notifier would read next, up to a limit. None if there are none, or if another notifier reads them.
pub(super) async fn reading(app: &TestApp, limit: i64) -> Option<Reading> {
    let store = app.store();
    let cursor = notifier::lock_cursor(store, app.engine.clock().now()).await;
    let cursor = cursor.expect("an answer")?;
    Some(cursor.read(limit).await.expect("entries"))
}

#[tokio::test]
async fn another_notifier_continues_after_one_has_died() {
    let app = TestApp::start().await;
    for document in ["doc-1", "doc-2", "doc-3"] {
        app.started(document).await;
    }
    let store = app.store();
    notifier::ensure_cursors(store).await.expect("cursors");
    let taking = async {
        loop {
            match reading(&app, 2).await {
                Some(reading) if reading.unsent.len() == 2 => return reading,
                // Transactions of other tests delay some entries.
                _ => crate::support::pause().await,
            }
        }
    };
    let taken = tokio::time::timeout(TIMEOUT, taking)
        .await
        .expect("two entries, as many as were asked for");
    let second = reading(&app, 2).await;
    assert!(second.is_none(), "a tenant is read by one at a time");
    drop(taken);
    let _working = notifier(&app, settings(&[]));
    notified(&app, "reviewer", 3).await;
}

/// The types of the entries that a notifier would process next, once there are any. Moves the position behind them.
async fn unsent(app: &TestApp) -> Vec<String> {
    let taking = async {
        loop {
            match reading(app, 100).await {
                Some(reading) if !reading.unsent.is_empty() => return reading,
                // Transactions of other tests delay them.
                _ => crate::support::pause().await,
            }
        }
    };
    let reading = tokio::time::timeout(TIMEOUT, taking).await;
    let reading = reading.expect("entries");
    let types = reading.unsent.iter().map(|unsent| &unsent.entry.kind);
    let types = types.cloned().collect();
    let moved = reading
        .finish(&[], &[], app.engine.clock().now(), OnDuplicate::Refused)
        .await;
    moved.expect("the cursor moves");
    types
}

#[tokio::test]
async fn entries_without_notifications_are_read_only_for_subscribers() {
    let app = TestApp::start().await;
    let cursors = notifier::ensure_cursors(app.store()).await;
    cursors.expect("cursors");
    app.started("doc-1").await;
    assert_eq!(unsent(&app).await, ["TASK_CREATED"]);
    let body = json!({ "url": "http://127.0.0.1:1/", "types": ["flow.*"] });
    let subscription = app.post("admin", "/v1/subscriptions", body).await;
    let subscription = subscription.expect(201);
    app.started("doc-2").await;
    let all = ["FLOW_STARTED", "STATE_ENTERED", "TASK_CREATED"];
    assert_eq!(
        unsent(&app).await,
        all,
        "without entries of the time before"
    );
    let path = format!(
        "/v1/subscriptions/{}",
        subscription["id"].as_str().expect("an id")
    );
    let host = app.host();
    let deleted = host.send("admin", "DELETE", &path, &[], None);
    deleted.await.expect(204);
    app.started("doc-3").await;
    assert_eq!(unsent(&app).await, ["TASK_CREATED"]);
}

#[tokio::test]
async fn two_notifiers_notify_everybody_once() {
    const INSTANCES: usize = 12;
    let app = TestApp::start().await;
    let (_, other) = app.beside_with_engine(app.database.url(), TIMEOUT).await;
    let _working = [
        notifier(&app, settings(&[])),
        notifier_of(&app, &other, settings(&[])),
    ];
    for number in 0..INSTANCES {
        let started = app.started(&format!("doc-{number}")).await;
        app.decided("reviewer", &started, json!({ "outcome": "APPROVE" }))
            .await;
    }
    // Each instance notifies its reviewers, including its author, and its approvers.
    let all = notified(&app, "author", INSTANCES).await;
    notified(&app, "approver", INSTANCES).await;
    let pairs: BTreeSet<_> = all
        .iter()
        .map(|one| (one["eventId"].to_string(), one["recipient"].to_string()))
        .collect();
    assert_eq!(pairs.len(), INSTANCES);

    // Reading everything again from the beginning notifies nobody twice. New entries are processed, also if they are read
    // together with known ones.
    sql(
        &app,
        "delete from notification where id = (select id from notification order by id limit 1)",
    )
    .await;
    sql(
        &app,
        "update notifier_cursor set epoch = 0, xid = '0', pos = 0",
    )
    .await;
    let reading = async {
        let behind =
            "select count(*) from audit_entry e, notifier_cursor c where e.event_seq is not null
            and c.tenant_id = e.tenant_id and (c.epoch = 0 or (e.xid, e.pos) > (c.xid, c.pos))";
        while sqlx::query_scalar::<_, i64>(behind)
            .fetch_one(app.database.admin_pool())
            .await
            .expect("a count")
            > 0
        {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, reading)
        .await
        .expect("all is read");
    notified(&app, "author", INSTANCES).await;
    notified(&app, "approver", INSTANCES).await;
}
