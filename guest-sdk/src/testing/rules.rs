//! The host's rules about an event, as far as every flow can rely on them: which source may fire a
//! trigger, who is offered a task, who may not decide. Then the flow itself is asked.

use super::checks::{fires, state};
use super::event::{What, When};
use super::outcome::{Answer, Entered};
use super::scenario::Scenario;
use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::bindings::wrkflw::flow::types::{Definition, Event, StateKind, Transition};
use crate::export::Logic;
use crate::{
    Actor, ChildStatus, Decision, EventSource, FiredBy, Flow, Principal, Reason, StateInstance,
    Task, TaskDecision, Triggers,
};

impl<F: Flow> Scenario<F> {
    pub(super) fn fire(
        &mut self,
        definition: &Definition,
        when: &When<F::Trigger>,
        entered: &mut Vec<Entered>,
    ) -> Result<Answer, Reason> {
        let (trigger, by) = when.fired();
        let stay = match self.concerned(definition, when, trigger, by) {
            Err(_) if waited_for(definition, trigger, by) => {
                self.early.push(when.clone());
                return Ok(Answer::Kept);
            }
            concerned => concerned?,
        };
        let way = way(definition, &stay.name, trigger);
        let source = self.source(definition, when, &stay, way)?;
        let event = Event {
            state_instance: Some(stay.id.clone()),
            trigger: trigger.into(),
            source,
            input: when.input.to_string(),
        };
        if matches!(event.source, EventSource::Task(_) | EventSource::Signal(_)) {
            let answer = Answer::from(Logic::<F>::guard(self.snapshot.clone(), event.clone()));
            if !matches!(answer, Answer::Done) {
                return Ok(answer);
            }
        }
        Ok(self.put(definition, &event, entered))
    }

    /// Asks what follows from an event that nobody refuses any more, and does it.
    #[track_caller]
    pub(super) fn put(
        &mut self,
        definition: &Definition,
        event: &Event,
        entered: &mut Vec<Entered>,
    ) -> Answer {
        match Logic::<F>::transition(self.snapshot.clone(), event.clone()) {
            Err(reason) => Answer::Refused(reason),
            Ok(plan) => {
                self.record(event);
                self.apply(definition, event, &plan, entered);
                self.begin_joins(definition, entered);
                Answer::Planned(plan)
            }
        }
    }

    /// Signals that came early count now, if a state that was entered takes them.
    #[track_caller]
    pub(super) fn count_early(&mut self, definition: &Definition, entered: &mut Vec<Entered>) {
        for signal in std::mem::take(&mut self.early) {
            let (trigger, by) = signal.fired();
            let takes = |stay: &&StateInstance| {
                let known = self.stays.get(&stay.id);
                known.is_some_and(|known| known.keep_early)
                    && fires(definition, &stay.name, trigger, by)
            };
            if self.snapshot.active.iter().any(|stay| takes(&stay)) {
                // A guard that refuses it refuses it for good, as it would a signal in time.
                drop(self.fire(definition, &signal, entered));
            } else {
                self.early.push(signal);
            }
        }
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
        let fires = |stay: &&StateInstance| fires(definition, &stay.name, trigger, by);
        let mine = |stay: &&StateInstance| match &when.what {
            What::Decide { actor, .. } => {
                let candidate = when.on_behalf_of.as_ref().unwrap_or(actor);
                self.offered(stay, candidate, when.label.as_deref())
                    .is_some()
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
                let task = self.decidable(definition, stay, when, actor)?;
                EventSource::Task(TaskDecision {
                    task: task.id.clone(),
                    actor: Actor {
                        on_behalf_of: when.on_behalf_of.clone(),
                        ..permitted(actor)?
                    },
                    comment: when.comment.clone(),
                })
            }
            What::Signal { actor, .. } => EventSource::Signal(permitted(actor)?),
            What::Deadline(_) => EventSource::Deadline,
            What::Child { key, outcome, .. } => {
                let mut running = stay.children.iter().filter(|child| child.outcome.is_none());
                let child = running.find(|child| &child.key == key);
                let none = || Reason::new("unknown_child", format!("No child {key} runs here."));
                let id = child.ok_or_else(none)?.id.clone();
                let fires = self
                    .stays
                    .get(&stay.id)
                    .and_then(|known| known.on_end.get(&id));
                if fires != Some(&Some(way.trigger.clone())) {
                    let message = format!("The end of {key} fires {fires:?}.");
                    return Err(Reason::new("trigger_not_declared", message));
                }
                EventSource::Child(ChildStatus {
                    id,
                    key: key.clone(),
                    outcome: Some(outcome.clone()),
                })
            }
            _ => EventSource::Service,
        })
    }

    pub(super) fn decidable<'a>(
        &self,
        definition: &Definition,
        stay: &'a StateInstance,
        when: &When<F::Trigger>,
        user: &str,
    ) -> Result<&'a Task, Reason> {
        let no = |code: &str, why: String| Err(Reason::new(code, why));
        let own_work = state(definition, &stay.name).own_work;
        let requesters = &self.snapshot.instance.requesters;
        let excluded = self.stays.get(&stay.id).map(|known| &known.exclude);
        let principal = when.on_behalf_of.as_deref();
        for one in [Some(user), principal].into_iter().flatten() {
            if !own_work && requesters.iter().any(|requester| requester == one) {
                return no(
                    "requester",
                    format!("{one} is a requester of the instance."),
                );
            }
            if excluded.is_some_and(|excluded| excluded.contains(one)) {
                return no("excluded", format!("{one} is excluded from {}.", stay.name));
            }
            let theirs = |decision: &Decision| {
                decision.actor == one || decision.on_behalf_of.as_deref() == Some(one)
            };
            if stay.decisions().any(theirs) {
                return no(
                    "already_decided",
                    format!("{one} has decided in this stay."),
                );
            }
        }
        let candidate = principal.unwrap_or(user);
        self.offered(stay, candidate, when.label.as_deref())
            .ok_or_else(|| {
                let message = format!("{candidate} is offered no open task of {}.", stay.name);
                Reason::new("not_candidate", message)
            })
    }

    pub(super) fn offered<'a>(
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
            What::Start { .. }
            | What::Claim { .. }
            | What::Release { .. }
            | What::Escalate { .. }
            | What::Later { .. }
            | What::Migrate => ("", FiredBy::empty()),
        }
    }
}

/// Whether a wait state of the graph takes this signal, once it is entered.
fn waited_for(definition: &Definition, trigger: &str, by: FiredBy) -> bool {
    let mut states = definition.states.iter();
    by == FiredBy::SIGNAL
        && states.any(|state| {
            matches!(state.kind, StateKind::Wait) && fires(definition, &state.name, trigger, by)
        })
}

/// The way out of a state that a trigger takes.
pub(super) fn way<'a>(definition: &'a Definition, source: &str, trigger: &str) -> &'a Transition {
    let mut ways = definition.transitions.iter();
    ways.find(|way| way.source == source && way.trigger == trigger)
        .expect("only declared triggers are fired")
}
