//! What the host knows about the caller.

use super::Directory;
use crate::error::Error;
use crate::request::Identity;
use wrkflw_store::directory::absences::{self, KeptAbsence};
use wrkflw_store::directory::people::{self, Person};
use wrkflw_store::directory::tenants;

/// The caller, as the token and the directory describe them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Me {
    /// None if the directory does not know the caller.
    pub person: Option<Person>,
    pub permissions: Vec<String>,
    /// The caller's own, present and future.
    pub absences: Vec<KeptAbsence>,
    /// Absences that have begun, in which the caller is the substitute.
    pub stands_in_for: Vec<KeptAbsence>,
}

impl Directory<'_> {
    /// The facts that the host knows about the caller. It needs no permission: all people may know this about themselves.
    pub async fn me(self, who: &Identity) -> Result<Me, Error> {
        let (store, now) = (&self.engine.0.store, self.engine.0.clock.now());
        let (actor, _) = tenants::actor(store, &who.caller()).await?;
        let person = people::person(store, who.tenant, &who.subject).await?;
        let found = absences::list(store, who.tenant, &who.subject, now).await?;
        let (absences, others): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|absence| absence.person == who.subject);
        let begun = others
            .into_iter()
            .filter(|absence| absence.active_from <= now);
        Ok(Me {
            person,
            permissions: actor.permissions,
            absences,
            stands_in_for: begun.collect(),
        })
    }
}
