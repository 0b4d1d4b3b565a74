//! A database that another server continues: restored from a dump, which restarts transaction ids, or on another timeline after a
//! fail-over; or copied on the same server. A host begins a new history of it. Readers miss no event and get none twice.

use std::time::Duration;

use futures_util::future::join_all;
use wrkflw_store::{PoolSizes, Store};

use super::events::{Stream, expired, ids, page, read};
use super::notifications::{notifier, settings};
use super::webhooks::{subscribe, waiting};
use super::*;
use crate::support::own_postgres::OwnPostgres;
use crate::support::plug::count;
use crate::support::receiver::Receiver;
use wrkflw_store::directory::tenants;

const TIMEOUT: Duration = Duration::from_secs(20);
const HISTORIES: &str = "select count(*) from feed_epoch";

/// Uses up transaction ids, so that a new server begins with much lower ones.
async fn much_happened(app: &TestApp) {
    let many =
        "do $$ begin for i in 1..20000 loop perform pg_current_xact_id(); commit; end loop; end $$";
    sql(app, many).await;
}

/// The events of a command.
fn events(answer: &Value) -> Vec<String> {
    ids(answer["events"].as_array().expect("events"))
}

/// The number that a statement returns in a database of another server.
async fn number(server: &sqlx::PgPool, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(server).await.expect(sql)
}

/// The same service on a server of its own, with a copy of this database at this moment.
async fn restored(app: TestApp, own: &OwnPostgres) -> (TestApp, sqlx::PgPool) {
    // A dump of a database does not contain the roles of the server.
    Store::migrate(own.url()).await.expect("roles");
    let from = app.database.url().to_owned();
    copied(app, own, &from, "restored").await
}

/// The same service on a new database of this server, with a copy of another one at this moment.
async fn copied(
    app: TestApp,
    own: &OwnPostgres,
    from: &str,
    name: &str,
) -> (TestApp, sqlx::PgPool) {
    let url = own.restore(from, name).await;
    let (_, engine) = app.beside_with_engine(&url, TIMEOUT).await;
    let pool = sqlx::PgPool::connect_lazy(&url).expect("a URL");
    let store = Store::connect(&url, PoolSizes::default()).expect("a URL");
    (app.with_engine(store, engine), pool)
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_a_database_restored_from_a_dump_miss_nothing() {
    let app = TestApp::start().await;
    much_happened(&app).await;
    let first = app.start_answer("doc-1").await;
    let mut known = events(&first);
    known.extend(events(&app.start_answer("doc-2").await));
    let (_, early) = read(&app, String::new(), 2, 2).await;
    let (_, last) = read(&app, early.clone(), known.len() - 2, 100).await;
    let own = OwnPostgres::start().await;
    // An event after the dump, which is lost.
    let old = app.host();
    let (app, pool) = restored(app, &own).await;
    let loaded = number(&pool, "select max(pos) from audit_entry").await;
    let body = approval_start("doc-3");
    let forgotten = old.send("author", "POST", "/v1/instances", &[], Some(body));
    forgotten.await.expect(201);
    let newest = async {
        loop {
            let all = old.send("author", "GET", "/v1/events?limit=100", &[], None);
            let all = all.await.expect(200);
            if all["data"].as_array().expect("events").len() > known.len() {
                break all["page"]["next"].clone();
            }
            crate::support::pause().await;
        }
    };
    let beyond = tokio::time::timeout(TIMEOUT, newest).await;
    let beyond = beyond.expect("the feed tells of the event that is lost");

    let claim = format!("/v1/tasks/{}/claim", task_of(&first["instance"]));
    let mut since = events(&app.post("reviewer", &claim, json!({})).await.expect(200));
    since.extend(events(&app.start_answer("doc-4").await));
    let anew = "select bool_or(e.xid < o.xid) from audit_entry e, audit_entry o where e.pos > $1 and o.pos <= $1";
    let anew = sqlx::query_scalar(anew).bind(loaded).fetch_one(&pool).await;
    assert_eq!(anew.ok(), Some(true), "transactions are counted anew");
    // Readers of earlier events continue with the rest and with new events, each once and in order.
    let (found, end) = read(&app, early, known.len() - 2 + since.len(), 3).await;
    assert_eq!(ids(&found), [&known[2..], &since[..]].concat());
    let (found, same) = read(&app, last, since.len(), 100).await;
    assert_eq!((ids(&found), same), (since.clone(), end.clone()));
    assert_eq!(page(&app, &end, 100).await, (vec![], end));
    let (found, _) = read(&app, String::new(), known.len() + since.len(), 100).await;
    assert_eq!(ids(&found), [known, since].concat());
    // Readers whose position is beyond the dump are told so.
    let path = format!("/v1/events?after={}", beyond.as_str().expect("a cursor"));
    let answer = app.get("author", &path).await;
    answer.problem(410, "cursor_expired");
}

/// On the same server transaction ids are not restarted. Readers of lost events are told so, also at a position without an event.
#[tokio::test(flavor = "multi_thread")]
async fn a_dump_restored_on_the_same_server_begins_a_history() {
    let app = TestApp::start().await;
    let own = OwnPostgres::start().await;
    let (app, _) = restored(app, &own).await;
    app.started("doc-1").await;
    let url = |name: &str| own.url().replacen("/postgres?", &format!("/{name}?"), 1);
    let old = app.host();
    let (app, pool) = copied(app, &own, &url("restored"), "again").await;
    let body = Some(approval_start("doc-2"));
    let lost = old.send("author", "POST", "/v1/instances", &[], body);
    lost.await.expect(201);
    let token = format!("Bearer {}", old.token("author"));
    let mut idle = Stream::at(&old, &token, "/v1/events/stream", None).await;
    let position = idle.position().await;
    app.started("doc-3").await;
    assert_eq!(number(&pool, HISTORIES).await, 3);
    expired(&app, &position).await;
    own.reload(&url("again")).await;
    let store = Store::connect(&url("again"), PoolSizes::default()).expect("a URL");
    store.ready().await.expect("an answer");
    assert_eq!(number(&pool, HISTORIES).await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn receivers_get_the_events_of_a_dump_and_all_later_ones_once() {
    let app = TestApp::start().await;
    much_happened(&app).await;
    let mut hook = Receiver::start().await;
    app.started("doc-0").await;
    let subscription = subscribe(&app, &hook.url, &["task.created"]).await;
    let working = notifier(&app, settings(&[]));
    let first = app.start_answer("doc-1").await;
    assert_eq!(hook.next().await.body["subject"], first["instance"]["id"]);
    waiting(&app, &subscription, "pending", 0).await;
    drop(working);
    let query = "select count(*) from notification";
    let before = count(&app.database, query).await;
    // Nobody was notified of this one.
    let second = app.start_answer("doc-2").await;
    let own = OwnPostgres::start().await;
    let (app, pool) = restored(app, &own).await;
    let _working = notifier(&app, settings(&[]));
    let third = app.start_answer("doc-3").await;
    let subjects = [hook.next().await, hook.next().await];
    let subjects = subjects.map(|one| one.body["subject"].clone());
    assert!(
        subjects.contains(&second["instance"]["id"]) && subjects.contains(&third["instance"]["id"]),
        "{subjects:?}"
    );
    waiting(&app, &subscription, "pending", 0).await;
    assert!(hook.rest().is_empty(), "nothing is sent again");
    assert_eq!(number(&pool, query).await, before + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fail_over_begins_a_history_and_readers_continue() {
    let app = TestApp::start().await;
    let own = OwnPostgres::start().await;
    let (app, pool) = restored(app, &own).await;
    let before = events(&app.start_answer("doc-1").await);
    let (_, cursor) = read(&app, String::new(), before.len(), 100).await;
    assert_eq!(number(&pool, HISTORIES).await, 2);
    own.fail_over().await;
    let since = loop {
        let body = approval_start("doc-2");
        let started = app.post("author", "/v1/instances", body).await;
        // The host finds its earlier sessions broken one by one.
        if started.status == 201 {
            break events(&started.body);
        }
        assert_eq!(started.status, 503, "{}", started.text);
    };
    assert_eq!(number(&pool, HISTORIES).await, 3);
    while app.get("author", "/v1/events").await.status != 200 {
        crate::support::pause().await;
    }
    let (found, _) = read(&app, cursor, since.len(), 100).await;
    assert_eq!(ids(&found), since);
    let (found, _) = read(&app, String::new(), before.len() + since.len(), 100).await;
    assert_eq!(ids(&found), [before, since].concat());
}

/// The host has begun no history of the promoted database.
#[tokio::test]
async fn a_connection_to_a_standby_writes_nothing_after_its_promotion() {
    let app = TestApp::start().await;
    let own = OwnPostgres::start().await;
    let (app, pool) = restored(app, &own).await;
    own.stand_by().await;
    let mut early = loop {
        // The host finds its earlier sessions broken one by one.
        if let Ok(mut session) = pool.acquire().await
            && sqlx::raw_sql("select begin_history()")
                .execute(&mut *session)
                .await
                .is_ok()
        {
            break session;
        }
    };
    let refused = app
        .post("author", "/v1/instances", approval_start("doc-1"))
        .await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    own.promote().await;
    let tried = sqlx::raw_sql("create table written (n int)")
        .execute(&mut *early)
        .await;
    let tried = tried.expect_err("it only reads");
    let code = tried
        .as_database_error()
        .and_then(|error| error.code().map(String::from));
    assert_eq!(code.as_deref(), Some("25006"), "{tried}");
    while app
        .post("author", "/v1/instances", approval_start("doc-2"))
        .await
        .status
        != 201
    {
        crate::support::pause().await;
    }
    assert_eq!(number(&pool, HISTORIES).await, 3);
}

/// Marks the database as if it came from another server.
const ELSEWHERE: &str = "update feed_epoch set server = 'elsewhere'";

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_hosts_begin_one_history_before_they_write() {
    const HOSTS: usize = 8;
    let app = TestApp::start().await;
    let known = events(&app.start_answer("doc-0").await);
    sql(&app, ELSEWHERE).await;
    let starts = (1..=HOSTS).map(|number| {
        let app = &app;
        async move {
            let body = Some(approval_start(&format!("doc-{number}")));
            let host = app.beside().await;
            let started = host.send("author", "POST", "/v1/instances", &[], body);
            events(&started.await.expect(201))
        }
    });
    let since: usize = join_all(starts).await.iter().map(Vec::len).sum();
    assert_eq!(count(&app.database, HISTORIES).await, 2);
    let early = "select count(*) from audit_entry where event_seq is not null
        and pos <= (select max(began_after) from feed_epoch)";
    let early = count(&app.database, early).await;
    assert_eq!(usize::try_from(early), Ok(known.len()));
    let (found, _) = read(&app, String::new(), known.len() + since, 5).await;
    assert_eq!(ids(&found)[..known.len()], known);
}

/// A host may have cached numbers of a lost history.
#[tokio::test]
async fn the_number_of_a_lost_tenant_is_not_used_again() {
    let app = TestApp::start().await;
    let (store, now) = (app.store(), app.engine.clock().now());
    let roles = BTreeMap::new();
    let lost = tenants::ensure_tenant(store, "lost", &roles, now).await;
    let lost = lost.expect("a tenant");
    let set_back = "begin; set local session_replication_role = replica;
        select setval(pg_get_serial_sequence('tenant', 'id'), max(id) - 1) from tenant;
        delete from audit_entry where tenant_id = (select max(id) from tenant);
        delete from audit_stream where tenant_id = (select max(id) from tenant);
        delete from tenant where name = 'lost'; commit";
    sql(&app, set_back).await;
    sql(&app, ELSEWHERE).await;
    let store = Store::connect(app.database.url(), PoolSizes::default()).expect("a URL");
    let other = tenants::ensure_tenant(&store, "other", &roles, now).await;
    assert!(other.expect("a tenant").0 > lost.0);
}
