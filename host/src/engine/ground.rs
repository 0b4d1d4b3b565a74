//! What a command starts from: who asks, the instance with all its parts, the version whose logic is asked.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::Engine;
use super::error::Error;
use super::execute::Run;
use super::request::Request;
use crate::domain::actor::Actor;
use crate::domain::command::Command;
use crate::domain::ids::{InstanceId, VersionRef};
use crate::domain::rejection::Rejection;
use crate::domain::version::Version;
use crate::store::load::{Counted, Loaded, Stored, StoredReply, Wanted};

/// How long what was read before a command's turn is taken for what stands: memberships may change meanwhile.
const EARLY_MAX: Duration = Duration::from_millis(100);

/// No instance has this id: only what stands of the caller is read.
pub(super) const NOTHING: InstanceId = InstanceId(Uuid::nil());

/// What an attempt starts from.
pub(super) struct Ground {
    pub(super) actor: Actor,
    pub(super) version: Arc<Version>,
    /// The version that a migration leaves.
    pub(super) previous: Option<Arc<Version>>,
    pub(super) stored: Option<Arc<Stored>>,
    /// As of [`Loaded::standing`].
    pub(super) standing: Uuid,
    /// The command is a signal that has counted already: what is known of that.
    pub(super) signalled: Option<Counted>,
    /// The version that the command would run, where an operator has stopped it.
    pub(super) stopped: Option<VersionRef>,
    /// When it was not read but remembered: what has to be found for it to hold.
    pub(super) remembered: Option<Remembered>,
}

/// By what one tells whether a memory still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Remembered {
    revision: u32,
    /// Of the instance's last entry. A revision may be another one's, when the database lost a commit.
    head: [u8; 32],
    /// As of [`Loaded::standing`].
    pub(super) standing: Uuid,
}

impl Remembered {
    fn of(loaded: &Loaded, stored: &Stored) -> Remembered {
        Remembered {
            revision: stored.instance.revision,
            head: stored.head.hash,
            standing: loaded.standing,
        }
    }
}

/// What a command on an instance finds.
struct Found {
    /// But for the instance.
    loaded: Loaded,
    stored: Option<Arc<Stored>>,
    remembered: Option<Remembered>,
}

impl Found {
    fn read(mut loaded: Loaded) -> Found {
        Found {
            stored: loaded.found.take().map(Arc::new),
            loaded,
            remembered: None,
        }
    }
}

/// What was read of the caller before it was the command's turn.
pub(super) struct Early {
    loaded: Loaded,
    /// When the reading began.
    since: Instant,
}

impl Engine {
    /// Waits for the command's turn, unless it has it, and reads what stands of the caller meanwhile.
    pub(super) async fn line_up<'a>(&'a self, run: &mut Run<'a>) {
        let (Some(instance), None) = (run.instance, &run.turn) else {
            return;
        };
        let queue = &self.0.queue;
        run.turn = queue.at_once(instance);
        if run.turn.is_some() {
            return;
        }
        let (turn, early) = tokio::join!(queue.turn(instance), self.read_early(run));
        (run.turn, run.early) = (Some(turn), early);
    }

    async fn read_early(&self, run: &Run<'_>) -> Option<Early> {
        if run.alone || run.request.command.signal().is_some() {
            return None;
        }
        let since = Instant::now();
        // A failure will be met again in the command's turn.
        let loaded = self.load(run.request, NOTHING).await.ok()?;
        Some(Early { loaded, since })
    }

    async fn load(&self, request: &Request<'_>, instance: InstanceId) -> Result<Loaded, Error> {
        let who = request.who.principalship();
        let wanted = Wanted {
            key: request.key().map(|key| key.key.clone()),
            signal: request.command.signal(),
            ..Wanted::of(who, instance, self.0.clock.now())
        };
        let who = wanted.who.clone();
        let loaded = self.0.loader.load(wanted).await??;
        let memory = &self.0.aftermath.memory;
        memory.read(&who, instance, &loaded).await;
        Ok(loaded)
    }

    /// Loads what the command starts from, and the reply that it may have got already. The ground is judged only
    /// when there is no such reply: a repeat is answered even when its definition has been retired since.
    pub(super) async fn ground(
        &self,
        run: &mut Run<'_>,
    ) -> Result<(Result<Ground, Error>, Option<StoredReply>), Error> {
        let Some(instance) = run.instance else {
            return self.ground_of_start(run.request).await;
        };
        let Found {
            loaded,
            stored,
            remembered,
        } = self.found(run, instance).await?;
        let ground = match stored {
            None => Err(Error::NotFound {
                what: "instance",
                id: instance.to_string(),
            }),
            Some(stored) => {
                let (tenant, command) = (run.request.who.tenant, &run.request.command);
                let content = loaded.content.as_deref();
                let versions = self.versions_for(tenant, command, &stored, content);
                let runs = |version: &VersionRef| {
                    loaded.stopped.contains(version) && !command.passes_a_stop()
                };
                versions.await.map(|(version, previous)| Ground {
                    stopped: Some(&version.reference)
                        .filter(|version| runs(version))
                        .cloned(),
                    actor: loaded.actor,
                    version,
                    previous,
                    stored: Some(stored),
                    standing: loaded.standing,
                    signalled: loaded.signalled,
                    remembered,
                })
            }
        };
        Ok((ground, loaded.reply))
    }

    /// What stands, with the instance as it will be once what waits before this command is committed; and, where that
    /// was not read but remembered, what has to be found for it to hold.
    async fn found(&self, run: &mut Run<'_>, instance: InstanceId) -> Result<Found, Error> {
        let (request, early) = (run.request, run.early.take());
        if let Some(turn) = &mut run.turn
            && (run.alone || !turn.admits(request, instance))
        {
            self.flush(turn).await;
        }
        let Some(ahead) = run.turn.as_ref().and_then(|turn| turn.ahead()) else {
            if let Some(loaded) = run.read.take() {
                return Ok(Found::read(loaded));
            }
            return match self.recalled(run, instance).await {
                Some(found) => Ok(found),
                None => self.load(request, instance).await.map(Found::read),
            };
        };
        let loaded = match early {
            Some(early) if early.since.elapsed() < EARLY_MAX => early.loaded,
            // Whether a signal has counted is among the rows of its instance.
            _ if request.command.signal().is_some() => self.load(request, instance).await?,
            _ => self.load(request, NOTHING).await?,
        };
        Ok(Found {
            loaded,
            stored: Some(ahead.clone()),
            remembered: None,
        })
    }

    /// What is remembered, for a command that may rest on it: at its first attempt, and when a commit puts it to the test.
    async fn recalled(&self, run: &Run<'_>, instance: InstanceId) -> Option<Found> {
        let request = run.request;
        // Whether a signal has counted, and whether a version has been retired, is not remembered.
        let rests = !request.dry_run
            && request.command.signal().is_none()
            && !matches!(request.command, Command::Migrate { .. });
        if run.again || !rests {
            return None;
        }
        let memory = &self.0.aftermath.memory;
        let who = request.who.principalship();
        let (loaded, stored) = memory.recall(&who, instance).await?;
        let remembered = Some(Remembered::of(&loaded, &stored));
        Some(Found {
            loaded,
            stored: Some(stored),
            remembered,
        })
    }

    /// Whether what was remembered still stands, and the request has not been answered before. If not, what was found
    /// instead is kept for the next attempt.
    pub(super) async fn still_stands(
        &self,
        run: &mut Run<'_>,
        remembered: Remembered,
    ) -> Result<bool, Error> {
        let Some(instance) = run.instance else {
            return Ok(false);
        };
        let loaded = self.load(run.request, instance).await?;
        let stands = loaded
            .found
            .as_ref()
            .is_some_and(|stored| Remembered::of(&loaded, stored) == remembered);
        let stands = stands && loaded.reply.is_none();
        run.read = Some(loaded).filter(|_| !stands);
        Ok(stands)
    }

    async fn ground_of_start(
        &self,
        request: &Request<'_>,
    ) -> Result<(Result<Ground, Error>, Option<StoredReply>), Error> {
        let Command::Start { definition, .. } = &request.command else {
            unreachable!("only a start has no instance")
        };
        let who = request.who.principalship();
        let key = request.key().map(|key| key.key.as_str());
        let startable = self.0.store.load_start(&who, definition, key).await?;
        let known = startable.definition.as_ref();
        let stopped = known.is_some_and(|found| found.stopped);
        let version = match startable.definition {
            None => Err(Error::NotFound {
                what: "definition",
                id: definition.clone(),
            }),
            Some(found) => found
                .version
                .ok_or_else(|| Error::NoActiveVersion(definition.clone())),
        };
        let ground = match version {
            Ok((version, content)) => {
                let reference = VersionRef {
                    key: definition.clone(),
                    version,
                };
                let content = Some(content.as_slice());
                let version = self.version_of(who.tenant, &reference, content).await;
                version.map(|version| Ground {
                    stopped: Some(reference).filter(|_| stopped),
                    actor: startable.actor,
                    version,
                    previous: None,
                    stored: None,
                    standing: startable.standing,
                    signalled: None,
                    remembered: None,
                })
            }
            Err(error) => Err(error),
        };
        Ok((ground, startable.reply))
    }
}

impl Ground {
    /// Whether the caller may do what they ask for, to the instance as they believe it to be.
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
