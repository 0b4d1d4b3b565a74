//! The loader: it reads for many commands in one statement. Each command's task parses its own rows, so no command waits while
//! another's large instance is parsed.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::batch::{Batch, Batcher, Bounds, Full};
use crate::Engine;
use crate::error::Error;
use crate::offload::{Offload, Place};
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_runtime::lru::Lru;
use wrkflw_store::load::{Asked, LOAD_MAX, Loaded, Principalship, Wanted, Written};
use wrkflw_store::{Store, StoreError};

/// Statements in flight at a time.
const WORKERS: usize = 2;
/// Loads that may wait for a connection.
const WAITING_MAX: usize = 1024;
/// An instance of so many bytes takes the database noticeably long.
const LARGE_BYTES: usize = 256 << 10;
/// How many large instances are remembered.
const LARGE_MAX: usize = 10_000;
/// Large instances that are loaded at a time.
const LARGE_AT_ONCE: usize = 2;
/// The time to parse a byte of an instance.
const PARSE_BYTE: Duration = Duration::from_nanos(10);

/// Loads for commands.
pub(crate) struct Loader {
    batched: Batcher<Loads>,
    /// Instances that were large when they were loaded. A large instance is not expected to become small again.
    large: Lru<(TenantId, InstanceId), ()>,
    /// Places for loads of large instances.
    places: Offload,
}

struct Loads(Store);

struct Caller {
    wanted: Wanted,
    waiter: oneshot::Sender<Result<Loaded<Written>, StoreError>>,
}

impl Loader {
    /// A loader whose workers are tasks of `tasks`.
    pub(crate) fn new(store: &Store, tasks: &TaskTracker) -> Loader {
        let bounds = Bounds {
            workers: WORKERS,
            size_max: LOAD_MAX,
            waiting_max: WAITING_MAX,
        };
        Loader {
            batched: Batcher::new(Loads(store.clone()), bounds, tasks.clone()),
            large: Lru::new(LARGE_MAX),
            places: Offload::new(LARGE_AT_ONCE),
        }
    }

    async fn load(&self, wanted: Wanted) -> Result<Result<Loaded<Written>, StoreError>, Full> {
        let (waiter, loaded) = oneshot::channel();
        let loaded = self.batched.run(Caller { wanted, waiter }, loaded).await?;
        Ok(loaded.unwrap_or_else(|_| Err(StoreError::Lost)))
    }
}

impl Batch for Loads {
    type Item = Caller;
    const NAME: &'static str = "load";

    fn fits(_: &[Caller], _: &Caller) -> bool {
        true
    }

    async fn run(&self, mut callers: Vec<Caller>) {
        // A caller that went away needs no load.
        callers.retain(|caller| !caller.waiter.is_closed());
        if callers.is_empty() {
            return;
        }
        let wanted: Vec<&Wanted> = callers.iter().map(|caller| &caller.wanted).collect();
        let results: Vec<_> = match self.0.load_together(&wanted).await {
            Ok(results) => results.into_iter().map(Ok).collect(),
            Err(error) => error.for_each().take(callers.len()).map(Err).collect(),
        };
        for (caller, result) in callers.into_iter().zip(results) {
            let _gone = caller.waiter.send(result);
        }
    }
}

impl Engine {
    /// Loads for a reader, or for the host's own work.
    pub(crate) async fn loaded(
        &self,
        who: &Principalship,
        instance: InstanceId,
        asked: Asked<'_>,
    ) -> Result<Loaded, Error> {
        let wanted = Wanted::asking(who.clone(), instance, asked);
        let _place = self.place_of_large(who.tenant, instance).await?;
        let loaded = self.0.store.load(&wanted).await?;
        self.parsed(who.tenant, instance, loaded).await
    }

    /// Loads for a command, in a batch.
    pub(super) async fn loaded_together(&self, wanted: Wanted) -> Result<Loaded, Error> {
        let (tenant, instance) = (wanted.who.tenant, wanted.instance);
        let place = self.place_of_large(tenant, instance).await?;
        let loaded = match place {
            Some(_) => self.0.store.load(&wanted).await?,
            None => self.0.loader.load(wanted).await??,
        };
        self.parsed(tenant, instance, loaded).await
    }

    /// A place to load a large instance; none for other instances. A large instance is loaded by itself, one of each tenant at a
    /// time, so it occupies neither the loader's workers nor many connections.
    async fn place_of_large(
        &self,
        tenant: TenantId,
        instance: InstanceId,
    ) -> Result<Option<Place>, Error> {
        if self.0.loader.large.get(&(tenant, instance)).is_none() {
            return Ok(None);
        }
        Ok(Some(self.0.loader.places.place(tenant).await?))
    }

    /// Parses the rows, off the async threads if they are large.
    async fn parsed(
        &self,
        tenant: TenantId,
        instance: InstanceId,
        loaded: Loaded<Written>,
    ) -> Result<Loaded, Error> {
        let bytes = loaded.found.as_ref().map_or(0, Written::bytes);
        if bytes > LARGE_BYTES {
            self.0.loader.large.insert((tenant, instance), ());
        }
        let effort = PARSE_BYTE * u32::try_from(bytes).unwrap_or(u32::MAX);
        let read = self.0.offload.in_place(tenant, effort, || loaded.read());
        Ok(read.await??)
    }
}
