//! Absences and substitutes. People manage their own. The absences of others need a permission on the directory.

use jiff::Timestamp;
use uuid::Uuid;

use super::{Changed, WRITE, run_of, settle};
use crate::Engine;
use crate::definitions::need;
use crate::error::Error;
use crate::request::{Identity, id_under};
use crate::validation::{check_id, check_key};
use wrkflw_core::absence::Absence;
use wrkflw_core::eligibility::directory::{Change, Substitution};
use wrkflw_store::directory::absences::KeptAbsence;

/// The permission to see and change one's own absences.
const OWN: &str = "absence:self";

impl Engine {
    /// A person's present and future absences, and those in which they are the substitute.
    pub async fn absences(&self, who: &Identity, person: &str) -> Result<Vec<KeptAbsence>, Error> {
        self.permit_absence(who, person, "directory:read").await?;
        let (store, now) = (&self.0.store, self.0.clock.now());
        let found = store.absences(who.tenant, person, now).await?;
        if found.is_empty() {
            self.person(who, person).await?;
        }
        Ok(found)
    }

    /// Adds an absence. A repeated request with the same idempotency key returns the absence that the first one added.
    pub async fn add_absence(
        &self,
        who: &Identity,
        absence: Absence,
        key: Option<&str>,
        dry_run: bool,
    ) -> Result<Changed<KeptAbsence>, Error> {
        self.permit_absence(who, &absence.person, WRITE).await?;
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
        let (note, run) = (self.note(&who.subject), run_of(dry_run));
        let put = self
            .0
            .store
            .add_absence(who.tenant, id, &absence, run, &note);
        settle(put.await?, "person", &absence.person)?;
        if !dry_run {
            return Ok(Changed::Done(self.absence(who, &absence.person, id).await?));
        }
        let change = Change::Absent(Substitution {
            absence: id,
            person: absence.person,
            substitute: absence.substitute,
            definition: absence.definition,
        });
        Ok(Changed::Dry(self.preview(who, &change).await?))
    }

    /// Ends an absence. One that is over stays unchanged.
    pub async fn end_absence(
        &self,
        who: &Identity,
        person: &str,
        absence: Uuid,
        dry_run: bool,
    ) -> Result<Changed<KeptAbsence>, Error> {
        self.permit_absence(who, person, WRITE).await?;
        let (note, run) = (self.note(&who.subject), run_of(dry_run));
        let put = self
            .0
            .store
            .end_absence(who.tenant, person, absence, run, &note);
        settle(put.await?, "absence", &absence.to_string())?;
        if !dry_run {
            return Ok(Changed::Done(self.absence(who, person, absence).await?));
        }
        let person = person.to_owned();
        let change = Change::Back { absence, person };
        Ok(Changed::Dry(self.preview(who, &change).await?))
    }

    async fn absence(&self, who: &Identity, person: &str, id: Uuid) -> Result<KeptAbsence, Error> {
        let kept = self.0.store.absence(who.tenant, person, id).await?;
        kept.ok_or_else(|| Error::missing("absence", id))
    }

    /// The absences of others need `for_all`. One's own need [`OWN`] or `for_all`.
    async fn permit_absence(
        &self,
        who: &Identity,
        person: &str,
        for_all: &'static str,
    ) -> Result<(), Error> {
        if person != who.subject {
            return self.permit(who, for_all).await;
        }
        // Asked only once: a failed question must not look like a missing permission.
        let (actor, _) = self.0.store.actor(&who.caller()).await?;
        need(&actor, for_all).or_else(|_| need(&actor, OWN))
    }
}

/// The moment as it is stored, in microseconds.
fn kept_moment(pointer: &str, moment: Timestamp) -> Result<Timestamp, Error> {
    let kept = Timestamp::from_microsecond(moment.as_microsecond());
    kept.map_err(|error| Error::invalid_as_a_whole(error.to_string(), pointer, "malformed"))
}
