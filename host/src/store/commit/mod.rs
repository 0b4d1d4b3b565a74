//! The one write path of instances: changes in, verdicts out, in a single round trip.
//!
//! A change is conditional on the revision it was computed from. It is applied whole - instance, stays, tasks,
//! decision, attributes, audit entries, outbox rows and the reply to its idempotency key - or leaves no trace.

mod rows;
mod statement;

use uuid::Uuid;

use crate::domain::audit::Entry;
use crate::domain::ids::{CommandId, TaskId, TenantId};
use crate::domain::instance::Instance;
use crate::store::load::{Stored, StoredReply};

pub use rows::LANES;
pub(super) use rows::array;
pub use rows::jobs::{cancelling, telling};

/// How many changes one statement may carry: beyond it batches gain nothing.
pub const BATCH_MAX: usize = 32;

/// One command's effect on one instance.
#[derive(Debug)]
pub struct Change {
    pub tenant: TenantId,
    pub command: CommandId,
    /// As loaded; none for a start.
    pub before: Option<Stored>,
    pub after: Instance,
    /// Numbered and hashed onto the stream of `before`.
    pub entries: Vec<Entry>,
    /// For each decision that `after` has and `before` has not.
    pub seals: Vec<Seal>,
    /// Kept for repeats of the request.
    pub reply: Option<KeyedReply>,
    /// The id of the signal that the command is: it counts once.
    pub signal: Option<String>,
    /// The jobs that the command carries out.
    pub done: Vec<Uuid>,
}

/// The HMAC over a decision.
#[derive(Debug, Clone)]
pub struct Seal {
    pub task: TaskId,
    pub key_id: String,
    pub version: i16,
    pub mac: [u8; 32],
}

/// A reply under an idempotency key.
#[derive(Debug, Clone)]
pub struct KeyedReply {
    pub principal: String,
    pub key: String,
    pub reply: StoredReply,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Applied,
    /// The instance has moved on since it was loaded.
    Stale,
    /// The idempotency key is another command's; or, for a start, the entity is in another running instance.
    Taken,
}
