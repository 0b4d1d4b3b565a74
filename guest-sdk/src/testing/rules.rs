//! The host's rules about an event, as far as every flow can rely on them: which source may fire a
//! trigger, who is offered a task, who may not decide. Then the flow itself is asked.

use super::event::{What, When};
use super::outcome::{Answer, Entered};
use super::scenario::Scenario;
use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::bindings::wrkflw::flow::types::{Definition, Event, Transition};
use crate::export::Logic;
use crate::{
    ChildStatus, EventSource, FiredBy, Flow, Principal, Reason, StateInstance, Task, TaskDecision,
    Triggers,
};

impl<F: Flow> Scenario<F> {
    pub(super) fn fire(
        &mut self,
        definition: &Definition,
        when: &When<F::Trigger>,
        entered: &mut Vec<Entered>,
    ) -> Result<Answer, Reason> {
        let (trigger, by) = when.fired();
        let stay = self.concerned(definition, when, trigger, by)?;
        let way = way(definition, &stay.name, trigger);
        let source = self.source(definition, when, &stay, way)?;
        let event = Event {
            state_instance: Some(stay.id.clone()),
            trigger: trigger.into(),
            source,
            input: when.input.to_string(),
        };
        let answer = Answer::from(Logic::<F>::guard(self.snapshot.clone(), event.clone()));
        if !matches!(answer, Answer::Done) {
            return Ok(answer);
        }
        Ok(
            match Logic::<F>::transition(self.snapshot.clone(), event.clone()) {
                Err(reason) => Answer::Refused(reason),
                Ok(plan) => {
                    self.record(&event);
                    self.apply(definition, &event, &plan, entered);
                    Answer::Planned(plan)
                }
            },
        )
    }

    /// The active stay that an event is about: the one it names, or the only one it could mean.
    fn concerned(
        &self,
        definition: &Definition,
        when: &When<F::Trigger>,
        trigger: &str,
        by: FiredBy,
    ) -> Result<StateInstance, Reason> {
        let here = |stay: &&StateInstance| when.state.is_none_or(|name| stay.name == name);
        let fires = |stay: &&StateInstance| {
            definition
                .transitions
                .iter()
                .any(|way| way.source == stay.name && way.trigger == trigger && way.by.contains(by))
        };
        let mine = |stay: &&StateInstance| match &when.what {
            What::Decide { actor, .. } => {
                self.offered(stay, actor, when.label.as_deref()).is_some()
            }
            _ => true,
        };
        let able: Vec<_> = self
            .snapshot
            .active
            .iter()
            .filter(here)
            .filter(fires)
            .collect();
        let stay = able
            .iter()
            .copied()
            .find(mine)
            .or_else(|| able.first().copied());
        stay.cloned().ok_or_else(|| {
            let states: Vec<_> = self
                .snapshot
                .active
                .iter()
                .map(|stay| stay.name.as_str())
                .collect();
            Reason::new(
                "trigger_not_declared",
                format!("No state of {states:?} is left by {trigger} from this source."),
            )
        })
    }

    /// The source of the event, if the host's rules let it through.
    fn source(
        &self,
        definition: &Definition,
        when: &When<F::Trigger>,
        stay: &StateInstance,
        way: &Transition,
    ) -> Result<EventSource, Reason> {
        let permitted = |user: &str| match &way.permission {
            Some(permission) if !self.actor(user).may(permission) => Err(Reason::new(
                "permission",
                format!("{user} lacks the permission {permission}."),
            )),
            _ => Ok(self.actor(user)),
        };
        Ok(match &when.what {
            What::Decide { actor, .. } => {
                let task = self.decidable(definition, stay, actor, when.label.as_deref())?;
                EventSource::Task(TaskDecision {
                    task: task.id.clone(),
                    actor: permitted(actor)?,
                    comment: when.comment.clone(),
                })
            }
            What::Signal { actor, .. } => EventSource::Signal(permitted(actor)?),
            What::Deadline(_) => EventSource::Deadline,
            What::Child { key, outcome, .. } => {
                let known = stay
                    .children
                    .iter()
                    .find(|child| &child.key == key)
                    .map(|child| child.id.clone());
                EventSource::Child(ChildStatus {
                    id: known.unwrap_or_default(),
                    key: key.clone(),
                    outcome: Some(outcome.clone()),
                })
            }
            _ => EventSource::Service,
        })
    }

    fn decidable<'a>(
        &self,
        definition: &Definition,
        stay: &'a StateInstance,
        user: &str,
        label: Option<&str>,
    ) -> Result<&'a Task, Reason> {
        let own_work = definition
            .states
            .iter()
            .any(|state| state.name == stay.name && state.own_work);
        if !own_work
            && self
                .snapshot
                .instance
                .requesters
                .iter()
                .any(|one| one == user)
        {
            return Err(Reason::new(
                "requester",
                format!("{user} is a requester of the instance."),
            ));
        }
        if self
            .stays
            .get(&stay.id)
            .is_some_and(|known| known.exclude.contains(user))
        {
            return Err(Reason::new(
                "excluded",
                format!("{user} is excluded from {}.", stay.name),
            ));
        }
        if stay.decisions().any(|decision| decision.actor == user) {
            return Err(Reason::new(
                "already_decided",
                format!("{user} has decided in this stay."),
            ));
        }
        let not_offered = || {
            Reason::new(
                "not_candidate",
                format!("{user} is offered no open task of {}.", stay.name),
            )
        };
        self.offered(stay, user, label).ok_or_else(not_offered)
    }

    fn offered<'a>(
        &self,
        stay: &'a StateInstance,
        user: &str,
        label: Option<&str>,
    ) -> Option<&'a Task> {
        let actor = self.actor(user);
        let candidate = |principal: &Principal| match principal {
            Principal::User(id) => id == user,
            Principal::Group(group) => actor.is_in(group),
            Principal::ManagerOf(_) => false,
        };
        let may = |task: &Task| match &task.owner {
            Some(owner) => owner == user,
            None => task.candidates.iter().any(candidate),
        };
        stay.tasks.iter().find(|task| {
            task.is_open() && label.is_none_or(|label| task.label == label) && may(task)
        })
    }
}

impl<T: Triggers> When<T> {
    fn fired(&self) -> (&'static str, FiredBy) {
        match &self.what {
            What::Decide { trigger, .. } => (trigger.name(), FiredBy::DECISION),
            What::Signal { trigger, .. } => (trigger.name(), FiredBy::SIGNAL),
            What::Deadline(trigger) => (trigger.name(), FiredBy::DEADLINE),
            What::Reply(trigger) => (trigger.name(), FiredBy::REPLY),
            What::Failure(trigger) => (trigger.name(), FiredBy::FAILURE),
            What::Child { trigger, .. } => (trigger.name(), FiredBy::CHILD),
            What::Start { .. } | What::Escalate { .. } => ("", FiredBy::empty()),
        }
    }
}

/// The way out of a state that a trigger takes.
pub(super) fn way<'a>(definition: &'a Definition, source: &str, trigger: &str) -> &'a Transition {
    let mut ways = definition.transitions.iter();
    ways.find(|way| way.source == source && way.trigger == trigger)
        .expect("only declared triggers are fired")
}
