//! From an assignment to tasks.

use super::fault::{self, Fault, TurnError};
use super::hands::Giving;
use super::ladder::{Cause, Doubt};
use super::{Phase, Turn, deadline, effort};
use crate::domain::answer::{Assignment, Offer, Principal, Waiting};
use crate::domain::event::Event;
use crate::domain::ids::{StateId, TaskId};
use crate::domain::instance::{Holding, StateInstance, Task, TaskStatus};
use crate::domain::json::Json;
use crate::domain::lookup::{Findings, Lookup};
use crate::domain::question::AssignCause;

const ASSIGN: &str = "assign";
/// How many tasks one stay may have.
pub(super) const OFFERS_MAX: usize = 200;
/// How many it may have had in all, escalations included.
const TASKS_MAX: usize = 1_000;
const CANDIDATES_MAX: usize = 200;
const EXCLUDED_MAX: usize = 200;
/// The largest form of an offer, in bytes.
const FORM_BYTES_MAX: usize = 16 * 1024;

/// What the directory is asked for.
pub(super) enum Looking {
    /// To make tasks of an assignment.
    Assign(Box<StateInstance>, AssignCause, Assignment),
    /// Whether somebody is able to do the work of a stay.
    Able(Doubt),
    /// Whom the work goes to when nobody is, and what is known of the others.
    Ladder(Doubt, Findings),
    /// To give a task to a known person.
    Give(Box<Giving>),
    /// To begin a wait.
    Wait(Box<StateInstance>, Waiting),
}

impl Turn<'_> {
    /// Takes what the directory said.
    pub fn found(&mut self, findings: &Findings) -> Result<(), TurnError> {
        match std::mem::replace(&mut self.phase, Phase::Settle) {
            Phase::Look(_, Looking::Assign(stay, cause, assignment)) => {
                self.assigned(*stay, cause, assignment, findings)?;
            }
            Phase::Look(_, Looking::Able(doubt)) => self.reviewed(doubt, findings.clone()),
            Phase::Look(_, Looking::Ladder(doubt, known)) => self.climb(doubt, known, findings),
            Phase::Look(_, Looking::Give(giving)) => self.given(*giving, findings)?,
            Phase::Look(_, Looking::Wait(stay, waiting)) => self.waits(*stay, waiting, findings)?,
            _ => unreachable!("the driver answers what was asked"),
        }
        Ok(())
    }

    /// Checks an assignment, and asks the directory what it takes to carry it out.
    pub(super) fn look_up(
        &mut self,
        stay: Box<StateInstance>,
        cause: AssignCause,
        assignment: Assignment,
    ) -> Result<(), TurnError> {
        self.check(&stay, &cause, &assignment)?;
        let lookup = lookup(&assignment);
        if lookup.is_empty() {
            return self.assigned(*stay, cause, assignment, &Findings::default());
        }
        self.phase = Phase::Look(lookup, Looking::Assign(stay, cause, assignment));
        Ok(())
    }

    fn check(
        &self,
        stay: &StateInstance,
        cause: &AssignCause,
        assignment: &Assignment,
    ) -> Result<(), Fault> {
        let own_work = self.is_own_work(&stay.name);
        Self::check_assignment(stay, cause, assignment)?;
        let working = deadline::of(assignment).flat_map(deadline::calendars);
        if working.count() > deadline::WORKING_MAX {
            let message = format!(
                "{} counts more than {} deadlines in working time",
                stay.name,
                deadline::WORKING_MAX
            );
            return Err(Fault::new(ASSIGN, message));
        }
        for deadlines in deadline::of(assignment) {
            deadline::check(ASSIGN, &self.context.version.graph, &stay.name, deadlines)?;
        }
        for offer in &assignment.offers {
            self.check_offer(stay, own_work, offer, &assignment.exclude)?;
        }
        Ok(())
    }

    /// Makes the tasks of an assignment that was checked.
    pub(super) fn assigned(
        &mut self,
        mut stay: StateInstance,
        cause: AssignCause,
        assignment: Assignment,
        findings: &Findings,
    ) -> Result<(), TurnError> {
        let (state, state_name) = (stay.id, stay.name.clone());
        if let AssignCause::Overdue { task, .. } = cause {
            self.withdraw_overdue(&stay, task, &assignment);
            self.offer(state, &state_name, assignment.offers, findings)?;
            return Ok(());
        }
        if cause == AssignCause::Migrated {
            return self.assign_migrated(&stay, assignment, findings);
        }
        stay.deadlines = self.open_deadlines(ASSIGN, &assignment.deadlines, findings)?;
        stay.due_at = deadline::earliest(&stay.deadlines);
        stay.needed = assignment.needed.max(1);
        stay.exclude = assignment.exclude;
        stay.fallback = assignment.fallback;
        stay.priority = assignment.priority;
        self.emit(Event::StateEntered { state: stay });
        self.offer(state, &state_name, assignment.offers, findings)?;
        Ok(())
    }

    /// What a stay offers. Where that is nothing, there is one task for whoever is found.
    pub(super) fn completed(&self, state_name: &str, mut offers: Vec<Offer>) -> Vec<Offer> {
        if offers.is_empty() {
            let declared = self.context.version.graph.state(state_name);
            offers.push(Offer {
                label: declared.map_or(state_name, |state| &state.title).to_owned(),
                ..Offer::default()
            });
        }
        if self.is_own_work(state_name) {
            for offer in &mut offers {
                if offer.candidates.is_empty() && offer.owner.is_none() {
                    let initiator = self.instance.initiator.clone();
                    offer.candidates.push(Principal::User(initiator));
                }
            }
        }
        offers
    }

    /// Makes the tasks of a stay.
    fn offer(
        &mut self,
        state: StateId,
        state_name: &str,
        offers: Vec<Offer>,
        findings: &Findings,
    ) -> Result<(), Fault> {
        for offer in self.completed(state_name, offers) {
            let task = self.task(offer, findings)?;
            self.emit(Event::TaskCreated {
                state,
                state_name: state_name.to_owned(),
                task,
            });
        }
        self.doubt(state, Cause::Assigned);
        Ok(())
    }

    pub(super) fn task(&mut self, offer: Offer, findings: &Findings) -> Result<Task, Fault> {
        let form = offer.form.as_deref().map(check_form).transpose()?;
        let id = TaskId((self.ids)());
        let deadlines = self.open_deadlines(ASSIGN, &offer.deadlines, findings)?;
        let status = match offer.owner {
            Some(owner) => TaskStatus::Claimed {
                owner,
                claimed_at: self.context.now,
                holding: Holding {
                    assigned: true,
                    ..Holding::default()
                },
            },
            None => TaskStatus::Pending,
        };
        let candidates = offer.candidates.into_iter();
        let candidates = candidates.filter_map(|candidate| resolved(candidate, findings));
        let (label, candidates) = (offer.label, candidates.collect());
        Ok(Task {
            id,
            label,
            candidates,
            form,
            created_at: self.context.now,
            due_at: deadline::earliest(&deadlines),
            deadlines,
            status,
        })
    }

    fn check_assignment(
        stay: &StateInstance,
        cause: &AssignCause,
        assignment: &Assignment,
    ) -> Result<(), Fault> {
        let state = &stay.name;
        let refuse = |message: String| Err(Fault::new(ASSIGN, message));
        if assignment.offers.len() > OFFERS_MAX {
            return refuse(format!(
                "{state} is offered {OFFERS_MAX} times at most, not {}",
                assignment.offers.len()
            ));
        }
        let kept = kept(stay, cause);
        if assignment.needed as usize > (assignment.offers.len() + kept).max(1) {
            return refuse(format!(
                "{state} needs {} decisions and offers {} tasks beside {kept} that stand",
                assignment.needed,
                assignment.offers.len()
            ));
        }
        if stay.tasks.len() + assignment.offers.len() > TASKS_MAX {
            return refuse(format!(
                "{state} has had {} tasks and takes no {} more",
                stay.tasks.len(),
                assignment.offers.len()
            ));
        }
        if assignment.exclude.len() > EXCLUDED_MAX {
            return refuse(format!("{state} excludes more than {EXCLUDED_MAX} people"));
        }
        for id in assignment.exclude.iter().chain(&assignment.fallback) {
            fault::principal(ASSIGN, "an excluded person or fallback group", id)?;
        }
        Ok(())
    }

    fn check_offer(
        &self,
        stay: &StateInstance,
        own_work: bool,
        offer: &Offer,
        exclude: &[String],
    ) -> Result<(), Fault> {
        let state = &stay.name;
        let refuse = |message: String| Err(Fault::new(ASSIGN, message));
        fault::text(ASSIGN, "a label", &offer.label, fault::NAME_BYTES_MAX)?;
        if offer.candidates.len() > CANDIDATES_MAX {
            return refuse(format!(
                "an offer in {state} names {CANDIDATES_MAX} candidates at most"
            ));
        }
        for candidate in &offer.candidates {
            let (Principal::User(id) | Principal::Group(id) | Principal::ManagerOf(id)) = candidate;
            fault::principal(ASSIGN, "a candidate", id)?;
        }
        if let Some(owner) = &offer.owner {
            fault::principal(ASSIGN, "an owner", owner)?;
            if exclude.contains(owner) || (!own_work && self.instance.requesters.contains(owner)) {
                return refuse(format!(
                    "{state} is given to {}, who must not decide there",
                    owner.escape_debug()
                ));
            }
        }
        let initiator = &self.instance.initiator;
        let theirs = offer.owner.iter().all(|owner| owner == initiator)
            && offer
                .candidates
                .iter()
                .all(|candidate| matches!(candidate, Principal::User(id) if id == initiator));
        if own_work && !theirs {
            return refuse(format!(
                "{state} is the initiator's own work and is offered to somebody else"
            ));
        }
        Ok(())
    }
}

/// The tasks of the stay that a new assignment leaves as they are.
fn kept(stay: &StateInstance, cause: &AssignCause) -> usize {
    let goes = |task: &Task| match cause {
        AssignCause::Entered => true,
        AssignCause::Overdue { task: overdue, .. } => {
            overdue.is_none_or(|overdue| overdue == task.id) && task.status.is_open()
        }
        AssignCause::Migrated => task.status.is_open(),
    };
    let stand = stay
        .tasks
        .iter()
        .filter(|task| !goes(task) && !matches!(task.status, TaskStatus::Cancelled { .. }));
    stand.count()
}

/// What the directory must be asked to carry this out.
fn lookup(assignment: &Assignment) -> Lookup {
    let calendars = deadline::of(assignment).flat_map(deadline::calendars);
    let mut lookup = Lookup {
        calendars: calendars.cloned().collect(),
        ..Lookup::default()
    };
    for candidate in assignment.offers.iter().flat_map(|offer| &offer.candidates) {
        if let Principal::ManagerOf(id) = candidate {
            lookup.managers_of.insert(id.clone());
        }
    }
    lookup
}

/// A manager is a person from now on; nobody, where there is none.
fn resolved(candidate: Principal, findings: &Findings) -> Option<Principal> {
    match candidate {
        Principal::ManagerOf(id) => findings.managers.get(&id).cloned().map(Principal::User),
        Principal::User(_) | Principal::Group(_) => Some(candidate),
    }
}

fn check_form(form: &str) -> Result<Json, Fault> {
    if form.len() > FORM_BYTES_MAX {
        return Err(Fault::new(
            ASSIGN,
            format!("a form is longer than {FORM_BYTES_MAX} bytes"),
        ));
    }
    let form =
        Json::parse(form).map_err(|error| Fault::new(ASSIGN, format!("a form has {error}")))?;
    effort::offered_form(&form)
        .map_err(|error| Fault::new(ASSIGN, format!("a form is no JSON Schema: {error}")))?;
    Ok(form)
}
