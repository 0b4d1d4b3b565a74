//! Plans: what follows from an event.
//!
//! A plan is a proposal. The host checks it against the graph, the data schema and its own limits
//! before anything is written.

use std::borrow::Cow;
use std::fmt::Display;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bindings::wrkflw::flow::types as wire;
use crate::export::leak;
use crate::refusal::unreadable;
use crate::{
    Attribute, AttributeValue, Event, Facts, Flow, Graph, PublishedEvent, Reason, Refusal,
    StateInstance, States, json, merge,
};

/// The next states, and other changes.
#[derive(Clone, Debug)]
pub struct Plan<S> {
    next: Next<S>,
    rest: wire::Plan,
    mistake: Option<Refusal>,
}

/// The next step, with the author's states.
#[derive(Clone, Debug)]
enum Next<S> {
    Stay,
    Reoffer,
    Enter(Vec<Target<S>>),
    Spawn(Vec<Target<S>>),
    EndBranch,
}

/// A state that a plan enters. A state alone converts to a target without a key.
#[derive(Clone, Debug)]
pub struct Target<S> {
    state: S,
    key: Option<String>,
    data: Option<String>,
}

impl<S: States> Target<S> {
    /// This state.
    pub fn new(state: S) -> Self {
        Self::from(state)
    }

    /// Enters the state for the item with this key, 1 to 200 characters. So a plan may name a state several times, with
    /// different keys.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Data about the item for the state, as JSON of at most 16 KiB. [`StateInstance::item`] reads it.
    pub fn data(mut self, data: impl Display) -> Self {
        self.data = Some(data.to_string());
        self
    }

    /// Enters the state for the same item as that state instance, with the same data: the next step of its branch.
    pub fn same_item_as(mut self, state_instance: &StateInstance) -> Self {
        self.key.clone_from(&state_instance.key);
        self.data.clone_from(&state_instance.data);
        self
    }

    fn wire(self) -> wire::Target {
        wire::Target {
            name: self.state.name().into(),
            key: self.key,
            data: self.data,
        }
    }
}

// No trait bound, so that the compiler reports the missing `States` of a wrong type instead of this conversion.
impl<S> From<S> for Target<S> {
    fn from(state: S) -> Self {
        let (key, data) = (None, None);
        Self { state, key, data }
    }
}

impl StateInstance {
    /// The data about the item that the plan gave. A fault if it does not fit the type.
    pub fn item<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let data = json::parse(self.data.as_deref().unwrap_or("null"));
        data.map_err(|violations| unreadable(&violations))
    }
}

impl<S: States> Plan<S> {
    /// Go to this state.
    pub fn to(target: impl Into<Target<S>>) -> Self {
        Self::fork([target])
    }

    /// Go to several states at once, one branch each: different ones, or one per item, by [`Target::key`].
    pub fn fork(targets: impl IntoIterator<Item = impl Into<Target<S>>>) -> Self {
        Self::doing(Next::Enter(targets.into_iter().map(Into::into).collect()))
    }

    /// The plan of the graph: to the only target of the trigger ([`on`](crate::StateBuilder::on)), to all of its targets
    /// ([`fork`](crate::StateBuilder::fork)), branches beside the state ([`spawn`](crate::StateBuilder::spawn)), or to the target
    /// of a vote ([`until_quorum`](crate::StateBuilder::until_quorum)). A fault if the graph leaves a choice.
    ///
    /// You can add to it, such as a note or a patch of the data. [`next_state`](Self::next_state) returns its target.
    pub fn along<F: Flow<State = S>>(facts: &Facts<F>, event: &Event<F>) -> Result<Self, Refusal> {
        let graph = Graph::of::<F>(&facts.config, event.state);
        let plan = graph.follow(event);
        leak(graph);
        plan
    }

    /// The state that the plan enters. None if it enters several or none.
    pub fn next_state(&self) -> Option<S> {
        match &self.next {
            Next::Enter(targets) => match &targets[..] {
                [target] => Some(target.state),
                _ => None,
            },
            Next::Stay | Next::Reoffer | Next::Spawn(_) | Next::EndBranch => None,
        }
    }

    /// Stay in the state: the decision is recorded, and more are needed.
    pub fn stay() -> Self {
        Self::doing(Next::Stay)
    }

    /// Stay in the task state with other work, such as more reviewers: [`Flow::assign`] is called again. An open task
    /// that it offers again, with the same label and form, stays as it is. Other open tasks are cancelled.
    pub fn reoffer() -> Self {
        Self::doing(Next::Reoffer)
    }

    /// The state goes on with its tasks and deadlines, and each of these begins a branch beside it: a reminder, or work that
    /// became known only now. In BPMN, a non-interrupting boundary event. A join waits for these branches, too.
    pub fn spawn(targets: impl IntoIterator<Item = impl Into<Target<S>>>) -> Self {
        Self::doing(Next::Spawn(targets.into_iter().map(Into::into).collect()))
    }

    /// End this branch. The others continue.
    pub fn end_branch() -> Self {
        Self::doing(Next::EndBranch)
    }

    /// Cancel every other branch, also those that have arrived at a join.
    pub fn cancel_others<F: Flow<State = S>>(mut self, facts: &Facts<F>, event: &Event<F>) -> Self {
        let state_instances = facts.active.iter().chain(&facts.waiting);
        let others =
            state_instances.filter(|state_instance| state_instance.id != event.state_instance.id);
        self.rest
            .cancel
            .extend(others.map(|state_instance| state_instance.id.clone()));
        self
    }

    /// Cancel another branch.
    pub fn cancel(mut self, state_instance: &StateInstance) -> Self {
        self.rest.cancel.push(state_instance.id.clone());
        self
    }

    /// Change the instance's data. Fields that the author's type does not have are kept. Numbers that do not change keep their
    /// digits; those of a [`Decimal`](crate::Decimal) always do.
    ///
    /// A list item is matched with an equal earlier item, or else with the item at the same index of a list of the same length. A new
    /// item has only the fields that the author's type writes.
    pub fn change<F: Flow<State = S>>(
        mut self,
        facts: &Facts<F>,
        edit: impl FnOnce(&mut F::Data),
    ) -> Self {
        match patch(facts, self.rest.data.as_deref(), edit) {
            Ok(patch) => self.rest.data = patch,
            Err(refusal) => self.mistake = Some(refusal),
        }
        self
    }

    /// Change the instance's data by a JSON Merge Patch (RFC 7396), in addition to earlier changes. The plan is refused if a
    /// patch makes an object of a field that an earlier patch removed or set to a plain value. [`Self::change`] can do that.
    pub fn patch(mut self, patch: &Value) -> Self {
        let patch = patch.to_string();
        let both = match self.rest.data.take() {
            Some(earlier) => merge::compose(&earlier, &patch),
            None => Ok(patch),
        };
        match both {
            Ok(both) => self.rest.data = Some(both),
            Err(field) => {
                let message = format!(
                    "The plan patches the data twice: the field `{field}` is no object after the first patch, and the \
                     second sets it to one. One merge patch cannot say both. Use `change`, or one patch."
                );
                self.mistake = Some(Refusal::Fault(Reason::new("data", message)));
            }
        }
        self
    }

    /// Set an attribute that the graph declares. The value has the declared type: a text, a boolean, a
    /// [`Decimal`](crate::Decimal), an `i64` (which becomes a decimal), an `f64`, a [`Moment`](crate::Moment) or bytes. For
    /// another whole number, such as a `u32`, write `i64::from(number)`.
    pub fn attribute(mut self, name: &str, value: impl Into<AttributeValue>) -> Self {
        self.rest.attributes.push(Attribute {
            name: name.into(),
            value: Some(value.into()),
        });
        self
    }

    /// Set an attribute if there is a value, remove it otherwise.
    pub fn attribute_if_any(self, name: &str, value: Option<impl Into<AttributeValue>>) -> Self {
        match value {
            Some(value) => self.attribute(name, value),
            None => self.without_attribute(name),
        }
    }

    /// Remove an attribute.
    pub fn without_attribute(mut self, name: &str) -> Self {
        self.rest.attributes.push(Attribute {
            name: name.into(),
            value: None,
        });
        self
    }

    /// Publish an event of type `custom.<name>`.
    pub fn publish(mut self, name: &str, data: &Value) -> Self {
        self.rest.publish.push(PublishedEvent {
            name: name.into(),
            data: data.to_string(),
        });
        self
    }

    /// Record why, for the audit and for people: a code of the flow's own and a sentence. The published event contains the note,
    /// too.
    pub fn note(mut self, code: &str, message: impl Into<String>) -> Self {
        self.rest.notes.push(wire::Note {
            code: code.into(),
            message: message.into(),
            detail: None,
        });
        self
    }

    /// The same with a detail for programs, at most 4 KiB, such as the row of a decision table that applied.
    pub fn note_with(mut self, code: &str, message: impl Into<String>, detail: &Value) -> Self {
        self.rest.notes.push(wire::Note {
            code: code.into(),
            message: message.into(),
            detail: Some(detail.to_string()),
        });
        self
    }

    fn doing(next: Next<S>) -> Self {
        let rest = wire::Plan {
            next: wire::Next::Stay,
            cancel: vec![],
            data: None,
            attributes: vec![],
            publish: vec![],
            notes: vec![],
            extensions: vec![],
        };
        Self {
            next,
            rest,
            mistake: None,
        }
    }

    /// The plan in the type of the contract. Refused if the changed data does not fit the author's type.
    pub(crate) fn finish<F: Flow<State = S>>(
        self,
        facts: &Facts<F>,
    ) -> Result<wire::Plan, Refusal> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        if let Some(patch) = &self.rest.data {
            let fits = json::data::<F::Data>(&patched(facts, Some(patch)));
            fits.map_err(|found| unreadable(&found))?;
        }
        let next = match self.next {
            Next::Stay => wire::Next::Stay,
            Next::Reoffer => wire::Next::Reoffer,
            Next::Enter(targets) => {
                wire::Next::Enter(targets.into_iter().map(Target::wire).collect())
            }
            Next::Spawn(targets) => {
                wire::Next::Spawn(targets.into_iter().map(Target::wire).collect())
            }
            Next::EndBranch => wire::Next::EndBranch,
        };
        Ok(wire::Plan { next, ..self.rest })
    }
}

/// The instance's data with this patch applied.
fn patched<'a, F: Flow>(facts: &'a Facts<F>, patch: Option<&str>) -> Cow<'a, str> {
    let data = facts.instance.data.as_str();
    patch.map_or(data.into(), |patch| merge::merge(data, patch).into())
}

/// Merges the patch so far and the changes of `edit` into one patch of the stored data.
fn patch<F: Flow>(
    facts: &Facts<F>,
    so_far: Option<&str>,
    edit: impl FnOnce(&mut F::Data),
) -> Result<Option<String>, Refusal> {
    let current = patched(facts, so_far);
    let mut data = json::data(&current)?;
    let before = written::<F>(&data)?;
    edit(&mut data);
    let updated = merge::updated(&current, &before, &written::<F>(&data)?);
    Ok(merge::difference(&facts.instance.data, &updated))
}

fn written<F: Flow>(data: &F::Data) -> Result<String, Refusal> {
    serde_json::to_string(data).map_err(|error| {
        let message = format!("The data cannot be written as JSON: {error}.");
        Refusal::Fault(Reason::new("data", message))
    })
}
