//! A PostgreSQL that is full, read-only, out of connections or blocked. The answer says so, a failed command leaves no trace,
//! probes report it, and the host recovers without a restart.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::program::{Folder, Program, command, run, serve};
use super::*;
use crate::support::own_postgres::OwnPostgres;
use crate::support::proxy::{Proxy, Server};
use wrkflw_core::ids::TenantId;
use wrkflw_store::calendars;
use wrkflw_store::dead_letters;
use wrkflw_store::error::Outage;
use wrkflw_store::viewer::Viewer;
use wrkflw_store::{PoolSizes, Store};

/// The request timeout of the second host.
const SHORT: Duration = Duration::from_secs(1);

/// Longer than a read waits for its connection and for an answer.
const READ_MAX: Duration = Duration::from_secs(20);

/// The error that PostgreSQL raises when it cannot extend a file.
const FILL: &str = "
    create function full_disk() returns trigger language plpgsql as $$
    begin
        raise exception 'could not extend file: No space left on device' using errcode = '53100';
    end $$;
    create trigger full_disk before insert on audit_entry execute function full_disk()";

#[tokio::test]
async fn a_full_disk_refuses_writes_until_there_is_room() {
    let app = TestApp::start().await;
    let (host, instance) = (app.host(), app.started("doc-1").await);
    sql(&app, FILL).await;
    let before = traces(&app).await;
    unavailable(
        claim(&host, "reviewer", &instance).await,
        "unavailable",
        "is full, or fails",
    );
    let start = host
        .send(
            "author",
            "POST",
            "/v1/instances",
            &[],
            Some(start_of("doc-2")),
        )
        .await;
    unavailable(start, "unavailable", "is full, or fails");
    assert_eq!(traces(&app).await, before, "nothing half-written");
    let ready = host.send("", "GET", "/readyz", &[], None).await;
    assert_eq!(
        (ready.status, ready.text.trim()),
        (503, "the disk of the database is full, or fails")
    );
    assert_eq!(host.send("", "GET", "/livez", &[], None).await.status, 200);
    let path = format!("/v1/instances/{}", instance["id"].as_str().expect("an id"));
    app.get("author", &path).await.expect(200);

    sql(&app, "drop function full_disk cascade").await;
    claim(&host, "reviewer", &instance).await.expect(200);
    assert_eq!(host.send("", "GET", "/readyz", &[], None).await.status, 200);
}

/// Creates a login with these options. Returns its name, and the URL by which it connects.
async fn login(app: &TestApp, options: &str) -> (String, String) {
    let login = format!("login_{}", app.database.name());
    sql(app, &format!("create role {login} login {options}")).await;
    let as_login = format!("//{login}@");
    let url = app.database.url().replacen("//postgres@", &as_login, 1);
    (login, url)
}

async fn cut_all(app: &TestApp) {
    let others = "select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()";
    sql(app, others).await;
}

#[tokio::test]
async fn a_read_only_database_is_read_and_recovers() {
    let app = TestApp::start().await;
    let (host, instance) = (app.host(), app.started("doc-1").await);
    let before = traces(&app).await;
    let name = app.database.name();
    sql(
        &app,
        &format!("alter database {name} set default_transaction_read_only = on"),
    )
    .await;
    cut_all(&app).await;
    unavailable(
        claim(&host, "reviewer", &instance).await,
        "unavailable",
        "read-only",
    );
    let ready = eventually(&host, "/readyz", 503).await;
    assert_eq!(ready.text.trim(), "the database is read-only");
    assert_eq!(host.send("", "GET", "/livez", &[], None).await.status, 200);
    app.get("author", "/v1/instances").await.expect(200);
    assert_eq!(traces(&app).await, before);

    // Connections that were opened meanwhile keep the setting, so the host must close them.
    let reset = format!(
        "begin read write; alter database {name} reset default_transaction_read_only; commit"
    );
    sql(&app, &reset).await;
    eventually(&host, "/readyz", 200).await;
    claim(&host, "reviewer", &instance).await.expect(200);
}

#[tokio::test]
async fn a_database_without_free_connections_is_waited_for() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let limited =
        "in role wrkflw_writer, wrkflw_reader, wrkflw_viewer, wrkflw_relay connection limit 3";
    let (login, url) = login(&app, limited).await;
    let host = app.beside_at(&url, SHORT).await;
    claim(&host, "reviewer", &instance).await.expect(200);
    // All connections are closed, and others take the free ones first.
    cut_all(&app).await;
    let mut others = Vec::new();
    while let Ok(other) = PgConnection::connect(&url).await {
        others.push(other);
    }
    assert_eq!(others.len(), 3, "the limit of the role");
    let release = format!("/v1/tasks/{}/release", task_of(&instance));
    let refused = host
        .send("reviewer", "POST", &release, &[], Some(json!({})))
        .await;
    unavailable(refused, "unavailable", "");
    assert_eq!(host.send("", "GET", "/readyz", &[], None).await.status, 503);
    assert_eq!(host.send("", "GET", "/livez", &[], None).await.status, 200);

    for other in others {
        other.close().await.expect("closed");
    }
    eventually(&host, "/readyz", 200).await;
    host.send("reviewer", "POST", &release, &[], Some(json!({})))
        .await
        .expect(200);
    drop(host);
    cut_all(&app).await;
    sql(&app, &format!("drop role {login}")).await;
}

#[tokio::test]
async fn a_login_without_a_role_is_told_the_grant_before_a_host_serves() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let (login, url) = login(&app, "in role wrkflw_writer").await;
    let host = |roles: &str| {
        let line = format!("--roles {roles} --kafka-brokers 127.0.0.1:1");
        let mut command = serve(&folder, &app, &line);
        command.env("WRKFLW_DATABASE_URL", &url);
        command
    };
    let store = Store::connect(&url, PoolSizes::default()).expect("a URL");
    let error = store.ready_to_start(false).await.expect_err("no viewer");
    assert!(error.lacks_role(), "{error}");
    assert_eq!(error.outage(), Some(Outage::Unreachable), "{error}");
    store.close().await;
    for (roles, lacking) in [("api", "wrkflw_viewer"), ("api,relay", "wrkflw_relay")] {
        let refused = run(host(roles)).await;
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{words}");
        for part in [&format!("grant {lacking} to "), &login] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(!words.contains("check database_url"), "{words}");
        sql(&app, &format!("grant {lacking} to {login}")).await;
    }
    let mut served = Program::start(&folder, host("api,relay")).await;
    served.terminate();
    assert!(served.ended().await.success(), "{}", served.log());
    cut_all(&app).await;
    sql(&app, &format!("drop role {login}")).await;
}

/// An auditor does this with a restored copy.
#[tokio::test]
async fn a_login_that_only_reads_verifies_and_exports_and_changes_nothing() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    app.started("doc-1").await;
    let (login, url) = login(&app, "in role wrkflw_viewer").await;
    sql(&app, "update feed_epoch set server = 'elsewhere'").await;
    let state = async || {
        let numbers =
            "select array[(select count(*) from feed_epoch), (select last_value from event_pos),
            pg_sequence_last_value(pg_get_serial_sequence('tenant', 'id')::regclass)]";
        let numbers =
            sqlx::query_scalar::<_, Vec<i64>>(numbers).fetch_one(app.database.admin_pool());
        numbers.await.expect("numbers")
    };
    let before = state().await;
    for line in [
        "audit verify --all --without-seals --no-replay",
        "audit export --all --out audit.jsonl",
    ] {
        let mut command = command(&folder, line);
        command.env("WRKFLW_DATABASE_URL", &url);
        let ran = run(command).await;
        let words = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(0), "{line}: {words}");
        assert_eq!(state().await, before, "{line}");
    }
    cut_all(&app).await;
    sql(&app, &format!("drop role {login}")).await;
}

/// Passes a connection on, without the settings that it brings.
async fn pass_bare(mut client: TcpStream, server: &Path) -> io::Result<()> {
    let mut message = vec![0; client.read_u32().await? as usize - 4];
    client.read_exact(&mut message).await?;
    // The version of the protocol, then names and values, each of which ends with a nul.
    let (version, texts) = message.split_at(4);
    let texts: Vec<_> = texts.split(|byte| *byte == 0).collect();
    let pairs = texts.chunks_exact(2);
    let pairs = pairs.take_while(|pair| !pair[0].is_empty());
    let kept = pairs.filter(|pair| pair[0] != b"options");
    let kept = kept.flat_map(|pair| [pair[0], &[0], pair[1], &[0]]);
    let bare = [version, &kept.collect::<Vec<_>>().concat(), &[0]].concat();
    let mut server = UnixStream::connect(server).await?;
    let length = u32::try_from(bare.len() + 4).expect("a short message");
    server.write_u32(length).await?;
    server.write_all(&bare).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// A connection to the server as through a pooler that ignores `options`: its port, and the task that keeps it open.
async fn pooler(server: PathBuf) -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut open = JoinSet::new();
    open.spawn(async move {
        let mut passed = JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            let server = server.clone();
            passed.spawn(async move { pass_bare(client, &server).await });
        }
    });
    (port, open)
}

/// A pooler in transaction mode gives a session, with its role and its viewer, to one client after the other.
#[tokio::test]
async fn a_connection_that_drops_settings_is_refused() {
    let postgres = OwnPostgres::start().await;
    Store::migrate(postgres.url()).await.expect("migrations");
    let (port, _open) = pooler(postgres.socket()).await;
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable");
    PgConnection::connect(&url)
        .await
        .expect("the connection works");
    let store = Store::connect(&url, PoolSizes::default()).expect("a URL");
    let error = store
        .ready()
        .await
        .expect_err("a host refuses the connection");
    let words = error.to_string();
    assert!(
        words.contains("drops the settings of the connection"),
        "{words}"
    );
    assert_eq!(error.outage(), Some(Outage::Unreachable), "{words}");
    store.close().await;
}

#[tokio::test]
async fn a_transaction_of_another_database_that_holds_back_the_feed_is_measured() {
    const HELD: &str = "wrkflw_feed_held_seconds";
    let (folder, app) = (Folder::new(), TestApp::empty().await);
    let postgres = OwnPostgres::start().await;
    Store::migrate(postgres.url()).await.expect("migrations");
    let run = async |sql: &'static str| {
        let ran = sqlx::raw_sql(sql).execute(postgres.pool()).await;
        ran.expect(sql);
    };
    run("create database other").await;
    let other = postgres.url().replacen("/postgres?", "/other?", 1);
    let mut other = PgConnection::connect(&other).await.expect("a session");
    let mut command = serve(&folder, &app, "--roles notifier");
    command.env("WRKFLW_DATABASE_URL", postgres.url());
    let host = Program::start(&folder, command).await;
    let mut transaction = other.begin().await.expect("begun");
    let begun = sqlx::raw_sql("select pg_current_xact_id()").execute(&mut *transaction);
    begun.await.expect("a number");
    // Later transactions wait for it.
    run("select pg_current_xact_id()").await;
    host.metric_reaches(HELD, |seconds| seconds > 0.0).await;
    transaction.rollback().await.expect("its end");
    host.metric_reaches(HELD, |seconds| seconds <= 0.0).await;
}

#[tokio::test]
async fn a_locked_row_is_busy_and_other_instances_are_not() {
    let app = TestApp::start().await;
    let (held, other) = (app.started("doc-1").await, app.started("doc-2").await);
    let host = app.beside_at(app.database.url(), SHORT).await;
    let mut ownership = app.database.admin_pool().begin().await.expect("begun");
    sqlx::query("select from instance where id = $1::uuid for update")
        .bind(held["id"].as_str())
        .execute(&mut *ownership)
        .await
        .expect("held");
    let before = traces(&app).await;
    let beside = app.host();
    let (refused, neighbour) = tokio::join!(
        claim(&host, "reviewer", &held),
        claim(&beside, "reviewer", &other)
    );
    unavailable(refused, "busy", "");
    neighbour.expect(200);
    assert_eq!(host.send("", "GET", "/livez", &[], None).await.status, 200);
    ownership.rollback().await.expect("let go");
    let (after, one) = (
        traces(&app).await,
        before["revisions"].as_i64().expect("a sum") + 1,
    );
    assert_eq!(after["revisions"], one, "the neighbour's alone");
    claim(&host, "reviewer", &held).await.expect(200);
}

#[tokio::test]
async fn a_locked_table_blocks_requests_only_until_their_timeout() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let host = app.beside_at(app.database.url(), SHORT).await;
    let before = traces(&app).await;
    let mut ownership = app.database.admin_pool().begin().await.expect("begun");
    sqlx::raw_sql("lock table instance in access exclusive mode")
        .execute(&mut *ownership)
        .await
        .expect("held");
    let (read, written) = tokio::join!(
        host.send("author", "GET", "/v1/instances", &[], None),
        claim(&host, "reviewer", &instance)
    );
    unavailable(read, "unavailable", "another session holds");
    unavailable(written, "busy", "");
    // `/readyz` reads the state of migrations, which is in another table.
    assert_eq!(host.send("", "GET", "/readyz", &[], None).await.status, 200);
    ownership.rollback().await.expect("let go");
    assert_eq!(traces(&app).await, before, "nothing half-written");
    host.send("author", "GET", "/v1/instances", &[], None)
        .await
        .expect(200);
    claim(&host, "reviewer", &instance).await.expect(200);
}

/// A request that is no command of an instance uses its own transaction. PostgreSQL ends it if a statement is stuck.
#[tokio::test]
async fn a_stuck_transaction_ends_with_a_clear_answer() {
    let app = TestApp::start().await;
    let host = app.host();
    let stuck = "
        create function stuck() returns trigger language plpgsql as $$
        begin
            perform pg_sleep(600);
            return new;
        end $$;
        create trigger stuck before insert on audit_entry for each row
        when (new.stream_kind = 'directory') execute function stuck()";
    sql(&app, stuck).await;
    let put = async || {
        let body = Some(json!({ "manager": "approver" }));
        host.send("admin", "PUT", "/v1/people/author/manager", &[], body)
            .await
    };
    let before = traces(&app).await;
    unavailable(put().await, "unavailable", "took too long");
    assert_eq!(traces(&app).await, before, "nothing half-written");
    sql(&app, "drop trigger stuck on audit_entry").await;
    assert!(put().await.status < 300);
}

/// Neither side notices that the network lost the connection. A list first asks how large the tables are, which happens once a minute.
#[tokio::test]
async fn a_read_without_an_answer_fails_in_time_and_frees_its_connection() {
    let (postgres, network) = (OwnPostgres::start().await, Proxy::open().await);
    network.lead_to(Server::Socket(postgres.socket()));
    Store::migrate(postgres.url()).await.expect("migrations");
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", network.port());
    let sizes = PoolSizes {
        reader: 1,
        ..PoolSizes::default()
    };
    let store = Store::connect(&url, sizes).expect("a URL");
    let viewer = Viewer::all(TenantId(1));
    let read = || timeout(READ_MAX, dead_letters::list(&store, &viewer, None, 10));
    calendars::list(&store, TenantId(1))
        .await
        .expect("a first read");
    // The connection was returned to the pool before it is lost.
    while store.usage()[1].2 == 0 {
        tokio::task::yield_now().await;
    }
    network.lose();
    let lost = read().await.expect("an answer in time");
    let error = lost.expect_err("the connection is lost");
    assert_eq!(error.outage(), Some(Outage::Unreachable), "{error}");
    let next = read().await.expect("an answer in time");
    next.expect("another connection");
    let closed = timeout(READ_MAX, store.close()).await;
    closed.expect("no connection is in use");
}
