//! The library: from a digest to a component that can be instantiated.
//!
//! Memory first, then disk, then the compiler. Concurrent requests for the same digest share the work. Nothing is ever
//! invalidated, because a digest always identifies the same bytes.

use std::future::Future;
use std::sync::Arc;

use moka::future::Cache;
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use super::artifacts::Artifacts;
use super::compile::{Compilation, Origin};
use super::error::{Cause, of_component};
use super::limits::Allowance;
use super::priority::Own;
use super::scan;
use super::settings::Settings;
use super::v0_1::logic::Logic;
use wrkflw_core::ids::Digest;
use wrkflw_core::text::tame;

/// The least that a component counts for in the cache, in KiB. This limits the number of small ones.
const WEIGHT_KIB_MIN: u32 = 64;
const MESSAGE_CHARS_MAX: usize = 600;

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
    pub(super) async fn get<F, Fut, E>(
        &self,
        digest: Digest,
        origin: Origin,
        fetch: F,
    ) -> Result<Arc<Ready>, Cause>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Vec<u8>, E>>,
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

    async fn make<F, Fut, E>(
        &self,
        digest: Digest,
        origin: Origin,
        fetch: F,
    ) -> Result<Arc<Ready>, Cause>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Vec<u8>, E>>,
        E: std::fmt::Display,
    {
        if let Some((component, code_bytes)) = self.kept(digest).await? {
            looked_up("disk");
            return self.ready(component, code_bytes);
        }
        looked_up("compiler");
        let bytes = fetch().await.map_err(|error| Cause::Unavailable {
            detail: format!("its bytes cannot be read: {error}"),
        })?;
        let bytes = self.checked(digest, bytes).await?;
        let artifact = self
            .compilation
            .compile(&self.engine, origin, bytes)
            .await?;
        let (engine, artifacts) = (self.engine.clone(), self.artifacts.clone());
        let (component, code_bytes) = blocking(move || {
            let component = artifact.load(&engine).map_err(|error| unfit(&error))?;
            if let Some(artifacts) = artifacts {
                artifacts.keep(digest, &artifact);
            }
            Ok::<_, Cause>((component, artifact.code().len()))
        })
        .await??;
        self.ready(component, code_bytes)
    }

    async fn kept(&self, digest: Digest) -> Result<Option<(Component, usize)>, Cause> {
        let Some(artifacts) = self.artifacts.clone() else {
            return Ok(None);
        };
        let engine = self.engine.clone();
        blocking(move || {
            let artifact = artifacts.open(digest)?;
            match artifact.load(&engine) {
                Ok(component) => Some((component, artifact.code().len())),
                Err(error) => {
                    tracing::warn!(%digest, error = %format!("{error:#}"), "compiled component does not load");
                    artifacts.quarantine(digest);
                    None
                }
            }
        })
        .await
    }

    /// Scans the bytes again, although publishing did: others can write to the store that they come from.
    async fn checked(&self, digest: Digest, bytes: Vec<u8>) -> Result<Arc<[u8]>, Cause> {
        let bytes_max = self.component_bytes_max;
        blocking(move || {
            if <[u8; 32]>::from(Sha256::digest(&bytes)) != digest.0 {
                return Err(Cause::Unavailable {
                    detail: "the stored bytes are not those of its digest".into(),
                });
            }
            scan::scan(&bytes, bytes_max).map_err(Cause::Incompatible)?;
            Ok(bytes.into())
        })
        .await?
    }

    fn ready(&self, component: Component, code_bytes: usize) -> Result<Arc<Ready>, Cause> {
        let logic = self
            .linker
            .instantiate_pre(&component)
            .and_then(|linked| Logic::new(&component, linked))
            .map_err(|error| unfit(&error))?;
        Ok(Arc::new(Ready {
            logic,
            own: Own::new(self.slots_each),
            code_bytes,
        }))
    }
}

/// Problems that are found only by linking, or by the limits of the pool.
pub(super) fn unfit(error: &wasmtime::Error) -> Cause {
    let message = tame(&format!("{error:#}"), MESSAGE_CHARS_MAX);
    let problem = of_component(
        "component_rejected",
        format!("the component does not fit this host: {message}"),
    );
    Cause::Incompatible(vec![problem])
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Cause> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Cause::Unavailable {
            detail: format!("the component could not be loaded: {error}"),
        })
}

fn looked_up(found_in: &'static str) {
    metrics::counter!("wrkflw_component_lookups_total", "found_in" => found_in).increment(1);
}
