//! What this process does after a commit, even if the caller has gone away.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::cache::InstanceCache;
use crate::children::leaves_work;
use crate::observe;
use crate::tally::Tally;
use wrkflw_core::ids::{InstanceId, TaskId, TenantId};
use wrkflw_runtime::lru::Lru;
use wrkflw_store::commit::Change;

/// Limit of the tasks whose instance is cached. A task never changes its instance.
const TASKS_MAX: usize = 100_000;

/// Cheap to clone; all clones share one state.
#[derive(Clone)]
pub struct PostCommit {
    pub(crate) tasks: Arc<Lru<(TenantId, TaskId), InstanceId>>,
    pub(super) cache: InstanceCache,
    /// Notified after each commit with events for the relay.
    pub(crate) wake: Arc<Notify>,
    /// Changes after each commit with jobs, for the workers of this process.
    pub(crate) work: watch::Sender<()>,
    /// Counts the commits with events, for event streams.
    pub(crate) commits: watch::Sender<u64>,
    /// Counts decisions, starts and refusals, for operators.
    pub(crate) tally: Arc<Tally>,
}

impl Default for PostCommit {
    fn default() -> PostCommit {
        PostCommit {
            tasks: Arc::new(Lru::new(TASKS_MAX)),
            cache: InstanceCache::new(),
            wake: Arc::new(Notify::new()),
            work: watch::Sender::new(()),
            commits: watch::Sender::new(0),
            tally: Arc::default(),
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

    /// Caches a committed change, and wakes the workers if the change has jobs.
    pub(super) fn applied(&self, change: Change) {
        if leaves_work(&change) {
            self.wake_workers();
        }
        observe::committed(&change.entries);
        self.tally.committed(change.tenant, &change.entries);
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
