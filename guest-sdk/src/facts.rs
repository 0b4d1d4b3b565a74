//! The facts that a flow decides on, in the author's own types.
//!
//! Tasks, decisions and state instances are the contract's records, with methods for common lookups. Names of states and triggers
//! can be compared with the author's enums: `decision.outcome == Trigger::Approve`.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bindings::wrkflw::flow::types as wire;
use crate::refusal::unreadable;
use crate::{
    Actor, AttributeValue, Decider, Decision, EndedChild, EventSource, Flow, Instance, Moment,
    Names, Omitted, PassedDeadline, PastState, ReceivedSignal, Refusal, ServiceAnswer,
    StateInstance, Task, Triggers, fault, json,
};

/// What is known about an instance at one moment.
///
/// `guard` and `transition` see the facts before the event. `assign`, `escalate`, `call` and `wait` see all
/// states as entered, with the plan's data applied.
#[derive(Debug)]
pub struct Facts<F: Flow> {
    /// The settings of the definition version.
    pub config: F::Config,
    /// The instance's data.
    pub data: F::Data,
    /// The time of the command. There is no other clock.
    pub now: Moment,
    /// Initiator, entity, start and other properties of the instance.
    pub instance: Instance,
    /// The active states; more than one after a fork.
    pub active: Vec<StateInstance>,
    /// Joins that some branches have reached and others have not.
    pub waiting: Vec<StateInstance>,
    /// The newest states that the instance has left, oldest first. Very long texts are left out.
    pub past: Vec<PastState>,
    /// Every decision of the instance, first of past and then of active states. Always complete. The method
    /// [`deciders`](Self::deciders) searches it.
    pub deciders: Vec<Decider>,
    /// What was left out of [`past`](Self::past). A rule that depends on `past` must handle that.
    pub omitted: Omitted,
    /// The index of [`entering`](Self::entering) in `active`.
    pub(crate) entering: Option<usize>,
}

/// An event that has happened in a state, or that somebody proposes.
#[derive(Debug)]
pub struct Event<F: Flow> {
    /// The state concerned.
    pub state: F::State,
    /// The trigger to fire.
    pub trigger: F::Trigger,
    /// The origin of the event.
    pub source: EventSource,
    /// The state instance before the event.
    pub state_instance: StateInstance,
    /// The form of a decision, the payload of a signal, the reply of a service or the data of a child.
    pub input: Value,
    /// The text of `input`, because a `Value` may round numbers.
    input_text: String,
}

impl<F: Flow> Facts<F> {
    /// Refuses data that does not fit the author's type as invalid, anything else as a fault.
    pub(crate) fn read(snapshot: wire::Snapshot) -> Result<Self, Refusal> {
        let wire::Snapshot {
            now,
            config,
            instance,
            active,
            waiting,
            past,
            deciders,
            omitted,
            extensions: _,
        } = snapshot;
        let Some(now) = Moment::parse(&now) else {
            return fault("unreadable", format!("{now:?} is no time."));
        };
        let config =
            json::parse(&config).map_err(|found| unreadable(&json::below("/config", found)))?;
        let data = json::data(&instance.data)?;
        Ok(Self {
            config,
            data,
            now,
            instance,
            active,
            waiting,
            past,
            deciders,
            omitted,
            entering: None,
        })
    }

    /// In `assign`, `escalate`, `call` and `wait`: the state instance that needs work, with the key and data of its item. None
    /// elsewhere.
    pub fn entering(&self) -> Option<&StateInstance> {
        self.active.get(self.entering?)
    }

    /// Who started the instance.
    pub fn initiator(&self) -> &str {
        &self.instance.initiator
    }

    /// Whether this person requested the instance, its predecessor or its parent.
    pub fn is_requester(&self, user: &str) -> bool {
        self.instance.requesters.iter().any(|one| one == user)
    }

    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.instance
            .attributes
            .iter()
            .find(|one| one.name == name)?
            .value
            .as_ref()
    }

    /// The active state instance in a state.
    pub fn state_instance(&self, state: F::State) -> Option<&StateInstance> {
        self.active
            .iter()
            .find(|state_instance| state_instance.name == state.name())
    }

    /// The instances of a state in [`past`](Self::past), oldest first.
    pub fn past_states(&self, state: F::State) -> impl DoubleEndedIterator<Item = &PastState> {
        self.past
            .iter()
            .filter(move |state_instance| state_instance.name == state.name())
    }

    /// Everybody who decided in this state, or on whose behalf somebody decided, oldest first. It is
    /// complete, unlike [`past`](Self::past). `exclude` them for the four-eyes principle.
    pub fn deciders(&self, state: F::State) -> Vec<&str> {
        self.deciders
            .iter()
            .filter(|decider| decider.state == state.name())
            .flat_map(|decider| [Some(&decider.actor), decider.on_behalf_of.as_ref()])
            .flatten()
            .map(String::as_str)
            .collect()
    }
}

impl<F: Flow> Event<F> {
    pub(crate) fn read(event: wire::Event, facts: &Facts<F>) -> Result<Self, Refusal> {
        let id = event.state_instance;
        let state_instance = facts
            .active
            .iter()
            .find(|state_instance| state_instance.id == id)
            .cloned();
        let Some(state_instance) = state_instance else {
            let message = format!("No active state has the id {id:?}.");
            return fault("unknown_state_instance", message);
        };
        let Some(state) = F::State::parse(&state_instance.name) else {
            let message = format!("This flow knows no state {}.", state_instance.name);
            return fault("unknown_state", message);
        };
        let Some(trigger) = F::Trigger::parse(&event.trigger) else {
            let message = format!("This flow knows no trigger {}.", event.trigger);
            return fault("unknown_trigger", message);
        };
        let input = json::parse(&event.input).map_err(|found| json::below("/input", found))?;
        Ok(Self {
            state,
            trigger,
            source: event.source,
            state_instance,
            input,
            input_text: event.input,
        })
    }

    /// The person who decides or sends the signal. None if no person acts.
    pub fn actor(&self) -> Option<&Actor> {
        match &self.source {
            EventSource::Signal(signal) => Some(&signal.actor),
            EventSource::Task(decision) => Some(&decision.actor),
            EventSource::Service(_)
            | EventSource::Deadline(_)
            | EventSource::Child(_)
            | EventSource::Entry => None,
        }
    }

    /// The trimmed comment of the decision. Empty if there is none.
    pub fn comment(&self) -> &str {
        match &self.source {
            EventSource::Task(decision) => decision.comment.as_deref().unwrap_or_default().trim(),
            _ => "",
        }
    }

    /// The task being decided.
    pub fn task(&self) -> Option<&Task> {
        let EventSource::Task(decision) = &self.source else {
            return None;
        };
        self.state_instance
            .tasks
            .iter()
            .find(|task| task.id == decision.task)
    }

    /// The signal that was received.
    pub fn signal(&self) -> Option<&ReceivedSignal> {
        let EventSource::Signal(signal) = &self.source else {
            return None;
        };
        Some(signal)
    }

    /// The deadline that passed.
    pub fn deadline(&self) -> Option<&PassedDeadline> {
        let EventSource::Deadline(deadline) = &self.source else {
            return None;
        };
        Some(deadline)
    }

    /// The result of the service call.
    pub fn service(&self) -> Option<&ServiceAnswer> {
        let EventSource::Service(answer) = &self.source else {
            return None;
        };
        Some(answer)
    }

    /// The child instance that ended.
    pub fn child(&self) -> Option<&EndedChild> {
        let EventSource::Child(child) = &self.source else {
            return None;
        };
        Some(child)
    }

    /// The input as one of the author's types. The refusal for an input that does not fit is `invalid`.
    pub fn input<I: DeserializeOwned>(&self) -> Result<I, Refusal> {
        let input = json::parse(&self.input_text);
        Ok(input.map_err(|found| json::below("/input", found))?)
    }
}

impl StateInstance {
    /// The decisions made so far in this state instance.
    pub fn decisions(&self) -> impl DoubleEndedIterator<Item = &Decision> {
        self.tasks.iter().filter_map(|task| task.decision.as_ref())
    }

    /// How many decisions have this outcome.
    pub fn votes(&self, trigger: impl Triggers) -> usize {
        self.decisions()
            .filter(|decision| decision.outcome == trigger.name())
            .count()
    }
}

impl PastState {
    /// The decisions made in this state instance.
    pub fn decisions(&self) -> impl DoubleEndedIterator<Item = &Decision> {
        self.tasks.iter().filter_map(|task| task.decision.as_ref())
    }
}

impl Task {
    /// Whether the task is neither decided nor cancelled.
    pub fn is_open(&self) -> bool {
        matches!(
            self.status,
            wire::TaskStatus::Pending | wire::TaskStatus::Claimed
        )
    }
}

impl Actor {
    /// Whether the person is a member of this group. False unless the graph [reads](crate::Graph::reads) groups.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// Whether the person, or the person they act for, is in this list.
    pub fn is_among(&self, people: &[&str]) -> bool {
        let both = [Some(&self.id), self.on_behalf_of.as_ref()];
        both.into_iter()
            .flatten()
            .any(|one| people.contains(&one.as_str()))
    }

    /// Whether the person's roles permit this (`subject:action`). False unless the graph [reads](crate::Graph::reads)
    /// permissions.
    pub fn may(&self, permission: &str) -> bool {
        self.permissions.iter().any(|one| one == permission)
    }
}
