//! Rows as JSON objects of their columns, for the comparison with entries. Components and the long texts of versions are replaced by
//! their SHA-256 in hexadecimal digits.

use std::collections::BTreeMap;

use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::QueryScalar;
use uuid::Uuid;

use super::Snapshot;
use crate::StoreError;
use wrkflw_audit::record::Tables;
use wrkflw_audit::record::rows::{Columns, DirectoryTable, PartRows, TableRows};

/// A query whose rows come as [`Columns`].
macro_rules! rows {
    ($sql:literal, $($argument:expr),+) => {
        sqlx::query_scalar!(r#"select to_jsonb(r) as "row!" from ("# + $sql + ") r", $($argument),+)
    };
}

async fn all(
    snapshot: &mut Snapshot,
    query: QueryScalar<'_, Postgres, Value, PgArguments>,
) -> Result<Vec<Columns>, StoreError> {
    let rows = query.fetch_all(&mut *snapshot.transaction).await?;
    Ok(rows.into_iter().map(columns).collect())
}

impl Tables for Snapshot {
    async fn parts(&mut self, instances: &[Uuid]) -> Result<BTreeMap<Uuid, PartRows>, StoreError> {
        let tenant = self.tenant.0;
        let own = rows!(
            "select id as instance_id, id, ended_at, started_at, updated_at, suspended_at, state_instances, buffered_signals,
                title, summary, sole, observers
            from instance where tenant_id = $1 and id = any($2) order by id",
            tenant,
            instances
        );
        let state_instances = rows!(
            "select * from state_instance where tenant_id = $1 and instance_id = any($2) order by instance_id, ordinal",
            tenant,
            instances
        );
        let subscriptions = rows!(
            "select * from signal_subscription where tenant_id = $1 and instance_id = any($2)",
            tenant,
            instances
        );
        let tasks = rows!(
            "select id, instance_id, ordinal, label, candidates, created_at, claimed_at, ended_at, ownership, due_at,
                deadlines, suspended, cancel_reason
            from task where tenant_id = $1 and instance_id = any($2) order by instance_id, id",
            tenant,
            instances
        );
        let candidates = rows!(
            "select t.instance_id, c.kind, c.principal, c.task_id
            from task t join task_candidate c on c.tenant_id = t.tenant_id and c.task_id = t.id
            where t.tenant_id = $1 and t.instance_id = any($2)",
            tenant,
            instances
        );
        let attributes = rows!(
            "select instance_id, name, type, text_value, boolean_value, decimal_value::text as decimal_value, float_value,
                timestamp_value, bytes_value
            from attribute where tenant_id = $1 and instance_id = any($2)",
            tenant,
            instances
        );
        let mut parts = BTreeMap::new();
        sort(all(self, own).await?, &mut parts, |of| &mut of.own);
        sort(all(self, state_instances).await?, &mut parts, |of| {
            &mut of.state_instances
        });
        sort(all(self, subscriptions).await?, &mut parts, |of| {
            &mut of.subscriptions
        });
        sort(all(self, tasks).await?, &mut parts, |of| &mut of.tasks);
        sort(all(self, candidates).await?, &mut parts, |of| {
            &mut of.candidates
        });
        sort(all(self, attributes).await?, &mut parts, |of| {
            &mut of.attributes
        });
        Ok(parts)
    }

    fn directory(&mut self, table: DirectoryTable) -> BoxStream<'_, Result<Columns, StoreError>> {
        let (tenant, connection) = (self.tenant.0, &mut *self.transaction);
        let rows = match table {
            DirectoryTable::Absence => {
                rows!("select * from absence where tenant_id = $1", tenant).fetch(connection)
            }
            DirectoryTable::Calendar => {
                rows!("select * from calendar where tenant_id = $1", tenant).fetch(connection)
            }
            DirectoryTable::Group => {
                rows!("select * from \"group\" where tenant_id = $1", tenant).fetch(connection)
            }
            DirectoryTable::Manager => {
                rows!("select * from manager where tenant_id = $1", tenant).fetch(connection)
            }
            DirectoryTable::Membership => {
                rows!("select * from membership where tenant_id = $1", tenant).fetch(connection)
            }
            DirectoryTable::Person => {
                rows!("select * from person where tenant_id = $1", tenant).fetch(connection)
            }
            DirectoryTable::RolePermission => {
                rows!("select * from role_permission where tenant_id = $1", tenant)
                    .fetch(connection)
            }
            DirectoryTable::Tenant => rows!(
                "select id, name, created_at from tenant where id = $1",
                tenant
            )
            .fetch(connection),
        };
        rows.map_ok(columns).map_err(StoreError::from).boxed()
    }

    async fn table(&mut self, which: TableRows<'_>) -> Result<Vec<Columns>, StoreError> {
        let tenant = self.tenant.0;
        let query = match which {
            TableRows::Subscriptions => rows!(
                "select tenant_id, id, url, types, definition_key, created_at, created_by from subscription where tenant_id = $1",
                tenant
            ),
            TableRows::Operation { id, kept } => rows!(
                "select o.tenant_id, o.id, o.action, o.settings, o.requested_by, o.roles, o.created_at, o.total, o.more,
                o.stopped_by, (
                    select case
                        when count(*) >= o.total or o.created_at >= now() - make_interval(secs => $3)
                        then encode(sha256(coalesce(string_agg(uuid_send(i.instance_id), '' order by i.instance_id), '')), 'hex')
                    end
                    from bulk_item i where i.tenant_id = o.tenant_id and i.operation_id = o.id
                ) as instances
            from bulk_operation o where o.tenant_id = $1 and o.id = $2",
                tenant,
                id,
                kept.as_secs_f64()
            ),
            TableRows::Definition(id) => rows!(
                "select * from definition where tenant_id = $1 and id = $2 order by key",
                tenant,
                id
            ),
            TableRows::Versions(key) => rows!(
                "select tenant_id, key, version, encode(digest, 'hex') as digest,
                encode(sha256(convert_to(config, 'UTF8')), 'hex') as config,
                encode(config_digest, 'hex') as config_digest, encode(sha256(convert_to(graph, 'UTF8')), 'hex') as graph,
                sdk, wit, published_at, published_by, note, retired_at, retired_by,
                stopped_at, stopped_by, stop_reason
            from definition_version where tenant_id = $1 and key = $2 order by version",
                tenant,
                key
            ),
            TableRows::Declarations(key) => rows!(
                "select * from attribute_declaration where tenant_id = $1 and definition_key = $2",
                tenant,
                key
            ),
            TableRows::Components(digests) => rows!(
                "select encode(digest, 'hex') as digest, encode(sha256(bytes), 'hex') as bytes
            from component where digest in (select decode(wanted, 'hex') from unnest($1::text[]) wanted)",
                digests
            ),
            TableRows::EngineProfiles(digests) => rows!(
                "select encode(digest, 'hex') as digest, encode(sha256(convert_to(profile, 'UTF8')), 'hex') as profile
            from engine_profile where digest in (select decode(wanted, 'hex') from unnest($1::text[]) wanted)",
                digests
            ),
        };
        all(self, query).await
    }

    async fn without_stream(
        &mut self,
        limit: i64,
    ) -> Result<Vec<(String, Uuid, String)>, StoreError> {
        let rows = sqlx::query!(
            r#"select r.name as "name!", r.id as "id!", r.key as "key!" from (
                select 'definition' as name, d.id, 'key ' || to_json(d.key)::text as key from definition d
                where d.tenant_id = $1 and not exists (
                    select from audit_entry a
                    where a.tenant_id = $1 and a.stream_kind = 'definition' and a.stream_id = d.id
                )
                union all
                select 'definition_version', $3, 'key ' || to_json(v.key)::text || ', version ' || v.version
                from definition_version v
                where v.tenant_id = $1 and not exists (
                    select from definition d where d.tenant_id = $1 and d.key = v.key
                )
                union all
                select 'attribute_declaration', $3, 'name ' || to_json(v.name)::text || ', definition_key ' || to_json(v.definition_key)::text
                from attribute_declaration v
                where v.tenant_id = $1 and not exists (
                    select from definition d where d.tenant_id = $1 and d.key = v.definition_key
                )
                union all
                select 'bulk_operation', o.id, 'id ' || o.id from bulk_operation o
                where o.tenant_id = $1 and not exists (
                    select from audit_entry a
                    where a.tenant_id = $1 and a.stream_kind = 'operation' and a.stream_id = o.id
                )
            ) r limit $2"#,
            self.tenant.0,
            limit,
            Uuid::nil()
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.name, row.id, row.key))
            .collect())
    }
}

/// Adds each row to those of its instance.
fn sort(
    rows: Vec<Columns>,
    parts: &mut BTreeMap<Uuid, PartRows>,
    of: impl Fn(&mut PartRows) -> &mut Vec<Columns>,
) {
    for row in rows {
        let id = row.get("instance_id").and_then(Value::as_str);
        if let Some(id) = id.and_then(|id| id.parse().ok()) {
            of(parts.entry(id).or_default()).push(row);
        }
    }
}

fn columns(row: Value) -> Columns {
    match row {
        Value::Object(columns) => columns,
        _ => Columns::new(),
    }
}
