//! Wait states: what they wait for, and what becomes of the instances that they start.
//!
//! A stay knows its children from the moment it is entered; hosts start them, cancel them and report their ends later, as
//! commands of their own, because no command changes two instances. A stay that nothing could ever move is refused.

use std::collections::BTreeSet;

use super::deadline;
use super::fault::{self, Fault, TurnError};
use super::{Looking, Phase, Turn};
use crate::domain::answer::{Child, Deadline, OverdueAction, Waiting};
use crate::domain::check::is_key;
use crate::domain::event::Event;
use crate::domain::graph::{FiredBy, Transition};
use crate::domain::ids::{InstanceId, NOT_NORMAL, is_normal};
use crate::domain::instance::{ChildInstance, Entity, StateInstance};
use crate::domain::json::Json;
use crate::domain::lookup::{Findings, Lookup};
use crate::domain::question::Source;
use crate::domain::shown::DATA_BYTES_MAX;

const WAIT: &str = "wait";
/// How many instances one stay may start.
const CHILDREN_MAX: usize = 20;
/// The longest type or id of an entity, as for starts from outside.
const ENTITY_CHARS_MAX: usize = 200;

impl Turn<'_> {
    /// Checks what a wait state waits for, and asks the directory for the calendars that it counts by.
    pub(super) fn wait_for(
        &mut self,
        stay: Box<StateInstance>,
        waiting: Waiting,
    ) -> Result<(), TurnError> {
        self.check_waiting(&stay.name, &waiting)?;
        let lookup = Lookup {
            calendars: deadline::calendars(&waiting.deadlines).cloned().collect(),
            ..Lookup::default()
        };
        if lookup.is_empty() {
            return self.waits(*stay, waiting, &Findings::default());
        }
        self.phase = Phase::Look(lookup, Looking::Wait(stay, waiting));
        Ok(())
    }

    /// Begins a stay in a wait state that was checked.
    pub(super) fn waits(
        &mut self,
        mut stay: StateInstance,
        waiting: Waiting,
        findings: &Findings,
    ) -> Result<(), TurnError> {
        stay.deadlines = self.open_deadlines(WAIT, &waiting.deadlines, findings)?;
        stay.due_at = deadline::earliest(&stay.deadlines);
        stay.correlation = waiting.correlation;
        stay.keep_early = waiting.keep_early;
        for child in waiting.children {
            let child = self.child(child)?;
            stay.children.push(child);
        }
        let state = stay.id;
        let is_deaf = !stay.keep_early;
        self.emit(Event::StateEntered { state: stay });
        if is_deaf {
            self.drop_early(state);
        }
        Ok(())
    }

    fn child(&mut self, child: Child) -> Result<ChildInstance, Fault> {
        Ok(ChildInstance {
            id: InstanceId((self.ids)()),
            key: child.key,
            entity: Entity {
                kind: child.entity_type,
                id: child.entity_id,
            },
            data: data_of(&child.data)?,
            on_end: child.on_end,
            outcome: None,
        })
    }

    fn check_waiting(&self, state: &str, waiting: &Waiting) -> Result<(), Fault> {
        let graph = &self.context.version.graph;
        deadline::check(WAIT, graph, state, &waiting.deadlines)?;
        if let Some(correlation) = &waiting.correlation {
            fault::name(WAIT, "a correlation", correlation)?;
        }
        let count = waiting.children.len();
        if count > CHILDREN_MAX {
            let message = format!("{state} starts {CHILDREN_MAX} instances at most, not {count}");
            return Err(Fault::new(WAIT, message));
        }
        let mut entities = BTreeSet::new();
        for child in &waiting.children {
            self.check_child(state, child)?;
            if !entities.insert((&child.key, &child.entity_type, &child.entity_id)) {
                let message = format!(
                    "{state} starts {} about the same entity twice; one of them could never run",
                    child.key
                );
                return Err(Fault::new(WAIT, message));
            }
        }
        let by_signal = |way: &Transition| way.by.contains(&FiredBy::Signal);
        let fires = |deadline: &Deadline| matches!(deadline.action, OverdueAction::Fire(_));
        let is_movable = graph.leaving(state).any(by_signal)
            || waiting.deadlines.iter().any(fires)
            || waiting.children.iter().any(|child| child.on_end.is_some());
        if is_movable {
            return Ok(());
        }
        let message = format!(
            "{state} waits for nothing that could move it: no signal is declared, no deadline fires, no child has on-end"
        );
        Err(Fault::new(WAIT, message))
    }

    fn check_child(&self, state: &str, child: &Child) -> Result<(), Fault> {
        if !is_key(&child.key) {
            let key = child.key.chars().take(100).collect::<String>();
            let message = format!("{state} starts {key:?}, which is no key of a definition");
            return Err(Fault::new(WAIT, message));
        }
        for (what, name) in [("type", &child.entity_type), ("id", &child.entity_id)] {
            let is_sound = !name.is_empty()
                && name.chars().count() <= ENTITY_CHARS_MAX
                && !name.chars().any(char::is_control)
                && is_normal(name);
            if !is_sound {
                let message = format!(
                    "the entity {what} of a child {} has 1 to {ENTITY_CHARS_MAX} characters {NOT_NORMAL}, none of them a control character",
                    child.key
                );
                return Err(Fault::new(WAIT, message));
            }
        }
        data_of(&child.data)?;
        let Some(trigger) = &child.on_end else {
            return Ok(());
        };
        let way = self.context.version.graph.transition(state, trigger);
        if way.is_some_and(|way| way.by.contains(&FiredBy::Child)) {
            return Ok(());
        }
        let trigger = trigger.chars().take(100).collect::<String>();
        let message = format!(
            "the end of a child of {state} fires {trigger:?}, which is declared for no child there"
        );
        Err(Fault::new(WAIT, message))
    }

    /// A child has ended or could not be started. One of a stay that is over, or that ended before, changes nothing.
    pub(super) fn child_ended(
        &mut self,
        id: InstanceId,
        outcome: &str,
        data: &Json,
        reason: Option<&String>,
    ) {
        let running = self.instance.active.iter().find_map(|stay| {
            let mut children = stay.children.iter();
            let child = children.find(|child| child.id == id && child.outcome.is_none())?;
            Some((stay.id, child.clone()))
        });
        let Some((state, child)) = running else {
            return;
        };
        self.emit(Event::ChildEnded {
            state,
            child: id,
            outcome: outcome.to_owned(),
            reason: reason.cloned(),
        });
        if let Some(trigger) = child.on_end {
            let source = Source::Child {
                id: id.to_string(),
                key: child.key,
                outcome: outcome.to_owned(),
            };
            self.fire(state, trigger, source, data.clone());
        }
    }
}

/// The data that a child starts with.
fn data_of(text: &str) -> Result<Json, Fault> {
    let data = Json::parse(text)
        .map_err(|error| Fault::new(WAIT, format!("the data of a child has {error}")))?;
    if data.as_str().len() > DATA_BYTES_MAX {
        let message = format!("the data of a child is longer than {DATA_BYTES_MAX} bytes");
        return Err(Fault::new(WAIT, message));
    }
    if !data.is_object() {
        return Err(Fault::new(WAIT, "the data of a child is no JSON object"));
    }
    Ok(data)
}
