//! Sends events to Kafka again: parked ones, of which the first one of an instance may be given up, and published ones.

use super::Engine;
use super::error::Error;
use super::permission::note;
use super::request::Identity;
use super::validation::check_reason;
use super::visibility::missing;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::participant::READ_ALL;
use wrkflw_store::checkpoints::NOBODY;
use wrkflw_store::dead_letters::{self, Release, Released};
use wrkflw_store::replay::{self, Replay, Replayed};
use wrkflw_store::viewer::Viewer;

/// Events that are sent to Kafka again. The relay sends them.
#[derive(Clone, Copy)]
pub struct DeadLetters<'a> {
    pub(super) engine: &'a Engine,
}

impl DeadLetters<'_> {
    /// Sends the parked events of an instance that the caller sees again, all of them or without the first, and wakes the relay.
    pub async fn release(
        self,
        who: &Identity,
        instance: InstanceId,
        release: Release,
        reason: &str,
    ) -> Result<Released, Error> {
        let store = &self.engine.0.store;
        let viewer = self.engine.viewing(who, "dead-letter:write").await?;
        check_reason(reason)?;
        // Checkpoints are about no instance: the permission covers them.
        if instance.0 != NOBODY && !store.sees(&viewer, instance).await? {
            return Ok(Released::Nothing);
        }
        let note = note(&self.engine.0.clock, &who.subject);
        let released = dead_letters::release(store, who.tenant, instance, release, reason, &note);
        let released = released.await?;
        if let Released::Done(_) = released {
            self.engine.0.post_commit.wake.notify_one();
        }
        Ok(released)
    }

    /// Sends published events of a range to Kafka again, and wakes the relay. Positions must be those of this database. A viewer who
    /// may not see every instance must name one that they see, because the answer counts events.
    pub async fn replay(
        self,
        who: &Identity,
        viewer: &Viewer,
        replay: Replay,
        reason: &str,
    ) -> Result<Replayed, Error> {
        let store = &self.engine.0.store;
        self.engine.permit(who, "dead-letter:write").await?;
        check_reason(reason)?;
        match replay.instance.map(InstanceId) {
            Some(id) if !store.sees(viewer, id).await? => return Err(missing(id)),
            None if viewer.is_restricted() => return Err(Error::Permission(READ_ALL)),
            _ => {}
        }
        let note = note(&self.engine.0.clock, &who.subject);
        let replayed = replay::replay(store, who.tenant, replay, reason, &note).await?;
        self.engine.0.post_commit.wake.notify_one();
        Ok(replayed)
    }
}
