//! Marks notifications as read.

use uuid::Uuid;

use super::Engine;
use super::error::Error;
use super::request::Identity;

impl Engine {
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
