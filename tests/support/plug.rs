//! Makes a statement wait, so that a host's one worker is busy and what comes meanwhile makes the next batch.

use std::time::Duration;

use super::postgres::TestDatabase;

pub(crate) const LONG: Duration = Duration::from_mins(1);

/// What each statement waits for that changes an instance whose entity is called `plug` something.
pub(crate) struct Plug<'a>(&'a TestDatabase);

impl Plug<'_> {
    const MAKE: &'static str = "create sequence if not exists plug;
        create or replace function wait_for_plug() returns trigger language plpgsql security definer as $$
            begin while (select last_value from public.plug) = 1 loop perform pg_sleep(0.005); end loop; return new; end $$;
        create or replace trigger wait_for_plug before update on instance for each row
            when (new.entity_id like 'plug%') execute function wait_for_plug();
        select setval('plug', 1)";

    pub(crate) async fn put(database: &TestDatabase) -> Plug<'_> {
        let made = sqlx::raw_sql(Plug::MAKE).execute(database.admin_pool());
        made.await.expect("a trigger");
        Plug(database)
    }

    /// Returns once a statement waits.
    pub(crate) async fn is_met(&self) {
        let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
        let met = async {
            while count(self.0, waiting).await == 0 {
                tokio::task::yield_now().await;
            }
        };
        within(met).await;
    }

    pub(crate) async fn pull(self) {
        let pulled = sqlx::raw_sql("select setval('plug', 2)").execute(self.0.admin_pool());
        pulled.await.expect("a value");
    }
}

pub(crate) async fn count(database: &TestDatabase, sql: &'static str) -> i64 {
    let found = sqlx::query_scalar(sql).fetch_one(database.admin_pool());
    found.await.expect(sql)
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, work).await.expect("in time")
}
