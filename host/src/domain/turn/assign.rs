//! From an assignment to tasks.

use super::fault::{self, Fault, TurnError};
use super::{Looking, Phase, Turn};
use crate::domain::answer::{Assignment, Offer, Principal};
use crate::domain::event::Event;
use crate::domain::ids::TaskId;
use crate::domain::instance::{Holding, StateInstance, Task, TaskStatus};
use crate::domain::json::Json;
use crate::domain::lookup::{Findings, Lookup};
use crate::domain::question::AssignCause;
use crate::domain::schema::Schema;

const ASSIGN: &str = "assign";
/// How many tasks one stay may have.
pub(super) const OFFERS_MAX: usize = 200;
const CANDIDATES_MAX: usize = 200;
const EXCLUDED_MAX: usize = 200;
/// The largest form of an offer, in bytes.
const FORM_BYTES_MAX: usize = 16 * 1024;

impl Turn<'_> {
    /// Checks an assignment, and asks the directory what it takes to carry it out.
    pub(super) fn look_up(
        &mut self,
        stay: Box<StateInstance>,
        cause: AssignCause,
        assignment: Assignment,
    ) -> Result<(), TurnError> {
        self.check(&stay, &assignment)?;
        let lookup = lookup(&assignment);
        if lookup.is_empty() {
            return self.assigned(*stay, cause, assignment, &Findings::default());
        }
        self.phase = Phase::Look(lookup, Looking::Assign(stay, cause, assignment));
        Ok(())
    }

    fn check(&self, stay: &StateInstance, assignment: &Assignment) -> Result<(), Fault> {
        let own_work = self
            .context
            .version
            .graph
            .state(&stay.name)
            .is_some_and(|state| state.own_work);
        Self::check_assignment(stay, assignment)?;
        for offer in &assignment.offers {
            self.check_offer(stay, own_work, offer, &assignment.exclude)?;
        }
        Ok(())
    }

    /// Makes the tasks of an assignment that was checked.
    pub(super) fn assigned(
        &mut self,
        mut stay: StateInstance,
        _cause: AssignCause,
        assignment: Assignment,
        findings: &Findings,
    ) -> Result<(), TurnError> {
        stay.needed = assignment.needed.max(1);
        stay.exclude = assignment.exclude;
        stay.fallback = assignment.fallback;
        stay.priority = assignment.priority;
        let (state, state_name) = (stay.id, stay.name.clone());
        self.emit(Event::StateEntered { state: stay });
        for offer in assignment.offers {
            let task = self.task(offer, findings)?;
            self.emit(Event::TaskCreated {
                state,
                state_name: state_name.clone(),
                task,
            });
        }
        Ok(())
    }

    fn task(&mut self, offer: Offer, findings: &Findings) -> Result<Task, Fault> {
        let form = offer.form.as_deref().map(check_form).transpose()?;
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
            id: TaskId((self.ids)()),
            label,
            candidates,
            form,
            created_at: self.context.now,
            due_at: None,
            deadlines: Vec::new(),
            status,
        })
    }

    fn check_assignment(stay: &StateInstance, assignment: &Assignment) -> Result<(), Fault> {
        let state = &stay.name;
        let refuse = |message: String| Err(Fault::new(ASSIGN, message));
        if assignment.offers.is_empty() || assignment.offers.len() > OFFERS_MAX {
            return refuse(format!(
                "{state} is offered 1 to {OFFERS_MAX} times, not {}",
                assignment.offers.len()
            ));
        }
        if assignment.needed as usize > assignment.offers.len() {
            return refuse(format!(
                "{state} needs {} decisions and offers {} tasks",
                assignment.needed,
                assignment.offers.len()
            ));
        }
        if assignment.exclude.len() > EXCLUDED_MAX {
            return refuse(format!("{state} excludes more than {EXCLUDED_MAX} people"));
        }
        for id in assignment.exclude.iter().chain(&assignment.fallback) {
            fault::name(ASSIGN, "an excluded person or fallback group", id)?;
        }
        if !assignment.deadlines.is_empty()
            || assignment
                .offers
                .iter()
                .any(|offer| !offer.deadlines.is_empty())
        {
            return refuse(format!(
                "{state} has a deadline, which this host does not run yet"
            ));
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
        if offer.candidates.len() > CANDIDATES_MAX
            || (offer.candidates.is_empty() && offer.owner.is_none())
        {
            return refuse(format!(
                "an offer in {state} names an owner or 1 to {CANDIDATES_MAX} candidates"
            ));
        }
        for candidate in &offer.candidates {
            let (Principal::User(id) | Principal::Group(id) | Principal::ManagerOf(id)) = candidate;
            fault::name(ASSIGN, "a candidate", id)?;
        }
        if let Some(owner) = &offer.owner {
            fault::name(ASSIGN, "an owner", owner)?;
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

/// What the directory must be asked to carry this out.
fn lookup(assignment: &Assignment) -> Lookup {
    let mut lookup = Lookup::default();
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
    Schema::compile(&form)
        .map_err(|error| Fault::new(ASSIGN, format!("a form is no JSON Schema: {error}")))?;
    Ok(form)
}
