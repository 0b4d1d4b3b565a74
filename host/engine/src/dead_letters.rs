//! Releases dead letters: sends them again, or gives up the first one of an instance.

use super::Engine;
use super::error::Error;
use super::request::Identity;
use super::validation::check_reason;
use wrkflw_core::ids::InstanceId;
use wrkflw_store::dead_letters::{Release, Released};
use wrkflw_store::replay::{Replay, Replayed};

impl Engine {
    /// Sends the parked events of an instance again, all of them or without the first, and wakes the relay.
    pub async fn release(
        &self,
        who: &Identity,
        instance: InstanceId,
        release: Release,
        reason: &str,
    ) -> Result<Released, Error> {
        self.permit(who, "dead-letter:write").await?;
        check_reason(reason)?;
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

    /// Sends published events of a range to Kafka again, and wakes the relay. Positions must be those of this database.
    pub async fn replay(
        &self,
        who: &Identity,
        replay: Replay,
        reason: &str,
    ) -> Result<Replayed, Error> {
        self.permit(who, "dead-letter:write").await?;
        check_reason(reason)?;
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
