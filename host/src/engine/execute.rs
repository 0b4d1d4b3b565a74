//! A command, from the request to the committed effect: one read, the turn, one commit statement, and again from the
//! start when the instance moved on meanwhile.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::Engine;
use super::entries::render;
use super::error::Error;
use super::ground::{Early, Ground};
use super::joint::Turn;
use super::observe::Observation;
use super::request::{Idempotency, Identity, Rendered, Reply, Request};
use super::seal::{self, reply::unsealed};
use super::turns::Directory;
use super::writer::Fate;
use crate::clock;
use crate::domain::audit::Entry;
use crate::domain::ids::{CommandId, InstanceId, TenantId};
use crate::domain::rejection::{FirstSignal, Rejection};
use crate::domain::turn::Context;
use crate::store::StoreError;
use crate::store::commit::{Change, KeyedReply, Signalled, Verdict};
use crate::store::load::{Loaded, Stored, StoredReply};

/// The first pause after a passing failure of the database; it doubles.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// So often a command looks again at once when it finds that something moved on; from then on it pauses, too.
const AT_ONCE_MAX: u32 = 8;

/// A commit whose verdict was lost with its connection. The server may still be carrying it out.
struct Doubt {
    instance: InstanceId,
    command: CommandId,
    rendered: Rendered,
}

/// A command under way, and what its attempts know of those before.
pub(super) struct Run<'a> {
    pub(super) request: &'a Request<'a>,
    /// None for a start.
    pub(super) instance: Option<InstanceId>,
    /// Had from before the instance is looked at until the commit.
    pub(super) turn: Option<Turn<'a>>,
    /// What was read while others had their turn.
    pub(super) early: Option<Early>,
    doubts: Vec<Doubt>,
    /// Somebody held its row too long for a batch: its next commit goes alone.
    held: bool,
    /// It was not committed together with others of its instance: it goes by itself.
    pub(super) alone: bool,
    /// It was tried before: nothing is taken from memory any more.
    pub(super) again: bool,
    /// Read in its turn, by an attempt whose memory did not hold.
    pub(super) read: Option<Loaded>,
    /// The id of the instance that a start makes: the same in each attempt, so that only one of them can be committed,
    /// though nobody knew of the first when the next began.
    made: InstanceId,
}

/// What a command comes to on what it starts from.
struct Judged {
    rendered: Rendered,
    /// None when there is nothing to write.
    change: Option<Change>,
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
        let mut run = Run {
            request,
            instance,
            turn: None,
            early: None,
            doubts: Vec::new(),
            held: false,
            alone: false,
            again: false,
            read: None,
            made: InstanceId(clock::new_id()),
        };
        let (mut pause, mut rounds) = (PAUSE_MIN, 0);
        loop {
            rounds += 1;
            tokio::time::timeout_at(deadline, self.line_up(&mut run))
                .await
                .map_err(|_| Error::Busy)?;
            let attempt = self.attempt(&mut run, observation).await;
            run.again = true;
            let mut failure = match attempt {
                Ok(Attempt::Finished(reply)) => return Ok(reply),
                Ok(Attempt::Again) => None,
                Err(error) => Some(error),
            };
            match self.carried_out(request.who.tenant, &run.doubts).await {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => {}
                // A rejection may be our own success looked at from behind: nothing is said before that is known.
                Err(error) => failure = Some(error.into()),
            }
            let over = Instant::now() + pause >= deadline;
            match failure {
                None if Instant::now() >= deadline => return Err(Error::Busy),
                None if rounds <= AT_ONCE_MAX => {}
                None if over => return Err(Error::Busy),
                None => {
                    run.turn = run.turn.take_if(|turn| !turn.is_pending());
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Some(Error::Store(error)) if error.is_passing() && !over => {
                    tracing::warn!(%error, "the database failed in passing; the command is tried again");
                    // What others left here does not wait for that.
                    run.turn = run.turn.take_if(|turn| !turn.is_pending());
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
                return Ok(Some(Reply::fresh(rendered.clone())));
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
        run: &mut Run<'_>,
        observation: &mut Observation,
    ) -> Result<Attempt, Error> {
        let request = run.request;
        let (ground, reply) = self.ground(run).await?;
        if let (Some(reply), Some(key)) = (reply, request.key()) {
            return self.replay(request.who, reply, key).map(Attempt::Finished);
        }
        let remembered = ground.as_ref().ok().and_then(|ground| ground.remembered);
        let judged = match ground {
            Ok(ground) => self.judge(request, ground, run.made, observation).await,
            Err(error) => Err(error),
        };
        // Without a commit, nothing else puts to the test what was remembered.
        if let Some(remembered) = remembered
            && !matches!(&judged, Ok(judged) if judged.change.is_some())
            && !self.still_stands(run, remembered).await?
        {
            return Ok(Attempt::Again);
        }
        match judged {
            Ok(Judged {
                rendered,
                change: Some(change),
            }) => self.settle(run, change, rendered).await,
            Ok(Judged { rendered, .. }) => self.answer(run, Ok(Reply::fresh(rendered))).await,
            Err(error) => self.answer(run, Err(error)).await,
        }
    }

    /// What the command comes to, with nothing written.
    async fn judge(
        &self,
        request: &Request<'_>,
        ground: Ground,
        made: InstanceId,
        observation: &mut Observation,
    ) -> Result<Judged, Error> {
        let command_id = CommandId(clock::new_id());
        crate::fault::point("command.loaded");
        observation.saw(
            &ground.version.reference,
            ground.stored.as_ref().map(|stored| &stored.instance),
        );
        ground.check(request)?;
        if let Some(rendered) = counted(request, &ground)? {
            let change = None;
            return Ok(Judged { rendered, change });
        }
        let now = self.now_for(ground.stored.as_deref());
        let context = Context {
            version: &ground.version,
            previous: ground.previous.as_deref(),
            tenant: &request.who.tenant_name,
            actor: &ground.actor,
            now,
        };
        let before = ground.stored.as_ref().map(|stored| stored.instance.clone());
        let directory = Directory {
            tenant: request.who.tenant,
            mark: ground.standing,
            now,
        };
        let turned = self
            .turn_making(made, directory, context, before, &request.command)
            .await?;
        observation.turned(&turned);
        let entries = self.entries(request, &ground, &turned, command_id, now);
        let outcome = &turned.outcome;
        let known = ground.stored.as_ref().map(|stored| &stored.instance);
        self.0.budgets.check(known, &outcome.instance)?;
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
            let change = None;
            return Ok(Judged { rendered, change });
        }
        let known = ground.stored.as_ref().map(|stored| &stored.instance);
        let tenant_name = &request.who.tenant_name;
        let seals = self.0.seals.seal(tenant_name, known, &outcome.instance);
        let replies = request.key();
        let replies = replies.map(|key| self.keyed(request.who, key, &rendered));
        let change = Change {
            tenant: request.who.tenant,
            command: command_id,
            before: ground.stored,
            standing: ground.remembered.map(|remembered| remembered.standing),
            after: turned.outcome.instance,
            signals: signalled(request, &entries).into_iter().collect(),
            entries,
            seals,
            replies: replies.into_iter().collect(),
            done: request.job.into_iter().collect(),
        };
        let change = Some(change);
        Ok(Judged { rendered, change })
    }

    /// The time of a command is never before its instance's last entry, whatever this host's clock says.
    fn now_for(&self, stored: Option<&Stored>) -> Timestamp {
        let now = self.0.clock.now();
        stored.map_or(now, |stored| now.max(stored.instance.updated_at))
    }

    /// Answers without an effect, once that is certain: what the answer rests on may wait to be committed.
    async fn answer(
        &self,
        run: &mut Run<'_>,
        answer: Result<Reply, Error>,
    ) -> Result<Attempt, Error> {
        if let Err(Error::Store(_) | Error::Unavailable(_)) = answer {
            return answer.map(Attempt::Finished);
        }
        match run.turn.take_if(|turn| turn.is_pending()) {
            None => answer.map(Attempt::Finished),
            Some(turn) => match self.hear(turn).await {
                Ok(Verdict::Applied) => answer.map(Attempt::Finished),
                fate => {
                    run.note(&fate, true);
                    Ok(Attempt::Again)
                }
            },
        }
    }

    /// Commits, and reads the verdict. When the connection broke, the commit is left in doubt.
    async fn settle(
        &self,
        run: &mut Run<'_>,
        change: Change,
        rendered: Rendered,
    ) -> Result<Attempt, Error> {
        let (instance, command) = (change.after.id, change.command);
        crate::fault::point("command.judged");
        let alone = run.alone;
        let joins = |turn: &mut Turn<'_>| !alone && (turn.is_pending() || turn.is_awaited());
        let together = run.turn.take_if(joins);
        let is_joint = together.is_some();
        let fate = match together {
            Some(turn) => self.join(turn, change).await,
            None => self.0.writer.commit(change, run.held).await?,
        };
        run.note(&fate, is_joint);
        match fate {
            Ok(Verdict::Applied) => Ok(Attempt::Finished(Reply::fresh(rendered))),
            Ok(Verdict::Taken) if !is_joint => self.who_took(run.request).await,
            Ok(Verdict::Stale | Verdict::Taken) => Ok(Attempt::Again),
            Err(error) => {
                if error.is_passing() && !error.is_contention() {
                    run.doubts.push(Doubt {
                        instance,
                        command,
                        rendered,
                    });
                }
                if is_joint {
                    return Ok(Attempt::Again);
                }
                Err(error.into())
            }
        }
    }
}

impl Run<'_> {
    /// What the next attempt has to know of this fate.
    fn note(&mut self, fate: &Fate, is_joint: bool) {
        // It may have been another's fault; an instance that moved on is nobody's.
        self.alone |= is_joint && !matches!(fate, Ok(Verdict::Applied | Verdict::Stale));
        self.held |= matches!(fate, Err(error) if error.is_contention());
    }
}

/// The reply to a signal that has counted already: nothing more happens. One of other content is not that signal.
fn counted(request: &Request<'_>, ground: &Ground) -> Result<Option<Rendered>, Rejection> {
    let (Some(counted), Some(stored)) = (&ground.signalled, &ground.stored) else {
        return Ok(None);
    };
    let content = request.command.content();
    let differs = |known: &Vec<u8>| content.is_none_or(|content| known[..] != content);
    if let Some(key) = request.command.signal()
        && counted.content.as_ref().is_some_and(differs)
    {
        return Err(Rejection::SignalIdReused {
            trigger: key.trigger,
            id: key.id,
            first: FirstSignal {
                signal: None,
                instance: Some(stored.instance.id),
                event: counted.entry,
                at: counted.at,
            },
        });
    }
    let rendered = render(request, ground, &stored.instance, &[], &[]);
    Ok(Some(rendered))
}

/// The signal that the command is, as it counts from now on.
fn signalled(request: &Request<'_>, entries: &[Entry]) -> Option<Signalled> {
    let received = |entry: &&Entry| entry.draft.kind == "SIGNAL_RECEIVED";
    Some(Signalled {
        key: request.command.signal()?,
        sender: request.who.subject.clone(),
        content: request.command.content()?,
        entry: entries.iter().find(received).map(|entry| entry.draft.id),
    })
}

impl Engine {
    pub(super) fn replay(
        &self,
        who: &Identity,
        reply: StoredReply,
        key: &Idempotency,
    ) -> Result<Reply, Error> {
        if reply.fingerprint != key.fingerprint {
            return Err(Error::KeyReused);
        }
        let owner = (
            who.tenant_name.as_str(),
            who.subject.as_str(),
            key.key.as_str(),
        );
        if self.0.seals.reply_verdict(owner, &reply) == Some(seal::Verdict::Invalid) {
            return Err(Error::Store(StoreError::Inconsistent {
                table: "idempotency_key",
                id: key.key.clone(),
                detail: "it is not as it was sealed".to_owned(),
            }));
        }
        let rendered = Rendered {
            headers: unsealed(&reply).to_owned(),
            status: reply.status,
            body: reply.body,
        };
        Ok(Reply {
            rendered,
            replayed: true,
        })
    }

    pub(super) fn keyed(
        &self,
        who: &Identity,
        key: &Idempotency,
        rendered: &Rendered,
    ) -> KeyedReply {
        let reply = StoredReply {
            fingerprint: key.fingerprint.to_vec(),
            status: rendered.status,
            body: rendered.body.clone(),
            headers: rendered.headers.clone(),
        };
        let owner = (
            who.tenant_name.as_str(),
            who.subject.as_str(),
            key.key.as_str(),
        );
        KeyedReply {
            principal: who.subject.clone(),
            key: key.key.clone(),
            reply: self.0.seals.seal_reply(owner, reply),
        }
    }
}
