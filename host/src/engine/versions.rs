//! Definition versions, parsed once and kept: they never change.

use std::sync::Arc;

use super::Engine;
use super::error::Error;
use crate::domain::command::Command;
use crate::domain::ids::{TenantId, VersionRef};
use crate::domain::schema::{self, Schema};
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
        let key = (tenant, reference.clone());
        if let Some(version) = self.0.versions.get(&key).await {
            return Ok(version);
        }
        let load = self.load_version(tenant, reference);
        match self.0.versions.try_get_with(key, load).await {
            Ok(version) => Ok(version),
            // Others who wait for it have the same failure; each tells its own.
            Err(shared) => match Arc::try_unwrap(shared) {
                Ok(error) => Err(error),
                Err(_) => self.load_version(tenant, reference).await,
            },
        }
    }

    /// The version as it is stored, made ready.
    async fn load_version(
        &self,
        tenant: TenantId,
        reference: &VersionRef,
    ) -> Result<Arc<Version>, Error> {
        let parts = &self.0;
        let found = parts.store.definition_version(tenant, reference).await?;
        let row = found.ok_or_else(|| Error::NotFound {
            what: "definition version",
            id: reference.to_string(),
        })?;
        let schema = match &row.graph.data_schema {
            Some(document) => {
                let effort = schema::making(document.as_str());
                let compile = || Schema::compile(document);
                let compiled = parts.offload.in_place(tenant, effort, compile).await?;
                Some(compiled.map_err(|error| StoreError::Inconsistent {
                    table: "definition_version",
                    id: reference.to_string(),
                    detail: error.to_string(),
                })?)
            }
            None => None,
        };
        Ok(Arc::new(Version {
            reference: reference.clone(),
            component: row.digest,
            config: row.config,
            graph: row.graph,
            schema,
        }))
    }
}
