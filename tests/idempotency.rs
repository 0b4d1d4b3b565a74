//! A repeated request has no further effect.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use wrkflw_runtime::clock::Clock;

use crate::support::app::{Answer, Host, TestApp, task_of};
use crate::support::plug::{Gate, count};

const KEY: (&str, &str) = ("idempotency-key", "k-1");

fn start_body(entity: &str) -> Value {
    json!({ "definitionKey": "document-approval", "entityType": "document", "entityId": entity, "data": { "title": "A plan" } })
}

async fn start(host: &Host, entity: &str) -> Answer {
    host.send(
        "author",
        "POST",
        "/v1/instances",
        &[KEY],
        Some(start_body(entity)),
    )
    .await
}

#[tokio::test]
async fn a_repetition_gets_the_stored_reply() {
    let app = TestApp::start().await;
    let first = start(&app.host(), "doc-1").await;
    assert_eq!(
        (first.status, first.headers.get("idempotency-replayed")),
        (201, None)
    );
    let again = start(&app.beside().await, "doc-1").await;
    assert_eq!((again.status, &again.text), (201, &first.text));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.headers["etag"], first.headers["etag"]);
    assert_eq!(again.headers["location"], first.headers["location"]);

    let task = task_of(&first.body["instance"]);
    let claim = format!("/v1/tasks/{task}/claim");
    let claimed = app
        .host()
        .send("reviewer", "POST", &claim, &[KEY], Some(json!({})))
        .await;
    let repeated = app
        .host()
        .send("reviewer", "POST", &claim, &[KEY], Some(json!({})))
        .await;
    assert_eq!(
        (claimed.status, repeated.status, &repeated.text),
        (200, 200, &claimed.text)
    );
}

/// Repeats a request as this person with these roles. Each path has a key of its own.
async fn repeat(host: &Host, person: &str, roles: &[&str], path: &str, body: &Value) -> Answer {
    let token = format!("Bearer {}", host.token_of(person, "default", roles));
    let key = if path == "/v1/tasks/bulk" {
        "k-many"
    } else {
        KEY.1
    };
    let headers = [(KEY.0, key), ("authorization", token.as_str())];
    host.send("", "POST", path, &headers, Some(body.clone()))
        .await
}

#[tokio::test]
async fn a_reply_is_returned_only_to_callers_who_may_still_have_it() {
    let app = TestApp::start().await;
    let host = app.host();
    let first = start(&host, "doc-1").await;
    let task = task_of(&first.body["instance"]);
    let claim = format!("/v1/tasks/{task}/claim");
    let many = json!({ "action": "release", "taskIds": [task] });
    for (path, body) in [
        (claim.as_str(), json!({})),
        ("/v1/tasks/bulk", many.clone()),
    ] {
        repeat(&host, "reviewer", &["user"], path, &body)
            .await
            .expect(200);
    }
    let start = start_body("doc-1");
    let begin = "/v1/instances";
    for (person, path, body) in [("author", begin, &start), ("reviewer", &claim, &json!({}))] {
        let known = repeat(&host, person, &["user"], path, body).await;
        assert_eq!(known.headers["idempotency-replayed"], "true");
        // The token has no roles any more, and the refusal does not reveal that a reply exists.
        let answer = repeat(&host, person, &["nobody"], path, body).await;
        assert!(!answer.text.contains("\"states\""), "{}", answer.text);
        answer.problem(403, "permission_missing");
    }
    let one = async |roles: &[&str]| {
        let many = repeat(&host, "reviewer", roles, "/v1/tasks/bulk", &many);
        many.await
    };
    let known = one(&["user"]).await.expect(200);
    assert_eq!(known["results"][0]["replayed"], true);
    one(&["nobody"]).await.problem(403, "permission_missing");
    // A full reply is only for callers who may still read instances. Their own new replies would be short.
    let grant = "insert into role_permission select id, 'starter', 'instance:start' from tenant where name = 'default'";
    sqlx::query(grant)
        .execute(app.database.admin_pool())
        .await
        .expect("a grant");
    let whole = repeat(&host, "author", &["starter"], begin, &start).await;
    let whole = whole.problem(403, "permission_missing");
    assert_eq!(whole["reason"], "instance:read");
    let token = format!(
        "Bearer {}",
        host.token_of("author", "default", &["starter"])
    );
    let headers = [(KEY.0, "k-short"), ("authorization", token.as_str())];
    for _ in 0..2 {
        let short = host.send("", "POST", begin, &headers, Some(start_body("doc-2")));
        short.await.expect(201);
    }
    // The same by the tenant's table of roles.
    sqlx::query("delete from role_permission where permission = 'instance:start'")
        .execute(app.database.admin_pool())
        .await
        .expect("fewer permissions");
    repeat(&host, "author", &["user"], begin, &start)
        .await
        .problem(403, "permission_missing");
}

/// An intruder with write access to the table cannot make the host return a reply that it never gave.
#[tokio::test]
async fn a_changed_reply_is_not_returned() {
    let app = TestApp::start().await;
    start(&app.host(), "doc-1").await.expect(201);
    start(&app.host(), "doc-1").await.expect(201);
    let changed = "update idempotency_key set body = replace(body, 'doc-1', 'doc-2')";
    let changed = sqlx::query(changed).execute(app.database.admin_pool());
    assert_eq!(changed.await.expect("changed").rows_affected(), 1);
    let again = start(&app.host(), "doc-1").await;
    again.problem(500, "internal");
}

#[tokio::test]
async fn a_key_identifies_one_request() {
    let app = TestApp::start().await;
    start(&app.host(), "doc-1").await.expect(201);
    start(&app.host(), "doc-2")
        .await
        .problem(422, "idempotency_key_reused");
    // The same key of another principal is independent.
    let other = app
        .host()
        .send(
            "admin",
            "POST",
            "/v1/instances",
            &[KEY],
            Some(start_body("doc-3")),
        )
        .await;
    other.problem(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_repetitions_get_the_same_reply() {
    let app = TestApp::start().await;
    let hosts = [app.host(), app.beside().await];
    let mut twins = JoinSet::new();
    for twin in 0..20 {
        let host = hosts[twin % 2].clone();
        twins.spawn(async move { start(&host, "doc-1").await });
    }
    let replies = twins.join_all().await;
    for reply in &replies {
        assert_eq!((reply.status, &reply.text), (201, &replies[0].text));
    }
    let fresh = replies
        .iter()
        .filter(|reply| !reply.headers.contains_key("idempotency-replayed"))
        .count();
    assert_eq!(fresh, 1);

    let claim = format!("/v1/tasks/{}/claim", task_of(&replies[0].body["instance"]));
    let mut twins = JoinSet::new();
    for twin in 0..20 {
        let (host, claim) = (hosts[twin % 2].clone(), claim.clone());
        twins.spawn(async move {
            host.send("reviewer", "POST", &claim, &[KEY], Some(json!({})))
                .await
        });
    }
    let replies = twins.join_all().await;
    for reply in &replies {
        assert_eq!((reply.status, &reply.text), (200, &replies[0].text));
    }
}

#[tokio::test]
async fn a_refused_request_stores_no_reply() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    app.host()
        .send("outsider", "POST", &claim, &[KEY], Some(json!({})))
        .await
        .problem(403, "forbidden");
    app.put(
        "admin",
        "/v1/people/outsider",
        json!({ "name": "now inside" }),
    )
    .await
    .expect(200);
    app.put("admin", "/v1/groups/reviewers/members/outsider", json!({}))
        .await
        .expect(200);
    app.host()
        .send("outsider", "POST", &claim, &[KEY], Some(json!({})))
        .await
        .expect(200);
}

/// Makes all replies older by this many hours.
async fn aged(app: &TestApp, hours: i32) {
    let older = "update idempotency_key set created_at = created_at - make_interval(hours => $1)";
    let older = sqlx::query(older).bind(hours);
    older
        .execute(app.database.admin_pool())
        .await
        .expect("older");
}

#[tokio::test]
async fn keys_are_deleted_after_a_day_and_not_before() {
    let app = TestApp::start().await;
    let first = start(&app.host(), "doc-1").await;
    aged(&app, 23).await;
    app.engine.purge().await.expect("a purge");
    let again = start(&app.host(), "doc-1").await;
    assert_eq!((again.status, &again.text), (201, &first.text));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    aged(&app, 2).await;
    app.engine.purge().await.expect("a purge");
    let second = start(&app.host(), "doc-2").await.expect(201);
    assert_ne!(first.body["instance"]["id"], second["instance"]["id"]);
}

/// Clocks of hosts jump. The age of shared rows is measured by the database's clock.
#[tokio::test]
async fn a_host_with_a_wrong_clock_deletes_nothing_early_and_loses_nothing_early() {
    let app = TestApp::start().await;
    let first = start(&app.host(), "doc-1").await;
    let id = first.body["instance"]["id"].as_str().expect("an id");
    let cancel = format!("/v1/instances/{id}/cancel");
    app.post("admin", &cancel, json!({ "reason": "Away." }))
        .await
        .expect(200);
    let hour = |hours: i64| {
        let time = Clock::System.now() + jiff::SignedDuration::from_hours(hours);
        Clock::Manual(Arc::new(AtomicI64::new(time.as_millisecond())))
    };
    let ahead = app.engine_with_clock(hour(25)).await;
    ahead.purge().await.expect("a purge");
    let again = start(&app.host(), "doc-1").await;
    assert_eq!((again.status, &again.text), (201, &first.text));

    let (behind, _) = app.beside_at_time(hour(-25)).await;
    let key = [("idempotency-key", "k-2")];
    let body = || Some(start_body("doc-2"));
    let kept = behind.send("author", "POST", "/v1/instances", &key, body());
    let kept = kept.await;
    app.engine.purge().await.expect("a purge");
    let again = app.host();
    let again = again.send("author", "POST", "/v1/instances", &key, body());
    assert_eq!(again.await.text, kept.text);
    let instances = "select count(*) from instance";
    assert_eq!(count(&app.database, instances).await, 2);
}

/// A sweep deletes only unlocked rows and waits for no lock. So it blocks nobody for long, and is never the victim of a deadlock.
#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_skips_locked_rows() {
    let app = TestApp::start().await;
    start(&app.host(), "doc-1").await.expect(201);
    let key = [("idempotency-key", "k-2")];
    let host = app.host();
    let second = host.send(
        "author",
        "POST",
        "/v1/instances",
        &key,
        Some(start_body("doc-2")),
    );
    second.await.expect(201);
    aged(&app, 25).await;
    let mut holder = app.database.admin_pool().begin().await.expect("a begin");
    let hold = "select 1 from idempotency_key where key = 'k-1' for update";
    sqlx::query(hold)
        .execute(&mut *holder)
        .await
        .expect("a row");
    let instances = "select 1 from instance for update";
    let locked = sqlx::query(instances).execute(&mut *holder).await;
    locked.expect("all instances");
    app.engine.purge().await.expect("a purge");
    let keys = "select count(*) from idempotency_key";
    assert_eq!(count(&app.database, keys).await, 1);
    holder.rollback().await.expect("an end");
    app.engine.purge().await.expect("a purge");
    assert_eq!(count(&app.database, keys).await, 0);
}

/// A start that repeatedly fails to commit for an unknown reason is retried with pauses.
#[tokio::test]
async fn a_start_that_never_commits_pauses_and_gives_up() {
    let app = TestApp::start().await;
    // A sequence counts rolled back attempts, too.
    let swallowed = "create sequence asked;
        create function swallow() returns trigger language plpgsql security definer as $$ begin perform nextval('public.asked'); return null; end $$;
        create trigger swallow before insert on instance for each row execute function swallow()";
    let made = sqlx::raw_sql(swallowed).execute(app.database.admin_pool());
    made.await.expect("a trigger");
    let timeout = std::time::Duration::from_secs(2);
    let host = app.beside_at(app.database.url(), timeout).await;
    start(&host, "doc-1").await.problem(503, "busy");
    let count = sqlx::query_scalar("select last_value from asked");
    let count: i64 = count
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    // Eight attempts at once, then pauses that double from 10 ms to half a second. The eighteenth attempt would be too late.
    assert!(count <= 17, "{count} commits in two seconds");
}

/// A start and another command with one key at the same time: the start finds the key free, and then taken when it writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_and_a_command_with_one_key_do_not_both_take_effect() {
    let app = TestApp::start().await;
    app.put("admin", "/v1/groups/authors/members/reviewer", json!({}))
        .await
        .expect(200);
    let task = task_of(&app.started("doc-1").await);
    let (here, there) = (app.host(), app.beside().await);
    let gate = Gate::shut(&app.database, "instance").await;
    let body = Some(start_body("doc-2"));
    let starting = there.send("reviewer", "POST", "/v1/instances", &[KEY], body);
    let claiming = async {
        gate.is_met().await;
        let path = format!("/v1/tasks/{task}/claim");
        let claimed = here.send("reviewer", "POST", &path, &[KEY], Some(json!({})));
        claimed.await.expect(200);
        gate.open().await;
    };
    let (started, ()) = tokio::join!(starting, claiming);
    started.problem(422, "idempotency_key_reused");
    let instances = "select count(*) from instance";
    assert_eq!(count(&app.database, instances).await, 1);
}

#[tokio::test]
async fn a_dry_run_stores_no_key() {
    let app = TestApp::start().await;
    let dry = app
        .host()
        .send(
            "author",
            "POST",
            "/v1/instances?dryRun=true",
            &[KEY],
            Some(start_body("doc-1")),
        )
        .await;
    assert_eq!(dry.expect(200)["dryRun"], true);
    start(&app.host(), "doc-2").await.expect(201);
}
