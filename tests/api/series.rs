//! Figures over time, the running hosts, and refused commands: what operators see of the service.

use jiff::{SignedDuration, Timestamp};
use wrkflw_core::ids::TenantId;
use wrkflw_engine::presence::Presence;
use wrkflw_runtime::clock::{Clock, new_id};
use wrkflw_store::hosts::NewHost;
use wrkflw_store::series::{self, Counted, Series};

use super::*;
use crate::support::plug::count;
use wrkflw_store::directory::tenants;

/// A presence of a host with this version.
fn described(name: &str, version: &str, started_at: Timestamp) -> NewHost {
    NewHost {
        id: new_id(),
        name: name.to_owned(),
        version: version.to_owned(),
        roles: vec!["api".to_owned()],
        started_at,
    }
}

/// The presence of the app's own host, which only the test renews.
fn presence(app: &TestApp) -> Presence {
    let host = described("first:8080", "1.0.0", Clock::System.now());
    Presence::new(app.store().clone(), host, Some(app.engine.host_counts()))
}

async fn renewed(presence: &Presence) {
    presence.renew().await.expect("the database answers");
}

/// The series of the last hour by name.
async fn series(app: &TestApp, name: &str) -> Value {
    let path = format!("/v1/series?name={name}");
    let answer = app.get("admin", &path).await.expect(200);
    let all = answer["data"].as_array().expect("data");
    assert_eq!(all.len(), 1, "{answer}");
    assert_eq!(all[0]["name"], name);
    all[0].clone()
}

/// The sum or the maximum of a series without labels.
async fn total(app: &TestApp, name: &str) -> u64 {
    let series = series(app, name).await;
    series["lines"][0]["total"].as_u64().expect("a number")
}

/// The refusals of the last hour: each reason with its count, the most frequent first.
async fn reasons(app: &TestApp) -> Vec<(String, u64)> {
    let series = series(app, "refusals").await;
    let lines = series["lines"].as_array().expect("lines").iter();
    let reason = |line: &Value| {
        let label = line["label"].as_str().expect("a reason").to_owned();
        (label, line["total"].as_u64().expect("a number"))
    };
    lines.map(reason).collect()
}

async fn claim(app: &TestApp, user: &str, instance: &Value, query: &str) -> Answer {
    let path = format!("/v1/tasks/{}/claim{query}", task_of(instance));
    app.post(user, &path, json!({})).await
}

#[tokio::test]
async fn figures_count_what_was_done() {
    let app = TestApp::start().await;
    let presence = presence(&app);
    let first = app.started("doc-1").await;
    app.started("doc-2").await;
    for _ in 0..2 {
        let own = claim(&app, "author", &first, "").await;
        assert_eq!(own.problem(403, "forbidden")["reason"], "own_request");
    }
    let dry = claim(&app, "author", &first, "?dryRun=true").await;
    dry.problem(403, "forbidden");
    let approve = json!({ "outcome": "APPROVE" });
    app.decided("reviewer", &first, approve).await;
    let late = claim(&app, "reviewer2", &first, "").await;
    late.problem(409, "task_taken");
    assert_eq!(total(&app, "starts").await, 0, "a command writes no figure");
    renewed(&presence).await;
    assert_eq!(total(&app, "starts").await, 2);
    assert_eq!(total(&app, "decisions").await, 1);
    let expected = [("own_request".to_owned(), 2), ("task_taken".to_owned(), 1)];
    assert_eq!(reasons(&app).await, expected);
    renewed(&presence).await;
    assert_eq!(total(&app, "starts").await, 2, "nothing is counted twice");
    // Only commands whose caller lacked a permission are stored.
    let kept = app.get("admin", "/v1/refusals").await.expect(200);
    let kept = kept["data"].as_array().expect("data");
    assert_eq!(kept.len(), 2, "{kept:?}");
    let newest = &kept[0];
    assert_eq!(
        (&newest["actor"], &newest["action"], &newest["reason"]),
        (&json!("author"), &json!("claim"), &json!("own_request"))
    );
    assert_eq!(newest["instanceId"], first["id"], "the task's instance");
    assert!(newest["id"].as_str() > kept[1]["id"].as_str(), "{kept:?}");
}

/// In this way, the console learns whether a form was sent before.
#[tokio::test]
async fn a_lookup_of_a_key_is_no_refusal_but_a_missing_permission_is() {
    let app = TestApp::start().await;
    let presence = presence(&app);
    let (host, first) = (app.host(), app.started("doc-1").await);
    let claim = format!("/v1/tasks/{}/claim", task_of(&first));
    let post = async |path: &str, headers: &[(&str, &str)]| {
        let body = Some(json!({}));
        host.send("reviewer", "POST", path, headers, body).await
    };
    let (key, none) = (("idempotency-key", "k"), ("if-match", "\"0\""));
    let answer = post(&claim, &[key, none]).await;
    answer.problem(412, "stale_revision");
    post(&claim, &[key]).await.expect(200);
    let answer = post(&claim, &[key, none]).await;
    answer.problem(422, "idempotency_key_reused");
    renewed(&presence).await;
    let counted = reasons(&app).await;
    assert!(counted.is_empty(), "{counted:?}");
    let stale = post(&claim, &[("if-match", "\"1\"")]).await;
    stale.problem(412, "stale_revision");
    let id = first["id"].as_str().expect("an id");
    let resume = format!("/v1/instances/{id}/resume");
    let forbidden = post(&resume, &[none]).await;
    forbidden.problem(403, "permission_missing");
    renewed(&presence).await;
    let mut counted = reasons(&app).await;
    counted.sort();
    let expected = ["permission_missing", "stale_revision"].map(|reason| (reason.to_owned(), 1));
    assert_eq!(counted, expected);
    let kept = app.get("admin", "/v1/refusals").await.expect(200);
    assert_eq!(kept["data"].as_array().map(Vec::len), Some(1), "{kept}");
}

#[tokio::test]
async fn figures_of_hosts_add_up_and_failed_writes_are_repeated() {
    let app = TestApp::start().await;
    let (host, engine) = app
        .beside_with_engine(app.database.url(), std::time::Duration::from_secs(20))
        .await;
    let other = described("second:8080", "1.0.0", Clock::System.now());
    let other = Presence::new(app.store().clone(), other, Some(engine.host_counts()));
    app.started("doc-1").await;
    for entity in ["doc-2", "doc-3"] {
        let body = Some(approval_start(entity));
        let started = host.send("author", "POST", "/v1/instances", &[], body);
        started.await.expect(201);
    }
    renewed(&presence(&app)).await;
    assert_eq!(total(&app, "starts").await, 1);
    sql(&app, "revoke insert on series_point from wrkflw_writer").await;
    other.renew().await.expect_err("no grant");
    sql(&app, "grant insert on series_point to wrkflw_writer").await;
    renewed(&other).await;
    assert_eq!(total(&app, "starts").await, 3);
}

#[tokio::test]
async fn a_host_that_stops_writes_its_counts() {
    let app = TestApp::start().await;
    let presence = presence(&app);
    renewed(&presence).await;
    app.started("doc-1").await;
    presence.leave().await.expect("the database answers");
    assert_eq!(total(&app, "starts").await, 1);
    let hosts = app.get("admin", "/v1/hosts").await.expect(200);
    assert_eq!(hosts["data"], json!([]), "{hosts}");
}

#[tokio::test]
async fn hosts_are_listed_with_their_versions_until_they_expire() {
    let app = TestApp::empty().await;
    let started = Clock::System.now();
    let old = described("old:8080", "0.9.0", started - SignedDuration::from_mins(1));
    let new = described("new:8080", "1.0.0", started);
    let hosts = [old, new].map(|host| Presence::new(app.store().clone(), host, None));
    for host in &hosts {
        renewed(host).await;
    }
    let listed = app.get("admin", "/v1/hosts").await.expect(200);
    let names: Vec<_> = listed["data"].as_array().expect("data").iter().collect();
    assert_eq!(names.len(), 2, "{listed}");
    assert_eq!(
        (&names[0]["name"], &names[1]["name"], &names[0]["roles"]),
        (&json!("old:8080"), &json!("new:8080"), &json!(["api"]))
    );
    assert_eq!(listed["versions"], json!(["0.9.0", "1.0.0"]));
    let age = "update host set seen_at = seen_at - interval '31 seconds' where version = '0.9.0'";
    sql(&app, age).await;
    let listed = app.get("admin", "/v1/hosts").await.expect(200);
    assert_eq!(listed["versions"], json!(["1.0.0"]), "{listed}");
    app.engine.purge().await.expect("a sweep");
    let rows = "select count(*) from host";
    assert_eq!(count(&app.database, rows).await, 1, "the sweep deletes it");
    renewed(&hosts[0]).await;
    let listed = app.get("admin", "/v1/hosts").await.expect(200);
    assert_eq!(
        listed["data"][0]["name"], "old:8080",
        "the host was only slow"
    );
}

#[tokio::test]
async fn one_host_measures_the_backlog() {
    let app = TestApp::start().await;
    let now = Clock::System.now();
    let hosts = [now, now + SignedDuration::from_mins(1)].map(|started_at| {
        let host = described("one:8080", "1.0.0", started_at);
        Presence::new(app.store().clone(), host, None)
    });
    app.started("doc-1").await;
    sql(
        &app,
        "insert into job (tenant_id, id, kind, instance_id, due_at, payload, attempts, last_error)
         select tenant_id, id, 'deadline', id, now() + interval '1 day', '{}', 4, 'no' from instance;
         insert into webhook_delivery (tenant_id, subscription_id, message_id, notifies, instance_id, seq, created_at, due_at)
         select tenant_id, id, id, false, id, 1, now() - interval '90 seconds', now() from instance",
    )
    .await;
    for host in &hosts {
        renewed(host).await;
    }
    assert_eq!(total(&app, "jobs_failing").await, 1);
    assert_eq!(total(&app, "deliveries_waiting").await, 1);
    let age = total(&app, "deliveries_oldest_seconds").await;
    assert!((89..300).contains(&age), "{age}");
    let waiting = "select count(*) from outbox_event";
    let waiting = count(&app.database, waiting).await.unsigned_abs();
    assert_eq!(total(&app, "events_waiting").await, waiting);
    assert!(waiting > 0);
    sql(&app, "delete from series_point").await;
    renewed(&hosts[1]).await;
    assert_eq!(
        total(&app, "events_waiting").await,
        0,
        "the first host does"
    );
    renewed(&hosts[0]).await;
    assert_eq!(total(&app, "events_waiting").await, waiting);
    // A smaller value later in the same minute does not replace the larger one. A minute may have ended in between.
    sql(&app, "delete from outbox_event").await;
    renewed(&hosts[0]).await;
    assert_eq!(total(&app, "events_waiting").await, waiting);
}

#[tokio::test]
async fn minutes_are_merged_into_hours_after_a_day_and_hours_are_deleted_after_a_week() {
    const HOURS: &str = "select count(*) from series_point where minutes = 60";
    const VALUE: &str = "select value from series_point where minutes = 60 and series = 'starts'";
    const PEAK: &str =
        "select value from series_point where minutes = 60 and series = 'events_waiting'";
    const MINUTES: &str = "select count(*) from series_point where minutes = 1";
    let app = TestApp::empty().await;
    let old = "insert into series_point
        select t.id, s, date_bin('1 hour', now(), 'epoch') - interval '26 hours' + n * interval '1 minute', 1, '', n + 2
        from tenant t, unnest('{starts,events_waiting}'::text[]) s, generate_series(0, 1) n";
    sql(&app, old).await;
    let kept = "insert into series_point
        select id, 'starts', date_bin('1 hour', now(), 'epoch') - interval '23 hours', 1, '', 1 from tenant;
        insert into series_point
        select id, 'decisions', date_bin('1 hour', now(), 'epoch') - interval '8 days', 60, '', 1 from tenant";
    sql(&app, kept).await;
    app.engine.purge().await.expect("a sweep");
    assert_eq!(count(&app.database, HOURS).await, 2, "one for each series");
    assert_eq!(count(&app.database, VALUE).await, 5, "counts are added");
    assert_eq!(
        count(&app.database, PEAK).await,
        3,
        "for other series, the largest value counts"
    );
    assert_eq!(
        count(&app.database, MINUTES).await,
        1,
        "the last day has minutes"
    );
    // A late minute is added to its hour.
    sql(&app, old).await;
    app.engine.purge().await.expect("a sweep");
    assert_eq!(count(&app.database, HOURS).await, 2);
    assert_eq!(count(&app.database, VALUE).await, 10);
    assert_eq!(count(&app.database, PEAK).await, 3);
    let from = Clock::System.now() - SignedDuration::from_hours(48);
    let path = format!("/v1/series?name=starts&from={from}");
    let answer = app.get("admin", &path).await.expect(200);
    assert_eq!(answer["data"][0]["lines"][0]["total"], 11, "{answer}");
}

/// Flow logic chooses reasons. It could choose a new one each time.
#[tokio::test]
async fn the_labels_of_a_minute_and_of_an_hour_are_limited() {
    const ROWS: &str = "select count(*) from series_point";
    const SUM: &str = "select sum(value)::bigint from series_point";
    let app = TestApp::empty().await;
    let counted = |numbers: std::ops::Range<i64>| -> Vec<Counted> {
        let one = |number| Counted {
            tenant: TenantId(1),
            series: Series::Refusals,
            label: format!("reason-{number}"),
            count: 1,
        };
        numbers.map(one).collect()
    };
    for _ in 0..2 {
        series::count(app.store(), &counted(0..32))
            .await
            .expect("written");
    }
    series::count(app.store(), &counted(32..100))
        .await
        .expect("written");
    // If the minute ended in between, there are two minutes.
    let rows = count(&app.database, ROWS).await;
    assert!((33..=68).contains(&rows), "{rows}");
    assert_eq!(count(&app.database, SUM).await, 132);
    let old = "delete from series_point;
        insert into series_point
        select 1, 'refusals', date_bin('1 hour', now(), 'epoch') - interval '26 hours' + n % 60 * interval '1 minute', 1, 'reason-' || n, n
        from generate_series(1, 100) n";
    sql(&app, old).await;
    app.engine.purge().await.expect("a sweep");
    assert_eq!(count(&app.database, ROWS).await, 33);
    assert_eq!(count(&app.database, SUM).await, 5_050);
}

#[tokio::test]
async fn a_series_is_limited_and_belongs_to_its_tenant() {
    let app = TestApp::start().await;
    let lines = "insert into series_point
        select id, 'refusals', date_bin('1 minute', now(), 'epoch'), 1, 'reason-' || n, n
        from tenant, generate_series(1, 25) n";
    sql(&app, lines).await;
    let refusals = series(&app, "refusals").await;
    let lines = refusals["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 21);
    assert_eq!(lines[0]["label"], "reason-25");
    let other = lines.iter().find(|line| line["label"] == "other");
    assert_eq!(other.expect("the rest")["total"], 1 + 2 + 3 + 4 + 5);
    let all = app.get("admin", "/v1/series").await.expect(200);
    assert_eq!(all["data"].as_array().map(Vec::len), Some(8), "{all}");
    assert_eq!(all["stepSeconds"], 60);
    for query in [
        "name=nothing",
        "from=2030-01-31T08:00:00Z&until=2030-01-31T08:00:00Z",
        "from=2030-01-30T08:00:00Z&until=2030-02-02T08:00:00Z&stepSeconds=60",
        "stepSeconds=61",
        "stepSeconds=0",
        "from=yesterday",
    ] {
        let refused = app.get("admin", &format!("/v1/series?{query}")).await;
        refused.problem(400, "malformed_request");
    }
    for path in ["/v1/series", "/v1/hosts", "/v1/refusals"] {
        let refused = app.get("reviewer", path).await;
        let problem = refused.problem(403, "permission_missing");
        assert_eq!(problem["reason"], "dead-letter:read", "{path}");
    }
    let roles = BTreeMap::from([("admin", crate::support::app::ADMIN)]);
    let created = tenants::ensure_tenant(app.store(), "other", &roles, Clock::System.now());
    created.await.expect("a tenant");
    let host = app.host();
    let (name, token) = bearer(&host, "admin", "other", &["admin"]);
    let headers = [(name, token.as_str())];
    let path = "/v1/series?name=refusals";
    let others = host.send("", "GET", path, &headers, None);
    assert_eq!(others.await.expect(200)["data"][0]["lines"], json!([]));
}

#[tokio::test]
async fn refusals_are_found_by_reason_and_time_page_by_page() {
    let app = TestApp::empty().await;
    let attempts = "insert into refused_attempt (tenant_id, id, occurred_at, actor, action, code, detail)
        select t.id, gen_random_uuid(), timestamptz '2030-01-31 08:00Z' + n * interval '1 minute', 'mara', 'start',
            case when n % 2 = 0 then 'even' else 'odd' end, 'no'
        from tenant t, generate_series(1, 10) n";
    sql(&app, attempts).await;
    let (mut found, mut path) = (Vec::new(), "/v1/refusals?reason=odd&limit=2".to_owned());
    loop {
        let page = app.get("admin", &path).await.expect(200);
        found.extend(page["data"].as_array().expect("data").clone());
        let Some(next) = page["page"]["next"].as_str() else {
            break;
        };
        path = format!("/v1/refusals?reason=odd&limit=2&after={next}");
    }
    let moments: Vec<_> = found.iter().map(|one| one["occurredAt"].as_str()).collect();
    assert_eq!(found.len(), 5);
    assert!(
        moments.is_sorted_by(|newer, older| newer > older),
        "{moments:?}"
    );
    let path = "/v1/refusals?from=2030-01-31T08:03:00Z&until=2030-01-31T08:05:00Z";
    let page = app.get("admin", path).await.expect(200);
    assert_eq!(page["data"].as_array().map(Vec::len), Some(2), "{page}");
    assert!(page["data"][0]["instanceId"].is_null(), "{page}");
    for (letters, status) in [(200, 200), (201, 400)] {
        let path = format!("/v1/refusals?reason={}", "r".repeat(letters));
        assert_eq!(app.get("admin", &path).await.status, status, "{letters}");
    }
}
