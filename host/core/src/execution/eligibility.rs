//! Whether the actor of a command is eligible, and on whose behalf they act.
//!
//! A person acts for themselves or for an absent person. An owner acts for the person who delegated the task to them. If one of
//! these people is excluded, the command is refused. So a group, substitute, delegation or operator cannot bypass the rule. A
//! chain of substitutes cannot bypass it either: the chain ends at a requester or another excluded person. The actor's groups and
//! absences are those of the moment of the command.

use jiff::Timestamp;

use super::Context;
use crate::actor::StandIn;
use crate::instance::{Candidate, Instance, Ownership, StateInstance, Task, TaskStatus};
use crate::rejection::{Owned, Rejection};

/// The state instance that the actor wants to work in.
#[derive(Clone, Copy)]
pub(super) struct Workplace<'a> {
    pub(super) context: Context<'a>,
    pub(super) instance: &'a Instance,
    pub(super) state_instance: &'a StateInstance,
}

impl<'a> Workplace<'a> {
    /// Whether this is the initiator's work on their own request. Nobody may do it for them.
    pub(super) fn is_own_work(self) -> bool {
        let graph = &self.context.version.graph;
        graph.is_own_work(&self.state_instance.name)
    }

    /// Refuses a person who requested the instance, is excluded, or decided already: in this state instance or in a separate
    /// state.
    pub(super) fn not_excluded(self, person: &str) -> Result<(), Rejection> {
        self.not_excluded_by_rule(person)?;
        let mut decided = self.state_instance.tasks.iter().flat_map(Task::deciders);
        if decided.any(|decider| decider == person) {
            let name = &self.state_instance.name;
            let message = format!("{person} has already decided in {name}");
            return Err(Rejection::forbidden("already_decided", message));
        }
        Ok(())
    }

    /// Refuses a person who requested the instance, is excluded, or decided in a separate state.
    fn not_excluded_by_rule(self, person: &str) -> Result<(), Rejection> {
        let name = &self.state_instance.name;
        let is = |id: &String| id == person;
        if self.instance.requesters.iter().any(is) && !self.is_own_work() {
            let message =
                format!("{person} requested this instance and does not work on it in {name}");
            return Err(Rejection::forbidden("own_request", message));
        }
        if !self.context.version.graph.separate.is_empty() {
            self.not_decided_elsewhere(person)?;
        }
        if self.state_instance.exclude.iter().any(is) {
            let message = format!("{person} is excluded from work in {name}");
            return Err(Rejection::forbidden("excluded", message));
        }
        Ok(())
    }

    /// Whether nobody between the absent person and their substitute is excluded. The people between may have decided in this
    /// state instance, because the work is the absent person's alone.
    pub(super) fn is_open_to(self, stand_in: &StandIn) -> bool {
        let mut between = stand_in.via.iter();
        between.all(|person| self.not_excluded_by_rule(person).is_ok())
    }

    /// The absent person for whom the actor would claim the task; none if the actor is a candidate.
    pub(super) fn claimed_for(self, task: &Task) -> Result<Option<String>, Rejection> {
        let actor = self.context.actor;
        self.not_excluded(&actor.id)?;
        if is_candidate(task, &actor.id, &actor.groups) {
            return Ok(None);
        }
        let mut first_refusal = None;
        for (person, groups) in self.absent() {
            if !is_candidate(task, person, groups) {
                continue;
            }
            match self.not_excluded(person) {
                Ok(()) => return Ok(Some(person.to_owned())),
                Err(refusal) => first_refusal = first_refusal.or(Some(refusal)),
            }
        }
        Err(first_refusal.unwrap_or_else(|| not_a_candidate(task, &actor.id)))
    }

    /// The person on whose behalf the actor does the owner's work; none for their own.
    pub(super) fn acting_for(self, task: &Task, what: &str) -> Result<Option<String>, Rejection> {
        let actor = self.context.actor;
        self.not_excluded(&actor.id)?;
        let (owner, ownership) = self.owned(task, what)?;
        let absent = self.still_entitled(task, owner, ownership)?;
        let delegators = ownership.delegations.iter().map(|link| link.from.as_str());
        let people = || absent.into_iter().chain(delegators.clone()).chain([owner]);
        people().try_for_each(|person| self.not_excluded(person))?;
        // The work belongs to the absent person, else to the first delegator, else to the owner.
        let principal = people().find(|person| *person != actor.id);
        Ok(principal.map(str::to_owned))
    }

    /// The owner whose work the actor may do, and how the owner got the task. An excluded person may do nothing for an absent owner.
    pub(super) fn owned<'t>(
        self,
        task: &'t Task,
        what: &str,
    ) -> Result<(&'t str, &'t Ownership), Rejection> {
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
            TaskStatus::Claimed {
                owner, ownership, ..
            } if self.groups_of(owner).is_some() => {
                let actor = &self.context.actor.id;
                if owner != actor {
                    self.not_excluded(actor)?;
                }
                Ok((owner, ownership))
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

    /// The absent person for whom the owner has the task. Groups and absences may have changed since the claim, so they are
    /// checked again. If the absent person is excluded, an owner who is also a candidate acts for themselves.
    fn still_entitled<'t>(
        self,
        task: &Task,
        owner: &str,
        ownership: &'t Ownership,
    ) -> Result<Option<&'t str>, Rejection> {
        let absent = ownership.on_behalf_of.as_deref();
        if ownership.assigned || !ownership.delegations.is_empty() {
            return Ok(absent);
        }
        let is_candidate = |person: &str| {
            let groups = self.groups_of(person);
            groups.is_some_and(|groups| is_candidate(task, person, groups))
        };
        let is_owner_candidate = is_candidate(owner);
        let is_represented = |person: &str| {
            is_candidate(person) && (!is_owner_candidate || self.not_excluded(person).is_ok())
        };
        match absent {
            Some(person) if is_represented(person) => Ok(absent),
            _ if is_owner_candidate => Ok(None),
            Some(person) if self.groups_of(person).is_none() => Err(Rejection::forbidden(
                "no_longer_substitute",
                format!("{owner} claimed this task for {person}, and stands in for them no longer"),
            )),
            Some(person) => Err(not_a_candidate(task, person)),
            None => Err(not_a_candidate(task, owner)),
        }
    }

    /// The groups of a person for whom the actor may act: the actor or an absent person.
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

    /// The absent people for whom the actor may work here, with their groups. There are none in the initiator's own work, and none
    /// through an excluded substitute.
    fn absent(self) -> impl Iterator<Item = (&'a str, &'a [String])> {
        let nobody = self.is_own_work();
        let key = &self.context.version.reference.key;
        let absent = self.context.actor.absent(key);
        let absent = absent.filter(move |absent| !nobody && self.is_open_to(absent));
        absent.map(|absent| (absent.person.as_str(), absent.groups.as_slice()))
    }
}

pub(super) fn is_candidate(task: &Task, person: &str, groups: &[String]) -> bool {
    Candidate::among(&task.candidates, person, groups)
}

fn not_a_candidate(task: &Task, person: &str) -> Rejection {
    let name = |candidate: &Candidate| match candidate {
        Candidate::User(id) => format!("user {id}"),
        Candidate::Group(id) => format!("group {id}"),
        Candidate::Member { person, group } => format!("user {person}, as a member of {group}"),
    };
    let names: Vec<_> = task.candidates.iter().map(name).collect();
    let message = format!(
        "{person} is not among the candidates of this task: {}",
        names.join(", ")
    );
    Rejection::forbidden("not_a_candidate", message)
}
