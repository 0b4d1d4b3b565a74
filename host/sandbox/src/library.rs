//! The library: from a digest to a component that can be instantiated.
//!
//! It looks in memory, then on disk, and compiles the component last. Concurrent requests for the same digest share the work. Entries never
//! become outdated, because a digest always identifies the same bytes. A stored artifact that does not load is quarantined and made again.
//!
//! A task on a thread of this module compiles a published component. The task continues without its callers, because some components
//! compile for longer than any client waits. All calls wait a short time for a component. Only a few wait longer, because each
//! waiting call holds a place of the host. The caller of an upload compiles it. If the caller goes away, the compilation ends.

mod make;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use metrics::Counter;
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OnceCell, Semaphore, watch};
use tokio::time::{Instant, timeout_at};
use wasmtime::Engine;
use wasmtime::component::Linker;

use super::artifacts::Artifacts;
use super::call::Allowance;
use super::compile::{Compilation, Origin};
use super::error::Cause;
use super::measures::Measures;
use super::priority::Own;
use super::settings::Settings;
use super::v0_1::Logic;
use wrkflw_core::ids::Digest;

/// The least that a component counts for in the cache, in KiB. This limits the number of small ones.
const WEIGHT_KIB_MIN: u32 = 64;
/// How long all calls wait for a component, beyond the longest wait for a place. The compiler takes a second for a component in Rust.
const LOAD_WAIT: Duration = Duration::from_secs(3);
/// The same for as many calls as may run at a time: on a busy machine the compiler, which has a low priority, takes longer.
const PATIENT_WAIT: Duration = Duration::from_secs(30);
/// How long the host remembers that a published component cannot run here. Meanwhile it does not compile the component again.
const FAILURE_KEPT: Duration = Duration::from_mins(5);
/// Remembered failures.
const FAILURES_MAX: u64 = 1_000;

/// A component whose imports and exports are resolved.
pub(super) struct Ready {
    pub(super) logic: Logic,
    /// The places of this component's calls, and whether its calls are slow.
    pub(super) own: Own,
    pub(super) measures: Measures,
    code_bytes: usize,
}

/// The compiled component, or why it cannot be made.
type Outcome = watch::Receiver<Option<Result<Arc<Ready>, Cause>>>;

/// A published component that is being made. It lasts as long as its callers and its task.
struct Making {
    begun: Instant,
    /// Set once its bytes are read. If the caller that reads them goes away, the next one does.
    outcome: OnceCell<Outcome>,
}

/// The cached components.
pub(super) struct Library {
    engine: Engine,
    linker: Linker<Allowance>,
    cache: Cache<Digest, Arc<Ready>>,
    failures: Cache<Digest, Cause>,
    makings: Mutex<HashMap<Digest, Weak<Making>>>,
    /// Runs the tasks that make published components. None only while this is dropped.
    maker: Option<Runtime>,
    load_wait: Duration,
    /// The calls that wait for longer.
    patient: Semaphore,
    artifacts: Option<Arc<Artifacts>>,
    compilation: Compilation,
    component_bytes_max: usize,
    places_each: usize,
    in_memory: Counter,
}

impl Library {
    pub(super) fn new(settings: &Settings, engine: &Engine) -> Result<Library, String> {
        let artifacts = Artifacts::new(settings, engine).map_err(|error| {
            let folder = settings.artifact_dir.clone().unwrap_or_default();
            format!("artifact_dir {} is unusable: {error}", folder.display())
        })?;
        let maker = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("component-maker")
            .enable_all()
            .build()
            .map_err(|error| format!("the thread that loads components cannot start: {error}"))?;
        Ok(Library {
            engine: engine.clone(),
            linker: Linker::new(engine),
            cache: cache(settings.cache_bytes_max, |ready: &Arc<Ready>| {
                ready.code_bytes
            }),
            failures: Cache::builder()
                .max_capacity(FAILURES_MAX)
                .time_to_live(FAILURE_KEPT)
                .build(),
            makings: Mutex::default(),
            maker: Some(maker),
            patient: Semaphore::new(settings.concurrency),
            load_wait: LOAD_WAIT + Duration::from_millis(settings.queue_ms_max),
            artifacts: artifacts.map(Arc::new),
            compilation: Compilation::new(settings),
            component_bytes_max: settings.component_bytes_max,
            places_each: (settings.concurrency / 2).max(1),
            in_memory: lookups("memory"),
        })
    }

    /// The published component of this digest, if it is ready soon. `fetch` reads its bytes. It is called only if the component
    /// must be compiled.
    pub(super) async fn get<F, Fut, E>(
        self: &Arc<Self>,
        digest: Digest,
        fetch: F,
    ) -> Result<Arc<Ready>, Cause>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Vec<u8>, E>>,
        E: std::fmt::Display,
    {
        if let Some(known) = self.known(digest).await {
            return known;
        }
        // All callers share two deadlines, so a later caller does not wait for a component that is known to take long.
        let making = self.making(digest);
        let until = making.begun + self.load_wait;
        let mut pending = std::pin::pin!(self.make(&making, digest, fetch));
        if let Ok(result) = timeout_at(until, pending.as_mut()).await {
            return result;
        }
        let Ok(_patient) = self.patient.try_acquire() else {
            return Err(Cause::Loading);
        };
        timeout_at(until + PATIENT_WAIT, pending)
            .await
            .unwrap_or(Err(Cause::Loading))
    }

    /// The same, however long it takes.
    pub(super) async fn load<F, Fut, E>(
        self: &Arc<Self>,
        digest: Digest,
        fetch: F,
    ) -> Result<Arc<Ready>, Cause>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Vec<u8>, E>>,
        E: std::fmt::Display,
    {
        if let Some(known) = self.known(digest).await {
            return known;
        }
        let making = self.making(digest);
        self.make(&making, digest, fetch).await
    }

    /// An uploaded component. Its compilation ends if nobody waits for it any more.
    pub(super) async fn upload(
        &self,
        digest: Digest,
        bytes: Arc<[u8]>,
    ) -> Result<Arc<Ready>, Cause> {
        if let Some(ready) = self.cache.get(&digest).await {
            self.in_memory.increment(1);
            return Ok(ready);
        }
        let make = async {
            match self.stored(digest).await? {
                Some(ready) => Ok(ready),
                None => self.compiled(digest, Origin::Upload, bytes).await,
            }
        };
        self.cache
            .try_get_with(digest, make)
            .await
            .map_err(|cause| (*cause).clone())
    }

    /// The component in memory, or the remembered failure.
    async fn known(&self, digest: Digest) -> Option<Result<Arc<Ready>, Cause>> {
        if let Some(ready) = self.cache.get(&digest).await {
            self.in_memory.increment(1);
            return Some(Ok(ready));
        }
        self.failures.get(&digest).await.map(Err)
    }

    fn making(&self, digest: Digest) -> Arc<Making> {
        let mut makings = self.makings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(making) = makings.get(&digest).and_then(Weak::upgrade) {
            return making;
        }
        makings.retain(|_, making| making.strong_count() > 0);
        let making = Arc::new(Making {
            begun: Instant::now(),
            outcome: OnceCell::new(),
        });
        makings.insert(digest, Arc::downgrade(&making));
        making
    }

    async fn make<F, Fut, E>(
        self: &Arc<Self>,
        making: &Arc<Making>,
        digest: Digest,
        fetch: F,
    ) -> Result<Arc<Ready>, Cause>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Vec<u8>, E>>,
        E: std::fmt::Display,
    {
        let begin = || self.begin(making, digest, fetch);
        let mut outcome = making.outcome.get_or_try_init(begin).await?.clone();
        let ended = outcome.wait_for(Option::is_some).await;
        // If a task ends without an outcome, it has panicked or the host stops.
        ended.map_or(Err(Cause::Interrupted), |ended| {
            ended.clone().unwrap_or(Err(Cause::Interrupted))
        })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if let Some(maker) = self.maker.take() {
            // The library may be dropped where blocking is not allowed, also by one of its own tasks.
            maker.shutdown_background();
        }
    }
}

fn lookups(found_in: &'static str) -> Counter {
    metrics::counter!("wrkflw_component_lookups_total", "found_in" => found_in)
}

/// A cache that admits every new entry. With the default policy, a full cache refuses an entry that is used less often than those that
/// it would evict. A large component beside many small ones would then be compiled again for each call.
fn cache<V: Clone + Send + Sync + 'static>(
    bytes_max: u64,
    bytes: fn(&V) -> usize,
) -> Cache<Digest, V> {
    Cache::builder()
        .max_capacity(bytes_max / 1024)
        .eviction_policy(EvictionPolicy::lru())
        .weigher(move |_: &Digest, value: &V| {
            let kib = u32::try_from(bytes(value) / 1024).unwrap_or(u32::MAX);
            kib.max(WEIGHT_KIB_MIN)
        })
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_cache_keeps_what_was_just_made() {
        let cache = cache(100 << 10, |bytes: &usize| *bytes);
        let (used, fresh) = (Digest([1; 32]), Digest([2; 32]));
        cache.insert(used, 64 << 10).await;
        cache.run_pending_tasks().await;
        for _ in 0..20 {
            assert!(cache.get(&used).await.is_some());
        }
        cache.run_pending_tasks().await;
        cache.insert(fresh, 64 << 10).await;
        cache.run_pending_tasks().await;
        assert!(cache.get(&fresh).await.is_some());
    }
}
