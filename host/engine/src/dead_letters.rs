//! Releases dead letters: sends them again, or gives up the first one of an instance.

use super::Engine;
use super::error::Error;
use super::request::Identity;
use super::validation::check_reason;
use super::visibility::missing;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::participant::READ_ALL;
use wrkflw_store::checkpoints::NOBODY;
use wrkflw_store::dead_letters::{Release, Released};
use wrkflw_store::replay::{Replay, Replayed};
use wrkflw_store::viewer::Viewer;

impl Engine {
    /// Sends the parked events of an instance that the caller sees again, all of them or without the first, and wakes the relay.
    pub async fn release(
        &self,
        who: &Identity,
        instance: InstanceId,
        release: Release,
        reason: &str,
    ) -> Result<Released, Error> {
        let viewer = self.viewing(who, "dead-letter:write").await?;
        check_reason(reason)?;
        // Checkpoints are about no instance: the permission covers them.
        if instance.0 != NOBODY && !self.0.store.sees(&viewer, instance).await? {
            return Ok(Released::Nothing);
        }
        let note = self.note(&who.subject);
        let released = self
            .0
            .store
            .release(who.tenant, instance, release, reason, &note);
        let released = released.await?;
        if let Released::Done(_) = released {
            self.0.post_commit.wake.notify_one();
        }
        Ok(released)
    }

    /// Sends published events of a range to Kafka again, and wakes the relay. Positions must be those of this database. A viewer who
    /// may not see every instance must name one that they see, because the answer counts events.
    pub async fn replay(
        &self,
        who: &Identity,
        viewer: &Viewer,
        replay: Replay,
        reason: &str,
    ) -> Result<Replayed, Error> {
        self.permit(who, "dead-letter:write").await?;
        check_reason(reason)?;
        match replay.instance.map(InstanceId) {
            Some(id) if !self.0.store.sees(viewer, id).await? => return Err(missing(id)),
            None if viewer.is_restricted() => return Err(Error::Permission(READ_ALL)),
            _ => {}
        }
        let note = self.note(&who.subject);
        let replayed = self
            .0
            .store
            .replay(who.tenant, replay, reason, &note)
            .await?;
        self.0.post_commit.wake.notify_one();
        Ok(replayed)
    }
}
