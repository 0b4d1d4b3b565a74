//! A command, from the request to the committed effect: one read, the turn, one commit statement, and again from the
//! start when the instance moved on meanwhile.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::Engine;
use super::entries::render;
use super::error::Error;
use super::observe::Observation;
use super::request::{Idempotency, Identity, Rendered, Reply, Request};
use super::turns::Directory;
use crate::clock;
use crate::domain::actor::Actor;
use crate::domain::command::Command;
use crate::domain::ids::{CommandId, InstanceId, TenantId, VersionRef};
use crate::domain::rejection::Rejection;
use crate::domain::turn::Context;
use crate::domain::version::Version;
use crate::store::StoreError;
use crate::store::commit::{Change, KeyedReply, Verdict};
use crate::store::load::{Stored, StoredReply, Wanted};

/// The first pause after a passing failure of the database; it doubles.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// What an attempt starts from.
pub(super) struct Ground {
    pub(super) actor: Actor,
    pub(super) version: Arc<Version>,
    /// The version that a migration leaves.
    previous: Option<Arc<Version>>,
    pub(super) stored: Option<Stored>,
    /// How often the directory has changed so far.
    directory: u64,
    /// The command is a signal that has counted already.
    signalled: bool,
}

/// A commit whose verdict was lost with its connection. The server may still be carrying it out.
struct Doubt {
    instance: InstanceId,
    command: CommandId,
    rendered: Rendered,
}

/// What the attempts of one command know of those before.
#[derive(Default)]
struct History {
    doubts: Vec<Doubt>,
    /// Somebody held its row too long for a batch: its next commit goes alone.
    held: bool,
}

/// How an attempt ended.
pub(super) enum Attempt {
    Finished(Reply),
    /// The instance moved on, or the idempotency key is another's: look again.
    Again,
}

impl Engine {
    /// Carries out a command. Logs one line and counts once, whatever its end.
    pub async fn execute(&self, request: Request<'_>) -> Result<Reply, Error> {
        let mut observation = Observation::begin(&request);
        let result = self.attempts(&request, &mut observation).await;
        if let Err(error) = &result {
            self.note_refusal(&request, error).await;
        }
        observation.end(&result);
        result
    }

    async fn attempts(
        &self,
        request: &Request<'_>,
        observation: &mut Observation,
    ) -> Result<Reply, Error> {
        let deadline = Instant::now() + self.0.patience;
        let instance = self.instance_of(request).await?;
        observation.about(instance);
        let turn = async {
            match instance {
                Some(instance) => Some(self.0.queue.turn(instance).await),
                None => None,
            }
        };
        let _turn = tokio::time::timeout_at(deadline, turn)
            .await
            .map_err(|_| Error::Busy)?;
        let mut history = History::default();
        let mut pause = PAUSE_MIN;
        loop {
            let mut failure = match self
                .attempt(request, instance, &mut history, observation)
                .await
            {
                Ok(Attempt::Finished(reply)) => return Ok(reply),
                Ok(Attempt::Again) => None,
                Err(error) => Some(error),
            };
            match self.carried_out(request.who.tenant, &history.doubts).await {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => {}
                // A rejection may be our own success looked at from behind: nothing is said before that is known.
                Err(error) => failure = Some(error.into()),
            }
            let over = Instant::now() + pause >= deadline;
            match failure {
                None if Instant::now() >= deadline => return Err(Error::Busy),
                None => {}
                Some(Error::Store(error)) if error.is_passing() && !over => {
                    tracing::warn!(%error, "the database failed in passing; the command is tried again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Some(Error::Store(error)) if error.is_contention() => return Err(Error::Busy),
                Some(error) => return Err(error),
            }
        }
    }

    /// The reply of the doubtful commit that took place after all: the audit has its command.
    async fn carried_out(
        &self,
        tenant: TenantId,
        doubts: &[Doubt],
    ) -> Result<Option<Reply>, StoreError> {
        for Doubt {
            instance,
            command,
            rendered,
        } in doubts
        {
            if self
                .0
                .store
                .was_committed(tenant, *instance, *command)
                .await?
            {
                self.0.aftermath.announce();
                return Ok(Some(Reply {
                    rendered: rendered.clone(),
                    replayed: false,
                }));
            }
        }
        Ok(None)
    }

    async fn instance_of(&self, request: &Request<'_>) -> Result<Option<InstanceId>, Error> {
        let Some(task) = request.command.task() else {
            return Ok(request.command.instance());
        };
        let key = (request.who.tenant, task);
        if let Some(instance) = self.0.aftermath.tasks.get(&key).await {
            return Ok(Some(instance));
        }
        let found = self.0.store.instance_of(request.who.tenant, task).await?;
        let instance = found.ok_or_else(|| Error::NotFound {
            what: "task",
            id: task.to_string(),
        })?;
        self.0.aftermath.tasks.insert(key, instance).await;
        Ok(Some(instance))
    }

    async fn attempt(
        &self,
        request: &Request<'_>,
        instance: Option<InstanceId>,
        history: &mut History,
        observation: &mut Observation,
    ) -> Result<Attempt, Error> {
        let command_id = CommandId(clock::new_id());
        let key = request.idempotency.as_ref().filter(|_| !request.dry_run);
        let (ground, reply) = self.ground(request, instance, key).await?;
        if let (Some(reply), Some(key)) = (reply, key) {
            return replay(reply, key).map(Attempt::Finished);
        }
        let ground = ground?;
        crate::fault::point("command.loaded");
        observation.saw(
            &ground.version.reference,
            ground.stored.as_ref().map(|stored| &stored.instance),
        );
        check(request, &ground)?;
        if let Some(reply) = counted(request, &ground) {
            return Ok(Attempt::Finished(reply));
        }
        let now = self.now_for(ground.stored.as_ref());
        let context = Context {
            version: &ground.version,
            previous: ground.previous.as_deref(),
            tenant: &request.who.tenant_name,
            actor: &ground.actor,
            now,
        };
        let before = ground.stored.as_ref().map(|stored| stored.instance.clone());
        let (tenant, changes) = (request.who.tenant, ground.directory);
        let directory = Directory {
            tenant,
            changes,
            now,
        };
        let turned = self
            .turn(directory, context, before, &request.command)
            .await?;
        observation.turned(&turned);
        let entries = self.entries(request, &ground, &turned, command_id, now);
        let outcome = &turned.outcome;
        let rendered = render(
            request,
            &ground,
            &outcome.instance,
            &outcome.events,
            &entries,
        );
        if request.dry_run {
            self.would_start(request).await?;
        }
        // Nothing happened: there is nothing to write.
        if request.dry_run || turned.outcome.events.is_empty() {
            return Ok(Attempt::Finished(Reply {
                rendered,
                replayed: false,
            }));
        }
        let known = ground.stored.as_ref().map(|stored| &stored.instance);
        let tenant_name = &request.who.tenant_name;
        let seals = self.0.seals.seal(tenant_name, known, &outcome.instance);
        let change = Change {
            tenant: request.who.tenant,
            command: command_id,
            before: ground.stored,
            after: turned.outcome.instance,
            entries,
            seals,
            reply: key.map(|key| keyed(request.who, key, &rendered)),
            signal: request.command.signal().map(str::to_owned),
            done: request.job.into_iter().collect(),
        };
        self.settle(request, change, rendered, history).await
    }

    /// Loads what the command starts from, and the reply that it may have got already. The ground is judged only
    /// when there is no such reply: a repeat is answered even when its definition has been retired since.
    async fn ground(
        &self,
        request: &Request<'_>,
        instance: Option<InstanceId>,
        key: Option<&Idempotency>,
    ) -> Result<(Result<Ground, Error>, Option<StoredReply>), Error> {
        let who = request.who.principalship();
        let key = key.map(|key| key.key.as_str());
        if let Some(id) = instance {
            let wanted = Wanted {
                key: key.map(str::to_owned),
                signal: request.command.signal().map(str::to_owned),
                ..Wanted::of(who, id, self.0.clock.now())
            };
            let tenant = wanted.who.tenant;
            let loaded = self.0.loader.load(wanted).await??;
            let ground = match loaded.found {
                None => Err(Error::NotFound {
                    what: "instance",
                    id: id.to_string(),
                }),
                Some(stored) => {
                    let versions = self.versions_for(tenant, &request.command, &stored);
                    versions.await.map(|(version, previous)| Ground {
                        actor: loaded.actor,
                        version,
                        previous,
                        stored: Some(stored),
                        directory: loaded.directory,
                        signalled: loaded.signalled,
                    })
                }
            };
            return Ok((ground, loaded.reply));
        }
        let Command::Start { definition, .. } = &request.command else {
            unreachable!("only a start has no instance")
        };
        let startable = self.0.store.load_start(&who, definition, key).await?;
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
            Ok(version) => {
                let reference = VersionRef {
                    key: definition.clone(),
                    version,
                };
                let version = self.version(who.tenant, &reference).await;
                version.map(|version| Ground {
                    actor: startable.actor,
                    version,
                    previous: None,
                    stored: None,
                    directory: startable.directory,
                    signalled: false,
                })
            }
            Err(error) => Err(error),
        };
        Ok((ground, startable.reply))
    }

    /// The time of a command is never before its instance's last entry, whatever this host's clock says.
    fn now_for(&self, stored: Option<&Stored>) -> Timestamp {
        let now = self.0.clock.now();
        stored.map_or(now, |stored| now.max(stored.instance.updated_at))
    }

    /// Commits, and reads the verdict. When the connection broke, the commit is left in doubt.
    async fn settle(
        &self,
        request: &Request<'_>,
        change: Change,
        rendered: Rendered,
        history: &mut History,
    ) -> Result<Attempt, Error> {
        let (instance, command) = (change.after.id, change.command);
        crate::fault::point("command.judged");
        match self.0.writer.commit(change, history.held).await? {
            Ok(Verdict::Applied) => Ok(Attempt::Finished(Reply {
                rendered,
                replayed: false,
            })),
            Ok(Verdict::Stale) => Ok(Attempt::Again),
            Ok(Verdict::Taken) => self.who_took(request).await,
            Err(error) => {
                history.held |= error.is_contention();
                if error.is_passing() && !error.is_contention() {
                    history.doubts.push(Doubt {
                        instance,
                        command,
                        rendered,
                    });
                }
                Err(error.into())
            }
        }
    }
}

fn check(request: &Request<'_>, ground: &Ground) -> Result<(), Error> {
    let permission = request.command.permission();
    if !ground.actor.is_host() && !ground.actor.may(permission) {
        return Err(Error::Permission(permission));
    }
    match (request.if_match, &ground.stored) {
        (Some(given), Some(stored)) if given != stored.instance.revision => Err(Rejection::Stale {
            given,
            current: stored.instance.revision,
        }
        .into()),
        _ => Ok(()),
    }
}

/// The reply to a signal that has counted already: nothing more happens.
fn counted(request: &Request<'_>, ground: &Ground) -> Option<Reply> {
    let stored = ground.stored.as_ref().filter(|_| ground.signalled)?;
    let rendered = render(request, ground, &stored.instance, &[], &[]);
    Some(Reply {
        rendered,
        replayed: false,
    })
}

fn replay(reply: StoredReply, key: &Idempotency) -> Result<Reply, Error> {
    if reply.fingerprint != key.fingerprint {
        return Err(Error::KeyReused);
    }
    let rendered = Rendered {
        status: reply.status,
        body: reply.body,
        headers: reply.headers,
    };
    Ok(Reply {
        rendered,
        replayed: true,
    })
}

fn keyed(who: &Identity, key: &Idempotency, rendered: &Rendered) -> KeyedReply {
    KeyedReply {
        principal: who.subject.clone(),
        key: key.key.clone(),
        reply: StoredReply {
            fingerprint: key.fingerprint.to_vec(),
            status: rendered.status,
            body: rendered.body.clone(),
            headers: rendered.headers.clone(),
        },
    }
}
