//! The writer commits the changes of many commands in one statement, and then updates the caches and wakes who waits for
//! events or jobs.
//!
//! A change that fails in a batch, or whose row is locked by another transaction, does not fail its neighbours: the members of a
//! failed batch are committed one by one, and a command that is tried again after such a failure is committed in a statement of
//! its own.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::{Notify, oneshot, watch};
use tokio_util::task::TaskTracker;

use super::batch::{Batch, Batcher, Bounds, Full};
use super::cache::InstanceCache;
use crate::host_counts::HostCounts;
use crate::observe;
use wrkflw_core::ids::{InstanceId, TaskId, TenantId};
use wrkflw_runtime::lru::Lru;
use wrkflw_store::commit::{self, BATCH_MAX, Change, CommitResult, Committed};
use wrkflw_store::{Store, StoreError};

/// Changes that may wait for a connection.
const WAITING_MAX: usize = 1024;
/// Batches in flight at a time. With more of them, batches would be smaller.
const WORKERS: usize = 2;
/// Single changes in flight at a time. They may wait for locked rows, so they have connections of their own.
const SINGLE_WORKERS: usize = 2;
/// Limit of the tasks whose instance is cached. A task never changes its instance.
const TASKS_MAX: usize = 100_000;

/// The bounds of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterBounds {
    /// Batches in flight at a time.
    pub workers: usize,
    /// Changes in a batch; at most [`BATCH_MAX`].
    pub size_max: usize,
    /// Changes that wait. Further ones are refused.
    pub waiting_max: usize,
}

impl Default for WriterBounds {
    fn default() -> WriterBounds {
        WriterBounds {
            workers: WORKERS,
            size_max: BATCH_MAX,
            waiting_max: WAITING_MAX,
        }
    }
}

/// Commits changes.
pub struct Writer {
    batched: Batcher<Commits>,
    single: Arc<Batcher<Commits>>,
}

struct Commits {
    store: Store,
    post_commit: PostCommit,
    /// Commits the members of a failed batch one by one.
    single: Option<Arc<Batcher<Commits>>>,
}

struct Member {
    change: Change,
    waiters: Vec<Waiter>,
}

/// Receives the outcome of a commit.
pub(super) type Waiter = oneshot::Sender<CommitOutcome>;
/// The result of a commit, or why it is not known.
pub(super) type CommitOutcome = Result<CommitResult, StoreError>;

impl Writer {
    /// A writer whose workers are tasks of `tasks`.
    pub fn new(
        store: &Store,
        post_commit: &PostCommit,
        bounds: WriterBounds,
        tasks: &TaskTracker,
    ) -> Writer {
        let batcher = |workers, size_max, single| {
            let commits = Commits {
                store: store.clone(),
                post_commit: post_commit.clone(),
                single,
            };
            let bounds = Bounds {
                workers,
                size_max,
                waiting_max: bounds.waiting_max,
            };
            Batcher::new(commits, bounds, tasks.clone())
        };
        let single = Arc::new(batcher(SINGLE_WORKERS, 1, None));
        let size_max = bounds.size_max.clamp(1, BATCH_MAX);
        Writer {
            batched: batcher(bounds.workers.max(1), size_max, Some(single.clone())),
            single,
        }
    }

    /// Commits the change, in a batch or in a statement of its own. The commit and the work after it are done even when the
    /// caller goes away.
    pub async fn commit(
        &self,
        change: Change,
        single: bool,
    ) -> Result<Result<CommitResult, StoreError>, Full> {
        let batcher = if single { &*self.single } else { &self.batched };
        run(batcher, change, Vec::new()).await
    }

    /// How many changes wait for the next batch.
    pub(crate) fn waiting(&self) -> usize {
        self.batched.waiting()
    }

    /// Commits a change of several commands in a batch and notifies the waiters.
    pub(super) async fn commit_pending(
        &self,
        change: Change,
        waiters: Vec<Waiter>,
    ) -> Result<CommitOutcome, Full> {
        run(&self.batched, change, waiters).await
    }
}

async fn run(
    batcher: &Batcher<Commits>,
    change: Change,
    mut waiters: Vec<Waiter>,
) -> Result<CommitOutcome, Full> {
    let (waiter, outcome) = oneshot::channel();
    waiters.push(waiter);
    let outcome = batcher.run(Member { change, waiters }, outcome).await?;
    Ok(outcome.unwrap_or_else(|_| Err(StoreError::Lost)))
}

impl Batch for Commits {
    type Item = Member;
    const NAME: &'static str = "commit";

    /// One statement changes an instance once.
    fn fits(chosen: &[Member], item: &Member) -> bool {
        let id = |member: &Member| (member.change.tenant, member.change.after.id);
        chosen.iter().all(|other| id(other) != id(item))
    }

    async fn run(&self, members: Vec<Member>) {
        let changes: Vec<&Change> = members.iter().map(|member| &member.change).collect();
        match (commit::commit(&self.store, &changes).await, &self.single) {
            (Ok(committed), _) => self.notify(members, committed),
            (Err(error), Some(single)) if members.len() > 1 && error.may_be_of_one() => {
                metrics::counter!("wrkflw_commit_batches_split_total").increment(1);
                tracing::warn!(%error, members = members.len(), "a batch failed; its members are applied one by one");
                single.requeue(members);
            }
            (Err(error), _) => {
                let waiters = members.into_iter().flat_map(|member| member.waiters);
                for (waiter, error) in waiters.zip(error.for_each()) {
                    let _gone = waiter.send(Err(error));
                }
            }
        }
    }
}

impl Commits {
    fn notify(&self, members: Vec<Member>, committed: Committed) {
        let results = committed.results;
        let mut waiting = Vec::with_capacity(members.len());
        for (member, result) in members.into_iter().zip(&results) {
            if *result == CommitResult::Applied {
                wrkflw_fault::point("command.committed");
                self.post_commit.applied(member.change);
            }
            waiting.push(member.waiters);
        }
        if committed.leaves_work {
            self.post_commit.wake_workers();
        }
        if results.contains(&CommitResult::Applied) {
            self.post_commit.announce();
            wrkflw_fault::point("command.announced");
        }
        for (waiters, result) in waiting.into_iter().zip(results) {
            for waiter in waiters {
                let _gone = waiter.send(Ok(result));
            }
        }
    }
}

/// What this process does after a commit, even if the caller has gone away. Cheap to clone; all clones share one state.
#[derive(Clone)]
pub struct PostCommit {
    pub(crate) tasks: Arc<Lru<(TenantId, TaskId), InstanceId>>,
    pub(super) cache: InstanceCache,
    /// Notified after each commit with events for the relay.
    pub(crate) wake: Arc<Notify>,
    /// Changes after each commit that added jobs which are due at once, for the workers of this process.
    pub(crate) work: watch::Sender<()>,
    /// Counts the commits with events, for event streams.
    pub(crate) commits: watch::Sender<u64>,
    /// Counts decisions, starts and refusals, for operators.
    pub(crate) counts: Arc<HostCounts>,
}

impl Default for PostCommit {
    fn default() -> PostCommit {
        PostCommit {
            tasks: Arc::new(Lru::new(TASKS_MAX)),
            cache: InstanceCache::new(),
            wake: Arc::new(Notify::new()),
            work: watch::Sender::new(()),
            commits: watch::Sender::new(0),
            counts: Arc::default(),
        }
    }
}

impl PostCommit {
    /// Notifies the relay and the event streams of this process that there are new events.
    pub(crate) fn announce(&self) {
        self.wake.notify_one();
        self.commits.send_modify(|count| *count += 1);
    }

    /// Wakes the workers of this process.
    pub(crate) fn wake_workers(&self) {
        self.work.send_replace(());
    }

    /// Counts and caches a committed change.
    pub(super) fn applied(&self, change: Change) {
        observe::committed(&change.entries);
        self.counts.committed(change.tenant, &change.entries);
        let before = change
            .before
            .iter()
            .flat_map(|stored| &stored.instance.active);
        let known: HashSet<TaskId> = before
            .flat_map(|state| state.tasks.iter().map(|task| task.id))
            .collect();
        for task in change.after.active.iter().flat_map(|state| &state.tasks) {
            if !known.contains(&task.id) {
                let key = (change.tenant, task.id);
                self.tasks.insert(key, change.after.id);
            }
        }
        if change.before.is_some() && change.access_mark.is_some() {
            self.cache.count_hit();
        }
        self.cache.insert(change.tenant, change.into_left());
    }
}
