//! The effects of a step, in the form of expectations.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use wrkflw_core::answer::{AttributeValue, Violation};
use wrkflw_core::event::Event;
use wrkflw_core::instance::{Candidate, Instance, StateInstance, Status, Task};
use wrkflw_core::json::{Json, Node};
use wrkflw_core::rejection::Rejection;
use wrkflw_core::scenario::{Stopped, Unworked};

/// The code of a flow that cannot answer, or whose answer a host does not accept.
pub(crate) const FAULT: &str = "logic_fault";

/// A refusal: its code, the field that it is about, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenRefusal {
    pub(crate) code: String,
    pub(crate) field: Option<String>,
    pub(crate) message: String,
}

impl SeenRefusal {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> SeenRefusal {
        SeenRefusal {
            code: code.to_owned(),
            field: None,
            message: message.into(),
        }
    }

    /// Why nothing happened. Invalid data or input may have several reasons.
    pub(crate) fn of(stopped: Stopped) -> Vec<SeenRefusal> {
        match stopped {
            Stopped::Rejected(Rejection::Invalid(violations)) => {
                violations.into_iter().map(SeenRefusal::field).collect()
            }
            Stopped::Rejected(rejection) => {
                let code = rejection.forbids().unwrap_or_else(|| rejection.code());
                let code = match &rejection {
                    Rejection::RefusedNow(reason) => reason.code.clone(),
                    _ => code.to_owned(),
                };
                vec![SeenRefusal::new(&code, rejection.to_string())]
            }
            Stopped::Fault(fault) => vec![SeenRefusal::new(FAULT, fault)],
        }
    }

    /// Why somebody has nothing to do.
    pub(crate) fn of_work(unworked: Unworked, by: &str) -> Vec<SeenRefusal> {
        match unworked {
            Unworked::NoTask => {
                let message = format!("there is no such task that {by} could mean");
                vec![SeenRefusal::new("no_task", message)]
            }
            Unworked::ForThemselves => {
                let message = format!("{by} acts here for themselves or for somebody else");
                vec![SeenRefusal::new("own_task", message)]
            }
            Unworked::Stopped(stopped) => SeenRefusal::of(stopped),
        }
    }

    fn field(violation: Violation) -> SeenRefusal {
        SeenRefusal {
            code: violation.code,
            field: Some(violation.field),
            message: violation.message,
        }
    }

    fn node(&self) -> Node {
        object([
            ("code", text(&self.code)),
            ("field", optional(self.field.as_deref())),
            ("message", text(&self.message)),
        ])
    }
}

/// Everything that a step may expect.
pub(crate) fn seen(instance: Option<&Instance>, events: &[Event], refused: &[SeenRefusal]) -> Node {
    let mut members = vec![
        ("refused", list(refused, SeenRefusal::node)),
        (
            "events",
            list(events, |event| object([("type", text(event.kind()))])),
        ),
        ("publishes", Node::Array(published(events))),
        ("notes", Node::Array(notes(events))),
    ];
    if let Some(instance) = instance {
        members.extend(of_instance(instance));
    }
    object(members)
}

/// The parts of an instance that a step may expect.
pub(crate) fn of_instance(instance: &Instance) -> Vec<(&'static str, Node)> {
    let (outcome, reason) = match &instance.status {
        Status::Completed { outcome, .. } => (Some(outcome.as_str()), None),
        Status::Cancelled { reason, .. } | Status::Suspended { reason, .. } => {
            (None, Some(reason.as_str()))
        }
        Status::Running => (None, None),
    };
    let states: Vec<_> = instance.active.iter().collect();
    let unassignable = states
        .iter()
        .filter(|state| state.unassignable_since.is_some());
    let unassignable: Vec<_> = unassignable.map(|state| text(&state.name)).collect();
    let attributes = instance.attributes.iter();
    let attributes: BTreeMap<_, _> = attributes
        .map(|(name, value)| (name.clone(), attribute(value)))
        .collect();
    vec![
        ("status", text(instance.status.name())),
        ("outcome", optional(outcome)),
        ("reason", optional(reason)),
        ("states", list(&states, |state| text(&state.name))),
        (
            "waiting",
            list(&instance.waiting, |state| text(&state.name)),
        ),
        ("tasks", Node::Array(tasks(instance))),
        ("unassignable", Node::Array(unassignable)),
        ("data", instance.data.node()),
        ("attributes", Node::Object(attributes)),
        ("title", optional(instance.labels.title.as_deref())),
        ("summary", optional(instance.labels.summary.as_deref())),
    ]
}

/// The open tasks.
pub(crate) fn tasks(instance: &Instance) -> Vec<Node> {
    let active = instance.active.iter();
    let tasks = active.flat_map(|state| state.tasks.iter().map(move |task| (state, task)));
    let open = tasks.filter(|(_, task)| task.status.is_open());
    open.map(|(state, task)| shown(state, task)).collect()
}

fn shown(state: &StateInstance, task: &Task) -> Node {
    object([
        ("label", text(&task.label)),
        ("in", text(&state.name)),
        ("item", optional(state.key.as_deref())),
        ("for", list(&task.candidates, candidate)),
        ("owner", optional(task.owner())),
        ("due", due(task.due_at.or(state.due_at))),
        ("priority", Node::Number(state.priority.to_string())),
        ("suspended", Node::Bool(task.suspended.is_some())),
    ])
}

fn due(at: Option<Timestamp>) -> Node {
    at.map_or(Node::Null, |at| Node::String(at.to_string()))
}

/// A person is a plain text, a group an object.
fn candidate(candidate: &Candidate) -> Node {
    match candidate {
        Candidate::User(person) => text(person),
        Candidate::Group(group) => object([("group", text(group))]),
        Candidate::Member { person, group } => {
            object([("member", text(person)), ("group", text(group))])
        }
    }
}

fn attribute(value: &AttributeValue) -> Node {
    match value {
        AttributeValue::Text(value) => text(value),
        AttributeValue::Boolean(value) => Node::Bool(*value),
        AttributeValue::Decimal(value) => Node::Number(value.clone()),
        AttributeValue::Float(value) => Json::of(value).node(),
        AttributeValue::Timestamp(value) => Node::String(value.to_string()),
        AttributeValue::Bytes(value) => Node::String(STANDARD.encode(value)),
    }
}

/// The events of the flow's own.
pub(crate) fn published(events: &[Event]) -> Vec<Node> {
    let custom = events.iter().filter_map(|event| match event {
        Event::Custom { name, data } => Some(object([("name", text(name)), ("data", data.node())])),
        _ => None,
    });
    custom.collect()
}

/// The notes of all plans.
pub(crate) fn notes(events: &[Event]) -> Vec<Node> {
    let noted = events.iter().flat_map(|event| match event {
        Event::StateTransitioned { notes, .. } | Event::StateContinued { notes, .. } => &notes[..],
        _ => &[],
    });
    let node = |note: &wrkflw_core::answer::Note| {
        let detail = note.detail.as_ref().map_or(Node::Null, Json::node);
        object([
            ("code", text(&note.code)),
            ("message", text(&note.message)),
            ("detail", detail),
        ])
    };
    noted.map(node).collect()
}

/// An object without the members that are null.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, Node)>) -> Node {
    let members = members
        .into_iter()
        .filter(|(_, value)| *value != Node::Null);
    Node::Object(
        members
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

pub(crate) fn text(text: &str) -> Node {
    Node::String(text.to_owned())
}

fn optional(value: Option<&str>) -> Node {
    value.map_or(Node::Null, text)
}

fn list<T>(items: &[T], node: impl Fn(&T) -> Node) -> Node {
    Node::Array(items.iter().map(node).collect())
}
