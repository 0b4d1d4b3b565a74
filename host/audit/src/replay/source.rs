//! The versions and components for a replay: from a record, or from an export. The bytes of a component must have its digest.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;

use futures_util::TryFutureExt as _;
use futures_util::future::BoxFuture;

use crate::record::Record;
use crate::record::rows::RecordedVersion;
use wrkflw_core::audit::sha256;
use wrkflw_core::ids::{Digest, TenantId, VersionRef, unhex};
use wrkflw_core::schema::Schema;
use wrkflw_core::template::Templates;
use wrkflw_core::version::Version;

/// A source of versions and components. Every [`Record`] is one.
pub trait Source: Send + Sync {
    fn version<'a>(
        &'a self,
        tenant: TenantId,
        reference: &'a VersionRef,
    ) -> BoxFuture<'a, Result<Option<RecordedVersion>, String>>;

    fn component(&self, digest: Digest) -> BoxFuture<'_, Result<Option<Vec<u8>>, String>>;
}

impl<R: Record> Source for R {
    fn version<'a>(
        &'a self,
        tenant: TenantId,
        reference: &'a VersionRef,
    ) -> BoxFuture<'a, Result<Option<RecordedVersion>, String>> {
        let found = self.recorded_version(tenant, reference);
        Box::pin(found.map_err(|error| error.to_string()))
    }

    fn component(&self, digest: Digest) -> BoxFuture<'_, Result<Option<Vec<u8>>, String>> {
        let found = self.recorded_component(digest);
        Box::pin(found.map_err(|error| error.to_string()))
    }
}

impl Source for Carried {
    fn version<'a>(
        &'a self,
        tenant: TenantId,
        reference: &'a VersionRef,
    ) -> BoxFuture<'a, Result<Option<RecordedVersion>, String>> {
        let key = (tenant, reference.key.clone(), reference.version);
        Box::pin(ready(Ok(self.versions.get(&key).cloned())))
    }

    fn component(&self, digest: Digest) -> BoxFuture<'_, Result<Option<Vec<u8>>, String>> {
        let found = self.components.get(&digest).map(|bytes| bytes.to_vec());
        Box::pin(ready(Ok(found)))
    }
}

/// Versions and components without a database.
#[derive(Default)]
pub struct Carried {
    versions: BTreeMap<(TenantId, String, u32), RecordedVersion>,
    components: BTreeMap<Digest, Arc<[u8]>>,
}

impl Carried {
    /// Adds a version.
    pub fn version(&mut self, tenant: TenantId, version: RecordedVersion) {
        let VersionRef {
            key,
            version: number,
        } = version.reference.clone();
        self.versions.insert((tenant, key, number), version);
    }

    /// Adds a component; its digest is computed.
    pub fn component(&mut self, bytes: Vec<u8>) -> Digest {
        let digest = Digest(sha256(&bytes));
        self.components.insert(digest, bytes.into());
        digest
    }

    /// Whether there are no components.
    pub fn has_no_components(&self) -> bool {
        self.components.is_empty()
    }
}

/// The version with its compiled schema, or why there is none.
pub(super) async fn version(
    source: &dyn Source,
    tenant: TenantId,
    reference: &VersionRef,
) -> Result<Version, String> {
    let found = source.version(tenant, reference).await?;
    let found = found.ok_or_else(|| format!("{reference} is not there"))?;
    let digest = unhex(&found.component).and_then(|bytes| bytes.try_into().ok());
    let schema = found.graph.data_schema.as_ref().map(Schema::compile);
    let templates = Templates::of(&found.graph)
        .map_err(|error| format!("{reference} has a template that cannot be read: {error}"))?;
    Ok(Version {
        component: Digest(digest.ok_or_else(|| format!("{reference} names no component"))?),
        schema: schema
            .transpose()
            .map_err(|error| format!("{reference} has a schema that cannot be read: {error}"))?,
        reference: found.reference,
        config: found.config.into(),
        graph: found.graph,
        templates,
    })
}

/// The bytes of a component. Fails if they do not have its digest.
pub(super) async fn component(source: &dyn Source, digest: Digest) -> Result<Vec<u8>, String> {
    let found = source.component(digest).await?;
    let bytes = found.ok_or_else(|| format!("there is no component {digest}"))?;
    let real = Digest(sha256(&bytes));
    if real != digest {
        let detail = format!("the bytes stored as component {digest} have the digest {real}");
        return Err(detail);
    }
    Ok(bytes)
}
