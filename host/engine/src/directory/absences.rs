//! Absences and substitutes. People manage their own. The absences of others need a permission on the directory.

use jiff::Timestamp;
use uuid::Uuid;

use super::{Changed, WRITE, run_of, settle};
use crate::Engine;
use crate::error::Error;
use crate::permission::{need, note, permit};
use crate::request::{Identity, id_under};
use crate::validation::{check_id, check_key};
use wrkflw_core::absence::Absence;
use wrkflw_core::eligibility::directory::{Change, Substitution};
use wrkflw_core::ids::TenantId;
use wrkflw_store::Store;
use wrkflw_store::directory::absences::{self, KeptAbsence};
use wrkflw_store::directory::tenants;

/// The permission to see and change one's own absences.
const OWN: &str = "absence:self";

/// Absences, each with its substitute.
#[derive(Clone, Copy)]
pub struct Absences<'a> {
    pub(crate) engine: &'a Engine,
}

impl Absences<'_> {
    /// A person's present and future absences, and those in which they are the substitute.
    pub async fn list(self, who: &Identity, person: &str) -> Result<Vec<KeptAbsence>, Error> {
        let store = &self.engine.0.store;
        permit_absence(store, who, person, "directory:read").await?;
        let now = self.engine.0.clock.now();
        let found = absences::list(store, who.tenant, person, now).await?;
        if found.is_empty() {
            self.engine.directory().person(who, person).await?;
        }
        Ok(found)
    }

    /// Adds an absence. A repeated request with the same idempotency key returns the absence that the first one added.
    pub async fn add(
        self,
        who: &Identity,
        absence: Absence,
        key: Option<&str>,
        dry_run: bool,
    ) -> Result<Changed<KeptAbsence>, Error> {
        let store = &self.engine.0.store;
        permit_absence(store, who, &absence.person, WRITE).await?;
        check_id("/substitute", &absence.substitute)?;
        if let Some(definition) = &absence.definition {
            check_key("/definitionKey", definition)?;
        }
        let absence = Absence {
            from: kept_moment("/from", absence.from)?,
            until: kept_moment("/until", absence.until)?,
            ..absence
        };
        let id = id_under("absence", &who.subject, key);
        let (note, run) = (note(&self.engine.0.clock, &who.subject), run_of(dry_run));
        let put = absences::add(store, who.tenant, id, &absence, run, &note);
        settle(put.await?, "person", &absence.person)?;
        if !dry_run {
            let added = get(store, who.tenant, &absence.person, id).await?;
            return Ok(Changed::Done(added));
        }
        let change = Change::Absent(Substitution {
            absence: id,
            person: absence.person,
            substitute: absence.substitute,
            definition: absence.definition,
        });
        Ok(Changed::Dry(
            self.engine.eligibility().preview(who, &change).await?,
        ))
    }

    /// Ends an absence. One that is over stays unchanged.
    pub async fn end(
        self,
        who: &Identity,
        person: &str,
        absence: Uuid,
        dry_run: bool,
    ) -> Result<Changed<KeptAbsence>, Error> {
        let store = &self.engine.0.store;
        permit_absence(store, who, person, WRITE).await?;
        let (note, run) = (note(&self.engine.0.clock, &who.subject), run_of(dry_run));
        let put = absences::end(store, who.tenant, person, absence, run, &note);
        settle(put.await?, "absence", &absence.to_string())?;
        if !dry_run {
            let ended = get(store, who.tenant, person, absence).await?;
            return Ok(Changed::Done(ended));
        }
        let person = person.to_owned();
        let change = Change::Back { absence, person };
        Ok(Changed::Dry(
            self.engine.eligibility().preview(who, &change).await?,
        ))
    }
}

async fn get(
    store: &Store,
    tenant: TenantId,
    person: &str,
    id: Uuid,
) -> Result<KeptAbsence, Error> {
    let kept = absences::get(store, tenant, person, id).await?;
    kept.ok_or_else(|| Error::missing("absence", id))
}

/// Refuses a caller who may not see or change the absences of this person. Those of others need the permission `for_all`. The
/// caller's own need [`OWN`] or `for_all`.
async fn permit_absence(
    store: &Store,
    who: &Identity,
    person: &str,
    for_all: &'static str,
) -> Result<(), Error> {
    if person != who.subject {
        return permit(store, who, for_all).await;
    }
    // Both are checked after one read: a failed read must not look like a missing permission.
    let (actor, _) = tenants::actor(store, &who.caller()).await?;
    need(&actor, for_all).or_else(|_| need(&actor, OWN))
}

/// The moment as it is stored, in microseconds.
fn kept_moment(pointer: &str, moment: Timestamp) -> Result<Timestamp, Error> {
    let kept = Timestamp::from_microsecond(moment.as_microsecond());
    kept.map_err(|error| Error::invalid_as_a_whole(error.to_string(), pointer, "malformed"))
}
