//! The load: everything a command needs before it runs: the actor, the instance with all its parts, the definition version, and
//! the stored reply of its idempotency key, if there is one.
//!
//! The instance comes from pending commits, else from the cache, else from the database.

use std::sync::Arc;

use uuid::Uuid;

use super::queue::Queued;
use super::{CommitMode, Mode, Run};
use crate::Engine;
use crate::error::Error;
use crate::request::{Reply, Request};
use crate::visibility;
use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::ids::{InstanceId, VersionRef};
use wrkflw_core::rejection::Rejection;
use wrkflw_core::version::Version;
use wrkflw_store::load::{Counted, Loaded, Stored, Wanted};

/// No instance has this id: a load of it reads only the caller.
pub(crate) const NO_INSTANCE: InstanceId = InstanceId(Uuid::nil());

/// The result of the load.
pub(super) enum LoadResult {
    /// The idempotency key has a reply. It is repeated even when the definition was retired since.
    Replied(Reply),
    Refused(Error),
    Command(Box<LoadedCommand>),
}

/// Everything a command needs before it runs.
pub(crate) struct LoadedCommand {
    pub(super) actor: Actor,
    pub(super) version: Arc<Version>,
    /// The version that a migration migrates from.
    pub(super) previous: Option<Arc<Version>>,
    /// None for a start.
    pub(crate) stored: Option<Arc<Stored>>,
    /// As of [`Loaded::access_mark`].
    pub(super) access_mark: Uuid,
    /// The earlier receipt of the command's signal, if it was received before.
    pub(super) signalled: Option<Counted>,
    /// The version that the command would run, if an operator has stopped it.
    pub(super) stopped: Option<VersionRef>,
    /// Whether the caller sees the instance.
    pub(crate) is_seen: bool,
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
            return Ok(LoadResult::Refused(Error::NotFound {
                what: "instance",
                id: instance.to_string(),
            }));
        };
        let (tenant, command) = (request.who.tenant, &request.command);
        let is_seen = self
            .is_seen(tenant, &loaded.actor, &stored.instance)
            .await?;
        let content = loaded.content.as_deref();
        let versions = self.versions_for(tenant, command, &stored, content).await;
        let (version, previous) = match versions {
            Ok(versions) => versions,
            // What is wrong with the version is not told of an instance that the caller does not see.
            Err(_) if !is_seen => {
                return Ok(LoadResult::Refused(visibility::missing(instance)));
            }
            Err(error) => return Ok(LoadResult::Refused(error)),
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
        let who = request.who.principalship();
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
        let who = request.who.principalship();
        let wanted = Wanted {
            key: request.key().map(|key| key.key.clone()),
            signal: request.command.signal(),
            ..Wanted::of(who, instance, self.0.clock.now())
        };
        let who = wanted.who.clone();
        let loaded = self.loaded_together(wanted).await?;
        let cache = &self.0.post_commit.cache;
        cache.note_load(&who, instance, &loaded);
        Ok(loaded)
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

    /// Reads the caller and the definition of a start from the database.
    async fn read_start(&self, request: &Request<'_>) -> Result<Loaded, Error> {
        let definition = started(request);
        let who = request.who.principalship();
        let wanted = Wanted {
            key: request.key().map(|key| key.key.clone()),
            definition: Some(definition.to_owned()),
            ..Wanted::of(who, NO_INSTANCE, self.0.clock.now())
        };
        let who = wanted.who.clone();
        let loaded = self.loaded_together(wanted).await?;
        let cache = &self.0.post_commit.cache;
        cache.note_load(&who, NO_INSTANCE, &loaded);
        cache.note_definition(who.tenant, definition, &loaded);
        Ok(loaded)
    }

    async fn load_start(
        &self,
        run: Run<'_>,
        mode: Mode,
        loaded: Option<Box<Loaded>>,
    ) -> Result<LoadResult, Error> {
        let request = run.request;
        let definition = started(request);
        let cached = match &loaded {
            None if mode.cache && !request.dry_run => {
                let who = request.who.principalship();
                let cache = &self.0.post_commit.cache;
                cache.get_start(&who, definition)
            }
            _ => None,
        };
        let mark = cached.as_ref().map(|rows| CachedMark::of(rows, None));
        let loaded = match (loaded, cached) {
            (Some(loaded), _) => *loaded,
            (None, Some(cached)) => cached,
            (None, None) => self.read_start(request).await?,
        };
        if let (Some(reply), Some(key)) = (loaded.reply, request.key()) {
            return self
                .repeat(request.who, reply, key)
                .map(LoadResult::Replied);
        }
        let Some(found) = loaded.definition else {
            return Ok(LoadResult::Refused(Error::NotFound {
                what: "definition",
                id: definition.to_owned(),
            }));
        };
        let Some((version, content)) = found.active_version.zip(loaded.content) else {
            return Ok(LoadResult::Refused(Error::NoActiveVersion(
                definition.to_owned(),
            )));
        };
        let reference = VersionRef {
            key: definition.to_owned(),
            version,
        };
        let is_stopped = loaded.stopped.contains(&reference);
        let content = Some(content.as_slice());
        let version = self.version_of(request.who.tenant, &reference, content);
        let version = match version.await {
            Ok(version) => version,
            Err(error) => return Ok(LoadResult::Refused(error)),
        };
        Ok(LoadResult::Command(Box::new(LoadedCommand {
            stopped: is_stopped.then_some(reference),
            // A substitute cannot start instances for an absent person.
            actor: Actor {
                stands_in_for: Vec::new(),
                ..loaded.actor
            },
            version,
            previous: None,
            stored: None,
            access_mark: loaded.access_mark,
            signalled: None,
            is_seen: true,
            cached: mark,
        })))
    }
}

/// The key of the definition to start.
fn started<'a>(request: &'a Request<'_>) -> &'a str {
    match &request.command {
        Command::Start { definition, .. } => definition,
        _ => unreachable!("only a start has no instance"),
    }
}

impl LoadedCommand {
    /// Checks the caller's permission, that the version is not stopped, and the expected revision.
    pub(super) fn check(&self, request: &Request<'_>) -> Result<(), Error> {
        let permission = request.command.permission();
        if !self.actor.is_host() && !self.actor.may(permission) {
            return Err(Error::Permission(permission));
        }
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
