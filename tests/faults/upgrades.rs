//! Migrations while others use the database.

use std::cell::RefCell;
use std::time::Duration;

use wrkflw_store::pools::Readiness;
use wrkflw_store::{PoolSizes, Store, StoreError};

use crate::support::own_postgres::OwnPostgres;
use crate::support::postgres::{TestDatabase, database};

const TIMEOUT: Duration = Duration::from_mins(1);

/// The messages of a migration about what it waits for.
#[derive(Default)]
struct Told(RefCell<Vec<String>>);

impl Told {
    async fn migrate(&self, url: &str) -> Result<(), StoreError> {
        Store::migrate_telling(url, |waits| self.0.borrow_mut().push(waits.to_owned())).await
    }

    fn is_once(&self, part: &str) {
        let messages = self.0.borrow();
        let count = messages.iter().filter(|words| words.contains(part)).count();
        assert_eq!(count, 1, "{messages:?}");
    }
}

/// Waits for a session, other than `other`, that waits for a table. Returns its process id.
async fn waiting(database: &TestDatabase, other: i32) -> i32 {
    let sql = "select min(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'relation' and pid <> $1";
    let seen = async {
        loop {
            let found = sqlx::query_scalar::<_, Option<i32>>(sql).bind(other);
            let found = found.fetch_one(database.admin_pool()).await;
            if let Some(pid) = found.expect("a look") {
                return pid;
            }
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, seen).await.expect("in time")
}

/// A session that waits for a locked table blocks all later ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_does_not_block_others_and_is_retried() {
    let database = database(async |url: &str| Store::migrate(url).await).await;
    let mut holder = database.admin_pool().begin().await.expect("a transaction");
    let hold = "lock table _sqlx_migrations in access exclusive mode";
    sqlx::query(hold)
        .execute(&mut *holder)
        .await
        .expect("a lock");
    let giving_way = async {
        let first = waiting(&database, 0).await;
        let second = waiting(&database, first).await;
        assert_ne!(first, second);
        holder.rollback().await.expect("an end");
    };
    let messages = Told::default();
    let both = async { tokio::join!(messages.migrate(database.url()), giving_way) };
    let (migrated, ()) = tokio::time::timeout(TIMEOUT, both).await.expect("in time");
    migrated.expect("it is up to date");
    messages.is_once("pg_stat_activity");
}

/// A concurrent build waits for every statement that began before it, also for one that waits for a lock of the builder.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_waits_for_another_one_does_not_block_it() {
    let database = database(async |url: &str| Store::migrate(url).await).await;
    let mut first = database.admin_pool().acquire().await.expect("a connection");
    let mut run = async |sql: &'static str| sqlx::query(sql).execute(&mut *first).await;
    let lock = "select pg_advisory_lock(8246133957)";
    run(lock).await.expect(lock);
    let both_asked = "select count(*) = 2 from pg_stat_activity
        where datname = current_database() and query like 'select pg%advisory_lock(8246133957)'";
    let building = async {
        while !sqlx::query_scalar::<_, bool>(both_asked)
            .fetch_one(database.admin_pool())
            .await
            .expect("a look")
        {
            crate::support::pause().await;
        }
        for sql in [
            "create index concurrently built on task (label)",
            "select pg_advisory_unlock(8246133957)",
        ] {
            run(sql).await.expect(sql);
        }
    };
    let messages = Told::default();
    let both = async { tokio::join!(messages.migrate(database.url()), building) };
    let (migrated, ()) = tokio::time::timeout(TIMEOUT, both).await.expect("in time");
    migrated.expect("it is up to date");
    messages.is_once("another session migrates");
}

/// On a server whose roles an administrator has created.
#[tokio::test]
async fn a_login_that_may_take_on_the_roles_migrates_without_the_right_to_create_any() {
    let own = OwnPostgres::start().await;
    Store::migrate(own.url()).await.expect("the roles");
    for statement in [
        "create role plain login in role wrkflw_owner, wrkflw_writer, wrkflw_reader, wrkflw_viewer, wrkflw_relay",
        "create database empty owner plain",
    ] {
        let made = sqlx::raw_sql(statement).execute(own.pool()).await;
        made.expect(statement);
    }
    let url = own.url().replacen("//postgres@", "//plain@", 1);
    let url = url.replacen("/postgres?", "/empty?", 1);
    Store::migrate(&url).await.expect("it needs no more");
    let store = Store::connect(&url, PoolSizes::default()).expect("a URL");
    let ready = store.ready_to_start(true).await.expect("an answer");
    assert_eq!(ready, Readiness::Ready);
    store.close().await;
}

/// An index whose concurrent build was cancelled is left behind as invalid.
#[tokio::test]
async fn an_invalid_index_is_built_again() {
    let database = database(async |url: &str| Store::migrate(url).await).await;
    let left = "create index left_over on task (label);
        update pg_index set indisvalid = false where indexrelid = 'left_over'::regclass";
    let pool = database.admin_pool();
    sqlx::raw_sql(left).execute(pool).await.expect("an index");
    Store::migrate(database.url())
        .await
        .expect("it is up to date");
    let gone: bool = sqlx::query_scalar("select to_regclass('left_over') is null")
        .fetch_one(pool)
        .await
        .expect("a look");
    assert!(gone, "the next file would find it by its name");
}

/// A database with other migrations is refused, by `wrkflw migrate` and by a host.
#[tokio::test]
async fn a_database_with_other_migrations_is_refused_with_advice() {
    let database = database(async |url: &str| Store::migrate(url).await).await;
    let pool = database.admin_pool();
    let store = Store::connect(database.url(), PoolSizes::default()).expect("a URL");
    let ready = async || store.ready().await.expect("an answer");
    assert_eq!(ready().await, Readiness::Ready);
    let last: i64 = sqlx::query_scalar("select max(version) from _sqlx_migrations")
        .fetch_one(pool)
        .await
        .expect("migrations");
    let later = last + 1;
    let more =
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
        values ($1, 'later', true, '', 0)";
    let anew = "update _sqlx_migrations set checksum = '' where version = $1";
    let others = [
        (later, more, Readiness::Ready),
        (last, anew, Readiness::NotMigrated),
    ];
    for (version, change, readiness) in others {
        let changed = sqlx::query(change).bind(version).execute(pool).await;
        assert_eq!(changed.expect(change).rows_affected(), 1, "{change}");
        assert_eq!(ready().await, readiness, "{change}");
        let refused = Store::migrate(database.url()).await.expect_err(change);
        let words = refused.to_string();
        assert!(words.contains(&format!("migration {version} ")), "{words}");
        assert!(words.contains("create a new database"), "{words}");
        let undo = "delete from _sqlx_migrations where version = $1";
        sqlx::query(undo)
            .bind(later)
            .execute(pool)
            .await
            .expect(undo);
    }
    store.close().await;
}
