//! Marks notifications as read, and stores the preferences of a person.

use uuid::Uuid;

use super::Engine;
use super::error::Error;
use super::request::Identity;
use wrkflw_core::notification::Kind;
use wrkflw_store::sessions::Preference;

impl Engine {
    /// Replaces the kinds of notifications that the caller does not want, and the caller's settings of pages.
    pub async fn prefer(
        &self,
        who: &Identity,
        muted: &[Kind],
        preference: &Preference,
    ) -> Result<(), Error> {
        let (tenant, person) = (who.tenant, &who.subject);
        let stored = self.0.store.prefer(tenant, person, muted, preference);
        Ok(stored.await?)
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
