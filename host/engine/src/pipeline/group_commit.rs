//! The group commit: commands that wait for the same instance are committed together.
//!
//! Each command is executed on the state that the one before it leaves ([`Pending`]). No command is answered, with an effect or a
//! refusal, before all of them are stored. If the commit fails, each is attempted again.
//!
//! A command commits at once if no other waits for the slot and no change is pending. Otherwise it adds its change to the
//! pending ones. The first such command spawns a task that queues behind the commands that wait now. The task commits what
//! they have added. So no change stays uncommitted when callers go away.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::queue::{Queued, Slot};
use super::writer::{CommitOutcome, Waiter, Writer};
use super::{AttemptResult, CommitMode, Run, start_conflict};
use crate::Engine;
use crate::error::Error;
use crate::request::{Rendered, Reply, Request};
use wrkflw_core::ids::{CommandId, InstanceId};
use wrkflw_store::StoreError;
use wrkflw_store::commit::{Change, CommitResult};
use wrkflw_store::load::Stored;
use wrkflw_store::starts::Claim;

/// Commands in one commit.
const COMMANDS_MAX: usize = 32;
/// Once the audit entries of a commit have so many bytes, no more commands are added.
const BYTES_MAX: usize = 1 << 20;

/// The executed commands of one instance that are not committed yet.
#[derive(Default)]
pub(super) struct Pending(Option<Box<PendingCommit>>);

/// Commands that are committed together or not at all.
struct PendingCommit {
    change: Change,
    /// The instance as these commands leave it. The next command is executed on it.
    state: Arc<Stored>,
    /// The commands with an effect in the change, and those whose refusal depends on it.
    waiters: Vec<Waiter>,
    bytes: usize,
}

/// A commit whose answer was lost with its connection. The server may still apply it.
pub(super) struct InDoubt {
    pub(super) instance: InstanceId,
    pub(super) command: CommandId,
    pub(super) rendered: Rendered,
}

/// How the commit of one command ended.
pub(super) struct Committed {
    pub(super) end: Result<AttemptResult, Error>,
    pub(super) in_doubt: Option<InDoubt>,
    /// The commit mode of a later attempt.
    pub(super) next_mode: CommitMode,
}

impl Pending {
    pub(super) fn is_pending(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a command can be executed on the pending state: it is on the same instance, and no pending command has the same
    /// idempotency key or is the same signal.
    pub(super) fn admits(&self, request: &Request<'_>, instance: InstanceId) -> bool {
        let Some(pending) = &self.0 else {
            return true;
        };
        let change = &pending.change;
        let repeats = request.idempotency.as_ref().is_some_and(|own| {
            let mut replies = change.replies.iter();
            replies.any(|other| other.key == own.key && other.principal == request.who.subject)
        });
        let counts = request.command.signal().is_some_and(|own| {
            let mut signals = change.signals.iter();
            signals.any(|other| other.key == own && other.sender == request.who.subject)
        });
        let is_same = change.tenant == request.who.tenant && change.after.id == instance;
        is_same && !repeats && !counts
    }

    /// The instance as the pending commits leave it.
    pub(super) fn state(&self) -> Option<&Arc<Stored>> {
        self.0.as_ref().map(|pending| &pending.state)
    }

    /// Adds a change that was computed from the pending state, if there is one. Returns whether it is the first.
    fn add(&mut self, change: Change) -> bool {
        let state = Arc::new(change.leaves());
        let bytes = change.entries.iter().map(|entry| {
            let evidence = entry.draft.evidence.as_ref();
            entry.draft.payload.as_str().len() + evidence.map_or(0, |json| json.as_str().len())
        });
        let bytes = bytes.sum::<usize>();
        let Some(pending) = &mut self.0 else {
            self.0 = Some(Box::new(PendingCommit {
                change,
                state,
                waiters: Vec::new(),
                bytes,
            }));
            return true;
        };
        pending.change.join(change);
        pending.state = state;
        pending.bytes += bytes;
        false
    }
}

impl PendingCommit {
    /// Whether the commit must run before more is added.
    fn is_full(&self) -> bool {
        self.waiters.len() >= COMMANDS_MAX || self.bytes >= BYTES_MAX
    }
}

/// Commits a change: together with others of its instance if some are pending or commands wait, else by itself.
pub(super) async fn commit(
    engine: &Engine,
    run: Run<'_>,
    mode: CommitMode,
    queued: &mut Queued<'_>,
    change: Change,
    rendered: Rendered,
) -> Committed {
    let (instance, command) = (change.after.id, change.command);
    let may_conflict = change.before.is_none() || change.after.sole;
    let claim = may_conflict.then(|| Claim::of(&change.after));
    wrkflw_fault::point("command.judged");
    let joins = |slot: &mut Slot<'_>| {
        mode == CommitMode::Joined && (slot.is_pending() || slot.is_awaited())
    };
    let shared = queued.slot.take_if(joins);
    let joined = shared.is_some();
    let outcome = if let Some(slot) = shared {
        commit_joined(engine, slot, change).await
    } else {
        let single = mode == CommitMode::Single;
        match engine.0.writer.commit(change, single).await {
            Ok(outcome) => outcome,
            Err(full) => {
                return Committed {
                    end: Err(full.into()),
                    in_doubt: None,
                    next_mode: mode,
                };
            }
        }
    };
    let next_mode = CommitMode::after(&outcome, joined);
    let is_lost = |error: &StoreError| error.is_passing() && !error.is_contention();
    let in_doubt = outcome.as_ref().is_err_and(is_lost).then(|| InDoubt {
        instance,
        command,
        rendered: rendered.clone(),
    });
    let end = match outcome {
        Ok(CommitResult::Applied) => Ok(AttemptResult::Answered(Reply::fresh(rendered))),
        Ok(CommitResult::Taken) if !joined => {
            start_conflict::start_conflict(engine, run.request, claim).await
        }
        Ok(CommitResult::Stale | CommitResult::Taken) => Ok(AttemptResult::Again),
        Err(_) if joined => Ok(AttemptResult::Again),
        Err(error) => Err(error.into()),
    };
    Committed {
        end,
        in_doubt,
        next_mode,
    }
}

/// Adds a change to the pending ones and waits for the result of their commit.
async fn commit_joined(engine: &Engine, mut slot: Slot<'_>, change: Change) -> CommitOutcome {
    let instance = change.after.id;
    if slot.add(change) {
        let spawned = engine.clone();
        engine.0.tasks.spawn(async move {
            let mut slot = spawned.0.queue.enter_uncounted(instance).await;
            commit_pending(&spawned.0.writer, &mut slot).await;
        });
    }
    await_commit(&engine.0.writer, slot).await
}

/// Waits for the result of the pending group commit.
pub(super) async fn await_commit(writer: &Writer, mut slot: Slot<'_>) -> CommitOutcome {
    let (waiter, outcome) = oneshot::channel();
    let Some(pending) = &mut slot.0 else {
        return Ok(CommitResult::Applied);
    };
    pending.waiters.push(waiter);
    if pending.is_full() {
        commit_pending(writer, &mut slot).await;
    }
    drop(slot);
    outcome.await.unwrap_or(Err(StoreError::Lost))
}

/// Commits the pending changes of the slot and notifies the waiters.
pub(super) async fn commit_pending(writer: &Writer, slot: &mut Slot<'_>) {
    let Some(pending) = slot.0.take() else {
        return;
    };
    let commands = u32::try_from(pending.waiters.len()).unwrap_or(u32::MAX);
    metrics::histogram!("wrkflw_group_commit_commands").record(f64::from(commands));
    // If the writer's queue is full, the waiters are dropped: each command sees its commit as lost and is attempted again.
    let _outcome = writer.commit_pending(pending.change, pending.waiters).await;
}
