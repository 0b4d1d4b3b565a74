//! The graph of a flow: its states, each with its transitions.
//!
//! The compiler checks that names exist. The host checks the rest when a version is published, such as whether every state is
//! reachable. The tests of a flow make the same checks.

mod follow;
mod state;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fmt::Display;

use crate::bindings::wrkflw::flow::types::{
    AttributeDeclaration, Definition, NameUse, PriorityName, State, StateKind, Visibility,
};
use crate::{AttributeType, FiredBy, Flow, Reads, States, Triggers};
use state::{Declared, Way};
pub use state::{StateBuilder, TransitionBuilder};

/// Builds the graph of a flow: the properties of the flow, and its states. A closure per state declares the properties and
/// transitions of the state.
///
/// ```
/// # use wrkflw_guest::{Graph, states, triggers};
/// # states! { pub enum State { Review, Rework, Done } }
/// # triggers! { pub enum Trigger { Approve, Reject, Submit } }
/// # use {State::*, Trigger::*};
/// # fn graph() -> Graph<State, Trigger> {
/// Graph::start(Review)
///     .instance_title("{/subject}")
///     .task(Review, "Review", |s| {
///         s.on(Approve, Done).needs("documents:approve");
///         s.on(Reject, Rework).titled("Send back");
///     })
///     .own_work(Rework, "Rework", |s| s.on(Submit, Review))
///     .terminal(Done, "DONE")
/// # }
/// # graph();
/// ```
#[derive(Clone, Debug)]
pub struct Graph<S, T> {
    definition: Box<Definition>,
    /// The only state that is drawn, without schemas and without the names that the config uses. None: all states are drawn.
    only: Option<&'static str>,
    ways: Vec<Way<S, T>>,
    quorums: Vec<(S, (T, T))>,
}

thread_local! {
    /// The [`Graph::only`] of the graphs that [`Graph::start`] makes now.
    static ONLY: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Sets [`ONLY`] back, also if the author's function panics.
struct Restore(Option<&'static str>);

impl Drop for Restore {
    fn drop(&mut self) {
        ONLY.set(self.0);
    }
}

/// The target of a trigger: one state, or an array of states.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not where a trigger can lead",
    label = "neither a state of this flow nor an array of them",
    note = "give a `{S}`, or several as `[A, B]`"
)]
pub trait Targets<S> {
    /// The states.
    fn states(self) -> Vec<S>;
}

impl<S: States> Targets<S> for S {
    fn states(self) -> Vec<S> {
        vec![self]
    }
}

impl<S: States, const N: usize> Targets<S> for [S; N] {
    fn states(self) -> Vec<S> {
        self.into()
    }
}

impl<S: States, T: Triggers> Graph<S, T> {
    /// A graph whose instances begin in this state.
    pub fn start(initial: S) -> Self {
        let definition = Definition {
            title: String::new(),
            description: String::new(),
            initial: initial.name().into(),
            initiators: vec![],
            states: vec![],
            transitions: vec![],
            data_schema: None,
            attributes: vec![],
            instance_title: None,
            instance_summary: None,
            priorities: vec![],
            separate: vec![],
            reads: Reads::empty(),
            sole_per_entity: false,
            visibility: Visibility::Tenant,
            uses: vec![],
            requires: vec![],
            extensions: vec![],
        };
        Self {
            definition: Box::new(definition),
            only: ONLY.get(),
            ways: vec![],
            quorums: vec![],
        }
    }

    /// The graph of a flow with one of its states only. A call of flow logic asks about single states, and the whole graph would take
    /// most of its fuel.
    pub(crate) fn of<F: Flow<State = S, Trigger = T>>(config: &F::Config, state: S) -> Self {
        let _before = Restore(ONLY.replace(Some(state.name())));
        F::graph(config)
    }

    /// The flow's name for people, such as `Document approval`. Without it, its key is shown.
    pub fn titled(mut self, title: &str) -> Self {
        self.definition.title = title.into();
        self
    }

    /// The purpose of the flow.
    pub fn described(mut self, description: &str) -> Self {
        self.definition.description = description.into();
        self
    }
    /// Only members of this group may start an instance. Each further call adds a group.
    pub fn started_by(mut self, group: &str) -> Self {
        self.definition.initiators.push(group.into());
        self
    }

    /// JSON Schema 2020-12 that an instance's data satisfies at all times: `|| json!({…})`, or the text of a file by
    /// `|| include_str!("…")`. A closure, because it is only asked for when a version is published.
    pub fn data_schema<D: Display>(mut self, schema: impl FnOnce() -> D) -> Self {
        if self.only.is_none() {
            self.definition.data_schema = Some(schema().to_string());
        }
        self
    }

    /// Declares an attribute for searches. [`Plan::attribute`](crate::Plan::attribute) sets it. To set it at the start, let
    /// instances begin in a [router](Self::router): its plan is the first one.
    pub fn attribute(mut self, name: &str, kind: AttributeType) -> Self {
        self.definition.attributes.push(AttributeDeclaration {
            name: name.into(),
            kind,
        });
        self
    }

    /// The title of an instance for people: `"Invoice {/number} of {/supplier/name}"`. A placeholder is the JSON Pointer of a
    /// value in the data, `{entityType}` or `{entityId}`; `{{` and `}}` are braces. A missing value, a list or an object becomes
    /// the empty text.
    pub fn instance_title(mut self, template: &str) -> Self {
        self.definition.instance_title = Some(template.into());
        self
    }

    /// The summary of an instance for people: a template like that of its [title](Self::instance_title).
    pub fn instance_summary(mut self, template: &str) -> Self {
        self.definition.instance_summary = Some(template.into());
        self
    }

    /// The name of the priorities from this number up, until the next name. Call it in ascending order.
    pub fn priority_name(mut self, name: &str, at_least: u8) -> Self {
        self.definition.priorities.push(PriorityName {
            name: name.into(),
            at_least,
        });
        self
    }

    /// Personal data that the flow reads besides ids: `.reads(Reads::GROUPS | Reads::COMMENTS)`. Without it,
    /// [`Actor::is_in`](crate::Actor::is_in) and [`Actor::may`](crate::Actor::may) return false, and earlier decisions have no
    /// comment and the input `{}`.
    pub fn reads(mut self, reads: Reads) -> Self {
        self.definition.reads |= reads;
        self
    }

    /// A person may decide in only one of these states, in person or through a delegate or substitute: the host excludes whoever
    /// decided in one of them from the others. Each further call adds a list.
    pub fn separate<const N: usize>(mut self, states: [S; N]) -> Self {
        let names = states.map(|state| state.name().into());
        self.definition.separate.push(names.into());
        self
    }

    /// Only one instance per entity runs, over all definitions: an instance of this flow does not start while another one runs,
    /// and no other starts while it runs. Without this, there is one running instance per definition and entity.
    pub fn sole_per_entity(mut self) -> Self {
        self.definition.sole_per_entity = true;
        self
    }

    /// Restricts who sees an instance to its participants, their managers and the members of these groups. Participants are the
    /// requesters, and everybody who was offered a task, owned one or decided one. The host looks the groups up like those of
    /// [`started_by`](Self::started_by). Without this, everybody in the tenant who may read instances sees all.
    pub fn visible_to_participants(
        mut self,
        observers: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let groups = observers.into_iter().map(Into::into);
        self.definition.visibility = Visibility::Participants(groups.collect());
        self
    }

    /// Groups that the config names. The host looks them up when the version is published and activated. Groups of
    /// [`started_by`](Self::started_by) are looked up anyway.
    pub fn uses_groups(self, groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.uses(groups, NameUse::Group)
    }

    /// People that the config names; see [`uses_groups`](Self::uses_groups).
    pub fn uses_people(self, people: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.uses(people, NameUse::Person)
    }

    /// Calendars that the config or the flow names; see [`uses_groups`](Self::uses_groups). A deadline by a calendar that is not
    /// listed here is a fault, also in native tests.
    pub fn uses_calendars(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.uses(names, NameUse::Calendar)
    }

    /// Services that the config or the flow names; see [`uses_groups`](Self::uses_groups). The operator of the host configures
    /// them.
    pub fn uses_services(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.uses(names, NameUse::Service)
    }

    fn uses(
        mut self,
        names: impl IntoIterator<Item = impl Into<String>>,
        kind: impl Fn(String) -> NameUse,
    ) -> Self {
        if self.only.is_none() {
            let used = names.into_iter().map(|name| kind(name.into()));
            self.definition.uses.extend(used);
        }
        self
    }

    /// A state in which people work: [`Flow::assign`] says who. Decisions leave it.
    pub fn task<R>(
        self,
        state: S,
        title: &str,
        block: impl FnOnce(&StateBuilder<S, T>) -> R,
    ) -> Self {
        self.state(state, title, (StateKind::Task, FiredBy::DECISION), block)
    }

    /// A state in which the initiator works on their own request. Decisions leave it.
    pub fn own_work<R>(
        self,
        state: S,
        title: &str,
        block: impl FnOnce(&StateBuilder<S, T>) -> R,
    ) -> Self {
        let block = |drawn: &StateBuilder<S, T>| {
            drawn.own_work();
            block(drawn)
        };
        self.task(state, title, block)
    }

    /// A state that calls a service: [`Flow::call`] says which. The reply leaves it. The transition on failure
    /// is `s.on(…).fired_by(FiredBy::FAILURE)`.
    pub fn service<R>(
        self,
        state: S,
        title: &str,
        block: impl FnOnce(&StateBuilder<S, T>) -> R,
    ) -> Self {
        self.state(state, title, (StateKind::Service, FiredBy::REPLY), block)
    }

    /// A state without work: the host calls [`Flow::transition`] at once. The state has one trigger,
    /// fired by entry.
    pub fn router<R>(
        self,
        state: S,
        title: &str,
        block: impl FnOnce(&StateBuilder<S, T>) -> R,
    ) -> Self {
        self.state(state, title, (StateKind::Router, FiredBy::ENTRY), block)
    }

    /// A state that waits for something outside of it: [`Flow::wait`] says for what. Signals leave it, unless
    /// [`fired_by`](TransitionBuilder::fired_by) says otherwise.
    pub fn wait<R>(
        self,
        state: S,
        title: &str,
        block: impl FnOnce(&StateBuilder<S, T>) -> R,
    ) -> Self {
        self.state(state, title, (StateKind::Wait, FiredBy::SIGNAL), block)
    }

    /// A state that ends the instance with this outcome. Its description is the doc comment of the state's name.
    pub fn terminal(self, state: S, outcome: &str) -> Self {
        let kind = StateKind::Terminal(outcome.into());
        self.state(state, outcome, (kind, FiredBy::empty()), |_| ())
    }

    fn state<R>(
        self,
        state: S,
        title: &str,
        (kind, fired_by): (StateKind, FiredBy),
        block: impl FnOnce(&StateBuilder<S, T>) -> R,
    ) -> Self {
        if self.only.is_some_and(|only| only != state.name()) {
            return self;
        }
        let drawn = StateBuilder::new(state, fired_by, self.only.is_none());
        block(&drawn);
        self.with(drawn, title, kind)
    }

    /// Not generic over the closure, so that a component contains this code only once.
    #[inline(never)]
    fn with(mut self, drawn: StateBuilder<S, T>, title: &str, kind: StateKind) -> Self {
        let Declared {
            state,
            description,
            join,
            own_work,
            mut ways,
            quorum,
        } = drawn.declared();
        if let Some(quorum) = quorum {
            follow::widen(&mut ways, quorum);
            self.quorums.push((state, quorum));
        }
        self.ways.append(&mut ways);
        self.definition.states.push(State {
            name: state.name().into(),
            title: title.into(),
            description,
            kind,
            join,
            own_work,
            extensions: vec![],
        });
        self
    }

    pub(crate) fn drawn(&self, state: &str) -> Option<&State> {
        self.definition
            .states
            .iter()
            .find(|drawn| drawn.name == state)
    }

    /// The graph in the type of the contract. States and transitions without a description get the doc comments of their names.
    pub(crate) fn definition(self) -> Definition {
        let mut definition = *self.definition;
        for state in &mut definition.states {
            if let Some(name) = S::parse(&state.name).filter(|_| state.description.is_empty()) {
                state.description = name.description().into();
            }
        }
        let transitions = self.ways.into_iter().map(Way::transition);
        definition.transitions = transitions.collect();
        definition
    }
}
