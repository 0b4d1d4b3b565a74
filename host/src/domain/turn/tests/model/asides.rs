//! Steps that nobody takes at a task: signals, children that start and end, and migrations.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::book::Place;
use super::flow::TRIGGERS;
use super::step::{Sight, Step};
use crate::domain::command::{Command, Lineage};
use crate::domain::graph::{FiredBy, StateKind};
use crate::domain::ids::InstanceId;
use crate::domain::instance::{CHILD_CANCELLED, CHILD_NOT_STARTED, Entity};
use crate::domain::json::Json;

impl Step {
    /// Mostly one that some state takes now, at times one that none ever takes.
    pub(super) fn signal(&self, sight: &Sight<'_>) -> Command {
        let graph = sight.book.graph();
        let here = |state: &str| {
            let mut stays = sight.instance.active.iter();
            stays.any(|stay| stay.name == state)
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
            instance: sight.instance.id,
            trigger: if self.outcome == 10 { "ON" } else { trigger }.to_owned(),
            id: match self.outcome {
                11 => "\u{7}".to_owned(),
                _ => format!("signal {}", sight.number),
            },
            input: Json::empty(),
            correlation: None,
        }
    }

    /// Any child ever known, or nobody's.
    pub(super) fn child_ends(&self, sight: &Sight<'_>) -> Command {
        let (running, others): (Vec<_>, Vec<_>) =
            sight.book.children.iter().partition(|(_, child)| {
                child.ended.is_none() && sight.book.stays[&child.stay].place == Place::Active
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
            instance: sight.instance.id,
            child: place.map_or(InstanceId(Uuid::nil()), |place| *pick[place].0),
            outcome: outcome.to_owned(),
            data: Json::empty(),
            reason: (outcome == CHILD_NOT_STARTED).then(|| "no version is active".to_owned()),
        }
    }

    /// The walk goes on with a child that runs by now.
    pub(super) fn child_starts(&self, sight: &Sight<'_>) -> Command {
        let parent = sight.instance;
        let stays = parent.active.iter().flat_map(|stay| &stay.children);
        let waiting: Vec<_> = stays.filter(|child| child.outcome.is_none()).collect();
        let Some(place) = self.task.checked_rem(waiting.len()) else {
            return self.signal(sight);
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
    pub(super) fn migrate(&self, sight: &Sight<'_>) -> Command {
        let book = sight.book;
        let other = if self.outcome == 11 {
            book.version
        } else {
            1 - book.version
        };
        let (here, there) = (book.graph(), &book.graphs[other]);
        let stays = sight.instance.active.iter().chain(&sight.instance.waiting);
        let mut states: BTreeMap<_, _> = stays
            .map(|stay| {
                let mut named = here.states.iter();
                let place = named.position(|state| state.name == stay.name);
                let place = place.expect("a declared state");
                (stay.name.clone(), there.states[place].name.clone())
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
            instance: sight.instance.id,
            version: if other == 0 { 1 } else { 2 },
            states,
        }
    }
}
