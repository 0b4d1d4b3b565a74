//! The load: everything a command needs before it runs: the actor, the instance with all its parts, the definition version, and
//! the stored reply of its idempotency key, if there is one.
//!
//! The instance comes from pending commits, else from the cache, else from the database. The database is read for many commands
//! in one statement. Each command's task parses its own rows, so no command waits while another's large instance is parsed.

mod start;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::batch::{Batch, Batcher, Bounds, Full};
use super::queue::Queued;
use super::{CommitMode, Mode, Run};
use crate::Engine;
use crate::definitions::need;
use crate::error::Error;
use crate::offload::{Offload, OffloadPermit};
use crate::request::{Identity, Reply, Request};
use crate::visibility;
use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::rejection::Rejection;
use wrkflw_core::version::Version;
use wrkflw_runtime::lru::Lru;
use wrkflw_store::load::{Caller, Counted, LOAD_MAX, LoadOptions, Loaded, Stored, Wanted, Written};
use wrkflw_store::{Store, StoreError};

/// No instance has this id: a load of it reads only the caller.
pub(crate) const NO_INSTANCE: InstanceId = InstanceId(Uuid::nil());

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

/// The result of the load.
pub(super) enum LoadResult {
    /// The idempotency key has a reply. It is repeated even when the definition was retired since.
    Replied(Reply),
    /// With the mark of the cached rows that the refusal depends on.
    Refused(Error, Option<CachedMark>),
    Command(Box<LoadedCommand>),
}

/// Everything a command needs before it runs.
pub(super) struct LoadedCommand {
    pub(super) actor: Arc<Actor>,
    pub(super) version: Arc<Version>,
    /// The version that a migration migrates from.
    pub(super) previous: Option<Arc<Version>>,
    /// None for a start.
    pub(super) stored: Option<Arc<Stored>>,
    /// As of [`Loaded::access_mark`].
    pub(super) access_mark: Uuid,
    /// The earlier receipt of the command's signal, if it was received before.
    pub(super) signalled: Option<Counted>,
    /// The version that the command would run, if an operator has stopped it.
    pub(super) stopped: Option<VersionRef>,
    /// Whether the caller sees the instance.
    pub(super) is_seen: bool,
    /// For cached rows: what the commit must find in the database.
    pub(super) cached: Option<CachedMark>,
}

/// Identifies the cached state of an instance, or of a definition to start, and of its caller. The cache is current if the
/// database has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CachedMark {
    /// The instance's revision and the hash of its last entry, none for a start. The revision alone is not enough: after a lost
    /// commit another change may have the same revision.
    instance: Option<(u32, [u8; 32])>,
    /// As of [`Loaded::access_mark`].
    pub(super) access_mark: Uuid,
}

impl CachedMark {
    fn of(loaded: &Loaded, stored: Option<&Stored>) -> CachedMark {
        CachedMark {
            instance: stored.map(|stored| (stored.instance.revision, stored.head.hash)),
            access_mark: loaded.access_mark,
        }
    }
}

/// The rows for a command on an instance.
struct Rows {
    /// Everything but the instance.
    loaded: Loaded,
    stored: Option<Arc<Stored>>,
    cached: Option<CachedMark>,
}

impl Rows {
    fn read(mut loaded: Loaded) -> Rows {
        Rows {
            stored: loaded.found.take().map(Arc::new),
            loaded,
            cached: None,
        }
    }
}

impl Engine {
    /// Loads the command. `loaded` is what an earlier attempt read in this slot, if it read.
    pub(super) async fn load_command(
        &self,
        run: Run<'_>,
        mode: Mode,
        queued: &mut Queued<'_>,
        loaded: Option<Box<Loaded>>,
    ) -> Result<LoadResult, Error> {
        let request = run.request;
        let Some(instance) = run.instance else {
            return self.load_start(run, mode, loaded).await;
        };
        let rows = self.rows(run, mode, queued, loaded, instance).await?;
        let Rows {
            loaded,
            stored,
            cached,
        } = rows;
        if let (Some(reply), Some(key)) = (loaded.reply, request.key()) {
            return self
                .repeat(request.who, reply, key)
                .map(LoadResult::Replied);
        }
        let Some(stored) = stored else {
            let error = Error::NotFound {
                what: "instance",
                id: instance.to_string(),
            };
            return Ok(LoadResult::Refused(error, cached));
        };
        let (tenant, command) = (request.who.tenant, &request.command);
        let is_seen = stored.instance.observers.is_none()
            || self
                .is_seen(tenant, &loaded.actor, &stored.instance)
                .await?;
        let content = loaded.content.as_deref();
        let caller = (tenant, &*loaded.actor);
        let versions = self.versions_for(caller, command, &stored, content);
        let (version, previous) = match versions.await {
            Ok(versions) => versions,
            // What is wrong with the version is not told of an instance that the caller does not see. A failure of the host says
            // nothing about the instance: `not found` would settle what is to be tried again.
            Err(error) => {
                let is_of_host =
                    matches!(error, Error::Store(_) | Error::Unavailable(_) | Error::Busy);
                let error = if is_seen || is_of_host {
                    error
                } else {
                    visibility::missing(instance)
                };
                return Ok(LoadResult::Refused(error, cached));
            }
        };
        let is_stopped = loaded.stopped.contains(&version.reference) && !command.passes_a_stop();
        Ok(LoadResult::Command(Box::new(LoadedCommand {
            stopped: is_stopped.then(|| version.reference.clone()),
            actor: loaded.actor,
            version,
            previous,
            stored: Some(stored),
            access_mark: loaded.access_mark,
            signalled: loaded.signalled,
            is_seen,
            cached,
        })))
    }

    /// The rows for the command, with the effects of pending commits.
    async fn rows(
        &self,
        run: Run<'_>,
        mode: Mode,
        queued: &mut Queued<'_>,
        loaded: Option<Box<Loaded>>,
        instance: InstanceId,
    ) -> Result<Rows, Error> {
        let request = run.request;
        let read_ahead = queued.take_read_ahead();
        if let Some(slot) = &mut queued.slot
            && (mode.commit != CommitMode::Joined || !slot.admits(request, instance))
        {
            self.commit_pending(slot).await;
        }
        let Some(state) = queued.slot.as_ref().and_then(|slot| slot.state()) else {
            if let Some(loaded) = loaded {
                return Ok(Rows::read(*loaded));
            }
            return match self.cached_rows(run, mode, instance) {
                Some(rows) => Ok(rows),
                None => self.read_rows(request, instance).await.map(Rows::read),
            };
        };
        let state = state.clone();
        let loaded = match read_ahead {
            Some(loaded) => loaded,
            // A signal's earlier receipt is among the rows of its instance, so the instance is read, too.
            None if request.command.signal().is_some() => self.read_rows(request, instance).await?,
            None => self.read_rows(request, NO_INSTANCE).await?,
        };
        Ok(Rows {
            loaded,
            stored: Some(state),
            cached: None,
        })
    }

    /// The cached rows, on the first attempt and if a commit will check whether they are current.
    fn cached_rows(&self, run: Run<'_>, mode: Mode, instance: InstanceId) -> Option<Rows> {
        let request = run.request;
        // Earlier receipts of a signal and retired versions are not cached.
        let may_rest = !request.dry_run
            && request.command.signal().is_none()
            && !matches!(request.command, Command::Migrate { .. });
        if !mode.cache || !may_rest {
            return None;
        }
        let cache = &self.0.post_commit.cache;
        let who = request.who.caller();
        let (loaded, stored) = cache.get(&who, instance)?;
        let cached = Some(CachedMark::of(&loaded, Some(&stored)));
        Some(Rows {
            loaded,
            stored: Some(stored),
            cached,
        })
    }

    /// Reads the caller, and the instance unless it is [`NO_INSTANCE`], from the database.
    pub(super) async fn read_rows(
        &self,
        request: &Request<'_>,
        instance: InstanceId,
    ) -> Result<Loaded, Error> {
        let who = request.who.caller();
        let wanted = Wanted {
            key: request.key().map(|key| key.key.clone()),
            signal: request.command.signal(),
            ..Wanted::of(who, instance, self.0.clock.now())
        };
        self.load_noted(wanted).await
    }

    /// Loads for a command, and compares the cache with what was read.
    async fn load_noted(&self, wanted: Wanted) -> Result<Loaded, Error> {
        let (who, instance) = (wanted.who.clone(), wanted.instance);
        let loaded = self.loaded_together(wanted).await?;
        let cache = &self.0.post_commit.cache;
        cache.note_load(&who, instance, &loaded);
        Ok(loaded)
    }

    /// Reads an instance that the caller sees, in a batch, and caches it for the command that is to follow. So the command does not
    /// read it again.
    pub(crate) async fn read_for_command(
        &self,
        who: &Identity,
        instance: InstanceId,
    ) -> Result<Arc<Stored>, Error> {
        let wanted = Wanted::of(who.caller(), instance, self.0.clock.now());
        let loaded = self.load_noted(wanted).await?;
        let stored = Arc::new(self.seen(who.tenant, instance, loaded).await?);
        let cache = &self.0.post_commit.cache;
        cache.insert(who.tenant, stored.clone());
        Ok(stored)
    }

    /// The rows from the database if the cached ones are outdated or the request has a reply by now. None if the cached rows are
    /// current.
    pub(super) async fn newer_than(
        &self,
        run: Run<'_>,
        cached: CachedMark,
    ) -> Result<Option<Box<Loaded>>, Error> {
        let loaded = match run.instance {
            Some(instance) => self.read_rows(run.request, instance).await?,
            None => self.read_start(run.request).await?,
        };
        let is_current =
            CachedMark::of(&loaded, loaded.found.as_ref()) == cached && loaded.reply.is_none();
        Ok((!is_current).then(|| Box::new(loaded)))
    }
}

impl LoadedCommand {
    /// Answers a command whose caller does not see its instance as if its task, or its instance, did not exist. Lets a signal pass that
    /// found the instance by its correlation key: whoever may send it need not see who takes it.
    pub(super) fn check_seen(&self, request: &Request<'_>) -> Result<(), Error> {
        let Some(stored) = &self.stored else {
            return Ok(());
        };
        let finds_by_key = || {
            let signal = request.command.signal();
            signal.is_some_and(|key| key.correlation.is_some())
        };
        if self.is_seen || finds_by_key() {
            return Ok(());
        }
        Err(match request.command.task() {
            Some(task) => Error::NotFound {
                what: "task",
                id: task.to_string(),
            },
            None => visibility::missing(stored.instance.id),
        })
    }

    /// Checks the caller's permission.
    pub(super) fn check_permission(&self, request: &Request<'_>) -> Result<(), Error> {
        if self.actor.is_host() {
            return Ok(());
        }
        need(&self.actor, request.command.permission())
    }

    /// Checks that the version is not stopped, and the expected revision.
    pub(super) fn check_state(&self, request: &Request<'_>) -> Result<(), Error> {
        if let Some(stopped) = &self.stopped {
            return Err(Error::stopped(stopped.clone()));
        }
        match (request.if_match, &self.stored) {
            (Some(given), Some(stored)) if given != stored.instance.revision => {
                Err(Rejection::Stale {
                    given,
                    current: stored.instance.revision,
                }
                .into())
            }
            _ => Ok(()),
        }
    }
}

/// Loads for commands.
pub(crate) struct Loader {
    batched: Batcher<Loads>,
    /// Instances that were large when they were loaded. A large instance is not expected to become small again.
    large: Lru<(TenantId, InstanceId), ()>,
    /// Places for loads of large instances.
    places: Offload,
}

struct Loads(Store);

struct LoadRequest {
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
        let loaded = self
            .batched
            .run(LoadRequest { wanted, waiter }, loaded)
            .await?;
        Ok(loaded.unwrap_or_else(|_| Err(StoreError::Lost)))
    }
}

impl Batch for Loads {
    type Item = LoadRequest;
    const NAME: &'static str = "load";

    fn fits(_: &[LoadRequest], _: &LoadRequest) -> bool {
        true
    }

    async fn run(&self, mut requests: Vec<LoadRequest>) {
        // A caller that went away needs no load.
        requests.retain(|request| !request.waiter.is_closed());
        if requests.is_empty() {
            return;
        }
        let wanted: Vec<&Wanted> = requests.iter().map(|request| &request.wanted).collect();
        let results: Vec<_> = match self.0.load_together(&wanted).await {
            Ok(results) => results.into_iter().map(Ok).collect(),
            Err(error) => error.for_each().take(requests.len()).map(Err).collect(),
        };
        for (request, result) in requests.into_iter().zip(results) {
            let _gone = request.waiter.send(result);
        }
    }
}

impl Engine {
    /// Loads for a reader, or for the host's own work.
    pub(crate) async fn loaded(
        &self,
        who: &Caller,
        instance: InstanceId,
        asked: LoadOptions<'_>,
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
    ) -> Result<Option<OffloadPermit>, Error> {
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
