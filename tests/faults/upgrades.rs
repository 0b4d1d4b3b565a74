//! The schema is brought up to date while others work in the database.

use std::time::Duration;

use wrkflw::store::Store;

use crate::support::postgres::{TestDatabase, database};

const PATIENCE: Duration = Duration::from_mins(1);

/// The session that waits for a table and is another one than this.
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
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("in time")
}

/// Who wants a table that somebody holds has others wait behind them.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_gives_way_and_comes_again() {
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
    let both = async { tokio::join!(Store::migrate(database.url()), giving_way) };
    let (migrated, ()) = tokio::time::timeout(PATIENCE, both).await.expect("in time");
    migrated.expect("it is up to date");
}
