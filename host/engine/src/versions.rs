//! Parsed definition versions, and their cache.
//!
//! A published version does not change. But after a restore of the database, the same number may have other content. So a caller
//! that has read the stored content gets a cached version only if its content is the same.

use std::sync::Arc;

use moka::future::Cache;

use super::TRUSTED;
use super::definitions::may_activate;
use super::error::Error;
use super::offload::Offload;
use super::permission::need;
use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::ids::{TenantId, VersionRef};
use wrkflw_core::schema::{self, Schema};
use wrkflw_core::template::Templates;
use wrkflw_core::version::Version;
use wrkflw_store::load::Stored;
use wrkflw_store::{Store, StoreError, definitions};

/// Limit of the cached versions: estimated bytes.
const BYTES_MAX: u64 = 128 * 1024 * 1024;
/// The minimum weight of a version, so that at most about ten thousand are cached.
const BYTES_MIN: u32 = 12 * 1024;
/// Estimated bytes in memory for a byte of a graph: its names and lists are allocated one by one.
const GRAPH_BYTES_PER_BYTE: usize = 4;

/// A version with its [`VersionRow::content`](wrkflw_store::definitions::VersionRow::content).
#[derive(Clone)]
pub(super) struct CachedVersion {
    content: Vec<u8>,
    version: Arc<Version>,
    graph_bytes: usize,
}

impl CachedVersion {
    /// Its weight in the cache.
    pub(super) fn weight(&self) -> u32 {
        let version = &self.version;
        let schema = version.schema.as_ref().map_or(0, Schema::weight);
        let config = version.config.json().as_str().len();
        let bytes = schema + self.graph_bytes * GRAPH_BYTES_PER_BYTE + config;
        u32::try_from(bytes).map_or(u32::MAX, |bytes| bytes.max(BYTES_MIN))
    }
}

pub(super) type VersionCache = Cache<(TenantId, VersionRef), CachedVersion>;

pub(super) fn new_cache() -> VersionCache {
    Cache::builder()
        .max_capacity(BYTES_MAX)
        .weigher(|_, cached: &CachedVersion| cached.weight())
        .time_to_live(TRUSTED)
        .build()
}

/// Definition versions, parsed and cached.
#[derive(Clone, Copy)]
pub struct Versions<'a> {
    pub(super) store: &'a Store,
    pub(super) offload: &'a Offload,
    pub(super) cache: &'a VersionCache,
}

impl Versions<'_> {
    /// The version in which the command runs, and for a migration the version that the instance leaves. `content` is that of
    /// the instance's version, if it was read with the instance.
    pub(super) async fn for_command(
        self,
        (tenant, actor): (TenantId, &Actor),
        command: &Command,
        stored: &Stored,
        content: Option<&[u8]>,
    ) -> Result<(Arc<Version>, Option<Arc<Version>>), Error> {
        let current = &stored.instance.definition;
        let current_version = self.with_content(tenant, current, content).await?;
        let Command::Migrate { version, .. } = command else {
            return Ok((current_version, None));
        };
        need(actor, command.permission())?;
        let target = VersionRef {
            key: current.key.clone(),
            version: *version,
        };
        let target_version = self.target(tenant, actor, &target).await?;
        Ok((target_version, Some(current_version)))
    }

    /// The target version of a migration by an actor who may migrate. If the version is not active, the actor also needs the
    /// permissions for its activation. Otherwise a migration would let people choose which version instances run.
    pub(super) async fn target(
        self,
        tenant: TenantId,
        actor: &Actor,
        reference: &VersionRef,
    ) -> Result<Arc<Version>, Error> {
        let target = definitions::target(self.store, tenant, reference).await?;
        let target = target.ok_or_else(|| Error::no_version(reference))?;
        let version = self.with_content(tenant, reference, Some(&target.content));
        let version = version.await?;
        if target.retired {
            let VersionRef { key, version } = reference.clone();
            return Err(Error::Retired { key, version });
        }
        if !target.active {
            may_activate(actor, &version.graph)?;
        }
        Ok(version)
    }

    /// The version, from the cache or the database. If its content was read, use [`Versions::with_content`].
    pub async fn get(
        self,
        tenant: TenantId,
        reference: &VersionRef,
    ) -> Result<Arc<Version>, Error> {
        self.with_content(tenant, reference, None).await
    }

    /// The version, from the cache if it has this content there, else from the database.
    pub(super) async fn with_content(
        self,
        tenant: TenantId,
        reference: &VersionRef,
        content: Option<&[u8]>,
    ) -> Result<Arc<Version>, Error> {
        let key = (tenant, reference.clone());
        if let Some(known) = self.cache.get(&key).await {
            if content.is_none_or(|content| known.content == content) {
                return Ok(known.version);
            }
            self.cache.invalidate(&key).await;
        }
        let load = self.load_version(tenant, reference);
        match self.cache.try_get_with(key, load).await {
            Ok(known) => Ok(known.version),
            // Concurrent callers share the error, which cannot be cloned. So each of them loads again, to get an error of its own.
            Err(shared) => match Arc::try_unwrap(shared) {
                Ok(error) => Err(error),
                Err(_) => Ok(self.load_version(tenant, reference).await?.version),
            },
        }
    }

    /// Reads the version and compiles its schema.
    async fn load_version(
        self,
        tenant: TenantId,
        reference: &VersionRef,
    ) -> Result<CachedVersion, Error> {
        let found = definitions::version(self.store, tenant, reference).await?;
        let row = found.ok_or_else(|| Error::no_version(reference))?;
        let schema = match &row.graph.data_schema {
            Some(document) => {
                let effort = schema::compile_max(document.as_str());
                let compile = || Schema::compile(document);
                let compiled = self.offload.in_place(tenant, effort, compile).await?;
                Some(compiled.map_err(|error| StoreError::Inconsistent {
                    table: "definition_version",
                    id: reference.to_string(),
                    detail: error.to_string(),
                })?)
            }
            None => None,
        };
        let templates = Templates::of(&row.graph).map_err(|error| StoreError::Inconsistent {
            table: "definition_version",
            id: reference.to_string(),
            detail: error.to_string(),
        })?;
        let version = Arc::new(Version {
            reference: reference.clone(),
            component: row.digest,
            config: row.config.into(),
            graph: row.graph,
            schema,
            templates,
        });
        Ok(CachedVersion {
            content: row.content,
            version,
            graph_bytes: row.graph_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrkflw_core::graph::Graph;
    use wrkflw_core::ids::Digest;
    use wrkflw_core::json::Json;

    /// The weight of a version whose schema has so many properties, without patterns.
    fn weight(properties: usize, graph_bytes: usize, config: &str) -> u32 {
        let property = |number| format!(r#""p{number}":{{"type":"string"}}"#);
        let properties: Vec<String> = (0..properties).map(property).collect();
        let document = format!(r#"{{"properties":{{{}}}}}"#, properties.join(","));
        let document = Json::parse(&document).expect("JSON");
        let schema = Schema::compile(&document).expect("a schema");
        let graph = Graph {
            data_schema: Some(document),
            ..Graph::default()
        };
        let version = Version {
            reference: VersionRef {
                key: "flow".to_owned(),
                version: 1,
            },
            component: Digest([0; 32]),
            config: Json::parse(config).expect("JSON").into(),
            templates: Templates::of(&graph).expect("no templates"),
            graph,
            schema: Some(schema),
        };
        let cached = CachedVersion {
            content: Vec::new(),
            version: Arc::new(version),
            graph_bytes,
        };
        cached.weight()
    }

    #[test]
    fn a_version_weighs_all_that_it_keeps_in_memory() {
        assert_eq!(weight(1, 100, "{}"), BYTES_MIN);
        assert!(weight(2_000, 100, "{}") > 1 << 20);
        assert!(weight(1, 1 << 20, "{}") > 1 << 20);
        let config = format!(r#"{{"text":"{}"}}"#, "x".repeat(60_000));
        assert!(weight(1, 100, &config) > 60_000);
    }
}
