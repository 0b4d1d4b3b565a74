//! The one write path of instances: changes in, verdicts out, in a single round trip.
//!
//! A change is conditional on the revision it was computed from. It is applied whole - instance, state instances, tasks,
//! decision, attributes, audit entries, outbox rows and the reply to its idempotency key - or leaves no trace.

mod rows;
mod statement;

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use crate::load::{Stored, StoredReply};
use wrkflw_audit::seal::Seal;
use wrkflw_core::audit::{Entry, Head};
use wrkflw_core::command::SignalKey;
use wrkflw_core::ids::{CommandId, StateId, TenantId};
use wrkflw_core::instance::Instance;

pub use rows::jobs::{cancelling, reassessing, telling};
pub use rows::{PARTITIONS, row_types};
pub use statement::common;

/// How many changes one statement may carry: beyond it batches gain nothing.
pub const BATCH_MAX: usize = 32;

/// The effect on one instance of a command, or of several that came one after the other.
#[derive(Debug)]
pub struct Change {
    pub tenant: TenantId,
    /// The first command.
    pub command: CommandId,
    /// As loaded; none for a start.
    pub before: Option<Arc<Stored>>,
    /// What [`Loaded::access_mark`] was when it was judged by what was remembered, not read for it: it is stale once that
    /// is another, or the instance is not at the end of the stream of `before`.
    ///
    /// [`Loaded::access_mark`]: crate::load::Loaded::access_mark
    pub access_mark: Option<Uuid>,
    pub after: Instance,
    /// Numbered and hashed onto the stream of `before`.
    pub entries: Vec<Entry>,
    /// For each decision that `after` has and `before` has not.
    pub seals: Vec<Seal>,
    /// Kept for repeats of the requests. Of several, either each is kept, or none: when only some of the keys are
    /// free, the statement fails.
    pub replies: Vec<KeyedReply>,
    /// The signals that the commands are: each counts once.
    pub signals: Vec<Signalled>,
    /// The jobs that the commands carry out.
    pub done: Vec<Uuid>,
}

impl Change {
    /// What the database holds of the instance once this is applied.
    pub fn leaves(&self) -> Stored {
        stored(self.after.clone(), self.head(), self.state_instances())
    }

    /// The same, with nothing copied.
    pub fn into_left(self) -> Stored {
        let (head, state_instances) = (self.head(), self.state_instances());
        stored(self.after, head, state_instances)
    }

    /// How many state instances there have been.
    fn state_instances(&self) -> u32 {
        let before = self.before.as_ref();
        let known: BTreeSet<StateId> = before
            .iter()
            .flat_map(|stored| stored.instance.state_instances())
            .map(|state_instance| state_instance.id)
            .collect();
        let entered = self
            .after
            .state_instances()
            .filter(|state_instance| !known.contains(&state_instance.id));
        let entered = u32::try_from(entered.count()).expect("far fewer than a u32 counts");
        before.map_or(0, |stored| stored.state_instances) + entered
    }

    /// The end of the audit stream behind it.
    pub(super) fn head(&self) -> Head {
        let known = self.before.as_ref().map(|stored| &stored.head);
        let mut entries = self.entries.iter().rev();
        let event_seq = entries.find_map(|entry| entry.event_seq);
        let last = self.entries.last();
        Head {
            seq: last.map_or(0, |entry| entry.seq),
            hash: last.map_or([0; 32], |entry| entry.hash),
            event_seq: event_seq.unwrap_or_else(|| known.map_or(0, |head| head.event_seq)),
        }
    }

    /// Makes one change of this one and the next, which was computed from what this one leaves.
    pub fn join(&mut self, next: Change) {
        assert_eq!(
            next.before.as_ref().map(|before| before.instance.revision),
            Some(self.after.revision)
        );
        self.after = next.after;
        self.entries.extend(next.entries);
        self.seals.extend(next.seals);
        self.replies.extend(next.replies);
        self.signals.extend(next.signals);
        self.done.extend(next.done);
    }
}

/// As a load finds it.
fn stored(mut instance: Instance, head: Head, state_instances: u32) -> Stored {
    instance.sort();
    Stored {
        instance,
        head,
        state_instances,
    }
}

/// A reply under an idempotency key.
#[derive(Debug, Clone)]
pub struct KeyedReply {
    pub principal: String,
    pub key: String,
    pub reply: StoredReply,
}

/// A signal that counts from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signalled {
    pub key: SignalKey,
    pub sender: String,
    /// SHA-256 over its input.
    pub content: [u8; 32],
    /// The audit entry by which the instance received it.
    pub entry: Option<Uuid>,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitResult {
    Applied,
    /// The instance, or what the change was judged by, has moved on since it was loaded.
    Stale,
    /// The idempotency key is another command's; or, for a start, the entity is in another running instance.
    Taken,
}
