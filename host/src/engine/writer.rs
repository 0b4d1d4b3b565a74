//! The writer: commits the changes of many commands together, and sees to what follows from a commit.
//!
//! A change that failed in company, or whose row somebody held, costs its neighbours nothing: the store applies the
//! members of a failed batch one by one, and a command that is tried again after such a failure goes alone. What
//! follows from a commit happens here, so that it does not depend on a caller who may have gone away.

use std::sync::Arc;

use moka::future::Cache;
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::task::TaskTracker;

use super::children::leaves_work;
use super::combine::{Bounds, Combiner, Full, Work};
use super::memory::Memory;
use super::observe;
use crate::domain::ids::{InstanceId, TaskId, TenantId};
use crate::store::commit::{BATCH_MAX, Change, Verdict};
use crate::store::{Store, StoreError};

/// Tasks whose instance is remembered. A task never changes its instance.
const TASKS_MAX: u64 = 100_000;
/// Changes that may wait for a connection.
const WAITING_MAX: usize = 1024;
/// Batches under way at a time. More of them would be smaller.
const WORKERS: usize = 2;
/// Changes that go alone, at a time. They may wait for rows that somebody holds, so they have connections of their
/// own.
const ALONE: usize = 2;

/// How much commits at a time, and how much waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterBounds {
    /// Batches under way at a time.
    pub workers: usize,
    /// Changes in a batch; at most [`BATCH_MAX`].
    pub together: usize,
    /// Changes that wait; the next is refused.
    pub waiting: usize,
}

impl Default for WriterBounds {
    fn default() -> WriterBounds {
        WriterBounds {
            workers: WORKERS,
            together: BATCH_MAX,
            waiting: WAITING_MAX,
        }
    }
}

/// What follows from a commit in this process.
#[derive(Clone)]
pub struct Aftermath {
    pub(super) tasks: Cache<(TenantId, TaskId), InstanceId>,
    pub(super) memory: Memory,
    /// Told after each commit that left events for the relay.
    pub(super) wake: Arc<Notify>,
    /// Told after each commit that left jobs, for the worker of this process.
    pub(super) work: Arc<Notify>,
    /// Counts those commits, for those who stream events.
    pub(super) commits: watch::Sender<u64>,
}

impl Default for Aftermath {
    fn default() -> Aftermath {
        Aftermath {
            tasks: Cache::new(TASKS_MAX),
            memory: Memory::new(),
            wake: Arc::new(Notify::new()),
            work: Arc::new(Notify::new()),
            commits: watch::Sender::new(0),
        }
    }
}

impl Aftermath {
    /// Tells relay and streams of this process that there are new events.
    pub(super) fn announce(&self) {
        self.wake.notify_one();
        self.commits.send_modify(|count| *count += 1);
    }

    async fn applied(&self, change: Change) {
        if leaves_work(&change) {
            self.work.notify_one();
        }
        observe::committed(&change.entries);
        let before = change.before.as_ref().map(|stored| &stored.instance);
        for task in change.after.active.iter().flat_map(|state| &state.tasks) {
            if before.is_none_or(|before| before.task(task.id).is_none()) {
                let key = (change.tenant, task.id);
                self.tasks.insert(key, change.after.id).await;
            }
        }
        if change.standing.is_some() {
            self.memory.held();
        }
        self.memory.left(change.tenant, change.into_left()).await;
    }
}

/// Commits changes.
pub struct Writer {
    together: Combiner<Commits>,
    alone: Arc<Combiner<Commits>>,
}

struct Commits {
    store: Store,
    aftermath: Aftermath,
    /// Where the members of a failed batch go.
    alone: Option<Arc<Combiner<Commits>>>,
}

struct Member {
    change: Change,
    told: Vec<Told>,
}

/// How somebody hears what became of a change.
pub(super) type Told = oneshot::Sender<Fate>;
pub(super) type Fate = Result<Verdict, StoreError>;

impl Writer {
    /// A writer whose workers are tasks of `tasks`.
    pub fn new(
        store: &Store,
        aftermath: &Aftermath,
        bounds: WriterBounds,
        tasks: &TaskTracker,
    ) -> Writer {
        let combiner = |workers, together, alone| {
            let work = Commits {
                store: store.clone(),
                aftermath: aftermath.clone(),
                alone,
            };
            let bounds = Bounds {
                workers,
                together,
                waiting: bounds.waiting,
            };
            Combiner::new(work, bounds, tasks.clone())
        };
        let alone = Arc::new(combiner(ALONE, 1, None));
        let together = bounds.together.clamp(1, BATCH_MAX);
        Writer {
            together: combiner(bounds.workers.max(1), together, Some(alone.clone())),
            alone,
        }
    }

    /// Commits the change, beside others unless it is to go alone. It is committed, and what follows happens, even
    /// when nobody waits for this any more.
    pub async fn commit(
        &self,
        change: Change,
        alone: bool,
    ) -> Result<Result<Verdict, StoreError>, Full> {
        let combiner = if alone { &*self.alone } else { &self.together };
        carry(combiner, change, Vec::new()).await
    }

    /// Commits a change of several commands beside others, and tells them all.
    pub(super) async fn commit_joint(&self, change: Change, told: Vec<Told>) -> Result<Fate, Full> {
        carry(&self.together, change, told).await
    }
}

async fn carry(
    combiner: &Combiner<Commits>,
    change: Change,
    mut told: Vec<Told>,
) -> Result<Fate, Full> {
    let (ours, fate) = oneshot::channel();
    told.push(ours);
    let fate = combiner.carry(Member { change, told }, fate).await?;
    Ok(fate.unwrap_or_else(|_| Err(StoreError::Lost)))
}

impl Work for Commits {
    type Item = Member;
    const NAME: &'static str = "commit";

    /// One statement takes an instance once.
    fn fits(chosen: &[Member], item: &Member) -> bool {
        let id = |member: &Member| (member.change.tenant, member.change.after.id);
        chosen.iter().all(|other| id(other) != id(item))
    }

    async fn carry_out(&self, members: Vec<Member>) {
        let changes: Vec<&Change> = members.iter().map(|member| &member.change).collect();
        match (self.store.commit(&changes).await, &self.alone) {
            (Ok(verdicts), _) => self.tell(members, verdicts).await,
            (Err(error), Some(alone)) if members.len() > 1 && error.may_be_of_one() => {
                metrics::counter!("wrkflw_commit_batches_split_total").increment(1);
                tracing::warn!(%error, members = members.len(), "a batch failed; its members are applied one by one");
                alone.put_back(members);
            }
            (Err(error), _) => {
                let told = members.into_iter().flat_map(|member| member.told);
                for (told, error) in told.zip(error.for_each()) {
                    let _gone = told.send(Err(error));
                }
            }
        }
    }
}

impl Commits {
    async fn tell(&self, members: Vec<Member>, verdicts: Vec<Verdict>) {
        let mut waiting = Vec::with_capacity(members.len());
        for (member, verdict) in members.into_iter().zip(&verdicts) {
            if *verdict == Verdict::Applied {
                crate::fault::point("command.committed");
                self.aftermath.applied(member.change).await;
            }
            waiting.push(member.told);
        }
        if verdicts.contains(&Verdict::Applied) {
            self.aftermath.announce();
            crate::fault::point("command.announced");
        }
        for (told, verdict) in waiting.into_iter().zip(verdicts) {
            for told in told {
                let _gone = told.send(Ok(verdict));
            }
        }
    }
}
