//! The library: from a digest to a component that can be instantiated.
//!
//! Memory first, then disk, then the compiler. Concurrent requests for the same digest share the work. Entries
//! never become outdated, because a digest always identifies the same bytes. A stored artifact that does not load is quarantined and
//! made again.

mod make;

use std::future::Future;
use std::sync::Arc;

use moka::future::Cache;
use wasmtime::Engine;
use wasmtime::component::Linker;

use super::artifacts::Artifacts;
use super::call::Allowance;
use super::compile::{Compilation, Origin};
use super::error::Cause;
use super::priority::Own;
use super::settings::Settings;
use super::v0_1::Logic;
use wrkflw_core::ids::Digest;

/// The least that a component counts for in the cache, in KiB. This limits the number of small ones.
const WEIGHT_KIB_MIN: u32 = 64;

/// A component whose imports and exports are resolved.
pub(super) struct Ready {
    pub(super) logic: Logic,
    /// The slots of this component's calls, and whether its calls are slow.
    pub(super) own: Own,
    code_bytes: usize,
}

/// The cached components.
pub(super) struct Library {
    engine: Engine,
    linker: Linker<Allowance>,
    cache: Cache<Digest, Arc<Ready>>,
    artifacts: Option<Arc<Artifacts>>,
    compilation: Compilation,
    component_bytes_max: usize,
    slots_each: usize,
}

impl Library {
    pub(super) fn new(settings: &Settings, engine: &Engine) -> Result<Library, String> {
        let artifacts = Artifacts::new(settings, engine).map_err(|error| {
            let folder = settings.artifact_dir.clone().unwrap_or_default();
            format!("artifact_dir {} is unusable: {error}", folder.display())
        })?;
        let cache = Cache::builder()
            .max_capacity(settings.cache_bytes_max / 1024)
            .weigher(|_, ready: &Arc<Ready>| {
                let kib = u32::try_from(ready.code_bytes / 1024).unwrap_or(u32::MAX);
                kib.max(WEIGHT_KIB_MIN)
            })
            .build();
        Ok(Library {
            engine: engine.clone(),
            linker: Linker::new(engine),
            cache,
            artifacts: artifacts.map(Arc::new),
            compilation: Compilation::new(settings),
            component_bytes_max: settings.component_bytes_max,
            slots_each: (settings.concurrency / 2).max(1),
        })
    }

    /// The component of this digest. `fetch` reads its bytes and is called only if the component must be compiled.
    pub(super) async fn get<F, Fut, B, E>(
        &self,
        digest: Digest,
        origin: Origin,
        fetch: F,
    ) -> Result<Arc<Ready>, Cause>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<B, E>>,
        B: Into<Arc<[u8]>> + Send + 'static,
        E: std::fmt::Display,
    {
        if let Some(ready) = self.cache.get(&digest).await {
            looked_up("memory");
            return Ok(ready);
        }
        self.cache
            .try_get_with(digest, self.make(digest, origin, fetch))
            .await
            .map_err(|cause| (*cause).clone())
    }
}

fn looked_up(found_in: &'static str) {
    metrics::counter!("wrkflw_component_lookups_total", "found_in" => found_in).increment(1);
}
