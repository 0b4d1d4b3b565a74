//! The write path. Every command takes it: those of callers, jobs, bulk operations and dry runs. The list of possible actions
//! (`actions`) executes commands in the same way, on an instance that it loads once.
//!
//! | stage | file | input | result |
//! |---|---|---|---|
//! | queue | `queue` | the instance's id | [`Queued`]: no other command of this process is on the instance |
//! | load | `load` | request, place in the queue | a [`LoadedCommand`](load::LoadedCommand), or the reply that the idempotency key has already |
//! | execute | `execute` | the loaded command | [`Executed`](execute::Executed): the reply, and the change to commit |
//! | group commit | `group_commit` | the change, place in the queue | a [`CommitResult`] |
//! | answer | `answer` | the commit result, or what the execution rendered if nothing is committed | the reply, an error, or another attempt |
//!
//! `parse` comes before it, in `http`. A dry run, a refusal and a command that changes nothing skip the group commit. Their
//! answer still waits for the pending commits that it depends on. If another host changed the instance meanwhile, the
//! command is attempted again from the load on. [`Mode`] says what each attempt relies on.
//!
//! # Parts that make it faster, and what each gains
//!
//! The path is correct without any of them. The figures are from `bench/README.md`.
//!
//! - **Group commit across instances** (`writer`, `batch`): at 1, 8 and 32 callers, the database alone made 1168, 2362 and 1478
//!   decisions/s. A host without group commit made 0.38, 0.41 and 0.61 times that. With group commit a host makes 0.84, 1.48
//!   and 2.72 times as many as the database alone.
//! - **Batched loads** (`load`, `batch`): without the cache and at 64 callers 3155 and 3258 decisions/s, and 2094 and 2426 with one
//!   load a statement. They gain nothing at 1 and 8 callers.
//! - **Instance cache** (`cache`): 29 to 38 % more decisions/s at one caller, 43 to 61 % at 8, 38 to 50 % at 64. Starts use the
//!   cached caller and active version.
//! - **Pending state of one instance** (`group_commit`): up to 32 commands that wait for the same instance share one commit, so
//!   its row is written once for all. 50 people who vote at once on one instance make 1967 to 2429 votes/s, and 738 to 844 without
//!   it; 200 make 1124 and 1161, and 581 and 586. It costs nothing if no command waits.
//! - **Caller read ahead** (`queue`): groups, permissions and the idempotency key are read while the command waits for its
//!   slot, so a command on pending state needs no round trip in its slot. Without it, the 50 make 1432 to 1559 votes/s, and the 200
//!   898 and 928. A command that is refused there looks its key up again.
//! - **Idle connections outside the pool** (`wrkflw_store`, `pool/idle`): 30 to 49 % more decisions/s at one caller, 34 to 38 % at 8, 19 to
//!   23 % at 64.

mod answer;
pub(super) mod batch;
pub(super) mod cache;
mod execute;
pub(super) mod executions;
mod group_commit;
pub(super) mod load;
pub(super) mod queue;
pub(super) mod reply;
pub(super) mod start_conflict;
pub(super) mod writer;

use std::time::Duration;

use tokio::time::Instant;

use self::group_commit::InDoubt;
use self::load::LoadResult;
use self::queue::Queued;
use self::writer::CommitOutcome;
use super::Engine;
use super::error::Error;
use super::observe::{self, Observation};
use super::request::{Reply, Request};
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_runtime::clock;
use wrkflw_store::commit::CommitResult;
use wrkflw_store::load::Loaded;
use wrkflw_store::{Store, StoreError, starts};

pub use reply::keep_key;
pub use writer::{PostCommit, Writer, WriterBounds};

/// The first pause before another attempt. Each later pause is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Attempts without a pause after another host changed the instance. Later ones pause, too.
const AT_ONCE_MAX: u32 = 8;

/// A request with its ids, the same in every attempt.
#[derive(Clone, Copy)]
struct Run<'a> {
    request: &'a Request<'a>,
    /// None for a start.
    instance: Option<InstanceId>,
    /// The id of the instance that a start makes. It is the same in each attempt, so that only one attempt can be committed,
    /// even if the answer to an earlier one was lost.
    new_instance: InstanceId,
}

/// The optimisations on which an attempt relies. The first attempt relies on all of them, later ones leave out those that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mode {
    /// Whether the instance cache may replace the load.
    cache: bool,
    commit: CommitMode,
}

/// Which other commands share the commit of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CommitMode {
    /// With pending commands of the same instance, and in one statement with commands on other instances.
    Joined,
    /// In one statement with commands on other instances. A joined commit failed, perhaps because of another command in it.
    Batched,
    /// In a statement of its own: another transaction held a lock on the instance's row for too long.
    Single,
}

impl CommitMode {
    /// The mode of the next attempt after a commit with this result.
    fn after(result: &CommitOutcome, joined: bool) -> CommitMode {
        match result {
            Err(error) if error.is_contention() => CommitMode::Single,
            // Another host changed the instance first. No command of the commit caused that.
            Ok(CommitResult::Applied | CommitResult::Stale) => CommitMode::Joined,
            _ if joined => CommitMode::Batched,
            _ => CommitMode::Joined,
        }
    }
}

/// The result of an attempt that did not fail.
enum AttemptResult {
    Answered(Reply),
    /// The instance moved on, or the idempotency key belongs to another command.
    Again,
}

/// What one attempt passes to the next, besides its result.
struct Carried {
    mode: Mode,
    /// The rows from the database that replace an outdated cached instance.
    loaded: Option<Box<Loaded>>,
    /// Commits whose answer was lost with the connection. The server may still apply them.
    in_doubt: Vec<InDoubt>,
}

/// Runs a command. Logs one line and counts once, also when it fails.
pub async fn execute(engine: &Engine, request: Request<'_>) -> Result<Reply, Error> {
    let mut observation = Observation::begin(&request);
    let result = run(engine, &request, &mut observation).await;
    if let Err(error) = &result {
        observe::note_refusal(engine, &request, error).await;
    }
    observation.end(&result);
    result
}

/// Attempts the command until it is answered or its timeout is over.
async fn run(
    engine: &Engine,
    request: &Request<'_>,
    observation: &mut Observation,
) -> Result<Reply, Error> {
    let deadline = Instant::now() + engine.0.timeout;
    let (store, post_commit) = (&engine.0.store, &engine.0.post_commit);
    let instance = instance_of(store, post_commit, request).await?;
    observation.about(instance);
    let run = Run {
        request,
        instance,
        new_instance: InstanceId(clock::new_id()),
    };
    let mut queued = Queued::default();
    let mut carried = Carried {
        mode: Mode {
            cache: true,
            commit: CommitMode::Joined,
        },
        loaded: None,
        in_doubt: Vec::new(),
    };
    let (mut pause, mut attempts) = (PAUSE_MIN, 0);
    loop {
        attempts += 1;
        let queueing = queue::queue_up(engine, run, carried.mode, &mut queued);
        tokio::time::timeout_at(deadline, queueing)
            .await
            .map_err(|_| Error::Busy)?;
        let attempt = attempt(engine, run, &mut queued, &mut carried, observation);
        let attempt = attempt.await;
        carried.mode.cache = false;
        let mut failure = match attempt {
            Ok(AttemptResult::Answered(reply)) => return Ok(reply),
            Ok(AttemptResult::Again) => None,
            Err(error) => Some(error),
        };
        match committed(store, post_commit, request.who.tenant, &carried.in_doubt).await {
            Ok(Some(reply)) => return Ok(reply),
            Ok(None) => {}
            // This command's own in-doubt commit may have caused the rejection, so the rejection is not returned.
            Err(error) => failure = Some(error.into()),
        }
        let over = Instant::now() + pause >= deadline;
        match failure {
            None if Instant::now() >= deadline => return Err(Error::Busy),
            None if attempts <= AT_ONCE_MAX => continue,
            None if over => return Err(Error::Busy),
            None => {}
            Some(Error::Store(error)) if error.is_passing() && !over => {
                tracing::warn!(%error, "a transient failure of the database; the command is tried again");
            }
            Some(Error::Store(error)) if error.is_contention() => return Err(Error::Busy),
            Some(error) => return Err(error),
        }
        // Pending commits of other commands do not wait for this pause.
        queued.leave_pending();
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// The reply of an in-doubt commit that took place: the audit has an entry of its command.
async fn committed(
    store: &Store,
    post_commit: &PostCommit,
    tenant: TenantId,
    in_doubt: &[InDoubt],
) -> Result<Option<Reply>, StoreError> {
    for commit in in_doubt {
        let (instance, command) = (commit.instance, commit.command);
        if starts::was_committed(store, tenant, instance, command).await? {
            post_commit.announce();
            return Ok(Some(Reply::fresh(commit.rendered.clone())));
        }
    }
    Ok(None)
}

/// The instance of the command; none for a start. That of a task is looked up, unless it is cached.
async fn instance_of(
    store: &Store,
    post_commit: &PostCommit,
    request: &Request<'_>,
) -> Result<Option<InstanceId>, Error> {
    let Some(task) = request.command.task() else {
        return Ok(request.command.instance());
    };
    let key = (request.who.tenant, task);
    if let Some(instance) = post_commit.tasks.get(&key) {
        return Ok(Some(instance));
    }
    let instance = starts::instance_of(store, request.who.tenant, task).await?;
    let instance = instance.ok_or_else(|| Error::NotFound {
        what: "task",
        id: task.to_string(),
    })?;
    post_commit.tasks.insert(key, instance);
    Ok(Some(instance))
}

/// One pass through the stages from the load on.
async fn attempt(
    engine: &Engine,
    run: Run<'_>,
    queued: &mut Queued<'_>,
    carried: &mut Carried,
    observation: &mut Observation,
) -> Result<AttemptResult, Error> {
    let (store, post_commit) = (&engine.0.store, &engine.0.post_commit);
    let loaded = carried.loaded.take();
    let loaded = load::load_command(engine, run, carried.mode, queued, loaded).await?;
    let (cached, executed) = match loaded {
        LoadResult::Replied(reply) => return Ok(AttemptResult::Answered(reply)),
        LoadResult::Refused(error, cached) => (cached, Err(error)),
        LoadResult::Command(loaded) => {
            // An in-doubt commit may have taken place between the last check and the load: then the loaded instance has its effect
            // already. If it takes place later, the commit of this attempt is stale.
            let tenant = run.request.who.tenant;
            let committed = committed(store, post_commit, tenant, &carried.in_doubt);
            if let Some(reply) = committed.await? {
                return Ok(AttemptResult::Answered(reply));
            }
            let cached = loaded.cached;
            let executed = execute::execute_loaded(engine, run, *loaded, observation).await;
            (cached, executed)
        }
    };
    let (rendered, change) = match executed {
        Ok(executed) => (Ok(executed.rendered), executed.change),
        Err(error) => (Err(error), None),
    };
    match (rendered, change) {
        (Ok(rendered), Some(change)) => {
            let commit =
                group_commit::commit(engine, run, carried.mode.commit, queued, change, rendered);
            let committed = commit.await;
            carried.mode.commit = carried.mode.commit.max(committed.next_mode);
            carried.in_doubt.extend(committed.in_doubt);
            committed.end
        }
        (rendered, _) => answer::answer(engine, run, queued, carried, cached, rendered).await,
    }
}
