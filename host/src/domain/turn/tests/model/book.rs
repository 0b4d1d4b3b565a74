//! The record as an outsider keeps it: who was offered, given and decided what, from the events alone. Each event is held
//! against the rules as it is written down.

mod migration;
mod tasks;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::world::World;
use crate::domain::answer::Principal;
use crate::domain::command::Command;
use crate::domain::event::Event;
use crate::domain::graph::{FiredBy, Graph, StateKind};
use crate::domain::ids::{InstanceId, StateId, TaskId};
use crate::domain::instance::{Instance, StateInstance, Status};

/// What a rule forbids, in words.
pub(super) type Checked = Result<(), String>;

pub(super) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(otherwise()) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Running,
    Suspended,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Waiting,
    Active,
    Left,
}

#[derive(Debug, Clone)]
pub(super) struct Stay {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) exclude: Vec<String>,
    pub(super) fallback: Option<String>,
    pub(super) needed: usize,
    pub(super) decisions: usize,
    /// Who decided, owned what was decided, or had it decided in their name.
    pub(super) spent: BTreeSet<String>,
    pub(super) marked: bool,
    pub(super) since: Timestamp,
    /// Signals from before it count.
    pub(super) keep_early: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) stay: StateId,
    pub(super) offered: Vec<Principal>,
    pub(super) hand: Option<Hand>,
    pub(super) open: bool,
    pub(super) decided: bool,
}

/// Who has a task, and from whom.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Hand {
    pub(super) owner: String,
    pub(super) absent: Option<String>,
    pub(super) chain: Vec<String>,
    pub(super) given: bool,
}

/// An instance that a stay started.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub(super) stay: StateId,
    pub(super) on_end: Option<String>,
    pub(super) ended: Option<String>,
}

/// A signal that came before a state waited for it.
#[derive(Debug, Clone)]
pub(super) struct Early {
    id: String,
    trigger: String,
    /// Its sender may fire what needs the permission.
    presses: bool,
}

/// What is about to move a stay.
#[derive(Debug, Clone, PartialEq)]
struct Firing {
    stay: StateId,
    trigger: String,
    by: FiredBy,
    presses: bool,
}

pub(super) struct Book {
    /// Of both versions.
    pub(super) graphs: Vec<Graph>,
    /// The one that it runs under, from 0.
    pub(super) version: usize,
    pub(super) initiator: String,
    pub(super) requesters: Vec<String>,
    pub(super) life: Life,
    pub(super) stays: BTreeMap<StateId, Stay>,
    pub(super) tasks: BTreeMap<TaskId, Work>,
    pub(super) children: BTreeMap<InstanceId, Child>,
    pub(super) early: Vec<Early>,
    /// Targets of plans that were not entered yet.
    due: Vec<String>,
    firing: Option<Firing>,
    /// Signals that a state which counts none from before has put an end to.
    dropped: Vec<String>,
}

/// The moment at which events were written.
pub(super) struct Moment<'a> {
    pub(super) world: &'a World,
    pub(super) actor: &'a str,
    pub(super) command: &'a Command,
}

impl Book {
    pub(super) fn new(graphs: Vec<Graph>) -> Book {
        Book {
            due: vec![graphs[0].initial.clone()],
            graphs,
            version: 0,
            initiator: String::new(),
            requesters: Vec::new(),
            life: Life::Running,
            stays: BTreeMap::new(),
            tasks: BTreeMap::new(),
            children: BTreeMap::new(),
            early: Vec::new(),
            firing: None,
            dropped: Vec::new(),
        }
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graphs[self.version]
    }

    pub(super) fn is_own_work(&self, stay: StateId) -> bool {
        let state = self.graph().state(&self.stays[&stay].name);
        state.expect("a declared state").own_work
    }

    /// Requesters, outside of their own work; who is excluded; who has decided here.
    pub(super) fn barred(&self, stay: StateId, person: &str) -> bool {
        let (own, place) = (self.is_own_work(stay), &self.stays[&stay]);
        let is = |id: &String| id == person;
        (!own && self.requesters.iter().any(is))
            || place.exclude.iter().any(is)
            || place.spent.contains(person)
    }

    pub(super) fn open_tasks(&self, stay: StateId) -> impl Iterator<Item = (&TaskId, &Work)> {
        let here = self.tasks.iter();
        here.filter(move |(_, work)| work.stay == stay && work.open)
    }

    fn active(&mut self, stay: StateId) -> Result<&mut Stay, String> {
        let found = self.stays.get_mut(&stay);
        found
            .filter(|stay| stay.place == Place::Active)
            .ok_or_else(|| format!("{stay} is not active"))
    }

    fn open(&mut self, task: TaskId) -> Result<&mut Work, String> {
        let found = self.tasks.get_mut(&task);
        found
            .filter(|work| work.open)
            .ok_or_else(|| format!("{task} is not open"))
    }

    /// Writes an event down, if it may have happened.
    pub(super) fn write(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        match event {
            Event::FlowStarted {
                initiator,
                requesters,
                ..
            } => {
                self.initiator.clone_from(initiator);
                self.requesters.clone_from(requesters);
                ensure(requesters.contains(initiator), || {
                    "who asked is no requester".into()
                })
            }
            Event::FlowCompleted { .. } | Event::FlowCancelled { .. } => self.end(),
            Event::FlowSuspended { .. } => {
                self.life = Life::Suspended;
                Ok(())
            }
            Event::FlowResumed {} => {
                self.life = Life::Running;
                Ok(())
            }
            Event::StateEntered { .. }
            | Event::BranchArrived { .. }
            | Event::StateTransitioned { .. }
            | Event::StateContinued { .. }
            | Event::StateCancelled { .. }
            | Event::StateReassigned { .. }
            | Event::StateUnassignable { .. }
            | Event::StateAssignable { .. } => self.write_state(event, now),
            Event::SignalReceived { .. }
            | Event::SignalTaken { .. }
            | Event::ChildEnded { .. }
            | Event::TriggerRefused { .. } => self.write_wait(event, now),
            Event::FlowMigrated { .. } => self.go_over(event, now),
            Event::TaskCreated { state, task, .. } => self.create(*state, task, now),
            Event::DecisionRecorded { .. } => self.decide(event, now),
            _ => self.write_task(event, now),
        }
    }

    fn end(&mut self) -> Checked {
        self.life = Life::Ended;
        for stay in self.stays.values_mut() {
            stay.place = Place::Left;
        }
        self.due.clear();
        let open = self.tasks.values().filter(|work| work.open).count();
        ensure(open == 0, || format!("{open} tasks outlive the instance"))
    }

    fn write_state(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        match event {
            Event::StateEntered { state } => self.enter(state),
            Event::BranchArrived { state } => {
                self.come(&state.name)?;
                self.stays.insert(state.id, begun(state, Place::Waiting));
                Ok(())
            }
            Event::StateTransitioned {
                state, trigger, to, ..
            } => {
                let name = self.active(*state)?.name.clone();
                let targets = self.fired(*state, trigger, now)?;
                ensure(to.iter().all(|target| targets.contains(target)), || {
                    format!("{name} on {trigger} leads to {to:?}")
                })?;
                self.due.extend(to.iter().cloned());
                self.leave(*state)
            }
            Event::StateContinued { state, trigger, .. } => {
                self.active(*state)?;
                self.fired(*state, trigger, now).map(drop)
            }
            Event::StateCancelled { state, .. } => self.leave(*state),
            Event::StateReassigned {
                state,
                needed,
                exclude,
                fallback,
                ..
            } => {
                ensure(self.life == Life::Running || migrates(now), || {
                    "reassigned at rest".into()
                })?;
                let stay = self.active(*state)?;
                stay.needed = *needed as usize;
                stay.exclude.clone_from(exclude);
                stay.fallback.clone_from(fallback);
                Ok(())
            }
            Event::StateUnassignable { state, .. } => {
                ensure(!migrates(now), || {
                    "gone over to where nobody can act".into()
                })?;
                let was = std::mem::replace(&mut self.active(*state)?.marked, true);
                ensure(!was, || format!("{state} is unassignable twice"))
            }
            Event::StateAssignable { state, .. } => {
                let was = std::mem::replace(&mut self.active(*state)?.marked, false);
                ensure(was, || format!("{state} was assignable"))
            }
            other => Err(format!("{} is no event of a state", other.kind())),
        }
    }

    /// Only what a plan led to is entered, and joins by way of waiting.
    fn enter(&mut self, state: &StateInstance) -> Checked {
        let waited = self
            .stays
            .get(&state.id)
            .is_some_and(|known| known.place == Place::Waiting);
        if !waited {
            let is_join = self
                .graph()
                .state(&state.name)
                .is_some_and(|declared| declared.join);
            ensure(!is_join, || format!("{} joins nothing", state.name))?;
            self.come(&state.name)?;
        }
        self.stays.insert(state.id, begun(state, Place::Active));
        self.waits(state)
    }

    fn come(&mut self, name: &str) -> Checked {
        let place = self.due.iter().position(|due| due == name);
        let place = place.ok_or_else(|| format!("nothing led to {name}"))?;
        self.due.remove(place);
        Ok(())
    }

    /// Where a trigger may lead, if what fired it is declared to.
    fn fired(
        &mut self,
        stay: StateId,
        trigger: &str,
        now: &Moment<'_>,
    ) -> Result<Vec<String>, String> {
        ensure(self.life == Life::Running, || "moved at rest".into())?;
        let name = self.stays[&stay].name.clone();
        let graph = self.graph();
        let is_router = graph
            .state(&name)
            .is_some_and(|state| state.kind == StateKind::Router);
        let way = graph.transition(&name, trigger).cloned();
        let by = match (now.command, self.firing.take()) {
            (_, Some(firing)) if !is_router => {
                ensure(firing.stay == stay && firing.trigger == trigger, || {
                    format!("{trigger} moves {name}, not {firing:?}")
                })?;
                let needs = way.as_ref().is_some_and(|way| way.permission.is_some());
                ensure(firing.presses || !needs, || {
                    format!("{trigger} without the permission")
                })?;
                firing.by
            }
            (_, firing) if is_router => {
                self.firing = firing;
                FiredBy::Entry
            }
            (Command::Decide { outcome, task, .. }, _)
                if outcome == trigger && self.tasks[task].stay == stay =>
            {
                FiredBy::Decision
            }
            (Command::Deadline { .. }, _) => FiredBy::Deadline,
            (other, _) => return Err(format!("{} fires {trigger} in {name}", other.action())),
        };
        let way = way.filter(|way| way.by.contains(&by));
        way.map(|way| way.targets)
            .ok_or_else(|| format!("{by:?} fires {trigger} in {name}"))
    }

    fn leave(&mut self, id: StateId) -> Checked {
        let stay = self.stays.get_mut(&id).ok_or("an unknown stay is left")?;
        ensure(stay.place != Place::Left, || format!("{id} is left twice"))?;
        stay.place = Place::Left;
        let open = self.open_tasks(id).count();
        ensure(open == 0, || format!("{open} tasks outlive their stay"))
    }

    /// What the events say is what the instance says.
    pub(super) fn agrees(&self, instance: &Instance) -> Checked {
        let life = match instance.status {
            Status::Running => Life::Running,
            Status::Suspended { .. } => Life::Suspended,
            Status::Completed { .. } | Status::Cancelled { .. } => Life::Ended,
        };
        ensure(life == self.life, || {
            format!("{life:?}, not {:?}", self.life)
        })?;
        ensure(self.due.is_empty(), || {
            format!("never entered: {:?}", self.due)
        })?;
        let at = |place| {
            let stays = self
                .stays
                .iter()
                .filter(move |(_, stay)| stay.place == place);
            stays.map(|(id, _)| *id).collect::<BTreeSet<_>>()
        };
        let ids =
            |stays: &[StateInstance]| stays.iter().map(|stay| stay.id).collect::<BTreeSet<_>>();
        ensure(at(Place::Active) == ids(&instance.active), || {
            "other active stays".into()
        })?;
        ensure(at(Place::Waiting) == ids(&instance.waiting), || {
            "other waiting stays".into()
        })?;
        ensure((life == Life::Ended) == instance.active.is_empty(), || {
            "idle, not ended".into()
        })?;
        self.waits_agree(instance)?;
        for stay in instance.stays() {
            let known = &self.stays[&stay.id];
            let marked = known.marked && known.place == Place::Active;
            ensure(marked == stay.unassignable_since.is_some(), || {
                format!("mark of {}", stay.id)
            })?;
            for task in &stay.tasks {
                self.same(task)?;
            }
        }
        Ok(())
    }
}

fn begun(state: &StateInstance, place: Place) -> Stay {
    Stay {
        name: state.name.clone(),
        place,
        exclude: state.exclude.clone(),
        fallback: state.fallback.clone(),
        needed: state.needed as usize,
        decisions: 0,
        spent: BTreeSet::new(),
        marked: false,
        since: state.entered_at,
        keep_early: state.keep_early,
    }
}

fn migrates(now: &Moment<'_>) -> bool {
    matches!(now.command, Command::Migrate { .. })
}
