//! In whose name somebody acts, and who must not act at all.
//!
//! A person acts in their own right or for somebody absent; an owner acts for whoever handed the task to them. What bars one
//! of them bars the act, so that no way around - group, substitute, delegate, operator - leads past it. It reads the
//! actor's standing as of the moment of the command and changes nothing.

use jiff::Timestamp;

use super::Context;
use super::able::deciders;
use crate::domain::answer::Principal;
use crate::domain::instance::{Holding, Instance, StateInstance, Task, TaskStatus};
use crate::domain::rejection::{Owned, Rejection};

/// A stay that somebody wants to work in.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) context: Context<'a>,
    pub(super) instance: &'a Instance,
    pub(super) stay: &'a StateInstance,
}

impl<'a> Place<'a> {
    /// Whether this is work that the initiator does on their own request, and nobody for them.
    pub(super) fn is_own_work(self) -> bool {
        let declared = self.context.version.graph.state(&self.stay.name);
        declared.expect("stays are in declared states").own_work
    }

    /// Nobody works on their own request, on what they are excluded from, or twice in one stay.
    pub(super) fn unbarred(self, person: &str) -> Result<(), Rejection> {
        let name = &self.stay.name;
        let is = |id: &String| id == person;
        if self.instance.requesters.iter().any(is) && !self.is_own_work() {
            let message =
                format!("{person} requested this instance and does not work on it in {name}");
            return Err(Rejection::forbidden("own_request", message));
        }
        if self.stay.exclude.iter().any(is) {
            let message = format!("{person} is excluded from work in {name}");
            return Err(Rejection::forbidden("excluded", message));
        }
        let mut decided = self.stay.tasks.iter().flat_map(deciders);
        if decided.any(|decider| decider == person) {
            let message = format!("{person} has already decided in {name}");
            return Err(Rejection::forbidden("already_decided", message));
        }
        Ok(())
    }

    /// For whom the actor would claim the task: somebody absent, or nobody but themselves. Their own right comes first.
    pub(super) fn claimed_for(self, task: &Task) -> Result<Option<String>, Rejection> {
        let actor = self.context.actor;
        self.unbarred(&actor.id)?;
        if is_candidate(task, &actor.id, &actor.groups) {
            return Ok(None);
        }
        let mut refusal = None;
        for (person, groups) in self.absent() {
            if !is_candidate(task, person, groups) {
                continue;
            }
            match self.unbarred(person) {
                Ok(()) => return Ok(Some(person.to_owned())),
                Err(barred) => refusal = refusal.or(Some(barred)),
            }
        }
        Err(refusal.unwrap_or_else(|| not_a_candidate(task, &actor.id)))
    }

    /// In whose name the actor does the owner's work; none for their own.
    pub(super) fn acting_for(self, task: &Task, what: &str) -> Result<Option<String>, Rejection> {
        let actor = self.context.actor;
        self.unbarred(&actor.id)?;
        let (owner, holding) = self.owned(task, what)?;
        let absent = self.still_entitled(task, owner, holding)?;
        let delegators = holding.delegations.iter().map(|link| link.from.as_str());
        let people = || absent.into_iter().chain(delegators.clone()).chain([owner]);
        people().try_for_each(|person| self.unbarred(person))?;
        // Whose work it is: the absent person's, else the first delegator's, else the owner's.
        let principal = people().find(|person| *person != actor.id);
        Ok(principal.map(str::to_owned))
    }

    /// The owner whose work the actor may do, and how they came by it.
    pub(super) fn owned<'t>(
        self,
        task: &'t Task,
        what: &str,
    ) -> Result<(&'t str, &'t Holding), Rejection> {
        let refuse = |message, owner: Option<(&String, Timestamp)>| {
            let owned = Owned {
                task: task.id,
                owner: owner.map(|(owner, _)| owner.clone()),
                at: owner.map(|(_, at)| at),
                revision: self.instance.revision,
            };
            Err(Rejection::NotOwner { owned, message })
        };
        match &task.status {
            TaskStatus::Claimed { owner, holding, .. } if self.groups_of(owner).is_some() => {
                Ok((owner, holding))
            }
            TaskStatus::Claimed {
                owner, claimed_at, ..
            } => {
                let message = format!("only its owner {owner} may {what} this task");
                refuse(message, Some((owner, *claimed_at)))
            }
            TaskStatus::Pending | TaskStatus::Completed { .. } | TaskStatus::Cancelled { .. } => {
                let message = format!("nobody owns this task; claim it before you {what} it");
                refuse(message, None)
            }
        }
    }

    /// Standing is read when somebody acts: groups and absences may have changed since the claim. The absent person for
    /// whom the owner holds the task.
    fn still_entitled<'t>(
        self,
        task: &Task,
        owner: &str,
        holding: &'t Holding,
    ) -> Result<Option<&'t str>, Rejection> {
        let absent = holding.on_behalf_of.as_deref();
        if holding.assigned || !holding.delegations.is_empty() {
            return Ok(absent);
        }
        let is_candidate = |person: &str| {
            let groups = self.groups_of(person);
            groups.is_some_and(|groups| is_candidate(task, person, groups))
        };
        match absent {
            Some(person) if is_candidate(person) => Ok(absent),
            _ if is_candidate(owner) => Ok(None),
            Some(person) if self.groups_of(person).is_none() => Err(Rejection::forbidden(
                "no_longer_substitute",
                format!("{owner} claimed this task for {person}, and stands in for them no longer"),
            )),
            Some(person) => Err(not_a_candidate(task, person)),
            None => Err(not_a_candidate(task, owner)),
        }
    }

    /// The groups of a person in whose name the actor may act: their own, or those of somebody absent.
    fn groups_of(self, person: &str) -> Option<&'a [String]> {
        let actor = self.context.actor;
        if person == actor.id {
            return Some(&actor.groups);
        }
        let mut absent = self.absent();
        absent
            .find(|(id, _)| *id == person)
            .map(|(_, groups)| groups)
    }

    /// The absent people for whom the actor may work here, with their groups. What initiators do on their own request
    /// nobody does for them.
    fn absent(self) -> impl Iterator<Item = (&'a str, &'a [String])> {
        let nobody = self.is_own_work();
        let key = &self.context.version.reference.key;
        let absent = self.context.actor.absent(key).filter(move |_| !nobody);
        absent.map(|absent| (absent.person.as_str(), absent.groups.as_slice()))
    }
}

fn is_candidate(task: &Task, person: &str, groups: &[String]) -> bool {
    let mut candidates = task.candidates.iter();
    candidates.any(|candidate| candidate.includes(person, groups))
}

fn not_a_candidate(task: &Task, person: &str) -> Rejection {
    let name = |principal: &Principal| match principal {
        Principal::User(id) => format!("user {id}"),
        Principal::Group(id) => format!("group {id}"),
        Principal::ManagerOf(id) => format!("the manager of {id}"),
    };
    let names: Vec<_> = task.candidates.iter().map(name).collect();
    let message = format!(
        "{person} is not among the candidates of this task: {}",
        names.join(", ")
    );
    Rejection::forbidden("not_a_candidate", message)
}
