//! The graph that a component declares for its config, and that the host holds it to.

use serde::{Deserialize, Serialize};

use super::json::Json;

/// What `describe` declared when the version was published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    pub initial: String,
    /// Groups whose members may start an instance; empty means anyone signed in.
    pub initiators: Vec<String>,
    pub states: Vec<State>,
    pub transitions: Vec<Transition>,
    /// JSON Schema 2020-12 that an instance's data satisfies at all times.
    pub data_schema: Option<Json>,
    pub attributes: Vec<AttributeDeclaration>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub name: String,
    pub title: String,
    pub kind: StateKind,
    /// Begins only when every branch of the fork around it has arrived or ended.
    pub join: bool,
    /// Work that initiators do on their own request; the initiator is the only candidate.
    pub own_work: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", content = "outcome")]
pub enum StateKind {
    /// People work on it.
    Task,
    /// A service works on it.
    Service,
    /// Left at once: `transition` is asked where to go.
    Router,
    /// Waits for a signal, a deadline or a child's end.
    Wait,
    /// The instance ends here with this outcome.
    Terminal(String),
}

impl StateKind {
    /// The kind's name, as problems and diagrams show it.
    pub fn name(&self) -> &'static str {
        match self {
            StateKind::Task => "task",
            StateKind::Service => "service",
            StateKind::Router => "router",
            StateKind::Wait => "wait",
            StateKind::Terminal(_) => "terminal",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    pub source: String,
    pub trigger: String,
    /// Where this trigger may lead.
    pub targets: Vec<String>,
    /// What may fire it, each source at most once, in the order of [`FiredBy`].
    pub by: Vec<FiredBy>,
    /// Permission (`subject:action`) that the actor needs besides being assigned.
    pub permission: Option<String>,
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

impl Graph {
    /// The declared state of this name.
    pub fn state(&self, name: &str) -> Option<&State> {
        self.states.iter().find(|state| state.name == name)
    }

    /// The declared transition out of `source` on `trigger`.
    pub fn transition(&self, source: &str, trigger: &str) -> Option<&Transition> {
        self.leaving(source)
            .find(|transition| transition.trigger == trigger)
    }

    /// All transitions out of `source`, in their declared order.
    pub fn leaving<'a>(&'a self, source: &str) -> impl Iterator<Item = &'a Transition> {
        self.transitions
            .iter()
            .filter(move |transition| transition.source == source)
    }
}
