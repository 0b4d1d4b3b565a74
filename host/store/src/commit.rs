//! The only write path of instances: one statement takes changes and returns a result for each.
//!
//! A change is conditional on the revision it was computed from. It is applied completely - instance, state instances, tasks,
//! decision, attributes, audit entries, outbox rows and the reply to its idempotency key - or not at all.

mod rows;
mod statement;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use crate::load::{Stored, StoredReply};
use wrkflw_audit::seal::Seal;
use wrkflw_audit::seal::delegation::DelegationSeal;
use wrkflw_core::audit::{Entry, Head};
use wrkflw_core::command::SignalKey;
use wrkflw_core::ids::{CommandId, StateId, TenantId};
use wrkflw_core::instance::Instance;
use wrkflw_core::participant::Participant;

pub use rows::jobs::{cancelling, reassessing, telling};
pub(crate) use rows::partition;
pub use rows::{PARTITIONS, row_types};
pub use statement::common;

/// Limit of the changes in one statement. Larger batches are not faster.
pub const BATCH_MAX: usize = 32;

/// The effect of one command, or of several consecutive ones, on one instance.
#[derive(Debug)]
pub struct Change {
    pub tenant: TenantId,
    /// The first command.
    pub command: CommandId,
    /// The instance as loaded; none for a start.
    pub before: Option<Arc<Stored>>,
    /// The [`Loaded::access_mark`] of cached data by which the command was evaluated; none if the data was loaded for it.
    /// With a mark, the change is also stale if the mark or the end of the audit stream of `before` has changed.
    ///
    /// [`Loaded::access_mark`]: crate::load::Loaded::access_mark
    pub access_mark: Option<Uuid>,
    pub after: Instance,
    /// The new audit entries. They continue the stream of `before`.
    pub entries: Vec<Entry>,
    /// The seals of the decisions that `after` has and `before` has not.
    pub seals: Vec<Seal>,
    /// The seals of the delegations and returns among the new entries.
    pub delegation_seals: Vec<DelegationSeal>,
    /// The replies for repeated requests. Of several, all are stored or none: if only some of the keys are free, the
    /// statement fails.
    pub replies: Vec<KeyedReply>,
    /// The signals among the commands. Each counts once.
    pub signals: Vec<Signalled>,
    /// Those who became participants by the commands.
    pub participants: Vec<Participant>,
    /// To whom the commands gave tasks.
    pub allocations: Vec<Allocated>,
    /// The jobs that the commands complete.
    pub done: Vec<Uuid>,
}

impl Change {
    /// The instance as the database has it after this change.
    pub fn leaves(&self) -> Stored {
        stored(self.after.clone(), self.head(), self.state_instances())
    }

    /// The same, without copying.
    pub fn into_left(self) -> Stored {
        let (head, state_instances) = (self.head(), self.state_instances());
        stored(self.after, head, state_instances)
    }

    /// The number of state instances so far.
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

    /// The head of the audit stream after this change.
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

    /// Whether others see the instance by its definition than before: it was migrated.
    pub(super) fn is_resighted(&self) -> bool {
        let before = self.before.as_ref();
        before.is_some_and(|before| {
            before.instance.observers.is_some() != self.after.observers.is_some()
        })
    }

    /// Joins this change and the next one, which was computed from its result.
    pub fn join(&mut self, next: Change) {
        assert_eq!(
            next.before.as_ref().map(|before| before.instance.revision),
            Some(self.after.revision)
        );
        self.after = next.after;
        self.entries.extend(next.entries);
        self.seals.extend(next.seals);
        self.delegation_seals.extend(next.delegation_seals);
        self.replies.extend(next.replies);
        self.signals.extend(next.signals);
        self.participants.extend(next.participants);
        self.allocations.extend(next.allocations);
        self.done.extend(next.done);
    }
}

/// Sorts the instance as a load does.
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

/// A signal that the instance counts with this change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signalled {
    pub key: SignalKey,
    pub sender: String,
    /// SHA-256 over its input.
    pub content: [u8; 32],
    /// The audit entry by which the instance received it.
    pub entry: Option<Uuid>,
}

/// A task that the host gave to a person by choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocated {
    /// The key of its definition, and its state.
    pub definition: String,
    pub state: String,
    pub person: String,
    pub at: Timestamp,
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitResult {
    Applied,
    /// The instance or the access mark has changed since it was loaded.
    Stale,
    /// The idempotency key belongs to another command; or another instance about the entity runs already, for a start or a
    /// migration to a version that is sole about its entity.
    Taken,
}
