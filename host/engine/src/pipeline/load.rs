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
use super::{CommitMode, Mode, PostCommit, Run, group_commit, reply};
use crate::error::Error;
use crate::offload::{Offload, OffloadPermit};
use crate::permission::need;
use crate::request::{Identity, Reply, Request};
use crate::{Engine, visibility};
use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::rejection::Rejection;
use wrkflw_core::version::Version;
use wrkflw_runtime::lru::Lru;
use wrkflw_store::load::{
    self, Caller, Counted, LOAD_MAX, LoadOptions, Loaded, Stored, Wanted, Written,
};
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

/// Loads the command. `loaded` is what an earlier attempt read in this slot, if it read.
pub(super) async fn load_command(
    engine: &Engine,
    run: Run<'_>,
    mode: Mode,
    queued: &mut Queued<'_>,
    loaded: Option<Box<Loaded>>,
) -> Result<LoadResult, Error> {
    let request = run.request;
    let Some(instance) = run.instance else {
        return start::load_start(engine, run, mode, loaded).await;
    };
    let Rows {
        loaded,
        stored,
        cached,
    } = rows(engine, run, mode, queued, loaded, instance).await?;
    if let (Some(reply), Some(key)) = (loaded.reply, request.key()) {
        return reply::repeat(&engine.0.seals, request.who, reply, key).map(LoadResult::Replied);
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
        || engine
            .is_seen(tenant, &loaded.actor, &stored.instance)
            .await?;
    let content = loaded.content.as_deref();
    let caller = (tenant, &*loaded.actor);
    let versions = engine
        .versions()
        .for_command(caller, command, &stored, content);
    let (version, previous) = match versions.await {
        Ok(versions) => versions,
        // A caller who does not see the instance is not told what is wrong with its version. A failure of the host says nothing about
        // the instance. It is returned, so that the caller tries again.
        Err(error) => {
            let is_of_host = matches!(error, Error::Store(_) | Error::Unavailable(_) | Error::Busy);
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
    engine: &Engine,
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
        group_commit::commit_pending(&engine.0.writer, slot).await;
    }
    let Some(state) = queued.slot.as_ref().and_then(|slot| slot.state()) else {
        if let Some(loaded) = loaded {
            return Ok(Rows::read(*loaded));
        }
        return match cached_rows(&engine.0.post_commit, run, mode, instance) {
            Some(rows) => Ok(rows),
            None => read_rows(engine, request, instance).await.map(Rows::read),
        };
    };
    let state = state.clone();
    let loaded = match read_ahead {
        Some(loaded) => loaded,
        // A signal's earlier receipt is among the rows of its instance, so the instance is read, too.
        None if request.command.signal().is_some() => read_rows(engine, request, instance).await?,
        None => read_rows(engine, request, NO_INSTANCE).await?,
    };
    Ok(Rows {
        loaded,
        stored: Some(state),
        cached: None,
    })
}

/// The cached rows, on the first attempt and if a commit will check whether they are current.
fn cached_rows(
    post_commit: &PostCommit,
    run: Run<'_>,
    mode: Mode,
    instance: InstanceId,
) -> Option<Rows> {
    let request = run.request;
    // Earlier receipts of a signal and retired versions are not cached.
    let may_rest = !request.dry_run
        && request.command.signal().is_none()
        && !matches!(request.command, Command::Migrate { .. });
    if !mode.cache || !may_rest {
        return None;
    }
    let cache = &post_commit.cache;
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
    engine: &Engine,
    request: &Request<'_>,
    instance: InstanceId,
) -> Result<Loaded, Error> {
    let who = request.who.caller();
    let wanted = Wanted {
        key: request.key().map(|key| key.key.clone()),
        signal: request.command.signal(),
        ..Wanted::of(who, instance, engine.0.clock.now())
    };
    load_noted(engine, wanted).await
}

/// Loads for a command, and compares the cache with what was read.
async fn load_noted(engine: &Engine, wanted: Wanted) -> Result<Loaded, Error> {
    let (who, instance) = (wanted.who.clone(), wanted.instance);
    let loaded = loaded_together(engine, wanted).await?;
    let cache = &engine.0.post_commit.cache;
    cache.note_load(&who, instance, &loaded);
    Ok(loaded)
}

/// Reads an instance that the caller sees, in a batch, and caches it for the command that is to follow. So the command does not
/// read it again.
pub(crate) async fn read_for_command(
    engine: &Engine,
    who: &Identity,
    instance: InstanceId,
) -> Result<Arc<Stored>, Error> {
    let wanted = Wanted::of(who.caller(), instance, engine.0.clock.now());
    let loaded = load_noted(engine, wanted).await?;
    let stored = Arc::new(engine.seen(who.tenant, instance, loaded).await?);
    let cache = &engine.0.post_commit.cache;
    cache.insert(who.tenant, stored.clone());
    Ok(stored)
}

/// The rows from the database if the cached ones are outdated or the request has a reply by now. None if the cached rows are
/// current.
pub(super) async fn newer_than(
    engine: &Engine,
    run: Run<'_>,
    cached: CachedMark,
) -> Result<Option<Box<Loaded>>, Error> {
    let loaded = match run.instance {
        Some(instance) => read_rows(engine, run.request, instance).await?,
        None => start::read_start(engine, run.request).await?,
    };
    let is_current =
        CachedMark::of(&loaded, loaded.found.as_ref()) == cached && loaded.reply.is_none();
    Ok((!is_current).then(|| Box::new(loaded)))
}

impl LoadedCommand {
    /// Refuses a caller who does not see the instance: the answer is that its task, or the instance, does not exist. A signal that found
    /// the instance by its correlation key passes, because its sender need not see who takes it.
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

/// Loads for commands in batches, and knows which instances are too large for one.
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
        let results: Vec<_> = match load::load_together(&self.0, &wanted).await {
            Ok(results) => results.into_iter().map(Ok).collect(),
            Err(error) => error.for_each().take(requests.len()).map(Err).collect(),
        };
        for (request, result) in requests.into_iter().zip(results) {
            let _gone = request.waiter.send(result);
        }
    }
}

/// Loads for somebody who reads, or for the host's own work, not in a batch.
pub(crate) async fn loaded(
    engine: &Engine,
    who: &Caller,
    instance: InstanceId,
    options: LoadOptions<'_>,
) -> Result<Loaded, Error> {
    let (loader, offload) = (&engine.0.loader, &engine.0.offload);
    let wanted = Wanted::asking(who.clone(), instance, options);
    let _place = place_of_large(loader, who.tenant, instance).await?;
    let rows = load::load(&engine.0.store, &wanted).await?;
    parsed(loader, offload, who.tenant, instance, rows).await
}

/// Loads for a command, in a batch.
pub(super) async fn loaded_together(engine: &Engine, wanted: Wanted) -> Result<Loaded, Error> {
    let (loader, offload) = (&engine.0.loader, &engine.0.offload);
    let (tenant, instance) = (wanted.who.tenant, wanted.instance);
    let place = place_of_large(loader, tenant, instance).await?;
    let rows = match place {
        Some(_) => load::load(&engine.0.store, &wanted).await?,
        None => loader.load(wanted).await??,
    };
    parsed(loader, offload, tenant, instance, rows).await
}

/// A place to load a large instance; none for other instances. A large instance is loaded by itself, one of each tenant at a
/// time, so it occupies neither the loader's workers nor many connections.
async fn place_of_large(
    loader: &Loader,
    tenant: TenantId,
    instance: InstanceId,
) -> Result<Option<OffloadPermit>, Error> {
    if loader.large.get(&(tenant, instance)).is_none() {
        return Ok(None);
    }
    Ok(Some(loader.places.place(tenant).await?))
}

/// Parses the rows, off the async threads if they are large, and notes that the instance is large.
async fn parsed(
    loader: &Loader,
    offload: &Offload,
    tenant: TenantId,
    instance: InstanceId,
    rows: Loaded<Written>,
) -> Result<Loaded, Error> {
    let bytes = rows.found.as_ref().map_or(0, Written::bytes);
    if bytes > LARGE_BYTES {
        loader.large.insert((tenant, instance), ());
    }
    let effort = PARSE_BYTE * u32::try_from(bytes).unwrap_or(u32::MAX);
    let read = offload.in_place(tenant, effort, || rows.read());
    Ok(read.await??)
}
