//! The graph of a flow: each state is followed by its transitions.
//!
//! The compiler checks that names exist. The host checks the rest when a version is published, such as
//! whether every state is reachable.

use std::fmt::Display;
use std::marker::PhantomData;

use crate::bindings::wrkflw::flow::types::{
    AttributeDeclaration, Definition, Join, NameUse, PriorityName, State, StateKind, Transition,
};
use crate::{AttributeType, CommentRule, FiredBy, Reads, Refusal, States, Triggers, fault};

/// A graph under construction. What the flow itself is `titled` and `described` comes before the first state. After a state come
/// [`join`](Self::join), what it is `described`, and its transitions ([`on`](Self::on)). After a transition comes what it needs,
/// such as [`by`](Self::by), [`input`](Self::input) and [`comment`](Self::comment). Any other order does not compile: the third
/// parameter is the kind of the last element.
///
/// A graph whose last element is a terminal state is complete. Otherwise, end it with [`done`](Self::done).
#[derive(Clone, Debug)]
pub struct Graph<S, T, Last = drawing::End> {
    definition: Definition,
    drawing: (String, FiredBy),
    names: PhantomData<(S, T, Last)>,
}

/// The kind of the last element, which determines what may follow.
pub mod drawing {
    /// Nothing yet. A state must follow.
    #[derive(Clone, Copy, Debug)]
    pub enum Nothing {}
    /// A state with transitions.
    #[derive(Clone, Copy, Debug)]
    pub enum State {}
    /// A transition.
    #[derive(Clone, Copy, Debug)]
    pub enum Way {}
    /// A state in which instances end.
    #[derive(Clone, Copy, Debug)]
    pub enum End {}

    /// A transition may follow.
    pub trait Left: sealed::Sealed {}
    impl Left for State {}
    impl Left for Way {}

    /// A state, which may have more settings.
    pub trait Entered: sealed::Sealed {}
    impl Entered for State {}
    impl Entered for End {}

    mod sealed {
        pub trait Sealed {}
        impl Sealed for super::State {}
        impl Sealed for super::Way {}
        impl Sealed for super::End {}
    }
}

/// Where a trigger leads: one state, or an array of states to choose from.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not where a trigger can lead",
    label = "neither a state of this flow nor an array of them",
    note = "give a `{S}`, or several as `[A, B]`"
)]
pub trait Targets<S> {
    /// The names of the states.
    fn names(self) -> Vec<String>;
}

impl<S: States> Targets<S> for S {
    fn names(self) -> Vec<String> {
        vec![self.name().into()]
    }
}

impl<S: States, const N: usize> Targets<S> for [S; N] {
    fn names(self) -> Vec<String> {
        self.map(|state| state.name().into()).into()
    }
}

impl<S: States, T: Triggers> Graph<S, T, drawing::Nothing> {
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
            uses: vec![],
            requires: vec![],
            extensions: vec![],
        };
        Self {
            definition,
            drawing: (initial.name().into(), FiredBy::DECISION),
            names: PhantomData,
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
}

impl<S: States, T: Triggers, Last> Graph<S, T, Last> {
    /// Only members of this group may start an instance. Each further call adds a group.
    pub fn started_by(mut self, group: &str) -> Self {
        self.definition.initiators.push(group.into());
        self
    }

    /// JSON Schema 2020-12 that an instance's data satisfies at all times: by `json!`, or the text of
    /// a file by `include_str!`.
    pub fn schema(mut self, schema: impl Display) -> Self {
        self.definition.data_schema = Some(schema.to_string());
        self
    }

    /// An attribute that instances can be searched by.
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
    pub fn priority(mut self, name: &str, at_least: u8) -> Self {
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
        self.definition.separate.push(states.names());
        self
    }

    /// While an instance of this flow runs, no other instance about the same entity may start, of whichever definition, and it
    /// does not start while another one runs. Without this, there is one running instance per definition and entity.
    pub fn sole_per_entity(mut self) -> Self {
        self.definition.sole_per_entity = true;
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

    /// Calendars that the config names; see [`uses_groups`](Self::uses_groups).
    pub fn uses_calendars(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.uses(names, NameUse::Calendar)
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
    pub fn task(self, state: S, title: &str) -> Graph<S, T, drawing::State> {
        self.state(state, title, StateKind::Task, FiredBy::DECISION)
    }

    /// The initiator works here, on their own request. Left by decisions.
    pub fn own_work(self, state: S, title: &str) -> Graph<S, T, drawing::State> {
        let mut graph = self.task(state, title);
        graph.change_state(|state| state.own_work = true);
        graph
    }

    /// A service works here: [`Flow::call`](crate::Flow::call) says which. Left by its reply; the
    /// way on failure is `.on(…).by(FiredBy::FAILURE)`.
    pub fn service(self, state: S, title: &str) -> Graph<S, T, drawing::State> {
        self.state(state, title, StateKind::Service, FiredBy::REPLY)
    }

    /// Nobody works here: [`Flow::transition`](crate::Flow::transition) is called at once. The state
    /// has one trigger, fired by entry.
    pub fn router(self, state: S, title: &str) -> Graph<S, T, drawing::State> {
        self.state(state, title, StateKind::Router, FiredBy::ENTRY)
    }

    /// Something has to happen elsewhere: [`Flow::wait`](crate::Flow::wait) says what. Left by
    /// signals, unless [`by`](Graph::by) says otherwise.
    pub fn wait(self, state: S, title: &str) -> Graph<S, T, drawing::State> {
        self.state(state, title, StateKind::Wait, FiredBy::SIGNAL)
    }

    /// The instance ends here, with this outcome.
    pub fn terminal(self, state: S, outcome: &str) -> Graph<S, T> {
        self.state(
            state,
            outcome,
            StateKind::Terminal(outcome.into()),
            FiredBy::empty(),
        )
    }

    /// Completes a graph whose last element is not a terminal state.
    pub fn done(self) -> Graph<S, T> {
        self.drawn_on()
    }
}

impl<S: States, T: Triggers, Last: drawing::Entered> Graph<S, T, Last> {
    /// What is done in the state, for people.
    pub fn described(mut self, description: &str) -> Self {
        self.change_state(|state| state.description = description.into());
        self
    }

    /// The state begins only when every branch of the fork around it has arrived or ended.
    pub fn join(mut self) -> Self {
        self.change_state(|state| state.join = Join::All);
        self
    }

    /// The state begins as soon as so many branches of the fork around it have arrived. The others are cancelled.
    pub fn join_count(mut self, branches: u32) -> Self {
        self.change_state(|state| state.join = Join::Count(branches));
        self
    }
}

impl<S: States, T: Triggers, Last: drawing::Left> Graph<S, T, Last> {
    /// A transition: the targets to which this trigger leads or may lead.
    pub fn on(mut self, trigger: T, targets: impl Targets<S>) -> Graph<S, T, drawing::Way> {
        let (source, by) = self.drawing.clone();
        let trigger = trigger.name().into();
        self.definition.transitions.push(Transition {
            source,
            trigger,
            targets: targets.names(),
            by,
            permission: None,
            title: String::new(),
            description: String::new(),
            condition: String::new(),
            input: None,
            comment: CommentRule::Optional,
            extensions: vec![],
        });
        self.drawn_on()
    }

    /// A transition by a signal in a state of any kind, such as a withdrawal. [`Flow::guard`](crate::Flow::guard)
    /// decides who may send it.
    pub fn on_signal(self, trigger: T, targets: impl Targets<S>) -> Graph<S, T, drawing::Way> {
        self.on(trigger, targets).by(FiredBy::SIGNAL)
    }
}

impl<S: States, T: Triggers> Graph<S, T, drawing::Way> {
    /// What may fire the last trigger, instead of the default of the kind of state:
    /// `.by(FiredBy::DECISION | FiredBy::DEADLINE)`.
    pub fn by(mut self, sources: FiredBy) -> Self {
        self.change_transition(|transition| transition.by = sources);
        self
    }

    /// The permission (`subject:action`) that the last trigger needs.
    pub fn needs(mut self, permission: &str) -> Self {
        self.change_transition(|transition| transition.permission = Some(permission.into()));
        self
    }

    /// A title for people, such as `Send back`, on buttons and diagrams. Without one, the trigger is shown.
    pub fn titled(mut self, title: &str) -> Self {
        self.change_transition(|transition| transition.title = title.into());
        self
    }

    /// What the last transition means, for people.
    pub fn described(mut self, description: &str) -> Self {
        self.change_transition(|transition| transition.description = description.into());
        self
    }

    /// When the last transition is possible or leads where, for people: the condition in words.
    pub fn condition(mut self, words: &str) -> Self {
        self.change_transition(|transition| transition.condition = words.into());
        self
    }

    /// JSON Schema 2020-12 of the input of decisions, signals and replies: by `json!`, or the text of a file by `include_str!`.
    /// The host refuses any other input. Tests of a flow check it with the feature `schemas`.
    pub fn input(mut self, schema: impl Display) -> Self {
        self.change_transition(|transition| transition.input = Some(schema.to_string()));
        self
    }

    /// Whether a decision by the last trigger has a comment: `.comment(CommentRule::Required)`.
    pub fn comment(mut self, rule: CommentRule) -> Self {
        self.change_transition(|transition| transition.comment = rule);
        self
    }

    fn change_transition(&mut self, change: impl FnOnce(&mut Transition)) {
        if let Some(transition) = self.definition.transitions.last_mut() {
            change(transition);
        }
    }
}

impl<S: States, T: Triggers, Last> Graph<S, T, Last> {
    fn state<Next>(
        mut self,
        state: S,
        title: &str,
        kind: StateKind,
        by: FiredBy,
    ) -> Graph<S, T, Next> {
        let name: String = state.name().into();
        self.drawing = (name.clone(), by);
        self.definition.states.push(State {
            name,
            title: title.into(),
            description: String::new(),
            kind,
            join: Join::None,
            own_work: false,
            extensions: vec![],
        });
        self.drawn_on()
    }

    fn drawn_on<Next>(self) -> Graph<S, T, Next> {
        Graph {
            definition: self.definition,
            drawing: self.drawing,
            names: PhantomData,
        }
    }

    fn change_state(&mut self, change: impl FnOnce(&mut State)) {
        if let Some(state) = self.definition.states.last_mut() {
            change(state);
        }
    }

    /// The only state that the trigger leads to.
    pub(crate) fn only_target(&self, source: S, trigger: T) -> Result<S, Refusal> {
        if let [target] = self.targets(source, trigger)[..] {
            return Ok(target);
        }
        let message = format!("{trigger:?} in {source:?} leads to no single state.");
        fault("no_single_target", message)
    }

    /// Where the trigger may lead.
    pub(crate) fn targets(&self, source: S, trigger: T) -> Vec<S> {
        let ways = self.definition.transitions.iter();
        ways.filter(|way| way.source == source.name() && way.trigger == trigger.name())
            .flat_map(|way| &way.targets)
            .filter_map(|name| S::parse(name))
            .collect()
    }

    /// The trigger of the state that this source may fire.
    pub(crate) fn fired(&self, source: S, by: FiredBy) -> Option<&str> {
        let mut ways = self.definition.transitions.iter();
        ways.find(|way| way.source == source.name() && way.by.contains(by))
            .map(|way| way.trigger.as_str())
    }

    pub(crate) fn drawn(&self, state: &str) -> Option<&State> {
        self.definition
            .states
            .iter()
            .find(|drawn| drawn.name == state)
    }

    pub(crate) fn definition(self) -> Definition {
        self.definition
    }
}
