//! Rows as columns and values, the way PostgreSQL writes them as JSON, for whoever holds them against what entries give.
//! Texts of versions, and what they run, may be long: their SHA-256 stands for them, in hexadecimal digits.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use uuid::Uuid;

use super::Snapshot;
use crate::store::StoreError;

/// The columns of a row, by name.
pub type Columns = serde_json::Map<String, Value>;

/// Tables of a tenant's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryTable {
    Absence,
    Calendar,
    Group,
    Manager,
    Membership,
    Person,
    RolePermission,
    Tenant,
}

/// What an instance has in tables besides decisions.
#[derive(Debug, Default)]
pub struct PartRows {
    /// Those columns of its row that [`super::InstanceRow`] does not have.
    pub own: Vec<Columns>,
    pub stays: Vec<Columns>,
    pub tasks: Vec<Columns>,
    pub candidates: Vec<Columns>,
    pub attributes: Vec<Columns>,
}

impl Snapshot {
    /// The rows of these instances.
    pub async fn parts(
        &mut self,
        instances: &[Uuid],
    ) -> Result<BTreeMap<Uuid, PartRows>, StoreError> {
        let tenant = self.tenant.0;
        let of_instances = sqlx::query_scalar!(
            r#"select to_jsonb(r) as "row!" from (
                select id as instance_id, id, ended_at, started_at, updated_at, suspended_at, stays, early_signals
                from instance where tenant_id = $1 and id = any($2) order by id
            ) r"#,
            tenant,
            instances
        );
        let of_instances = of_instances.fetch_all(&mut *self.transaction).await?;
        let stays = sqlx::query_scalar!(
            r#"select to_jsonb(s) as "row!" from state_instance s
            where s.tenant_id = $1 and s.instance_id = any($2) order by s.instance_id, s.ordinal"#,
            tenant,
            instances
        );
        let stays = stays.fetch_all(&mut *self.transaction).await?;
        let tasks = sqlx::query_scalar!(
            r#"select to_jsonb(r) as "row!" from (
                select id, instance_id, ordinal, label, candidates, form, created_at, claimed_at, ended_at, holding, due_at,
                    deadlines, cancel_reason
                from task where tenant_id = $1 and instance_id = any($2) order by instance_id, id
            ) r"#,
            tenant,
            instances
        );
        let tasks = tasks.fetch_all(&mut *self.transaction).await?;
        let candidates = sqlx::query_scalar!(
            r#"select to_jsonb(r) as "row!" from (
                select t.instance_id, c.kind, c.principal, c.task_id
                from task t join task_candidate c on c.tenant_id = t.tenant_id and c.task_id = t.id
                where t.tenant_id = $1 and t.instance_id = any($2)
            ) r"#,
            tenant,
            instances
        );
        let candidates = candidates.fetch_all(&mut *self.transaction).await?;
        let attributes = sqlx::query_scalar!(
            r#"select to_jsonb(r) as "row!" from (
                select instance_id, name, type, text_value, boolean_value, decimal_value::text as decimal_value, float_value,
                    timestamp_value, bytes_value
                from attribute where tenant_id = $1 and instance_id = any($2)
            ) r"#,
            tenant,
            instances
        );
        let attributes = attributes.fetch_all(&mut *self.transaction).await?;
        let mut parts = BTreeMap::new();
        sort(of_instances, &mut parts, |of| &mut of.own);
        sort(stays, &mut parts, |of| &mut of.stays);
        sort(tasks, &mut parts, |of| &mut of.tasks);
        sort(candidates, &mut parts, |of| &mut of.candidates);
        sort(attributes, &mut parts, |of| &mut of.attributes);
        Ok(parts)
    }

    /// The rows of one table of the directory, handed on as they arrive.
    pub fn directory(
        &mut self,
        table: DirectoryTable,
    ) -> BoxStream<'_, Result<Columns, StoreError>> {
        let tenant = self.tenant.0;
        let connection = &mut *self.transaction;
        let rows = match table {
            DirectoryTable::Absence => sqlx::query_scalar!(
                r#"select to_jsonb(r) as "row!" from absence r where tenant_id = $1"#,
                tenant
            )
            .fetch(connection),
            DirectoryTable::Calendar => sqlx::query_scalar!(
                r#"select to_jsonb(r) as "row!" from calendar r where tenant_id = $1"#,
                tenant
            )
            .fetch(connection),
            DirectoryTable::Group => sqlx::query_scalar!(
                r#"select to_jsonb(r) as "row!" from "group" r where tenant_id = $1"#,
                tenant
            )
            .fetch(connection),
            DirectoryTable::Manager => sqlx::query_scalar!(
                r#"select to_jsonb(r) as "row!" from manager r where tenant_id = $1"#,
                tenant
            )
            .fetch(connection),
            DirectoryTable::Membership => sqlx::query_scalar!(
                r#"select to_jsonb(r) as "row!" from membership r where tenant_id = $1"#,
                tenant
            )
            .fetch(connection),
            DirectoryTable::Person => sqlx::query_scalar!(
                r#"select to_jsonb(r) as "row!" from person r where tenant_id = $1"#,
                tenant
            )
            .fetch(connection),
            DirectoryTable::RolePermission => sqlx::query_scalar!(
                r#"select to_jsonb(r) as "row!" from role_permission r where tenant_id = $1"#,
                tenant
            )
            .fetch(connection),
            DirectoryTable::Tenant => sqlx::query_scalar!(
                r#"select to_jsonb(r) as "row!" from (select id, name, created_at from tenant where id = $1) r"#,
                tenant
            )
            .fetch(connection),
        };
        rows.map_ok(columns).map_err(StoreError::from).boxed()
    }

    /// All subscriptions, without their secrets and what deliveries have to say.
    pub async fn subscription_rows(&mut self) -> Result<Vec<Columns>, StoreError> {
        let rows = sqlx::query_scalar!(
            r#"select to_jsonb(r) as "row!" from (
                select tenant_id, id, url, types, definition_key, created_at, created_by from subscription where tenant_id = $1
            ) r"#,
            self.tenant.0
        );
        Ok(all(rows.fetch_all(&mut *self.transaction).await?))
    }

    /// An operation on many instances, and of its items the digest of their instances' ids in their order: null where some
    /// are not there, and the operation is so old that they may be forgotten.
    pub async fn operation_row(
        &mut self,
        id: Uuid,
        kept: Duration,
    ) -> Result<Vec<Columns>, StoreError> {
        let rows = sqlx::query_scalar!(
            r#"select to_jsonb(r) as "row!" from (
                select o.tenant_id, o.id, o.action, o.settings, o.requested_by, o.roles, o.created_at, o.total, o.more,
                    o.stopped_by, (
                        select case
                            when count(*) >= o.total or o.created_at >= now() - make_interval(secs => $3)
                            then encode(sha256(coalesce(string_agg(uuid_send(i.instance_id), '' order by i.instance_id), '')), 'hex')
                        end
                        from bulk_item i where i.tenant_id = o.tenant_id and i.operation_id = o.id
                    ) as instances
                from bulk_operation o where o.tenant_id = $1 and o.id = $2
            ) r"#,
            self.tenant.0,
            id,
            kept.as_secs_f64()
        );
        Ok(all(rows.fetch_all(&mut *self.transaction).await?))
    }

    /// The definition whose stream has this id.
    pub async fn definition_row(&mut self, id: Uuid) -> Result<Vec<Columns>, StoreError> {
        let rows = sqlx::query_scalar!(
            r#"select to_jsonb(d) as "row!" from definition d where d.tenant_id = $1 and d.id = $2 order by d.key"#,
            self.tenant.0,
            id
        );
        Ok(all(rows.fetch_all(&mut *self.transaction).await?))
    }

    /// The versions under this key.
    pub async fn version_rows(&mut self, key: &str) -> Result<Vec<Columns>, StoreError> {
        let rows = sqlx::query_scalar!(
            r#"select to_jsonb(r) as "row!" from (
                select tenant_id, key, version, encode(digest, 'hex') as digest,
                    encode(sha256(convert_to(config, 'UTF8')), 'hex') as config,
                    encode(config_digest, 'hex') as config_digest, encode(sha256(convert_to(graph, 'UTF8')), 'hex') as graph,
                    sdk, wit, published_at, published_by, retired_at, retired_by,
                    stopped_at, stopped_by, stop_reason
                from definition_version where tenant_id = $1 and key = $2 order by version
            ) r"#,
            self.tenant.0,
            key
        );
        Ok(all(rows.fetch_all(&mut *self.transaction).await?))
    }

    /// The attributes that are declared under this key.
    pub async fn declaration_rows(&mut self, key: &str) -> Result<Vec<Columns>, StoreError> {
        let rows = sqlx::query_scalar!(
            r#"select to_jsonb(d) as "row!" from attribute_declaration d where d.tenant_id = $1 and d.definition_key = $2"#,
            self.tenant.0,
            key
        );
        Ok(all(rows.fetch_all(&mut *self.transaction).await?))
    }

    /// The components that are kept under these digests.
    pub async fn component_rows(&mut self, digests: &[String]) -> Result<Vec<Columns>, StoreError> {
        let rows = sqlx::query_scalar!(
            r#"select to_jsonb(r) as "row!" from (
                select encode(digest, 'hex') as digest, encode(sha256(bytes), 'hex') as bytes
                from component where digest in (select decode(wanted, 'hex') from unnest($1::text[]) wanted)
            ) r"#,
            digests
        );
        Ok(all(rows.fetch_all(&mut *self.transaction).await?))
    }

    /// The engine profiles that are kept under these digests.
    pub async fn profile_rows(&mut self, digests: &[String]) -> Result<Vec<Columns>, StoreError> {
        let rows = sqlx::query_scalar!(
            r#"select to_jsonb(r) as "row!" from (
                select encode(digest, 'hex') as digest, encode(sha256(convert_to(profile, 'UTF8')), 'hex') as profile
                from engine_profile where digest in (select decode(wanted, 'hex') from unnest($1::text[]) wanted)
            ) r"#,
            digests
        );
        Ok(all(rows.fetch_all(&mut *self.transaction).await?))
    }

    /// Rows that belong to streams of which nothing is there: the name of the table and the row's key, `limit` at most.
    pub async fn without_stream(
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

/// Puts each row to those of its instance.
fn sort(
    rows: Vec<Value>,
    parts: &mut BTreeMap<Uuid, PartRows>,
    of: impl Fn(&mut PartRows) -> &mut Vec<Columns>,
) {
    for row in all(rows) {
        let id = row.get("instance_id").and_then(Value::as_str);
        if let Some(id) = id.and_then(|id| id.parse().ok()) {
            of(parts.entry(id).or_default()).push(row);
        }
    }
}

fn all(rows: Vec<Value>) -> Vec<Columns> {
    rows.into_iter().map(columns).collect()
}

fn columns(row: Value) -> Columns {
    match row {
        Value::Object(columns) => columns,
        _ => Columns::new(),
    }
}
