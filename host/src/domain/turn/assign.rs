//! From an assignment to tasks.

use super::Turn;
use super::fault::{self, Fault, TurnError};
use crate::domain::answer::{Assignment, Offer, Principal};
use crate::domain::event::Event;
use crate::domain::ids::TaskId;
use crate::domain::instance::{StateInstance, Task, TaskStatus};
use crate::domain::json::Json;
use crate::domain::schema::Schema;

const ASSIGN: &str = "assign";
/// How many tasks one stay may have.
pub(super) const OFFERS_MAX: usize = 200;
const CANDIDATES_MAX: usize = 200;
const EXCLUDED_MAX: usize = 200;
/// The largest form of an offer, in bytes.
const FORM_BYTES_MAX: usize = 16 * 1024;

impl Turn<'_> {
    pub(super) fn assigned(
        &mut self,
        mut stay: StateInstance,
        assignment: Assignment,
    ) -> Result<(), TurnError> {
        let own_work = self
            .context
            .version
            .graph
            .state(&stay.name)
            .is_some_and(|state| state.own_work);
        Self::check_assignment(&stay, &assignment)?;
        for offer in &assignment.offers {
            self.check_offer(&stay, own_work, offer, &assignment.exclude)?;
        }
        stay.needed = assignment.needed.max(1);
        stay.exclude = assignment.exclude;
        stay.fallback = assignment.fallback;
        stay.priority = assignment.priority;
        let (state, state_name) = (stay.id, stay.name.clone());
        self.emit(Event::StateEntered { state: stay });
        for offer in assignment.offers {
            let task = self.task(offer)?;
            self.emit(Event::TaskCreated {
                state,
                state_name: state_name.clone(),
                task,
            });
        }
        Ok(())
    }

    fn task(&mut self, offer: Offer) -> Result<Task, Fault> {
        let form = offer.form.as_deref().map(check_form).transpose()?;
        let status = match offer.owner {
            Some(owner) => TaskStatus::Claimed {
                owner,
                claimed_at: self.context.now,
            },
            None => TaskStatus::Pending,
        };
        let (label, candidates) = (offer.label, offer.candidates);
        Ok(Task {
            id: TaskId((self.ids)()),
            label,
            candidates,
            form,
            created_at: self.context.now,
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
            match candidate {
                Principal::User(id) | Principal::Group(id) => {
                    fault::name(ASSIGN, "a candidate", id)?;
                }
                Principal::ManagerOf(_) => {
                    return refuse(format!(
                        "{state} asks for a manager, whom this host does not look up yet"
                    ));
                }
            }
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
