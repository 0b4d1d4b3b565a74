//! How tasks change hands: claimed, released, delegated and handed back by those who work on them, reassigned and reset
//! by operators. Deciding them is not here.

use super::assign::Looking;
use super::standing::Place;
use super::{Phase, Turn, TurnError, rules};
use crate::domain::answer::Violation;
use crate::domain::event::Event;
use crate::domain::ids::{StateId, TaskId};
use crate::domain::instance::{Holding, Task, TaskStatus};
use crate::domain::lookup::{Findings, Lookup};
use crate::domain::rejection::{Rejection, Winner};

/// How often a task may be handed on before somebody has to do it.
pub const DELEGATIONS_MAX: usize = 3;
/// Lets its holders take any task from its owner.
const ASSIGN: &str = "task:assign";

/// A task that is to be given to a person whom the directory must know.
pub(super) struct Giving {
    to: String,
    then: Event,
}

impl Turn<'_> {
    pub(super) fn claim(&mut self, id: TaskId) -> Result<(), TurnError> {
        let (place, task) = self.place(id)?;
        let state = place.stay.id;
        let on_behalf_of = place.claimed_for(task)?;
        if let TaskStatus::Claimed {
            owner, claimed_at, ..
        } = &task.status
        {
            let winner = Winner {
                task: id,
                action: "claimed",
                by: Some(owner.clone()),
                at: *claimed_at,
                outcome: None,
                revision: self.instance.revision,
            };
            return Err(Rejection::Taken(winner).into());
        }
        self.emit(Event::TaskClaimed {
            task: id,
            state,
            owner: self.context.actor.id.clone(),
            on_behalf_of,
        });
        Ok(())
    }

    /// Owners, their substitutes and operators give tasks back.
    pub(super) fn release(&mut self, id: TaskId) -> Result<(), TurnError> {
        let (place, task) = self.place(id)?;
        let (state, actor) = (place.stay.id, self.context.actor);
        let (owner, reason) = match (place.owned(task, "release"), task.owner()) {
            (Ok((owner, _)), _) if owner == actor.id => (owner, None),
            (Ok((owner, _)), _) => (owner, Some("by a substitute of its owner")),
            (Err(_), Some(owner)) if actor.may(ASSIGN) => (owner, Some("by an operator")),
            (Err(refusal), _) => return Err(refusal.into()),
        };
        let event = Event::TaskReleased {
            task: id,
            state,
            owner: owner.to_owned(),
            reason: reason.map(str::to_owned),
        };
        self.emit(event);
        Ok(())
    }

    pub(super) fn delegate(&mut self, id: TaskId, to: &str, reason: &str) -> Result<(), TurnError> {
        let (place, task) = self.place(id)?;
        place.acting_for(task, "delegate")?;
        let (owner, holding) = place.owned(task, "delegate")?;
        if place.is_own_work() {
            return Err(own_work(place).into());
        }
        if holding.delegations.len() >= DELEGATIONS_MAX {
            let message = format!("a task is delegated at most {DELEGATIONS_MAX} times");
            return Err(Rejection::not_now("delegations_exhausted", message).into());
        }
        said(Some(to), reason)?;
        not_in_a_circle(to, &self.context.actor.id, owner, holding)?;
        place.unbarred(to)?;
        let event = Event::TaskDelegated {
            task: id,
            state: place.stay.id,
            from: owner.to_owned(),
            to: to.to_owned(),
            reason: reason.to_owned(),
        };
        self.give(to, event);
        Ok(())
    }

    /// Back to whom the delegate has it from.
    pub(super) fn resolve(&mut self, id: TaskId) -> Result<(), TurnError> {
        let (place, task) = self.place(id)?;
        let (owner, holding) = place.owned(task, "resolve")?;
        let Some(link) = holding.delegations.last() else {
            let message = format!("{owner} did not get this task from anybody to hand it back to");
            return Err(Rejection::not_now("not_delegated", message).into());
        };
        let event = Event::TaskResolved {
            task: id,
            state: place.stay.id,
            from: owner.to_owned(),
            to: link.from.clone(),
        };
        self.emit(event);
        Ok(())
    }

    pub(super) fn reassign(&mut self, id: TaskId, to: &str, reason: &str) -> Result<(), TurnError> {
        let (place, task) = self.place(id)?;
        let initiator = &self.instance.initiator;
        let theirs = task.owner() == Some(initiator);
        if place.is_own_work() && theirs {
            return Err(own_work(place).into());
        }
        said(Some(to), reason)?;
        place.unbarred(to)?;
        if place.is_own_work() && to != initiator {
            return Err(own_work(place).into());
        }
        if task.owner() == Some(to) {
            let message = format!("{to} owns this task already");
            return Err(Rejection::invalid("/to", "already_owner", message).into());
        }
        let event = Event::TaskReassigned {
            task: id,
            state: place.stay.id,
            previous: task.owner().map(str::to_owned),
            to: to.to_owned(),
            reason: reason.to_owned(),
        };
        self.give(to, event);
        Ok(())
    }

    pub(super) fn reset(&mut self, id: TaskId, reason: &str) -> Result<(), TurnError> {
        let (state, owner) = self.held(id)?;
        said(None, reason)?;
        self.emit(Event::TaskReset {
            task: id,
            state,
            owner,
            reason: reason.to_owned(),
        });
        Ok(())
    }

    /// Nobody is given work whom the directory does not know: they could not sign in to do it.
    fn give(&mut self, to: &str, then: Event) {
        let lookup = Lookup {
            people: [to.to_owned()].into(),
            ..Lookup::default()
        };
        let to = to.to_owned();
        self.phase = Phase::Look(lookup, Looking::Give(Box::new(Giving { to, then })));
    }

    pub(super) fn given(&mut self, giving: Giving, findings: &Findings) -> Result<(), TurnError> {
        let Giving { to, then } = giving;
        if !findings.people.contains(&to) {
            let message = format!("the directory does not know {to}");
            return Err(Rejection::invalid("/to", "unknown_person", message).into());
        }
        self.emit(then);
        Ok(())
    }

    fn held(&self, id: TaskId) -> Result<(StateId, String), Rejection> {
        let (place, task) = self.place(id)?;
        match task.owner() {
            Some(owner) => Ok((place.stay.id, owner.to_owned())),
            None => Err(Rejection::not_now(
                "not_claimed",
                "nobody owns this task: it is with its candidates",
            )),
        }
    }

    fn place(&self, id: TaskId) -> Result<(Place<'_>, &Task), Rejection> {
        let (stay, task) = rules::open(&self.instance, id)?;
        let place = Place {
            context: self.context,
            instance: &self.instance,
            stay,
        };
        Ok((place, task))
    }
}

/// A chain leads to somebody new.
fn not_in_a_circle(to: &str, actor: &str, owner: &str, holding: &Holding) -> Result<(), Rejection> {
    let refuse = |code, message| Err(Rejection::invalid("/to", code, message));
    if to == actor {
        return refuse(
            "delegation_to_self",
            "nobody delegates to themselves".to_owned(),
        );
    }
    let absent = holding.on_behalf_of.as_deref();
    let mut before = holding.delegations.iter().map(|link| link.from.as_str());
    if to == owner || absent == Some(to) || before.any(|from| from == to) {
        let message = format!("{to} had this task before; hand it back instead");
        return refuse("delegation_circle", message);
    }
    Ok(())
}

/// What a command that hands work over has to name.
fn said(to: Option<&str>, reason: &str) -> Result<(), Rejection> {
    let missing = |field: &str, message: &str| Violation {
        field: field.to_owned(),
        code: "required".to_owned(),
        message: message.to_owned(),
    };
    let mut violations = Vec::new();
    if to.is_some_and(str::is_empty) {
        violations.push(missing("/to", "say to whom"));
    }
    if reason.trim().is_empty() {
        violations.push(missing("/reason", "say why"));
    }
    if violations.is_empty() {
        Ok(())
    } else {
        Err(Rejection::Invalid(violations))
    }
}

fn own_work(place: Place<'_>) -> Rejection {
    let message = format!(
        "{} is the own work of {}, and nobody does it for them",
        place.stay.name, place.instance.initiator
    );
    Rejection::forbidden("own_work", message)
}
