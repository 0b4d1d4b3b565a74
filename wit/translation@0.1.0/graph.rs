//! Converts the definition that `describe` returns to the graph that the host keeps.

use super::lift::{Lifted, each, no_extensions, optional, quoted, text, texts};
use super::types;
use wrkflw_core::graph::{
    AttributeDeclaration, AttributeType, CommentRule, FiredBy, Graph, Join, NameUse, PriorityName,
    Read, State, StateKind, Transition,
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
    let data_schema = definition.data_schema;
    let data_schema = data_schema.map(|text| schema("the data schema", &text));
    Ok(Graph {
        title: text("the flow's title", definition.title)?,
        description: text("the flow's description", definition.description)?,
        initial: text("the initial state", definition.initial)?,
        initiators: texts("an initiator group", definition.initiators)?,
        states: each(definition.states, state)?,
        transitions: each(definition.transitions, transition)?,
        data_schema: data_schema.transpose()?,
        attributes: each(definition.attributes, |attribute| {
            Ok(AttributeDeclaration {
                name: text("an attribute's name", attribute.name)?,
                kind: attribute_type(attribute.kind),
            })
        })?,
        instance_title: optional("the template of titles", definition.instance_title)?,
        instance_summary: optional("the template of summaries", definition.instance_summary)?,
        priorities: each(definition.priorities, |priority| {
            Ok(PriorityName {
                name: text("a priority's name", priority.name)?,
                at_least: priority.at_least,
            })
        })?,
        separate: each(definition.separate, |list| {
            texts("a state of a list of separate states", list)
        })?,
        reads: reads(definition.reads),
        sole_per_entity: definition.sole_per_entity,
        observers: match definition.visibility {
            types::Visibility::Tenant => None,
            types::Visibility::Participants(groups) => {
                Some(texts("a group that sees instances", groups)?)
            }
        },
        uses: each(definition.uses, name_use)?,
    })
}

/// Checks a schema. A graph is stored as JSON, where `null` means no schema.
fn schema(what: &str, text: &str) -> Lifted<Json> {
    match Json::parse(text) {
        Ok(schema) if schema.as_str() == "null" => {
            Err(format!("{what} is null: leave it out if anything will do"))
        }
        Ok(schema) => Ok(schema),
        Err(error) => Err(format!("{what} is no JSON: {error}")),
    }
}

fn state(state: types::State) -> Lifted<State> {
    no_extensions("a state", &state.extensions)?;
    Ok(State {
        name: text("a state's name", state.name)?,
        title: text("a state's title", state.title)?,
        description: text("a state's description", state.description)?,
        kind: match state.kind {
            types::StateKind::Task => StateKind::Task,
            types::StateKind::Service => StateKind::Service,
            types::StateKind::Router => StateKind::Router,
            types::StateKind::Wait => StateKind::Wait,
            types::StateKind::Terminal(outcome) => {
                StateKind::Terminal(text("an instance's outcome", outcome)?)
            }
        },
        join: match state.join {
            types::Join::None => Join::None,
            types::Join::All => Join::All,
            types::Join::Count(count) => Join::Count(count),
        },
        own_work: state.own_work,
    })
}

fn transition(transition: types::Transition) -> Lifted<Transition> {
    no_extensions("a transition", &transition.extensions)?;
    let input = transition.input;
    let input = input.map(|text| schema("the input schema of a transition", &text));
    Ok(Transition {
        source: text("a transition's source", transition.source)?,
        trigger: text("a trigger's name", transition.trigger)?,
        targets: texts("a transition's target", transition.targets)?,
        by: fired_by(transition.by),
        permission: optional("a transition's permission", transition.permission)?,
        title: text("a transition's title", transition.title)?,
        description: text("a transition's description", transition.description)?,
        condition: text("a transition's condition", transition.condition)?,
        input: input.transpose()?,
        comment: match transition.comment {
            types::CommentRule::Optional => CommentRule::Optional,
            types::CommentRule::Required => CommentRule::Required,
            types::CommentRule::None => CommentRule::None,
        },
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

fn name_use(used: types::NameUse) -> Lifted<NameUse> {
    Ok(match used {
        types::NameUse::Group(id) => NameUse::Group(text("a group that is used", id)?),
        types::NameUse::Person(id) => NameUse::Person(text("a person who is used", id)?),
        types::NameUse::Calendar(name) => NameUse::Calendar(text("a calendar that is used", name)?),
        types::NameUse::Service(name) => NameUse::Service(text("a service that is used", name)?),
    })
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
