//! Marks notifications as read, and stores a person's preferences: the kinds that they do not want, and their settings of pages.

use uuid::Uuid;

use super::error::Error;
use super::permission::permit;
use super::request::Identity;
use wrkflw_core::notification::Kind;
use wrkflw_runtime::clock::Clock;
use wrkflw_store::sessions::Preference;
use wrkflw_store::{Store, notifications};

/// What a person does with notifications: marks them as read, and chooses their kinds.
#[derive(Clone, Copy)]
pub struct Notifications<'a> {
    pub(super) store: &'a Store,
    pub(super) clock: &'a Clock,
}

impl Notifications<'_> {
    /// Replaces the kinds of notifications that the caller does not want, and the caller's settings of pages.
    pub async fn prefer(
        self,
        who: &Identity,
        muted: &[Kind],
        preference: &Preference,
    ) -> Result<(), Error> {
        let (tenant, person) = (who.tenant, &who.subject);
        Ok(notifications::prefer(self.store, tenant, person, muted, preference).await?)
    }

    /// Marks a notification as read. If it is a group's, it is read for all members.
    pub async fn mark_read(self, who: &Identity, id: Uuid) -> Result<(), Error> {
        permit(self.store, who, "notification:read").await?;
        let now = self.clock.now();
        if notifications::mark_read(self.store, who.tenant, id, &who.subject, now).await? {
            Ok(())
        } else {
            Err(Error::missing("notification of yours", id))
        }
    }
}
