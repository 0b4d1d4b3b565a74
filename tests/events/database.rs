//! Rows that a host would write, written directly, so that a test takes a few lines.

use sqlx::{Executor, PgPool, Postgres};
use uuid::Uuid;
use wrkflw_store::outbox::Outbox;
use wrkflw_store::{PoolSizes, Store};

use crate::support::postgres::{TestDatabase, database};
use crate::support::until;

/// A migrated database with one tenant, `acme`.
pub(crate) struct Database {
    inner: TestDatabase,
    store: Store,
}

/// The tenant of the tests.
const TENANT: i32 = 1;

impl Database {
    pub(crate) async fn create() -> Database {
        let inner = database(async |url: &str| Store::migrate(url).await).await;
        let sizes = PoolSizes {
            writer: 1,
            reader: 1,
            relay: 8,
        };
        let store = Store::connect(inner.url(), sizes).expect("a URL");
        sqlx::query("insert into tenant (name, created_at) values ('acme', now())")
            .execute(inner.admin_pool())
            .await
            .expect("a tenant");
        Database { inner, store }
    }

    pub(crate) fn outbox(&self) -> Outbox {
        self.store.outbox()
    }

    /// Connections as the superuser.
    pub(crate) fn pool(&self) -> &PgPool {
        self.inner.admin_pool()
    }

    /// A topic that no other test uses, on a broker that all share.
    pub(crate) fn topic(&self) -> String {
        topic_of(&self.inner)
    }

    /// An instance without events.
    pub(crate) async fn instance(&self) -> Uuid {
        sqlx::query_scalar(
            "insert into instance (tenant_id, id, definition_key, definition_version, revision, status, entity_type, entity_id,
                initiator, requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, state_instances)
             select $1, id, 'document-approval', 2, 0, 'RUNNING', 'document', id::text, 'author', '{author}', '{}', now(), now(),
                0, '', 0, 0
             from gen_random_uuid() as id
             returning id",
        )
        .bind(TENANT)
        .fetch_one(self.pool())
        .await
        .expect("an instance")
    }

    /// Commits one public event of `instance`.
    pub(crate) async fn record(&self, partition: i16, instance: Uuid, payload: &str) -> i64 {
        record(self.pool(), partition, instance, payload).await
    }

    /// Commits `each` events of `instances` new instances, spread over all partitions.
    pub(crate) async fn record_many(&self, instances: i32, each: i32) {
        record_many(self.pool(), instances, each).await;
    }

    /// Waits until the outbox is empty.
    pub(crate) async fn drained(&self) {
        self.eventually("select not exists (select from outbox_event)")
            .await;
    }

    /// Waits until `condition` holds.
    pub(crate) async fn eventually(&self, condition: &'static str) {
        let look = async || {
            let asked = sqlx::query_scalar::<_, bool>(condition).fetch_one(self.pool());
            asked.await.expect("an answer")
        };
        until(condition, look, |holds: &bool| *holds).await;
    }

    /// `seq`, `attempts` and `error` of an instance's dead letters.
    pub(crate) async fn dead_letters(&self, instance: Uuid) -> Vec<(i64, i32, String)> {
        sqlx::query_as(
            "select seq, attempts, error from dead_letter where instance_id = $1 order by seq",
        )
        .bind(instance)
        .fetch_all(self.pool())
        .await
        .expect("dead letters")
    }
}

/// Writes one public event of `instance` in the transaction of `executor`. Returns its position.
pub(crate) async fn record<'e>(
    executor: impl Executor<'e, Database = Postgres>,
    partition: i16,
    instance: Uuid,
    payload: &str,
) -> i64 {
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
         insert into outbox_event (partition, pos, tenant_id, instance_id, seq)
         select $3, pos, $1, $2, seq from a
         returning pos",
    )
    .bind(TENANT)
    .bind(instance)
    .bind(partition)
    .bind(payload)
    .fetch_one(executor)
    .await
    .expect("an event")
}

/// Commits `each` events of `instances` new instances, spread over all partitions.
pub(crate) async fn record_many(pool: &PgPool, instances: i32, each: i32) {
    sqlx::query(
        "with i as (
            insert into instance (tenant_id, id, definition_key, definition_version, revision, status, entity_type, entity_id,
                initiator, requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, state_instances)
            select $1, gen_random_uuid(), 'document-approval', 2, $3, 'RUNNING', 'document', gen_random_uuid()::text, 'author',
                '{author}', '{}', now(), now(), $3, '', $3, 0
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
         insert into outbox_event (partition, pos, tenant_id, instance_id, seq)
         select get_byte(uuid_send(stream_id), 0) % 16, pos, $1, stream_id, seq from a",
    )
    .bind(TENANT)
    .bind(instances)
    .bind(each)
    .execute(pool)
    .await
    .expect("events");
}

/// The topic for the events of a database: the name of the database, which is unique.
pub(crate) fn topic_of(database: &TestDatabase) -> String {
    database.name().to_owned()
}
