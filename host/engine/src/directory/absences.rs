//! Absences: who stands in for whom. People see to their own; for others it takes the right to change the directory.

use jiff::Timestamp;
use uuid::Uuid;

use super::{Changed, WRITE, run_of, settle};
use crate::Engine;
use crate::error::Error;
use crate::request::{Identity, id_under};
use crate::validation::check_id;
use wrkflw_core::absence::Absence;
use wrkflw_core::eligibility::directory::{Change, Substitution};
use wrkflw_store::directory::absences::KeptAbsence;

impl Engine {
    /// A person's absences that hold or will hold, and those in which they are the substitute.
    pub async fn absences(&self, who: &Identity, person: &str) -> Result<Vec<KeptAbsence>, Error> {
        self.permit_absence(who, person, "directory:read").await?;
        let (store, now) = (&self.0.store, self.0.clock.now());
        let found = store.absences(who.tenant, person, now).await?;
        if found.is_empty() {
            self.person(who, person).await?;
        }
        Ok(found)
    }

    /// Names a substitute for a period. Under an idempotency key of the caller's, a repeat finds what is there.
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
            check_id("/definition", definition)?;
        }
        let absence = Absence {
            from: kept_moment("/activeFrom", absence.from)?,
            until: kept_moment("/activeUntil", absence.until)?,
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

    /// Calls an absence off. One that is over stays as it is.
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

    /// One's own absences take a permission that everybody has, or the one that does for all.
    async fn permit_absence(
        &self,
        who: &Identity,
        person: &str,
        for_all: &'static str,
    ) -> Result<(), Error> {
        if person != who.subject {
            return self.permit(who, for_all).await;
        }
        let own = self.permit(who, "absence:self").await;
        if matches!(own, Err(Error::Permission(_))) && self.permit(who, for_all).await.is_ok() {
            return Ok(());
        }
        own
    }
}

/// The moment as it is kept, in microseconds.
fn kept_moment(pointer: &str, moment: Timestamp) -> Result<Timestamp, Error> {
    let kept = Timestamp::from_microsecond(moment.as_microsecond());
    kept.map_err(|error| Error::invalid_as_a_whole(error.to_string(), pointer, "malformed"))
}
