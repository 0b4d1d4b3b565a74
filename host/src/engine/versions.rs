//! Definition versions, parsed once and kept: they never change.

use std::sync::Arc;

use super::Engine;
use super::error::Error;
use crate::domain::ids::{TenantId, VersionRef};
use crate::domain::schema::Schema;
use crate::domain::version::Version;
use crate::store::StoreError;

impl Engine {
    /// The version, from the cache or the store.
    pub async fn version(
        &self,
        tenant: TenantId,
        reference: &VersionRef,
    ) -> Result<Arc<Version>, Error> {
        let parts = &self.0;
        let key = (tenant, reference.clone());
        if let Some(version) = parts.versions.get(&key).await {
            return Ok(version);
        }
        let found = parts.store.definition_version(tenant, reference).await?;
        let row = found.ok_or_else(|| Error::NotFound {
            what: "definition version",
            id: reference.to_string(),
        })?;
        let schema = row
            .graph
            .data_schema
            .as_ref()
            .map(Schema::compile)
            .transpose();
        let schema = schema.map_err(|error| StoreError::Inconsistent {
            table: "definition_version",
            id: reference.to_string(),
            detail: error.to_string(),
        })?;
        let version = Arc::new(Version {
            reference: reference.clone(),
            component: row.digest,
            config: row.config,
            graph: row.graph,
            schema,
        });
        parts.versions.insert(key, version.clone()).await;
        Ok(version)
    }
}
