//! Where a replay finds the versions and components that commands ran on: in the database, or in what was carried away
//! from it. Bytes count as a component only under the digest that they have.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::domain::audit::sha256;
use crate::domain::ids::{Digest, TenantId, VersionRef, unhex};
use crate::domain::schema::Schema;
use crate::domain::version::Version;
use crate::store::verify::versions::RecordedVersion;
use crate::store::{Store, StoreError};

/// Versions and components.
pub enum Source {
    Database(Store),
    Carried(Carried),
}

/// What somebody has without a database.
#[derive(Default)]
pub struct Carried {
    versions: BTreeMap<(TenantId, String, u32), RecordedVersion>,
    components: BTreeMap<Digest, Arc<[u8]>>,
}

/// Why a version or a component is not there.
#[derive(Debug, thiserror::Error)]
pub(super) enum Missing {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Gone(String),
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

    /// Whether no component is there.
    pub fn has_no_components(&self) -> bool {
        self.components.is_empty()
    }
}

impl Source {
    /// The version, ready for commands.
    pub(super) async fn version(
        &self,
        tenant: TenantId,
        reference: &VersionRef,
    ) -> Result<Version, Missing> {
        let found = match self {
            Source::Database(store) => store.recorded_version(tenant, reference).await?,
            Source::Carried(carried) => {
                let key = (tenant, reference.key.clone(), reference.version);
                carried.versions.get(&key).cloned()
            }
        };
        let gone = |detail: &dyn fmt::Display| Missing::Gone(format!("{reference} {detail}"));
        let found = found.ok_or_else(|| gone(&"is not there"))?;
        let digest = unhex(&found.component).and_then(|bytes| bytes.try_into().ok());
        let schema = found.graph.data_schema.as_ref().map(Schema::compile);
        Ok(Version {
            component: Digest(digest.ok_or_else(|| gone(&"names no component"))?),
            schema: schema.transpose().map_err(|error| {
                gone(&format_args!("has a schema that cannot be read: {error}"))
            })?,
            reference: found.reference,
            config: found.config,
            graph: found.graph,
        })
    }

    /// The bytes of a component, once they have its digest.
    pub(super) async fn component(&self, digest: Digest) -> Result<Vec<u8>, Missing> {
        let found = match self {
            Source::Database(store) => store.recorded_component(digest).await?,
            Source::Carried(carried) => carried.components.get(&digest).map(|bytes| bytes.to_vec()),
        };
        let bytes =
            found.ok_or_else(|| Missing::Gone(format!("there is no component {digest}")))?;
        let real = Digest(sha256(&bytes));
        if real != digest {
            let detail = format!("what is kept as component {digest} has the digest {real}");
            return Err(Missing::Gone(detail));
        }
        Ok(bytes)
    }
}
