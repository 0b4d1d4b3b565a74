//! Makes a component that is not in memory: from disk, else by the compiler.

use std::future::Future;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use wasmtime::component::Component;

use super::{Library, Making, Outcome, Ready, lookups};
use crate::compile::Origin;
use crate::error::{Cause, of_component};
use crate::measures::Measures;
use crate::priority::Own;
use crate::scan;
use crate::v0_1::Logic;
use wrkflw_core::ids::Digest;
use wrkflw_core::text::tame;

const MESSAGE_CHARS_MAX: usize = 600;

impl Library {
    /// Loads the component from disk, or reads its bytes and begins to compile them.
    pub(super) async fn begin<F, Fut, E>(
        self: &Arc<Self>,
        making: &Arc<Making>,
        digest: Digest,
        fetch: F,
    ) -> Result<Outcome, Cause>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Vec<u8>, E>>,
        E: std::fmt::Display,
    {
        // Another task may have made the component since the caller looked.
        let known = match self.cache.get(&digest).await {
            None => self.stored(digest).await?,
            found => found,
        };
        if let Some(ready) = known {
            self.cache.insert(digest, Arc::clone(&ready)).await;
            return Ok(watch::channel(Some(Ok(ready))).1);
        }
        let bytes = fetch().await.map_err(|error| Cause::Unavailable {
            detail: format!("its bytes cannot be read: {error}"),
        })?;
        let (sender, outcome) = watch::channel(None);
        let (library, making) = (Arc::clone(self), Arc::clone(making));
        let maker = self.maker.as_ref().expect("taken on drop alone");
        maker.spawn(async move {
            let result = library.compiled(digest, Origin::Published, bytes).await;
            match &result {
                Ok(ready) => library.cache.insert(digest, Arc::clone(ready)).await,
                Err(cause @ Cause::Incompatible(_)) => {
                    library.failures.insert(digest, cause.clone()).await;
                }
                // A later attempt may succeed.
                Err(_) => {}
            }
            // Before the result is sent: a caller that gets a failure and retries then starts a new attempt.
            drop(making);
            sender.send_replace(Some(result));
        });
        Ok(outcome)
    }

    /// The component from disk, if it is there.
    pub(super) async fn stored(&self, digest: Digest) -> Result<Option<Arc<Ready>>, Cause> {
        let Some((component, code_bytes)) = self.kept(digest).await? else {
            return Ok(None);
        };
        lookups("disk").increment(1);
        self.ready(&component, code_bytes).map(Some)
    }

    /// Compiles the component.
    pub(super) async fn compiled(
        &self,
        digest: Digest,
        origin: Origin,
        bytes: impl Into<Arc<[u8]>> + Send + 'static,
    ) -> Result<Arc<Ready>, Cause> {
        lookups("compiler").increment(1);
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
        self.ready(&component, code_bytes)
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

    /// Scans the bytes again, although publishing scanned them: others can write to the store that holds them.
    async fn checked(
        &self,
        digest: Digest,
        bytes: impl Into<Arc<[u8]>> + Send + 'static,
    ) -> Result<Arc<[u8]>, Cause> {
        let bytes_max = self.component_bytes_max;
        blocking(move || {
            let bytes: Arc<[u8]> = bytes.into();
            if <[u8; 32]>::from(Sha256::digest(&bytes)) != digest.0 {
                return Err(Cause::Unavailable {
                    detail: "the stored bytes do not have its digest".into(),
                });
            }
            scan::scan(&bytes, bytes_max).map_err(Cause::Incompatible)?;
            Ok(bytes)
        })
        .await?
    }

    fn ready(&self, component: &Component, code_bytes: usize) -> Result<Arc<Ready>, Cause> {
        let logic = self
            .linker
            .instantiate_pre(component)
            .and_then(|linked| Logic::new(component, linked))
            .map_err(|error| unfit(&error))?;
        Ok(Arc::new(Ready {
            logic,
            own: Own::new(self.places_each),
            measures: Measures::default(),
            code_bytes,
        }))
    }
}

/// Problems that are found only by linking, or by the limits of the pool.
fn unfit(error: &wasmtime::Error) -> Cause {
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
