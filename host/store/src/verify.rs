//! The database as a [`Record`] for the verifier. A [`Snapshot`] is one moment of a tenant, so instances fit their entries. It
//! checks nothing: a row that no host would have written is passed on unchanged.
//!
//! `instances` reads instances with their tasks and decisions, `replies` stored replies, `rows` the other tables that are
//! compared with entries, `streams` entries and heads, `tree` leaves and checkpoints, `versions` definition versions.

mod instances;
mod replies;
mod rows;
mod streams;
mod tree;
mod versions;

use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use self::versions::graph;
use super::{Reader, StoreError};
use wrkflw_audit::record::rows::RecordedVersion;
use wrkflw_audit::record::{Reading, Record};
use wrkflw_core::ids::{Digest, TenantId, VersionRef};
use wrkflw_core::json::Json;

/// One tenant at one moment.
pub struct Snapshot {
    tenant: TenantId,
    pub(super) transaction: Transaction<'static, Postgres>,
}

/// The first id of the page after `after`. A walk begins at the nil id, so that it finds a row that was inserted by hand with that id.
fn first_id(after: Option<Uuid>) -> Option<Uuid> {
    after.map_or(Some(Uuid::nil()), |after| {
        after.as_u128().checked_add(1).map(Uuid::from_u128)
    })
}

impl Reading for Reader {
    type Error = StoreError;
}

impl Reading for Snapshot {
    type Error = StoreError;
}

impl Record for Reader {
    type Snapshot = Snapshot;

    async fn tenants(
        &self,
        after: Option<TenantId>,
        limit: i64,
    ) -> Result<Vec<(TenantId, String)>, StoreError> {
        // A host makes no tenant with such a number, but serves one that was inserted by hand.
        let Some(first) = after.map_or(Some(i32::MIN), |after| after.0.checked_add(1)) else {
            return Ok(Vec::new());
        };
        let rows = sqlx::query!(
            "select id, name from tenant where id >= $1 order by id limit $2",
            first,
            limit
        )
        .fetch_all(&self.reader)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (TenantId(row.id), row.name))
            .collect())
    }

    async fn missing_events(&self) -> Result<i64, StoreError> {
        // It counts the events of all tenants, so the snapshot is for no tenant. It reads whole tables, as snapshots may.
        let mut snapshot = self.snapshot(TenantId(0)).await?;
        let missing = sqlx::query_scalar!(r#"select missing_events() as "missing!""#);
        Ok(missing.fetch_one(&mut *snapshot.transaction).await?)
    }

    async fn snapshot(&self, tenant: TenantId) -> Result<Snapshot, StoreError> {
        let begin = "begin isolation level repeatable read read only";
        let mut transaction = self.reader.begin_with(begin).await?;
        let setting = sqlx::query_scalar!(
            "select set_config('wrkflw.tenant', $1, true) || set_config('role', 'wrkflw_reader', true) || set_config('timezone', 'UTC', true)
                || set_config('statement_timeout', $2, true)",
            tenant.to_string(),
            self.snapshot_statement_max.as_millis().to_string()
        );
        let set = setting.fetch_one(&mut *transaction);
        self.reader.within(set).await?;
        Ok(Snapshot {
            tenant,
            transaction,
        })
    }

    async fn recorded_version(
        &self,
        tenant: TenantId,
        reference: &VersionRef,
    ) -> Result<Option<RecordedVersion>, StoreError> {
        let row = sqlx::query!(
            r#"select encode(digest, 'hex') as "component!", config, graph, wit from definition_version
            where tenant_id = $1 and key = $2 and version = $3"#,
            tenant.0,
            reference.key,
            reference.version.cast_signed()
        )
        .fetch_optional(&mut self.reading(tenant).await?)
        .await?;
        row.map(|row| {
            Ok(RecordedVersion {
                reference: reference.clone(),
                component: row.component,
                config: Json::from_canonical(row.config),
                graph: graph(reference, &row.graph)?,
                wit: row.wit,
            })
        })
        .transpose()
    }

    async fn recorded_component(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = sqlx::query_scalar!(
            "select bytes from component where digest = $1",
            digest.0.as_slice()
        );
        Ok(bytes.fetch_optional(&self.reader).await?)
    }
}
