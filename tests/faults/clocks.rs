//! Clocks that jump by hours, forth and back: the audit keeps its order, and tokens are checked against the present time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::body::Body;
use axum::http::Request;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use wrkflw_core::cloudevent::Naming;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::json::Json;
use wrkflw_runtime::clock::{self, Clock};
use wrkflw_server::http::auth::{AuthSettings, Authenticator, Secret};
use wrkflw_server::http::{App, router};
use wrkflw_store::jobs::{self, TenantSlots};
use wrkflw_store::signals::{self, Keeping, NewSignal};

use super::*;
use crate::audit::commands::prove_all;
use crate::support::app::SECRET;
use wrkflw_store::directory::tenants;
use wrkflw_store::reassessments;

const HOUR: i64 = 3_600_000;

#[tokio::test]
async fn audit_entries_never_go_back_in_time() {
    let app = TestApp::start().await;
    let time = Arc::new(AtomicI64::new(app.engine.clock().now().as_millisecond()));
    let jumping = app.beside_with_clock(Clock::Manual(time.clone())).await;
    let start = jumping
        .send(
            "author",
            "POST",
            "/v1/instances",
            &[],
            Some(start_of("doc-1")),
        )
        .await;
    let mut instance = start.started();
    for (user, jump) in [("reviewer", 5 * HOUR), ("approver", -9 * HOUR)] {
        time.fetch_add(jump, Ordering::SeqCst);
        claim(&jumping, user, &instance).await.expect(200);
        // The other host's clock is right, and hours behind the last entry.
        let path = format!("/v1/tasks/{}/decide", task_of(&instance));
        let decided = app.post(user, &path, json!({ "outcome": "APPROVE" })).await;
        instance = decided.expect(200)["instance"].clone();
    }
    assert_eq!(instance["status"], "COMPLETED");
    let times: Vec<i64> = sqlx::query_scalar(
        "select (extract(epoch from occurred_at) * 1000)::bigint from audit_entry where stream_kind = 'instance' order by seq",
    )
    .fetch_all(app.database.admin_pool())
    .await
    .expect("times");
    assert!(times.is_sorted(), "{times:?}");
    assert!(
        times[times.len() - 1] - times[0] >= 5 * HOUR,
        "the clock did jump"
    );
    prove_all(&app).await;
}

#[tokio::test]
async fn a_token_is_checked_against_the_present_time() {
    let app = TestApp::start().await;
    let time = Arc::new(AtomicI64::new(app.engine.clock().now().as_millisecond()));
    let auth = AuthSettings {
        hs256_secret: Some(Secret::new(SECRET)),
        ..AuthSettings::default()
    };
    let authenticator = Authenticator::new(auth, Clock::Manual(time.clone())).expect("sound");
    let service = router(App::new(
        app.engine.clone(),
        Arc::new(authenticator),
        Naming::default(),
        "wrkflw.events".into(),
        Arc::new(String::new),
        CancellationToken::new(),
    ));
    // The token lives for an hour.
    let token = app.host().token("author");
    for (jump, status) in [
        (0, 200),
        (26 * HOUR, 401),
        (-26 * HOUR, 200),
        (-30 * HOUR, 200),
    ] {
        time.fetch_add(jump, Ordering::SeqCst);
        let request = Request::get("/v1/instances")
            .header("host", "localhost")
            .header("authorization", format!("Bearer {token}"))
            .body(Body::empty())
            .expect("a request");
        let response = service.clone().oneshot(request).await.expect("an answer");
        assert_eq!(response.status(), status, "after a jump of {jump} ms");
    }
}

/// How many rows of a table are as this condition says.
async fn count(app: &TestApp, rows: &str) -> i64 {
    let count = format!("select count(*) from {rows}");
    sqlx::query_scalar(AssertSqlSafe(count))
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count")
}

#[tokio::test]
async fn a_clock_that_was_ahead_delays_nothing_later() {
    let app = TestApp::start().await;
    let now = app.engine.clock().now();
    let tomorrow = Arc::new(AtomicI64::new(now.as_millisecond() + 24 * HOUR));
    let ahead = app.beside_with_clock(Clock::Manual(tomorrow)).await;
    let instance = app.started("doc-1").await;
    claim(&ahead, "reviewer", &instance).await.expect(200);
    let group = Some(json!({ "name": "Night shift" }));
    let put = ahead.send("admin", "PUT", "/v1/groups/night", &[], group);
    put.await.expect(200);
    // Jobs that are due at once.
    let task = task_of(&instance);
    let to = json!({ "to": "reviewer2", "reason": "ill" });
    for (person, what, body) in [
        ("reviewer", "delegate", to.clone()),
        ("reviewer2", "resolve", json!({})),
    ] {
        let path = format!("/v1/tasks/{task}/{what}");
        app.post(person, &path, body).await.expect(200);
    }
    let jobs = "job where kind = 'reassess_instance'";
    assert_eq!(count(&app, jobs).await, 1);
    let late = format!("{jobs} and due_at > now() + interval '2 hours'");
    assert_eq!(count(&app, &late).await, 0);
    // Also those of the host that is ahead.
    let other = app.started("doc-2").await;
    for (person, what, body) in [
        ("reviewer", "claim", json!({})),
        ("reviewer", "delegate", to),
        ("reviewer2", "resolve", json!({})),
    ] {
        let path = format!("/v1/tasks/{}/{what}", task_of(&other));
        let sent = ahead.send(person, "POST", &path, &[], Some(body));
        sent.await.expect(200);
    }
    assert_eq!(count(&app, jobs).await, 2);
    assert_eq!(count(&app, &late).await, 0);
    // An absence of an hour is neither over when it begins nor when it is ended.
    let hour = jiff::SignedDuration::from_hours(1);
    let away = json!({ "substitute": "reviewer2", "from": now, "until": now + hour });
    let path = "/v1/people/reviewer/absences";
    let added = app.post("reviewer", path, away).await.expect(201);
    let one = format!("{path}/{}", added["absence"]["id"].as_str().expect("an id"));
    let ended = app.host().send("reviewer", "DELETE", &one, &[], None).await;
    let ended = ended.expect(200);
    assert!(ended["absence"]["endedAt"].is_string(), "{ended}");
    let member = "/v1/groups/night/members/reviewer2";
    app.put("admin", member, json!({})).await.expect(200);
    assert!(count(&app, "reassessment").await > 3);
    let late = "reassessment where due_at > now() + interval '2 hours'";
    assert_eq!(count(&app, late).await, 0);
    prove_all(&app).await;
}

/// The end of a job makes the next one of its instance due, also on hosts whose clocks are right.
#[tokio::test]
async fn a_job_that_a_clock_ahead_has_done_delays_no_other() {
    let app = TestApp::empty().await;
    sql(
        &app,
        "insert into job (tenant_id, id, kind, instance_id, due_at, payload)
        select t.id, gen_random_uuid(), 'deadline', '00000000-0000-0000-0000-000000000007', now() - n * interval '1 minute', '{}'
        from tenant t, generate_series(1, 2) n where t.name = 'default'",
    )
    .await;
    let tomorrow = app.engine.clock().now() + jiff::SignedDuration::from_hours(24);
    let lease = tomorrow + jiff::SignedDuration::from_mins(1);
    let (store, mut slots) = (app.store(), TenantSlots::new(i64::MAX));
    let claimed = jobs::claim(store, tomorrow, lease, 10, &mut slots).await;
    let claimed = claimed.expect("a claim");
    assert_eq!(claimed.len(), 1, "the other waits for it");
    jobs::finish(store, &claimed[0]).await.expect("an end");
    let due = "job where greatest(due_at, lease_until) <= now()";
    assert_eq!(count(&app, due).await, 1);
}

/// The same holds for jobs that no command inserts: of a signal to all, and of a postponed reassessment.
#[tokio::test]
async fn jobs_that_no_command_leaves_are_due_at_once_also_by_a_clock_ahead() {
    let app = TestApp::empty().await;
    let store = app.store();
    let tomorrow = app.engine.clock().now() + jiff::SignedDuration::from_hours(24);
    let tenant = tenants::find(store, "default").await.expect("a query");
    let tenant = tenant.expect("a tenant");
    let signal = NewSignal {
        signal: clock::new_id(),
        correlation: "market".into(),
        id: "open-1".into(),
        trigger: "PAID".into(),
        definition: None,
        input: Json::empty(),
        to_all: true,
        sender_id: "author".into(),
        sender: Json::of(&json!({ "id": "author", "roles": ["user"] })),
    };
    let kept = signals::keep(store, tenant, &signal, tomorrow).await;
    assert!(matches!(kept, Ok(Keeping::Kept(_))), "{kept:?}");
    let instance = InstanceId(clock::new_id());
    let instances = [instance];
    let left = reassessments::leave(store, tenant, &instances, tomorrow);
    left.await.expect("a job");
    assert_eq!(count(&app, "job").await, 2);
    assert_eq!(count(&app, "job where due_at <= now()").await, 2);
}
