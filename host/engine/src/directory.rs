//! Changes of the directory: people, groups, memberships and managers here, then [`absences`] and [`roles`]. [`me`] tells a caller
//! what the directory has about them.
//!
//! A use case checks the permission, validates the values, and writes. A dry run makes the same checks and returns the open tasks
//! that the change would leave to nobody.

pub(super) mod absences;
pub(super) mod me;
pub(super) mod roles;

use super::Engine;
use super::eligibility::Preview;
use super::error::Error;
use super::permission::note;
use super::request::Identity;
use super::validation::{check_id, check_name, check_person};
use wrkflw_core::eligibility::directory::Change;
use wrkflw_store::directory::people::{self, Group, Person};
use wrkflw_store::directory::{Membership, Put, Run, managers, memberships};

/// The permission that changes of the directory need.
const WRITE: &str = "directory:write";

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed<T> {
    /// The change is written. This is the new state.
    Done(T),
    /// Nothing was written.
    Dry(Preview),
}

/// Changes of people, groups, memberships and managers.
#[derive(Clone, Copy)]
pub struct Directory<'a> {
    pub(super) engine: &'a Engine,
}

impl Directory<'_> {
    /// Adds a person, or renames them.
    pub async fn put_person(self, who: &Identity, id: &str, name: &str) -> Result<Person, Error> {
        self.engine.permit(who, WRITE).await?;
        check_person("/id", id)?;
        check_name("/name", name)?;
        let note = note(&self.engine.0.clock, &who.subject);
        people::put_person(&self.engine.0.store, who.tenant, id, name, &note).await?;
        self.person(who, id).await
    }

    /// Adds a group, or renames it.
    pub async fn put_group(self, who: &Identity, id: &str, name: &str) -> Result<Group, Error> {
        self.engine.permit(who, WRITE).await?;
        check_id("/id", id)?;
        check_name("/name", name)?;
        let note = note(&self.engine.0.clock, &who.subject);
        people::put_group(&self.engine.0.store, who.tenant, id, name, &note).await?;
        self.group(who, id).await
    }

    /// Makes a person a member of a group, or ends that.
    pub async fn put_membership(
        self,
        who: &Identity,
        (group, person): (&str, &str),
        membership: Membership,
        dry_run: bool,
    ) -> Result<Changed<Group>, Error> {
        self.engine.permit(who, WRITE).await?;
        let (note, run) = (note(&self.engine.0.clock, &who.subject), run_of(dry_run));
        let put = memberships::put(
            &self.engine.0.store,
            who.tenant,
            (group, person),
            membership,
            run,
            &note,
        );
        let put = put.await?;
        if matches!(put, Put::Missing) {
            // One of the two is missing.
            self.group(who, group).await?;
        }
        settle(put, "person", person)?;
        if !dry_run {
            return Ok(Changed::Done(self.group(who, group).await?));
        }
        let (group, person) = (group.to_owned(), person.to_owned());
        let change = match membership {
            Membership::Begins => Change::Joins { group, person },
            Membership::Ends => Change::Leaves { group, person },
        };
        Ok(Changed::Dry(
            self.engine.eligibility().preview(who, &change).await?,
        ))
    }

    /// Sets or removes a person's manager.
    pub async fn put_manager(
        self,
        who: &Identity,
        person: &str,
        manager: Option<&str>,
        dry_run: bool,
    ) -> Result<Changed<Person>, Error> {
        self.engine.permit(who, WRITE).await?;
        if let Some(manager) = manager {
            check_person("/manager", manager)?;
        }
        let (note, run) = (note(&self.engine.0.clock, &who.subject), run_of(dry_run));
        let put = managers::put(
            &self.engine.0.store,
            who.tenant,
            person,
            manager,
            run,
            &note,
        );
        settle(put.await?, "person", person)?;
        if !dry_run {
            return Ok(Changed::Done(self.person(who, person).await?));
        }
        // An offer to a manager is resolved to a person when it is made, so no open task depends on the change.
        Ok(Changed::Dry(Preview::default()))
    }

    /// A person with their groups. Checks no permission.
    pub async fn person(self, who: &Identity, id: &str) -> Result<Person, Error> {
        let person = people::person(&self.engine.0.store, who.tenant, id).await?;
        person.ok_or_else(|| Error::missing("person", id))
    }

    /// A group with its first members. Checks no permission.
    pub async fn group(self, who: &Identity, id: &str) -> Result<Group, Error> {
        let group = people::group(&self.engine.0.store, who.tenant, id).await?;
        group.ok_or_else(|| Error::missing("group", id))
    }
}

fn run_of(dry_run: bool) -> Run {
    if dry_run { Run::Dry } else { Run::Real }
}

/// Fails with the reason if the change was not made.
fn settle(put: Put, what: &'static str, id: &str) -> Result<(), Error> {
    match put {
        Put::Done => Ok(()),
        Put::Missing => Err(Error::missing(what, id)),
        Put::Taken => Err(Error::KeyReused),
        Put::Refused(refusal) => Err(Error::invalid_as_a_whole(
            refusal.to_string(),
            refusal.pointer(),
            refusal.code(),
        )),
    }
}
