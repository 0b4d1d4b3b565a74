//! What the host knows of the caller.

use crate::Engine;
use crate::error::Error;
use crate::request::Identity;
use wrkflw_store::directory::absences::KeptAbsence;
use wrkflw_store::directory::people::Person;

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

impl Engine {
    /// The facts that the host knows about the caller. It needs no permission: all people may know this about themselves.
    pub async fn me(&self, who: &Identity) -> Result<Me, Error> {
        let (store, now) = (&self.0.store, self.0.clock.now());
        let (actor, _) = store.actor(&who.caller()).await?;
        let person = store.person(who.tenant, &who.subject).await?;
        let found = store.absences(who.tenant, &who.subject, now).await?;
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
