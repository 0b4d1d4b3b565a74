//! What recorded evaluations ran on: definition versions and components, read as the role that may change nothing.

use serde::{Deserialize, Serialize};

use super::Snapshot;
use crate::domain::graph::Graph;
use crate::domain::ids::{Digest, TenantId, VersionRef};
use crate::domain::json::Json;
use crate::store::{Store, StoreError};

/// A version as its row has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedVersion {
    pub reference: VersionRef,
    /// The component's digest, in hexadecimal digits.
    pub component: String,
    pub config: Json,
    pub graph: Graph,
    /// The version of the contract that the component was built for.
    pub wit: String,
}

impl Store {
    /// The version of this name, if there is one that can be read.
    pub async fn recorded_version(
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
        .fetch_optional(&mut *self.reading(tenant).await?)
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

    /// The bytes that are kept under this digest.
    pub async fn recorded_component(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = sqlx::query_scalar!(
            "select bytes from component where digest = $1",
            digest.0.as_slice()
        );
        Ok(bytes.fetch_optional(&self.reader).await?)
    }
}

impl Snapshot {
    /// Versions after (`key`, `version`).
    pub async fn versions(
        &mut self,
        after: (&str, u32),
        limit: i64,
    ) -> Result<Vec<RecordedVersion>, StoreError> {
        let rows = sqlx::query!(
            r#"select key, version, encode(digest, 'hex') as "component!", config, graph, wit from definition_version
            where tenant_id = $1 and (key, version) > ($2, $3) order by key, version limit $4"#,
            self.tenant.0,
            after.0,
            after.1.cast_signed(),
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        rows.into_iter()
            .map(|row| {
                let reference = VersionRef {
                    key: row.key,
                    version: row.version.cast_unsigned(),
                };
                Ok(RecordedVersion {
                    graph: graph(&reference, &row.graph)?,
                    reference,
                    component: row.component,
                    config: Json::from_canonical(row.config),
                    wit: row.wit,
                })
            })
            .collect()
    }
}

fn graph(reference: &VersionRef, text: &str) -> Result<Graph, StoreError> {
    serde_json::from_str(text).map_err(|error| {
        StoreError::inconsistent("definition_version", reference, error.to_string())
    })
}
