//! The graph of a flow: its states, each with its transitions.
//!
//! The compiler checks that names exist. The host checks the rest when a version is published, such as
//! whether every state is reachable; so do the tests of a flow.

mod follow;
mod state;
#[cfg(test)]
mod tests;

use std::fmt::Display;

use crate::bindings::wrkflw::flow::types::{
    AttributeDeclaration, Definition, NameUse, PriorityName, State, StateKind, Visibility,
};
use crate::{AttributeType, FiredBy, Reads, States, Triggers};
use state::{Declared, Way};
pub use state::{StateBuilder, TransitionBuilder};

/// The graph of a flow under construction: what concerns the flow as a whole, and its states. What concerns a state stands in the
/// block of this state, a closure.
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
    definition: Definition,
    ways: Vec<Way<S, T>>,
    quorums: Vec<(S, (T, T))>,
}

/// Where a trigger leads: one state, or an array of states.
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
            definition,
            ways: vec![],
            quorums: vec![],
        }
    }

    /// The flow's name for people, such as `Document approval`. Without it, its key is shown.
    pub fn titled(mut self, title: &str) -> Self {
        self.definition.title = title.into();
        self
    }

    /// What the flow is for.
    pub fn described(mut self, description: &str) -> Self {
        self.definition.description = description.into();
        self
    }
    /// Only members of this group may start an instance. Each further call adds a group.
    pub fn started_by(mut self, group: &str) -> Self {
        self.definition.initiators.push(group.into());
        self
    }

    /// JSON Schema 2020-12 that an instance's data satisfies at all times: by `json!`, or the text of
    /// a file by `include_str!`.
    pub fn data_schema(mut self, schema: impl Display) -> Self {
        self.definition.data_schema = Some(schema.to_string());
        self
    }

    /// An attribute that instances can be searched by. [`Plan::attribute`](crate::Plan::attribute) sets it. If it is known from the
    /// start, let instances begin in a [router](Self::router): its plan is the first one.
    pub fn attribute(mut self, name: &str, kind: AttributeType) -> Self {
        self.definition.attributes.push(AttributeDeclaration {
            name: name.into(),
            kind,
        });
        self
    }

    /// The title that people are shown of an instance: `"Invoice {/number} of {/supplier/name}"`. A placeholder is a value of
    /// the data by its JSON Pointer, `{entityType}` or `{entityId}`; `{{` and `}}` are braces. What is missing, a list or an
    /// object is the empty text.
    pub fn instance_title(mut self, template: &str) -> Self {
        self.definition.instance_title = Some(template.into());
        self
    }

    /// The summary that people are shown of an instance: a template as that of its [title](Self::instance_title).
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

    /// What the flow may read about people besides their ids: `.reads(Reads::GROUPS | Reads::COMMENTS)`. Anything else is
    /// empty: [`Actor::is_in`](crate::Actor::is_in) and [`Actor::may`](crate::Actor::may) return false, and decisions that were
    /// made have no comment and the input `{}`.
    pub fn reads(mut self, reads: Reads) -> Self {
        self.definition.reads |= reads;
        self
    }

    /// Nobody decides in more than one of these states, neither themselves nor through a delegate or substitute: the host
    /// excludes whoever decided in one of them from the others. Each further call adds a list.
    pub fn separate<const N: usize>(mut self, states: [S; N]) -> Self {
        let names = states.map(|state| state.name().into());
        self.definition.separate.push(names.into());
        self
    }

    /// While an instance of this flow runs, no other instance about the same entity may start, of whichever definition, and it
    /// does not start while another one runs. Without this, there is one running instance per definition and entity.
    pub fn sole_per_entity(mut self) -> Self {
        self.definition.sole_per_entity = true;
        self
    }

    /// Only its participants, their managers and the members of these groups see an instance: the requesters, everybody to whom
    /// a task was offered, and everybody who owned or decided one. The host looks the groups up like those of
    /// [`started_by`](Self::started_by). Without this, everybody of the tenant who may read instances sees all.
    pub fn visible_to_participants(
        mut self,
        observers: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let groups = observers.into_iter().map(Into::into);
        self.definition.visibility = Visibility::Participants(groups.collect());
        self
    }

    /// Groups that the config names. The host looks them up when the version is published and activated, like those of
    /// [`started_by`](Self::started_by), which need not be named here.
    pub fn uses_groups(self, groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.uses(groups, NameUse::Group)
    }

    /// People whom the config names; see [`uses_groups`](Self::uses_groups).
    pub fn uses_people(self, people: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.uses(people, NameUse::Person)
    }

    /// Calendars that the config or the flow names; see [`uses_groups`](Self::uses_groups). A deadline that counts by a calendar
    /// that is not listed is a fault, also in native tests.
    pub fn uses_calendars(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.uses(names, NameUse::Calendar)
    }

    /// Services whose names the config or the flow has; see [`uses_groups`](Self::uses_groups). The operator of the host configures
    /// them.
    pub fn uses_services(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.uses(names, NameUse::Service)
    }

    fn uses(
        mut self,
        names: impl IntoIterator<Item = impl Into<String>>,
        kind: impl Fn(String) -> NameUse,
    ) -> Self {
        let used = names.into_iter().map(|name| kind(name.into()));
        self.definition.uses.extend(used);
        self
    }

    /// People work here: [`Flow::assign`](crate::Flow::assign) says who. Left by decisions.
    pub fn task<R>(
        self,
        state: S,
        title: &str,
        block: impl FnOnce(&StateBuilder<S, T>) -> R,
    ) -> Self {
        let drawn = StateBuilder::new(state, FiredBy::DECISION);
        block(&drawn);
        self.with(drawn, title, StateKind::Task)
    }

    /// The initiator works here, on their own request. Left by decisions.
    pub fn own_work<R>(
        self,
        state: S,
        title: &str,
        block: impl FnOnce(&StateBuilder<S, T>) -> R,
    ) -> Self {
        let mut graph = self.task(state, title, block);
        if let Some(state) = graph.definition.states.last_mut() {
            state.own_work = true;
        }
        graph
    }

    /// A service works here: [`Flow::call`](crate::Flow::call) says which. Left by its reply; the
    /// transition on failure is `s.on(…).fired_by(FiredBy::FAILURE)`.
    pub fn service<R>(
        self,
        state: S,
        title: &str,
        block: impl FnOnce(&StateBuilder<S, T>) -> R,
    ) -> Self {
        let drawn = StateBuilder::new(state, FiredBy::REPLY);
        block(&drawn);
        self.with(drawn, title, StateKind::Service)
    }

    /// Nobody works here: [`Flow::transition`](crate::Flow::transition) is called at once. The state
    /// has one trigger, fired by entry.
    pub fn router<R>(
        self,
        state: S,
        title: &str,
        block: impl FnOnce(&StateBuilder<S, T>) -> R,
    ) -> Self {
        let drawn = StateBuilder::new(state, FiredBy::ENTRY);
        block(&drawn);
        self.with(drawn, title, StateKind::Router)
    }

    /// Something has to happen elsewhere: [`Flow::wait`](crate::Flow::wait) says what. Left by
    /// signals, unless [`fired_by`](TransitionBuilder::fired_by) says otherwise.
    pub fn wait<R>(
        self,
        state: S,
        title: &str,
        block: impl FnOnce(&StateBuilder<S, T>) -> R,
    ) -> Self {
        let drawn = StateBuilder::new(state, FiredBy::SIGNAL);
        block(&drawn);
        self.with(drawn, title, StateKind::Wait)
    }

    /// The instance ends here, with this outcome. Its description is the doc comment of the state's name.
    pub fn terminal(self, state: S, outcome: &str) -> Self {
        let drawn = StateBuilder::new(state, FiredBy::empty());
        self.with(drawn, outcome, StateKind::Terminal(outcome.into()))
    }

    /// Not generic over the closure, so that a component has it once.
    #[inline(never)]
    fn with(mut self, drawn: StateBuilder<S, T>, title: &str, kind: StateKind) -> Self {
        let Declared {
            state,
            description,
            join,
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
            own_work: false,
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

    /// The graph as the contract has it. States and transitions without a description have the doc comments of their names.
    pub(crate) fn definition(self) -> Definition {
        let mut definition = self.definition;
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
