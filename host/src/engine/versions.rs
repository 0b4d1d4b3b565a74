//! Definition versions, parsed once and kept: they never change.

use std::sync::Arc;

use super::Engine;
use super::error::Error;
use crate::domain::command::Command;
use crate::domain::ids::{TenantId, VersionRef};
use crate::domain::schema::Schema;
use crate::domain::version::Version;
use crate::store::StoreError;
use crate::store::load::Stored;

impl Engine {
    /// The version that the command runs under, and the one that it leaves where it is a migration.
    pub(super) async fn versions_for(
        &self,
        tenant: TenantId,
        command: &Command,
        stored: &Stored,
    ) -> Result<(Arc<Version>, Option<Arc<Version>>), Error> {
        let current = &stored.instance.definition;
        let present = self.version(tenant, current).await?;
        let Command::Migrate { version, .. } = command else {
            return Ok((present, None));
        };
        let target = VersionRef {
            key: current.key.clone(),
            version: *version,
        };
        let coming = self.version(tenant, &target).await?;
        if self.0.store.is_retired(tenant, &target).await? {
            return Err(Error::Retired {
                key: target.key,
                version: target.version,
            });
        }
        Ok((coming, Some(present)))
    }

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
