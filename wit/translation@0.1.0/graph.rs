//! From the definition that `describe` answers to the graph that the host keeps.

use super::lift::{Lifted, each, no_extensions, optional, quoted, text, texts};
use super::types;
use wrkflw_core::graph::{
    AttributeDeclaration, AttributeType, FiredBy, Graph, Read, State, StateKind, Transition,
};
use wrkflw_core::json::Json;

pub(crate) fn graph(definition: types::Definition) -> Lifted<Graph> {
    if let Some(name) = definition.requires.first() {
        let name = quoted(name);
        return Err(format!(
            "the extension `{name}` is required, which this host does not know"
        ));
    }
    no_extensions("the definition", &definition.extensions)?;
    let data_schema = definition.data_schema.map(schema).transpose()?;
    Ok(Graph {
        initial: text("the initial state", definition.initial)?,
        initiators: texts("an initiator group", definition.initiators)?,
        states: each(definition.states, state)?,
        transitions: each(definition.transitions, transition)?,
        data_schema,
        attributes: each(definition.attributes, |attribute| {
            Ok(AttributeDeclaration {
                name: text("an attribute's name", attribute.name)?,
                kind: attribute_type(attribute.kind),
            })
        })?,
        separate: each(definition.separate, |list| {
            texts("a state of a list of separate states", list)
        })?,
        reads: reads(definition.reads),
    })
}

/// A graph is kept as JSON, where `null` stands for no schema.
fn schema(text: String) -> Lifted<Json> {
    match Json::parse(&text) {
        Ok(schema) if schema.as_str() == "null" => {
            Err("the data schema is null: none at all says that any data will do".into())
        }
        Ok(schema) => Ok(schema),
        Err(error) => Err(format!("the data schema is no JSON: {error}")),
    }
}

fn state(state: types::State) -> Lifted<State> {
    no_extensions("a state", &state.extensions)?;
    Ok(State {
        name: text("a state's name", state.name)?,
        title: text("a state's title", state.title)?,
        kind: match state.kind {
            types::StateKind::Task => StateKind::Task,
            types::StateKind::Service => StateKind::Service,
            types::StateKind::Router => StateKind::Router,
            types::StateKind::Wait => StateKind::Wait,
            types::StateKind::Terminal(outcome) => {
                StateKind::Terminal(text("an instance's outcome", outcome)?)
            }
        },
        join: state.join,
        own_work: state.own_work,
    })
}

fn transition(transition: types::Transition) -> Lifted<Transition> {
    no_extensions("a transition", &transition.extensions)?;
    Ok(Transition {
        source: text("a transition's source", transition.source)?,
        trigger: text("a trigger's name", transition.trigger)?,
        targets: texts("a transition's target", transition.targets)?,
        by: fired_by(transition.by),
        permission: optional("a transition's permission", transition.permission)?,
    })
}

fn fired_by(flags: types::FiredBy) -> Vec<FiredBy> {
    [
        (types::FiredBy::DECISION, FiredBy::Decision),
        (types::FiredBy::SIGNAL, FiredBy::Signal),
        (types::FiredBy::DEADLINE, FiredBy::Deadline),
        (types::FiredBy::REPLY, FiredBy::Reply),
        (types::FiredBy::FAILURE, FiredBy::Failure),
        (types::FiredBy::CHILD, FiredBy::Child),
        (types::FiredBy::ENTRY, FiredBy::Entry),
    ]
    .into_iter()
    .filter(|(flag, _)| flags.contains(*flag))
    .map(|(_, fired_by)| fired_by)
    .collect()
}

fn reads(flags: types::Reads) -> Vec<Read> {
    [
        (types::Reads::GROUPS, Read::Groups),
        (types::Reads::PERMISSIONS, Read::Permissions),
        (types::Reads::COMMENTS, Read::Comments),
        (types::Reads::INPUTS, Read::Inputs),
    ]
    .into_iter()
    .filter(|(flag, _)| flags.contains(*flag))
    .map(|(_, read)| read)
    .collect()
}

fn attribute_type(kind: types::AttributeType) -> AttributeType {
    match kind {
        types::AttributeType::Text => AttributeType::Text,
        types::AttributeType::Boolean => AttributeType::Boolean,
        types::AttributeType::Decimal => AttributeType::Decimal,
        types::AttributeType::Float => AttributeType::Float,
        types::AttributeType::Timestamp => AttributeType::Timestamp,
        types::AttributeType::Bytes => AttributeType::Bytes,
    }
}
