//! Blocks statements. A plug blocks the only commit worker of a host, so that the commands sent meanwhile form the next batch. A
//! gate blocks a commit between its check and its write, so that something else can be committed in between.

use std::time::Duration;

use sqlx::{Postgres, Transaction};

use super::postgres::TestDatabase;

pub(crate) const LONG: Duration = Duration::from_mins(1);

/// Blocks each statement that updates an instance whose entity id begins with `plug`.
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

    /// Waits until a statement is blocked.
    pub(crate) async fn is_met(&self) {
        let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
        let met = async {
            while count(self.0, waiting).await == 0 {
                crate::support::pause().await;
            }
        };
        within(met).await;
    }

    pub(crate) async fn pull(self) {
        let pulled = sqlx::raw_sql("select setval('plug', 2)").execute(self.0.admin_pool());
        pulled.await.expect("a value");
    }
}

/// Blocks the next statement that inserts a row into a table, after its checks and before it writes.
pub(crate) struct Gate<'a> {
    database: &'a TestDatabase,
    keeper: Transaction<'static, Postgres>,
}

impl Gate<'_> {
    const MAKE: &'static str = "create sequence gate;
        create function wait_at_gate() returns trigger language plpgsql security definer as $$ begin
            if nextval('public.gate') = 1 then
                perform set_config('lock_timeout', '0', true), pg_advisory_xact_lock_shared(4711);
            end if;
            return new;
        end $$;
        create trigger wait_at_gate before insert on";

    pub(crate) async fn shut<'a>(database: &'a TestDatabase, table: &str) -> Gate<'a> {
        let sql = format!(
            "{} {table} for each row execute function wait_at_gate()",
            Gate::MAKE
        );
        let made = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(database.admin_pool());
        made.await.expect("a trigger");
        let mut keeper = database.admin_pool().begin().await.expect("a transaction");
        let shut = sqlx::query("select pg_advisory_xact_lock(4711)").execute(&mut *keeper);
        shut.await.expect("a lock");
        Gate { database, keeper }
    }

    /// Waits until a statement is blocked.
    pub(crate) async fn is_met(&self) {
        let met = "select case when is_called then last_value else 0 end from gate";
        let met = async {
            while count(self.database, met).await == 0 {
                crate::support::pause().await;
            }
        };
        within(met).await;
    }

    /// Unblocks the statement, and waits until no statement is running.
    pub(crate) async fn open(self) {
        self.keeper.rollback().await.expect("it opens");
        let busy = "select count(*) from pg_stat_activity
            where datname = current_database() and state = 'active' and pid <> pg_backend_pid()";
        let calm = async {
            while count(self.database, busy).await > 0 {
                crate::support::pause().await;
            }
        };
        within(calm).await;
    }
}

pub(crate) async fn count(database: &TestDatabase, sql: &'static str) -> i64 {
    let found = sqlx::query_scalar(sql).fetch_one(database.admin_pool());
    found.await.expect(sql)
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, work).await.expect("in time")
}
