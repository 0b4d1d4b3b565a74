//! Wait states: what they wait for, and the child instances that they start.
//!
//! A state instance has the ids of its children from the moment it is entered. The host starts, cancels and reports the end of
//! children by separate commands, because no command changes two instances. A wait state that nothing could ever move is a fault.

use std::collections::BTreeSet;

use super::enter::{ENTER, check_subscriptions};
use super::fault::{ExecutionError, Fault};
use super::{Execution, Ids, blind, deadline, overdue};
use crate::answer::{Child, Waiting};
use crate::check::names::is_name;
use crate::command::Command;
use crate::event::Event;
use crate::graph::{FiredBy, Graph};
use crate::ids::{InstanceId, check_id};
use crate::instance::{ChildInstance, Entity, StateInstance};
use crate::json::Json;
use crate::lookup::Findings;
use crate::question::Source;
use crate::shown::DATA_BYTES_MAX;

/// How many instances one state instance may start.
const CHILDREN_MAX: usize = 20;
/// The longest type or id of an entity, in characters; the API has the same limit.
const ENTITY_CHARS_MAX: usize = 200;

/// Enters a wait state after the checks.
pub(super) fn enter(
    execution: &mut Execution<'_>,
    mut state_instance: StateInstance,
    waiting: Waiting,
    findings: &Findings,
) -> Result<(), ExecutionError> {
    let from = deadline::counting_from(&execution.instance, execution.context.now);
    let ids = &mut *execution.ids;
    state_instance.deadlines = deadline::open(ids, from, &waiting.deadlines, false, findings)?;
    state_instance.due_at = deadline::earliest(&state_instance.deadlines);
    state_instance.subscriptions = waiting.subscriptions;
    for child in waiting.children {
        let child = new_child(execution.ids, child)?;
        state_instance.children.push(child);
    }
    let state = state_instance.id;
    blind::emit_entered(execution, state_instance);
    execution.dropping.push(state);
    Ok(())
}

fn new_child(ids: &mut Ids<'_>, child: Child) -> Result<ChildInstance, Fault> {
    Ok(ChildInstance {
        id: InstanceId(ids()),
        key: child.key,
        entity: Entity {
            kind: child.entity_type,
            id: child.entity_id,
        },
        data: data_of(&child.data)?,
        on_end: child.on_end,
        detached: child.detached,
        outcome: None,
        version: None,
    })
}

/// Checks what `enter` answers for a wait state.
pub(super) fn check(graph: &Graph, state: &str, waiting: &Waiting) -> Result<(), Fault> {
    deadline::check_without_tasks(graph, state, &waiting.deadlines)?;
    check_subscriptions(graph, state, &waiting.subscriptions)?;
    let count = waiting.children.len();
    if count > CHILDREN_MAX {
        let message = format!("{state} starts {CHILDREN_MAX} instances at most, not {count}");
        return Err(Fault::new(ENTER, message));
    }
    let mut entities = BTreeSet::new();
    for child in &waiting.children {
        check_child(graph, state, child)?;
        if !entities.insert((&child.key, &child.entity_type, &child.entity_id)) {
            let message = format!(
                "{state} starts {} about the same entity twice; one of them could never run",
                child.key
            );
            return Err(Fault::new(ENTER, message));
        }
    }
    let is_movable = graph.leads(state, FiredBy::Signal)
        || waiting
            .deadlines
            .iter()
            .any(|deadline| deadline.action.moves())
        || waiting.children.iter().any(|child| child.on_end.is_some());
    if is_movable {
        return Ok(());
    }
    let message = format!(
        "{state} waits for nothing that could move it: no signal is declared, no deadline fires or cancels, no child has on-end"
    );
    Err(Fault::new(ENTER, message))
}

fn check_child(graph: &Graph, state: &str, child: &Child) -> Result<(), Fault> {
    if !is_name(&child.key) {
        let key = child.key.chars().take(100).collect::<String>();
        let message = format!("{state} starts {key:?}, which is no key of a definition");
        return Err(Fault::new(ENTER, message));
    }
    for (what, name) in [("type", &child.entity_type), ("id", &child.entity_id)] {
        if let Err(rule) = check_id(name, ENTITY_CHARS_MAX) {
            let message = format!("the entity {what} of a child {} is not: {rule}", child.key);
            return Err(Fault::new(ENTER, message));
        }
    }
    data_of(&child.data)?;
    let Some(trigger) = &child.on_end else {
        return Ok(());
    };
    let way = graph.transition(state, trigger);
    if way.is_some_and(|way| way.by.contains(&FiredBy::Child)) {
        return Ok(());
    }
    let trigger = trigger.chars().take(100).collect::<String>();
    let message = format!(
        "the end of a child of {state} fires {trigger:?}, which is declared for no child there"
    );
    Err(Fault::new(ENTER, message))
}

/// A child has ended or could not be started. Nothing changes if its state instance has ended, or for a repeated report.
pub(super) fn child_ended(execution: &mut Execution<'_>, id: InstanceId, command: &Command) {
    let Command::ChildEnded {
        version,
        outcome,
        data,
        reason,
        ..
    } = command
    else {
        unreachable!("called only for the end of a child")
    };
    let running = execution.instance.active.iter().find_map(|state_instance| {
        let mut children = state_instance.children.iter();
        let child = children.find(|child| child.id == id && child.outcome.is_none())?;
        Some((state_instance.id, child.clone()))
    });
    let Some((state, child)) = running else {
        return;
    };
    execution.emit(Event::ChildEnded {
        state,
        child: id,
        version: *version,
        outcome: outcome.clone(),
        reason: reason.clone(),
    });
    if let Some(trigger) = child.on_end {
        let source = Source::Child {
            id: id.to_string(),
            key: child.key,
            entity: child.entity,
            version: *version,
            outcome: outcome.clone(),
            reason: reason.clone(),
        };
        overdue::fire(execution, state, trigger, source, data.clone());
    }
}

/// The data that a child starts with.
fn data_of(text: &str) -> Result<Json, Fault> {
    let data = Json::parse(text)
        .map_err(|error| Fault::new(ENTER, format!("the data of a child has {error}")))?;
    if data.as_str().len() > DATA_BYTES_MAX {
        let message = format!("the data of a child is longer than {DATA_BYTES_MAX} bytes");
        return Err(Fault::new(ENTER, message));
    }
    if !data.is_object() {
        return Err(Fault::new(ENTER, "the data of a child is no JSON object"));
    }
    Ok(data)
}
