//! The parts of an event that consumers see: only the members that its declaration names as public.
//!
//! The functions work on the stored text, so that numbers keep their text. Members that the declaration does not name, and
//! events of a type that this host does not know, are not published.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::About;
use crate::event_schema::{EventType, Shape};
use crate::graph::{Graph, Transition};
use crate::json::{Json, JsonError, Member, Node, escaped, members};
use crate::template::Labels;

/// The audit type of events that flows publish themselves.
pub const CUSTOM: &str = "CUSTOM";
/// The annotation by which the schema of an input declares a field public.
const IS_PUBLIC: &str = "x-public";
/// Maximum number of data pointers in one event. For more changes, pointers to the members that contain them are given.
const POINTERS_MAX: usize = 100;

/// The texts of a definition version that events carry, and the input fields that it declares public.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DefinitionTexts {
    pub title: Option<String>,
    state_titles: BTreeMap<String, String>,
    /// By state and trigger.
    public_inputs: BTreeMap<(String, String), Vec<String>>,
}

impl DefinitionTexts {
    pub fn of(graph: &Graph) -> DefinitionTexts {
        let titled = graph.states.iter().filter(|state| !state.title.is_empty());
        let public = |transition: &Transition| {
            let fields = public_fields(transition.input.as_ref()?);
            let key = (transition.source.clone(), transition.trigger.clone());
            (!fields.is_empty()).then_some((key, fields))
        };
        DefinitionTexts {
            title: Some(graph.title.clone()).filter(|title| !title.is_empty()),
            state_titles: titled
                .map(|state| (state.name.clone(), state.title.clone()))
                .collect(),
            public_inputs: graph.transitions.iter().filter_map(public).collect(),
        }
    }

    pub fn state_title(&self, state: &str) -> Option<&str> {
        self.state_titles.get(state).map(String::as_str)
    }

    fn is_public_input(&self, about: &About, field: &str) -> bool {
        let (Some(state), Some(trigger)) = (&about.state_name, &about.trigger) else {
            return false;
        };
        let key = (state.clone(), trigger.clone());
        let fields = self.public_inputs.get(&key);
        fields.is_some_and(|fields| fields.iter().any(|public| public == field))
    }
}

/// The properties that a schema declares public.
fn public_fields(schema: &Json) -> Vec<String> {
    if !schema.as_str().contains(IS_PUBLIC) {
        return Vec::new();
    }
    let Node::Object(mut schema) = schema.node() else {
        return Vec::new();
    };
    let Some(Node::Object(properties)) = schema.remove("properties") else {
        return Vec::new();
    };
    let is_public = |property: &Node| match property {
        Node::Object(property) => matches!(property.get(IS_PUBLIC), Some(Node::Bool(true))),
        _ => false,
    };
    let public = properties.into_iter().filter(|(_, of)| is_public(of));
    public.map(|(name, _)| name).collect()
}

/// The content of an event that its entry does not have, as at the time of the event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventContext {
    /// The title and the summary of the instance.
    pub labels: Labels,
    /// The name of the state that the entry is about, if the entry does not say it.
    pub state_name: Option<String>,
    /// The title of the task that the entry is about, if the entry does not say it.
    pub task_title: Option<String>,
    pub definition: Arc<DefinitionTexts>,
}

/// The CloudEvents type of an audit type without the operator's prefix: `task.claimed` for `TASK_CLAIMED`, and `custom.` with the
/// event's name for events that flows publish.
pub fn type_suffix(kind: &str, custom_name: Option<&str>) -> String {
    match custom_name {
        Some(name) => format!("custom.{name}"),
        None => kind.to_ascii_lowercase().replacen('_', ".", 1),
    }
}

/// The public members of an entry, sorted by name, and its subject. Members without a value are absent.
pub fn published<'a>(
    kind: &str,
    payload: &'a str,
    context: &EventContext,
) -> Result<(Vec<Member<'a>>, About), JsonError> {
    let stored = members(payload)?;
    let mut about = About::among(kind, &stored);
    if about.state.is_some() && about.state_name.is_none() {
        about.state_name.clone_from(&context.state_name);
    }
    if about.task.is_some() && about.task_title.is_none() {
        about.task_title.clone_from(&context.task_title);
    }
    let Some(event_type) = EventType::public(kind) else {
        return Ok((Vec::new(), about));
    };
    let view = View {
        about: &about,
        definition: &context.definition,
        blind: is_blind(kind, payload).then_some(kind),
    };
    let own = view.record(event_type.members, stored)?;
    Ok((own, about))
}

/// Whether the entry is a decision that is hidden until its state ends, or an effect of such a decision: its member `blind` says so.
pub(crate) fn is_blind(kind: &str, payload: &str) -> bool {
    const BLIND: &str = r#""blind":true"#;
    // Most entries do not contain it at all. Names are sorted, so it is usually the first one.
    if !payload.contains(BLIND) || !EventType::has_field(kind, "blind") {
        return false;
    }
    let is_first = payload
        .strip_prefix('{')
        .is_some_and(|first| first.starts_with(BLIND));
    is_first
        || members(payload)
            .unwrap_or_default()
            .iter()
            .any(|(name, value)| name == "blind" && value == "true")
}

/// Whether a blind entry of this kind discloses the public member. It discloses the effects of a decision, not the decision.
fn discloses(kind: &str, member: &str) -> bool {
    match kind {
        "DECISION_RECORDED" => matches!(member, "blind" | "stateName"),
        "STATE_ENTERED" => member != "enteredTrigger",
        _ => !matches!(member, "trigger" | "notes"),
    }
}

struct View<'v> {
    about: &'v About,
    definition: &'v DefinitionTexts,
    /// The kind of a blind entry.
    blind: Option<&'v str>,
}

type Declared = [Option<crate::event_schema::Member>];

impl View<'_> {
    /// The declared members among the stored ones, under their public names.
    fn record<'a>(
        &self,
        declared: &Declared,
        stored: Vec<Member<'a>>,
    ) -> Result<Vec<Member<'a>>, JsonError> {
        let mut public = Vec::with_capacity(stored.len());
        for (name, value) in stored {
            let Some(member) = crate::event_schema::declared(declared, &name) else {
                continue;
            };
            let is_hidden = self
                .blind
                .is_some_and(|kind| !discloses(kind, member.name()));
            if is_hidden || member.may_be_absent() && value == "null" {
                continue;
            }
            if let Some(value) = self.value(member.shape(), value)? {
                public.push((Cow::Borrowed(member.name()), value));
            }
        }
        public.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(public)
    }

    /// The public part of a value. None if it is not of the declared shape.
    fn value<'a>(
        &self,
        shape: Shape,
        value: Cow<'a, str>,
    ) -> Result<Option<Cow<'a, str>>, JsonError> {
        Ok(match shape {
            Shape::Id | Shape::Text | Shape::OneOf(_) | Shape::Time | Shape::Count => {
                Some(value).filter(|value| !value.starts_with(['{', '[']))
            }
            Shape::Anything => Some(value),
            Shape::Record(declared) => Some(Cow::Owned(self.object(declared, &value)?)),
            Shape::List(of) => Some(Cow::Owned(self.list(*of, &value)?)),
            Shape::Pointers => Some(Cow::Owned(
                Json::of(&changed_pointers(&Node::parse(&value)?)).to_string(),
            )),
            Shape::Version => members(&value)?
                .into_iter()
                .find(|(name, _)| name == "version")
                .map(|(_, version)| Cow::Owned(version.into_owned())),
            Shape::Input => self.input(&value)?.map(Cow::Owned),
            Shape::Flattened(_) => None,
        })
    }

    fn object(&self, declared: &Declared, value: &str) -> Result<String, JsonError> {
        let public = self.record(declared, members(value)?)?;
        Ok(object(&public))
    }

    fn list(&self, of: Shape, value: &str) -> Result<String, JsonError> {
        let items: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
        let mut public = Vec::with_capacity(items.len());
        for item in items {
            public.extend(self.value(of, Cow::Borrowed(item.get()))?);
        }
        Ok(format!("[{}]", public.join(",")))
    }

    /// The fields of an input that the definition declares public. None if there are none.
    fn input(&self, value: &str) -> Result<Option<String>, JsonError> {
        let mut fields = members(value)?;
        fields.retain(|(field, _)| self.definition.is_public_input(self.about, field));
        Ok((!fields.is_empty()).then(|| object(&fields)))
    }
}

fn object(members: &[Member<'_>]) -> String {
    let members = members.iter().map(|(name, value)| (&**name, &**value));
    Json::of_members(members).to_string()
}

/// JSON Pointers to the values that a merge patch changes, sorted. The empty pointer is the whole document.
pub(crate) fn changed_pointers(patch: &Node) -> Vec<String> {
    for depth in [usize::MAX, 1, 0] {
        let mut found = Vec::new();
        changed(patch, depth, &mut String::new(), &mut found);
        if found.len() <= POINTERS_MAX {
            return found;
        }
    }
    Vec::new()
}

/// Collects at most one pointer more than an event may have.
fn changed(node: &Node, depth: usize, pointer: &mut String, found: &mut Vec<String>) {
    let members = match node {
        Node::Object(members) if depth > 0 && (pointer.is_empty() || !members.is_empty()) => {
            members
        }
        _ => return found.push(pointer.clone()),
    };
    for (name, value) in members {
        if found.len() > POINTERS_MAX {
            return;
        }
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&escaped(name));
        changed(value, depth - 1, pointer, found);
        pointer.truncate(length);
    }
}
