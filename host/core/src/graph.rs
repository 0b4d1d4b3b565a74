//! The graph that a component declares for its config. The host enforces it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::json::Json;

/// The answer of `describe` when the version was published.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// The flow's name for people; empty for its key.
    pub title: String,
    pub description: String,
    pub initial: String,
    /// Groups whose members may start an instance; empty means anyone signed in.
    pub initiators: Vec<String>,
    pub states: Vec<State>,
    pub transitions: Vec<Transition>,
    /// JSON Schema 2020-12 of an instance's data. It is enforced at every change.
    pub data_schema: Option<Json>,
    pub attributes: Vec<AttributeDeclaration>,
    /// The [templates](super::template) of an instance's title and summary.
    pub instance_title: Option<String>,
    pub instance_summary: Option<String>,
    /// Names of priorities, from the lowest.
    pub priorities: Vec<PriorityName>,
    /// Lists of states: a person decides in one state of each list.
    pub separate: Vec<Vec<String>>,
    /// The facts about people that flow logic is shown besides their ids, each at most once, in the order of [`Read`].
    pub reads: Vec<Read>,
    /// While an instance runs, no other instance about the same entity may run, of whichever definition.
    pub sole_per_entity: bool,
    /// The groups that see instances besides their [participants](super::participant). None: everybody of the tenant sees them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub observers: Option<Vec<String>>,
    /// What the config names of the tenant's directory, besides `initiators`.
    pub uses: Vec<NameUse>,
}

/// A name of the tenant's directory, of a service, or of a permission that its roles give.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind", content = "name")]
pub enum NameUse {
    Group(String),
    Person(String),
    Calendar(String),
    Service(String),
    /// Of a transition. It is not among the `uses` that a flow declares.
    Permission(String),
}

impl NameUse {
    /// The kind in the API: `group`, `person`, `calendar`, `service` or `permission`.
    pub fn kind(&self) -> &'static str {
        match self {
            NameUse::Group(_) => "group",
            NameUse::Person(_) => "person",
            NameUse::Calendar(_) => "calendar",
            NameUse::Service(_) => "service",
            NameUse::Permission(_) => "permission",
        }
    }

    pub fn name(&self) -> &str {
        match self {
            NameUse::Group(name)
            | NameUse::Person(name)
            | NameUse::Calendar(name)
            | NameUse::Service(name)
            | NameUse::Permission(name) => name,
        }
    }
}

/// Facts about people that flow logic is shown only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Read {
    /// The groups of the actor.
    Groups,
    /// The permissions of the actor's roles.
    Permissions,
    /// The comments of recorded decisions.
    Comments,
    /// The inputs of recorded decisions.
    Inputs,
}

impl Read {
    pub const ALL: [Read; 4] = [
        Read::Groups,
        Read::Permissions,
        Read::Comments,
        Read::Inputs,
    ];

    /// The name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Read::Groups => "groups",
            Read::Permissions => "permissions",
            Read::Comments => "comments",
            Read::Inputs => "inputs",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub name: String,
    pub title: String,
    pub description: String,
    pub kind: StateKind,
    /// For which branches of the fork around it the state waits.
    pub join: Join,
    /// The initiator does this work on their own request and is the only candidate.
    pub own_work: bool,
}

/// For which branches of the fork around it a state waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", content = "count")]
pub enum Join {
    /// The state is no join.
    #[default]
    None,
    /// For all of them, until each has arrived or ended.
    All,
    /// Until so many have arrived. The others are cancelled.
    Count(u32),
}

impl Join {
    /// Whether the state waits for branches.
    pub(crate) fn is_join(self) -> bool {
        self != Join::None
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", content = "outcome")]
pub enum StateKind {
    /// People work on it.
    Task,
    /// A service works on it.
    Service,
    /// Left at once: `transition` chooses the next states.
    Router,
    /// Waits for a signal, a deadline or a child's end.
    Wait,
    /// The instance ends here with this outcome.
    Terminal(String),
}

impl StateKind {
    /// The name of the kind in problems and diagrams.
    pub fn name(&self) -> &'static str {
        match self {
            StateKind::Task => "task",
            StateKind::Service => "service",
            StateKind::Router => "router",
            StateKind::Wait => "wait",
            StateKind::Terminal(_) => "terminal",
        }
    }

    /// Whether `enter` is asked for the work in such a state.
    pub(crate) fn has_work(&self) -> bool {
        matches!(self, StateKind::Task | StateKind::Service | StateKind::Wait)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    pub source: String,
    pub trigger: String,
    /// The states that this trigger may lead to.
    pub targets: Vec<String>,
    /// What may fire it, each source at most once, in the order of [`FiredBy`].
    pub by: Vec<FiredBy>,
    /// The permission (`subject:action`) that the actor needs besides being eligible.
    pub permission: Option<String>,
    /// For people; empty if the trigger is shown.
    pub title: String,
    /// For people: what it means.
    pub description: String,
    /// For people: when it is possible or leads where.
    pub condition: String,
    /// JSON Schema 2020-12 of the input of decisions, signals and replies.
    pub input: Option<Json>,
    pub comment: CommentRule,
}

/// Whether a decision has a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommentRule {
    #[default]
    Optional,
    Required,
    None,
}

impl CommentRule {
    /// The name in the API.
    pub fn name(self) -> &'static str {
        match self {
            CommentRule::Optional => "optional",
            CommentRule::Required => "required",
            CommentRule::None => "none",
        }
    }
}

/// What may fire a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FiredBy {
    Decision,
    Signal,
    Deadline,
    Reply,
    Failure,
    Child,
    Entry,
}

/// The name of the priorities from a number up, until the next name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PriorityName {
    pub name: String,
    pub at_least: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttributeDeclaration {
    pub name: String,
    pub kind: AttributeType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AttributeType {
    Text,
    Boolean,
    Decimal,
    Float,
    Timestamp,
    Bytes,
}

impl Transition {
    /// The title for people: the trigger, if none is declared.
    pub fn shown_title(&self) -> &str {
        if self.title.is_empty() {
            &self.trigger
        } else {
            &self.title
        }
    }
}

impl Graph {
    /// Its approximate length as JSON.
    pub fn bytes(&self) -> usize {
        const PART_BYTES: usize = 100;
        let states = self.states.iter();
        let states = states.map(|state| {
            PART_BYTES + state.name.len() + state.title.len() + state.description.len()
        });
        let transitions = self.transitions.iter().map(|way| {
            let targets = way.targets.iter().map(|target| 3 + target.len());
            let texts = [&way.title, &way.description, &way.condition];
            let texts = texts.into_iter().map(String::len).sum::<usize>();
            let input = way.input.as_ref().map_or(0, |input| input.as_str().len());
            let names = way.source.len() + way.trigger.len();
            PART_BYTES + names + targets.sum::<usize>() + texts + input
        });
        let schema = self
            .data_schema
            .as_ref()
            .map_or(0, |schema| schema.as_str().len());
        let separate = self.separate.iter().flatten().map(|name| 3 + name.len());
        let uses = self.uses.iter().map(|used| PART_BYTES + used.name().len());
        let parts = states.chain(transitions).chain(separate).chain(uses);
        parts.sum::<usize>() + schema + self.description.len()
    }

    /// Whether it lists this calendar among the names that it uses.
    pub(crate) fn uses_calendar(&self, name: &str) -> bool {
        let is_it =
            |used: &NameUse| matches!(used, NameUse::Calendar(calendar) if calendar == name);
        self.uses.iter().any(is_it)
    }

    /// The names that it uses, with those of initiators and of the permissions of transitions, each once.
    pub fn names_used(&self) -> BTreeSet<NameUse> {
        let initiators = self.initiators.iter().cloned().map(NameUse::Group);
        let observers = self.observers.iter().flatten().cloned();
        let groups = initiators.chain(observers.map(NameUse::Group));
        let permissions = self.transitions.iter();
        let permissions = permissions.filter_map(|way| way.permission.clone());
        let permissions = permissions.map(NameUse::Permission);
        let declared = self.uses.iter().cloned();
        groups.chain(permissions).chain(declared).collect()
    }

    /// The states that are separate from this one. Reads all lists, so call it once for all state instances.
    pub fn separate_from(&self, state: &str) -> BTreeSet<&str> {
        let lists = self.separate.iter();
        let lists = lists.filter(|list| list.iter().any(|name| name == state));
        let names = lists.flatten().map(String::as_str);
        names.filter(|name| *name != state).collect()
    }

    /// The declared name of a priority, if any.
    pub fn priority_name(&self, priority: u8) -> Option<&str> {
        let mut names = self.priorities.iter().rev();
        let name = names.find(|name| name.at_least <= priority)?;
        Some(&name.name)
    }

    /// The declared state of this name.
    pub fn state(&self, name: &str) -> Option<&State> {
        self.states.iter().find(|state| state.name == name)
    }

    /// Whether the state is the initiator's work on their own request.
    pub(crate) fn is_own_work(&self, state: &str) -> bool {
        let declared = self.state(state);
        declared.is_some_and(|declared| declared.own_work)
    }

    /// The declared transition out of `source` on `trigger`.
    pub fn transition(&self, source: &str, trigger: &str) -> Option<&Transition> {
        self.leaving(source)
            .find(|transition| transition.trigger == trigger)
    }

    /// All transitions that a signal of this trigger may fire.
    pub fn signalled<'a>(&'a self, trigger: &'a str) -> impl Iterator<Item = &'a Transition> {
        let transitions = self.transitions.iter();
        transitions.filter(move |way| way.trigger == trigger && way.by.contains(&FiredBy::Signal))
    }

    /// All transitions out of `source`, in their declared order.
    pub fn leaving<'a>(&'a self, source: &str) -> impl Iterator<Item = &'a Transition> {
        self.transitions
            .iter()
            .filter(move |transition| transition.source == source)
    }

    /// Whether a transition out of `state` may be fired by this source.
    pub fn leads(&self, state: &str, by: FiredBy) -> bool {
        self.leaving(state).any(|way| way.by.contains(&by))
    }
}
