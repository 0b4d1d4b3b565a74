//! Marks notifications as read, and keeps which kinds a person does not want.

use uuid::Uuid;

use super::Engine;
use super::error::Error;
use super::request::Identity;
use wrkflw_core::notification::Kind;

impl Engine {
    /// Replaces the kinds of notifications that the caller does not want.
    pub async fn mute(&self, who: &Identity, kinds: &[Kind]) -> Result<(), Error> {
        self.permit(who, "notification:read").await?;
        Ok(self.0.store.mute(who.tenant, &who.subject, kinds).await?)
    }

    /// Marks a notification as read. If it is a group's, it is read for all members.
    pub async fn mark_read(&self, who: &Identity, id: Uuid) -> Result<(), Error> {
        self.permit(who, "notification:read").await?;
        let (store, now) = (&self.0.store, self.0.clock.now());
        if store.mark_read(who.tenant, id, &who.subject, now).await? {
            Ok(())
        } else {
            Err(Error::missing("notification of yours", id))
        }
    }
}
