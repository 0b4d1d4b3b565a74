//! A migrated database for each test, and what a host would write into it.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection as _, Executor, PgConnection, PgPool, Postgres};
use uuid::Uuid;
use wrkflw::store::outbox::Outbox;

use super::consumer::PATIENCE;

/// Dropped with its content at the end of a test.
pub(super) struct Database {
    server: PgConnectOptions,
    name: String,
    /// Connections of the owner of everything.
    pub(super) pool: PgPool,
    relay: PgPool,
}

/// The tenant that tests write as.
const TENANT: i32 = 1;

impl Database {
    pub(super) async fn create() -> Database {
        let server = server();
        let mut connection = PgConnection::connect_with(&server).await.expect("a PostgreSQL server");
        let name: String = sqlx::query_scalar("select 'relay_' || replace(gen_random_uuid()::text, '-', '')")
            .fetch_one(&mut connection)
            .await
            .expect("a name");
        run(&mut connection, format!("create database {name}")).await;
        let options = server.clone().database(&name);
        let pool = PgPoolOptions::new().max_connections(8).connect_with(options.clone()).await.expect("a pool");
        migrate(&pool).await;
        sqlx::query("insert into tenant (name, created_at) values ('acme', now())").execute(&pool).await.expect("a tenant");
        let relay = PgPoolOptions::new()
            .max_connections(8)
            .after_connect(|connection, _| {
                Box::pin(async move { connection.execute("set role wrkflw_relay").await.map(drop) })
            })
            .connect_with(options)
            .await
            .expect("a pool");
        Database { server, name, pool, relay }
    }

    pub(super) fn outbox(&self) -> Outbox {
        Outbox::new(self.relay.clone())
    }

    /// An instance without events.
    pub(super) async fn instance(&self) -> Uuid {
        sqlx::query_scalar(
            "insert into instance (tenant_id, id, definition_key, definition_version, revision, status, entity_type, entity_id,
                initiator, requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq)
             select $1, id, 'document-approval', 2, 0, 'RUNNING', 'document', id::text, 'author', '{author}', '{}', now(), now(),
                0, '', 0
             from gen_random_uuid() as id
             returning id",
        )
        .bind(TENANT)
        .fetch_one(&self.pool)
        .await
        .expect("an instance")
    }

    /// Commits one public event of `instance`.
    pub(super) async fn record(&self, lane: i16, instance: Uuid, payload: &str) -> i64 {
        record(&self.pool, lane, instance, payload).await
    }

    /// Commits `each` events of `instances` new instances, spread over all lanes.
    pub(super) async fn record_many(&self, instances: i32, each: i32) {
        sqlx::query(
            "with i as (
                insert into instance (tenant_id, id, definition_key, definition_version, revision, status, entity_type, entity_id,
                    initiator, requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq)
                select $1, gen_random_uuid(), 'document-approval', 2, $3, 'RUNNING', 'document', gen_random_uuid()::text, 'author',
                    '{author}', '{}', now(), now(), $3, '', $3
                from generate_series(1, $2)
                returning id),
             a as (
                insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload,
                    salt, occurred_at, hash, event_seq)
                select $1, 'instance', i.id, seq, gen_random_uuid(), 'TASK_CLAIMED', seq, gen_random_uuid(), 'reviewer',
                    format('{\"owner\":\"reviewer\",\"state\":\"%s\",\"task\":\"%s\",\"type\":\"TASK_CLAIMED\"}',
                        gen_random_uuid(), gen_random_uuid()),
                    '', now(), '', seq
                from generate_series(1, $3) seq, i
                returning stream_id, seq, pos)
             insert into outbox_event (lane, pos, tenant_id, instance_id, seq)
             select get_byte(uuid_send(stream_id), 0) % 16, pos, $1, stream_id, seq from a",
        )
        .bind(TENANT)
        .bind(instances)
        .bind(each)
        .execute(&self.pool)
        .await
        .expect("events");
    }

    /// Until nothing waits in the outbox.
    pub(super) async fn drained(&self) {
        self.eventually("select not exists (select from outbox_event)").await;
    }

    /// Until `condition` holds.
    pub(super) async fn eventually(&self, condition: &'static str) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !sqlx::query_scalar::<_, bool>(condition).fetch_one(&self.pool).await.expect("an answer") {
            assert!(tokio::time::Instant::now() < deadline, "never came true: {condition}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// `seq`, `attempts` and `error` of an instance's dead letters.
    pub(super) async fn dead_letters(&self, instance: Uuid) -> Vec<(i64, i32, String)> {
        sqlx::query_as("select seq, attempts, error from dead_letter where instance_id = $1 order by seq")
            .bind(instance)
            .fetch_all(&self.pool)
            .await
            .expect("dead letters")
    }
}

/// Writes one public event of `instance`, as part of whatever transaction `executor` is in; tells its position.
pub(super) async fn record<'e>(executor: impl Executor<'e, Database = Postgres>, lane: i16, instance: Uuid, payload: &str) -> i64 {
    sqlx::query_scalar(
        "with i as (
            update instance set revision = revision + 1, audit_seq = audit_seq + 1, event_seq = event_seq + 1
            where tenant_id = $1 and id = $2
            returning id, revision, audit_seq, event_seq),
         a as (
            insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload,
                salt, occurred_at, hash, event_seq, traceparent)
            select $1, 'instance', id, audit_seq, gen_random_uuid(), $4::json ->> 'type', revision, gen_random_uuid(), 'reviewer',
                $4, '', '2026-01-02 03:04:05.000678Z', '', event_seq, '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
            from i
            returning seq, pos)
         insert into outbox_event (lane, pos, tenant_id, instance_id, seq)
         select $3, pos, $1, $2, seq from a
         returning pos",
    )
    .bind(TENANT)
    .bind(instance)
    .bind(lane)
    .bind(payload)
    .fetch_one(executor)
    .await
    .expect("an event")
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut connection = PgConnection::connect_with(&server).await.expect("a PostgreSQL server");
                run(&mut connection, format!("drop database {name} with (force)")).await;
            });
        });
        dropped.join().expect("the database can be dropped");
    }
}

async fn migrate(pool: &PgPool) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations");
    let files = std::fs::read_dir(folder).expect("the migrations").map(|file| file.expect("a file").path());
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|extension| extension == "sql")).collect();
    files.sort();
    for file in files {
        let mut transaction = pool.begin().await.expect("a transaction");
        run(&mut transaction, std::fs::read_to_string(file).expect("a migration")).await;
        transaction.commit().await.expect("the migration commits");
    }
}

async fn run(connection: &mut PgConnection, statement: String) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(connection).await.expect("the statement runs");
}

#[expect(clippy::disallowed_methods, reason = "tests are told by their environment where the server is")]
fn server() -> PgConnectOptions {
    let url = std::env::var("WRKFLW_TEST_DATABASE_URL").expect("WRKFLW_TEST_DATABASE_URL names a PostgreSQL server");
    url.parse().expect("a PostgreSQL URL")
}
