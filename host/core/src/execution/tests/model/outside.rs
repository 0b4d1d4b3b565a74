//! Steps without a task: signals, children that start and end, and migrations.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::flow::TRIGGERS;
use super::ledger::VisitPhase;
use super::step::{ModelStep, View};
use crate::command::{Command, Lineage};
use crate::graph::{FiredBy, StateKind};
use crate::ids::InstanceId;
use crate::instance::{CHILD_CANCELLED, CHILD_NOT_STARTED, Entity};
use crate::json::Json;

impl ModelStep {
    /// Usually a signal that some state takes now, sometimes one that no state takes.
    pub(super) fn signal(&self, view: &View<'_>) -> Command {
        let graph = view.ledger.graph();
        let here = |state: &str| {
            let mut state_instances = view.instance.active.iter();
            state_instances.any(|state_instance| state_instance.name == state)
        };
        let ways = graph.transitions.iter();
        let ways = ways.filter(|way| way.by.contains(&FiredBy::Signal));
        let (mut ways, others): (Vec<_>, Vec<_>) = ways.partition(|way| here(&way.source));
        if ways.is_empty() || self.to.is_multiple_of(3) {
            ways = others;
        }
        let place = self.task.checked_rem(ways.len());
        let trigger = place.map_or(TRIGGERS[self.to % 3], |place| &ways[place].trigger);
        Command::Signal {
            instance: view.instance.id,
            trigger: if self.outcome == 10 { "ON" } else { trigger }.to_owned(),
            id: match self.outcome {
                11 => "\u{7}".to_owned(),
                _ => format!("signal {}", view.number),
            },
            input: Json::empty(),
            correlation: None,
            state: None,
        }
    }

    /// Usually the end of a running child.
    pub(super) fn child_ends(&self, view: &View<'_>) -> Command {
        let (running, others): (Vec<_>, Vec<_>) =
            view.ledger.children.iter().partition(|(_, child)| {
                child.ended.is_none()
                    && view.ledger.state_instances[&child.state_instance].place
                        == VisitPhase::Active
            });
        let pick = if running.is_empty() || self.outcome > 8 {
            others
        } else {
            running
        };
        let place = self.task.checked_rem(pick.len());
        let outcomes = ["E0", CHILD_CANCELLED, CHILD_NOT_STARTED];
        let outcome = outcomes[self.to % outcomes.len()];
        Command::ChildEnded {
            instance: view.instance.id,
            child: place.map_or(InstanceId(Uuid::nil()), |place| *pick[place].0),
            version: (outcome != CHILD_NOT_STARTED).then_some(1),
            outcome: outcome.to_owned(),
            data: Json::empty(),
            reason: (outcome == CHILD_NOT_STARTED).then(|| "no version is active".to_owned()),
        }
    }

    /// The walk continues with a running child.
    pub(super) fn child_starts(&self, view: &View<'_>) -> Command {
        let parent = view.instance;
        let state_instances = parent
            .active
            .iter()
            .flat_map(|state_instance| &state_instance.children);
        let waiting: Vec<_> = state_instances
            .filter(|child| child.outcome.is_none())
            .collect();
        let Some(place) = self.task.checked_rem(waiting.len()) else {
            return self.signal(view);
        };
        let child = waiting[place];
        Command::Start {
            definition: child.key.clone(),
            entity: Entity::clone(&child.entity),
            data: child.data.clone(),
            lineage: Some(Box::new(Lineage {
                id: Some(child.id),
                initiator: Some(parent.initiator.clone()),
                predecessor: None,
                parent: Some(parent.id),
                requesters: parent.requesters.clone(),
            })),
        }
    }

    /// Mostly to the other version, each state to the one in its place; at times with one name left out, or too many.
    pub(super) fn migrate(&self, view: &View<'_>) -> Command {
        let ledger = view.ledger;
        let other = if self.outcome == 11 {
            ledger.version
        } else {
            1 - ledger.version
        };
        let (here, there) = (ledger.graph(), &ledger.graphs[other]);
        let state_instances = view.instance.active.iter().chain(&view.instance.waiting);
        let mut states: BTreeMap<_, _> = state_instances
            .map(|state_instance| {
                let mut named = here.states.iter();
                let place = named.position(|state| state.name == state_instance.name);
                let place = place.expect("a declared state");
                (
                    state_instance.name.clone(),
                    there.states[place].name.clone(),
                )
            })
            .filter(|(old, new)| old != new || self.to.is_multiple_of(4))
            .collect();
        let any = |number: usize| there.states[number % there.states.len()].name.clone();
        match self.to {
            30..33 => drop(states.pop_first()),
            33 => drop(states.insert(any(self.task), any(self.outcome))),
            34..37 => {
                let works = there.states.iter();
                let works = works.filter(|state| state.kind == StateKind::Task);
                let works: Vec<_> = works.collect();
                if let Some(place) = self.task.checked_rem(works.len()) {
                    for new in states.values_mut() {
                        new.clone_from(&works[place].name);
                    }
                }
            }
            _ => {}
        }
        Command::Migrate {
            instance: view.instance.id,
            version: if other == 0 { 1 } else { 2 },
            states,
        }
    }
}
