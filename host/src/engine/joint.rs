//! Commands that wait for the same instance are committed together: each is judged on what the one before it leaves,
//! and none of them is answered - be it with an effect or with a refusal - before all are committed. When that does not
//! come about, each goes through the line again.
//!
//! Nobody waits for company here either. A command that nobody waits behind is committed by itself; only while others
//! wait for their turn, it leaves its change at the place and a task in the line, behind those that are there now,
//! which commits what they add. So no change is left behind when callers go away.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Engine;
use super::queue;
use super::request::Request;
use super::writer::{Fate, Told};
use crate::domain::ids::InstanceId;
use crate::store::StoreError;
use crate::store::commit::{Change, Verdict};
use crate::store::load::Stored;

/// Commands that are answered together.
const COMMANDS_MAX: usize = 32;
/// What their audit entries may hold before no more are added, in bytes.
const BYTES_MAX: usize = 1 << 20;

/// A command's turn at a place.
pub(super) type Turn<'a> = queue::Turn<'a, Place>;

/// What stands at a place of the queue between two turns.
#[derive(Default)]
pub(super) struct Place {
    /// Judged, and not committed yet.
    joint: Option<Box<Joint>>,
}

/// Commands on one instance that are committed together, or not at all.
struct Joint {
    change: Change,
    /// What the next one starts from.
    ahead: Arc<Stored>,
    /// All who wait: those whose effect is in the change, and those whose refusal rests on it.
    told: Vec<Told>,
    bytes: usize,
}

impl Place {
    /// Whether something waits to be committed.
    pub(super) fn is_pending(&self) -> bool {
        self.joint.is_some()
    }

    /// Whether a command on this instance can be judged on what waits: it is about the same instance, and no part of
    /// it has the same idempotency key or is the same signal.
    pub(super) fn admits(&self, request: &Request<'_>, instance: InstanceId) -> bool {
        let Some(joint) = &self.joint else {
            return true;
        };
        let change = &joint.change;
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

    /// The instance as what waits leaves it.
    pub(super) fn ahead(&self) -> Option<&Arc<Stored>> {
        self.joint.as_ref().map(|joint| &joint.ahead)
    }

    /// Adds a change, which was computed from what waits, if anything does. Whether it is the first.
    fn add(&mut self, change: Change) -> bool {
        let ahead = Arc::new(change.leaves());
        let bytes = change.entries.iter().map(|entry| {
            let evidence = entry.draft.evidence.as_ref();
            entry.draft.payload.as_str().len() + evidence.map_or(0, |json| json.as_str().len())
        });
        let bytes = bytes.sum::<usize>();
        let Some(joint) = &mut self.joint else {
            self.joint = Some(Box::new(Joint {
                change,
                ahead,
                told: Vec::new(),
                bytes,
            }));
            return true;
        };
        joint.change.join(change);
        joint.ahead = ahead;
        joint.bytes += bytes;
        false
    }
}

impl Joint {
    /// Whether it is to be committed before anything is added.
    fn is_full(&self) -> bool {
        self.told.len() >= COMMANDS_MAX || self.bytes >= BYTES_MAX
    }
}

impl Engine {
    /// Leaves a change with those before it, and hears what became of all.
    pub(super) async fn join(&self, mut turn: Turn<'_>, change: Change) -> Fate {
        let instance = change.after.id;
        if turn.add(change) {
            let engine = self.clone();
            self.0.tasks.spawn(async move {
                let mut turn = engine.0.queue.turn_behind(instance).await;
                engine.flush(&mut turn).await;
            });
        }
        self.hear(turn).await
    }

    /// Hears what becomes of what waits at the place.
    pub(super) async fn hear(&self, mut turn: Turn<'_>) -> Fate {
        let (told, fate) = oneshot::channel();
        let Some(joint) = &mut turn.joint else {
            return Ok(Verdict::Applied);
        };
        joint.told.push(told);
        if joint.is_full() {
            self.flush(&mut turn).await;
        }
        drop(turn);
        fate.await.unwrap_or(Err(StoreError::Lost))
    }

    /// Commits what waits at the place, and tells those who wait for it.
    pub(super) async fn flush(&self, turn: &mut Turn<'_>) {
        let Some(joint) = turn.joint.take() else {
            return;
        };
        let commands = u32::try_from(joint.told.len()).unwrap_or(u32::MAX);
        metrics::histogram!("wrkflw_joint_commands").record(f64::from(commands));
        // Where the writer has no place for it, those who wait hear that it is lost, and each tries for itself.
        let _told = self.0.writer.commit_joint(joint.change, joint.told).await;
    }
}
