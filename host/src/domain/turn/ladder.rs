//! What happens when nobody is left to do the work of a stay: the initiator's manager gets it too, then the fallback
//! group; if still nobody is able, the stay is unassignable, for everybody to see. It is never an error.
//!
//! A stay is doubted when its tasks are made, when one of them changes hands or a decision left the stay on, and when
//! the directory has changed; each doubt is looked into before the turn ends. So no stay waits for people who do not
//! exist without saying so.

use super::able::{Ability, Circle};
use super::assign::Looking;
use super::recheck::ask_for_owners;
use super::{Phase, Turn};
use crate::domain::answer::Principal;
use crate::domain::event::Event;
use crate::domain::ids::{StateId, TaskId};
use crate::domain::instance::Status;
use crate::domain::lookup::{Findings, Lookup};

/// Why a task was cancelled that nobody is able to do, where others suffice.
pub const NOBODY_ABLE: &str = "nobody_able";

/// A stay of which it is not known whether somebody is able to do its work.
#[derive(Clone, Copy)]
pub(super) struct Doubt {
    pub(super) state: StateId,
    pub(super) cause: Cause,
}

/// Why there is a doubt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// A task has another owner or none, or the stay goes on after a decision.
    Changed,
    /// Tasks were made.
    Assigned,
    /// The directory has changed.
    Rechecked,
}

/// Who gets the work when nobody else is left.
#[derive(Clone, Copy)]
enum Rung {
    Manager,
    Fallback,
}

impl Rung {
    fn name(self) -> &'static str {
        match self {
            Rung::Manager => "manager",
            Rung::Fallback => "fallback",
        }
    }
}

impl Turn<'_> {
    /// Looks, before the turn ends, at who is able to do the work of a stay.
    pub(super) fn doubt(&mut self, state: StateId, cause: Cause) {
        match self.doubts.iter_mut().find(|doubt| doubt.state == state) {
            Some(doubt) => doubt.cause = doubt.cause.max(cause),
            None => self.doubts.push_back(Doubt { state, cause }),
        }
    }

    /// Doubts what the event may have left without anybody able.
    pub(super) fn doubt_after(&mut self, event: &Event) {
        match event {
            // Whoever gets a task may be the one whom another was left to.
            Event::TaskReleased { state, .. }
            | Event::TaskReset { state, .. }
            | Event::TaskReassigned { state, .. }
            | Event::TaskDelegated { state, .. }
            | Event::TaskResolved { state, .. }
            | Event::StateContinued { state, .. } => self.doubt(*state, Cause::Changed),
            Event::TaskClaimed { state, .. } if self.is_unassignable(*state) => {
                self.doubt(*state, Cause::Changed);
            }
            // While it was suspended, nobody looked.
            Event::FlowResumed {} => self.doubt_all(),
            _ => {}
        }
    }

    /// Looks again at everything that people work on.
    pub(super) fn doubt_all(&mut self) {
        let active: Vec<_> = self.instance.active.iter().map(|stay| stay.id).collect();
        for state in active {
            self.doubt(state, Cause::Rechecked);
        }
    }

    /// Looks into a doubt: at once where it takes no question to the directory.
    pub(super) fn review(&mut self, doubt: Doubt) {
        let Some(circle) = self.circle(doubt.state) else {
            return;
        };
        let mut lookup = circle.lookup();
        if doubt.cause == Cause::Rechecked {
            ask_for_owners(circle, &mut lookup);
        } else {
            let ability = Ability::of(circle, &Findings::default());
            let is_settled = doubt.cause == Cause::Changed || ability.nobody.is_empty();
            if ability.suffices() && is_settled {
                lookup = Lookup::default();
            }
        }
        if lookup.is_empty() {
            self.reviewed(doubt, Findings::default());
        } else {
            self.phase = Phase::Look(lookup, Looking::Able(doubt));
        }
    }

    /// Takes what the directory said of those whom the work is offered to.
    pub(super) fn reviewed(&mut self, doubt: Doubt, findings: Findings) {
        if doubt.cause == Cause::Rechecked {
            self.release_lost(doubt.state, &findings);
        }
        let Some(circle) = self.circle(doubt.state) else {
            return;
        };
        if circle.own_work || Ability::of(circle, &findings).suffices() {
            return self.conclude(doubt, &findings);
        }
        let lookup = Lookup {
            managers_of: [self.instance.initiator.clone()].into(),
            groups: circle.stay.fallback.iter().cloned().collect(),
            members_max: circle.members_max(),
            ..Lookup::default()
        };
        self.phase = Phase::Look(lookup, Looking::Ladder(doubt, findings));
    }

    /// Goes up as far as it takes.
    pub(super) fn climb(&mut self, doubt: Doubt, mut known: Findings, findings: &Findings) {
        for (group, members) in &findings.members {
            known.members.insert(group.clone(), members.clone());
        }
        for rung in [Rung::Manager, Rung::Fallback] {
            let Some(circle) = self.circle(doubt.state) else {
                return;
            };
            let ability = Ability::of(circle, &known);
            if ability.suffices() {
                break;
            }
            let next = match rung {
                Rung::Manager => {
                    let manager = findings.managers.get(&circle.instance.initiator);
                    let manager = manager.filter(|id| !circle.barred().contains(id.as_str()));
                    manager.cloned().map(Principal::User)
                }
                Rung::Fallback => circle.stay.fallback.clone().map(Principal::Group),
            };
            if let Some(principal) = next {
                self.reroute(doubt.state, rung, &ability.lacking, &principal);
            }
        }
        self.conclude(doubt, &known);
    }

    fn reroute(&mut self, state: StateId, rung: Rung, tasks: &[TaskId], to: &Principal) {
        for task in tasks {
            let known = self.instance.task(*task).expect("an open task");
            if known.candidates.contains(to) {
                continue;
            }
            let mut candidates = known.candidates.clone();
            candidates.push(to.clone());
            self.emit(Event::TaskRerouted {
                task: *task,
                state,
                step: rung.name().to_owned(),
                candidates,
            });
        }
    }

    /// Says what it came to, where that is news.
    fn conclude(&mut self, doubt: Doubt, findings: &Findings) {
        let state = doubt.state;
        let Some(circle) = self.circle(state) else {
            return;
        };
        let ability = Ability::of(circle, findings);
        let name = circle.stay.name.clone();
        match (ability.suffices(), self.is_unassignable(state)) {
            (true, true) => self.emit(Event::StateAssignable { state, name }),
            (false, false) => self.emit(Event::StateUnassignable { state, name }),
            _ => {}
        }
        let is_new = doubt.cause == Cause::Assigned || self.migration.is_some();
        if ability.suffices() && is_new {
            // Whoever counts the votes does not wait for these.
            for task in ability.nobody {
                self.emit(Event::TaskCancelled {
                    task,
                    state,
                    reason: Some(NOBODY_ABLE.to_owned()),
                });
            }
        }
        self.doubts.retain(|other| other.state != state);
    }

    /// The stay, as long as there is something to do in it.
    pub(super) fn circle(&self, state: StateId) -> Option<Circle<'_>> {
        // A migration is looked at whole, even where time stands still.
        if self.instance.status != Status::Running && self.migration.is_none() {
            return None;
        }
        let stay = self.instance.active.iter().find(|stay| stay.id == state)?;
        let circle = Circle {
            instance: &self.instance,
            stay,
            own_work: self.is_own_work(&stay.name),
        };
        circle.open().next().is_some().then_some(circle)
    }

    pub(super) fn is_own_work(&self, state: &str) -> bool {
        let declared = self.context.version.graph.state(state);
        declared.is_some_and(|declared| declared.own_work)
    }

    fn is_unassignable(&self, state: StateId) -> bool {
        let stay = self.instance.active.iter().find(|stay| stay.id == state);
        stay.is_some_and(|stay| stay.unassignable_since.is_some())
    }
}
