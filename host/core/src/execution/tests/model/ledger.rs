//! The model's state, built only from the events: who was offered, owned and decided what. Each event is checked against the
//! rules when it is added.

mod labels;
mod migration;
mod tasks;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::world::World;
use crate::command::Command;
use crate::event::Event;
use crate::graph::{FiredBy, Graph, StateKind};
use crate::ids::{InstanceId, StateId, TaskId};
use crate::instance::{Candidate, Instance, StateInstance, Status};

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
pub(super) enum VisitPhase {
    Waiting,
    Active,
    Left,
}

#[derive(Debug, Clone)]
pub(super) struct StateVisit {
    pub(super) name: String,
    pub(super) place: VisitPhase,
    pub(super) exclude: Vec<String>,
    pub(super) fallback: Option<String>,
    pub(super) needed: usize,
    pub(super) decisions: usize,
    /// Who decided, owned a decided task, or had a decision made in their name.
    pub(super) spent: BTreeSet<String>,
    pub(super) marked: bool,
    pub(super) since: Timestamp,
    /// The triggers of which it takes buffered signals.
    pub(super) buffered: BTreeSet<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) state_instance: StateId,
    pub(super) offered: Vec<Candidate>,
    pub(super) hand: Option<Hand>,
    /// The people to whom the host could have given it when it was created.
    pub(super) able: Vec<&'static str>,
    pub(super) open: bool,
    pub(super) decided: bool,
    pub(super) suspended: bool,
}

/// The owner of a task, and from whom they have it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Hand {
    pub(super) owner: String,
    pub(super) absent: Option<String>,
    pub(super) chain: Vec<String>,
    pub(super) given: bool,
}

/// An instance that a state instance started.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub(super) state_instance: StateId,
    pub(super) on_end: Option<String>,
    pub(super) ended: Option<String>,
}

/// A buffered signal.
#[derive(Debug, Clone)]
pub(super) struct Buffered {
    id: String,
    trigger: String,
    /// Its sender may fire what needs the permission.
    presses: bool,
}

/// What is about to move a state instance.
#[derive(Debug, Clone, PartialEq)]
struct Firing {
    state_instance: StateId,
    trigger: String,
    by: FiredBy,
    presses: bool,
}

pub(super) struct Ledger {
    /// Of both versions.
    pub(super) graphs: Vec<Graph>,
    /// The one that it runs under, from 0.
    pub(super) version: usize,
    pub(super) initiator: String,
    pub(super) requesters: Vec<String>,
    /// The title and the summary.
    labels: labels::Labels,
    pub(super) life: Life,
    pub(super) state_instances: BTreeMap<StateId, StateVisit>,
    pub(super) tasks: BTreeMap<TaskId, Work>,
    pub(super) children: BTreeMap<InstanceId, Child>,
    pub(super) buffered: Vec<Buffered>,
    /// Targets of plans that were not entered yet.
    due: Vec<String>,
    firing: Option<Firing>,
    /// Wait states entered since signals from before were last looked at.
    new_waits: Vec<StateId>,
    /// How many buffered signals the command has taken.
    taken: usize,
}

/// The moment at which events were written.
pub(super) struct Moment<'a> {
    pub(super) world: &'a World,
    pub(super) actor: &'a str,
    pub(super) command: &'a Command,
}

impl Ledger {
    pub(super) fn new(graphs: Vec<Graph>) -> Ledger {
        Ledger {
            due: vec![graphs[0].initial.clone()],
            graphs,
            version: 0,
            initiator: String::new(),
            requesters: Vec::new(),
            labels: (None, None),
            life: Life::Running,
            state_instances: BTreeMap::new(),
            tasks: BTreeMap::new(),
            children: BTreeMap::new(),
            buffered: Vec::new(),
            firing: None,
            new_waits: Vec::new(),
            taken: 0,
        }
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graphs[self.version]
    }

    pub(super) fn is_own_work(&self, state_instance: StateId) -> bool {
        let state = self
            .graph()
            .state(&self.state_instances[&state_instance].name);
        state.expect("a declared state").own_work
    }

    /// Who has decided here, or is excluded by another rule.
    pub(super) fn excluded_people(&self, state_instance: StateId, person: &str) -> bool {
        let spent = &self.state_instances[&state_instance].spent;
        spent.contains(person) || self.is_excluded_by_rule(state_instance, person)
    }

    /// By this graph, where states that are not left have these names.
    fn has_decided_elsewhere(
        &self,
        graph: &Graph,
        renamed: &BTreeMap<String, String>,
        state: &str,
        person: &str,
    ) -> bool {
        let has = |list: &Vec<String>, name: &str| list.iter().any(|listed| listed == name);
        let separate = |visit: &StateVisit| {
            let new = renamed
                .get(&visit.name)
                .filter(|_| visit.place != VisitPhase::Left);
            let other = new.unwrap_or(&visit.name);
            let mut lists = graph.separate.iter();
            other != state && lists.any(|list| has(list, state) && has(list, other))
        };
        let mut visits = self.state_instances.values();
        visits.any(|visit| visit.spent.contains(person) && separate(visit))
    }

    pub(super) fn open_tasks(
        &self,
        state_instance: StateId,
    ) -> impl Iterator<Item = (&TaskId, &Work)> {
        let here = self.tasks.iter();
        here.filter(move |(_, work)| work.state_instance == state_instance && work.open)
    }

    fn active(&mut self, state_instance: StateId) -> Result<&mut StateVisit, String> {
        let found = self.state_instances.get_mut(&state_instance);
        found
            .filter(|state_instance| state_instance.place == VisitPhase::Active)
            .ok_or_else(|| format!("{state_instance} is not active"))
    }

    fn open(&mut self, task: TaskId) -> Result<&mut Work, String> {
        let found = self.tasks.get_mut(&task);
        found
            .filter(|work| work.open)
            .ok_or_else(|| format!("{task} is not open"))
    }

    /// Adds an event after checking that the rules allow it.
    pub(super) fn write(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        match event {
            Event::FlowStarted { .. } | Event::FlowRetitled { .. } => self.write_labels(event),
            Event::FlowCancelled { deadline, .. } => {
                let by_deadline = matches!(now.command, Command::Deadline { deadline: due, .. } if Some(due) == deadline.as_ref());
                let by_command =
                    matches!(now.command, Command::Cancel { .. }) && deadline.is_none();
                ensure(by_deadline || by_command, || {
                    format!("{} cancels", now.command.action())
                })?;
                self.end()
            }
            Event::FlowCompleted { .. } => self.end(),
            Event::FlowCommented { .. } => Ok(()),
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
            Event::StateDisclosed { .. } => Err("nothing is blind here".into()),
            _ => self.write_task(event, now),
        }
    }

    fn end(&mut self) -> Checked {
        self.life = Life::Ended;
        for state_instance in self.state_instances.values_mut() {
            state_instance.place = VisitPhase::Left;
        }
        self.due.clear();
        let open = self.tasks.values().filter(|work| work.open).count();
        ensure(open == 0, || format!("{open} tasks outlive the instance"))
    }

    fn write_state(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        match event {
            Event::StateEntered { state, .. } => self.enter(state),
            Event::BranchArrived { state } => {
                self.come(&state.name)?;
                self.state_instances
                    .insert(state.id, begun(state, VisitPhase::Waiting));
                Ok(())
            }
            Event::StateTransitioned {
                state, trigger, to, ..
            } => {
                self.lead(*state, trigger, to, now)?;
                self.leave(*state)
            }
            Event::StateContinued {
                state, trigger, to, ..
            } => {
                self.lead(*state, trigger, to, now)?;
                self.have_one_task(*state, now)
            }
            Event::StateCancelled { state, .. } => self.leave(*state),
            Event::StateReassigned {
                state,
                needed,
                exclude,
                fallback,
                subscriptions,
                ..
            } => {
                ensure(self.life == Life::Running || migrates(now), || {
                    "reassigned at rest".into()
                })?;
                ensure(subscriptions.is_none() || migrates(now), || {
                    "subscribed otherwise".into()
                })?;
                let state_instance = self.active(*state)?;
                state_instance.needed = *needed as usize;
                state_instance.exclude.clone_from(exclude);
                state_instance.fallback.clone_from(fallback);
                if let Some(subscriptions) = subscriptions {
                    state_instance.buffered = waits::buffered(subscriptions);
                }
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

    /// What a trigger fired here leads to is declared, and is to be entered next.
    fn lead(&mut self, state: StateId, trigger: &str, to: &[String], now: &Moment<'_>) -> Checked {
        let name = self.active(state)?.name.clone();
        let targets = self.fired(state, trigger, now)?;
        ensure(to.iter().all(|target| targets.contains(target)), || {
            format!("{name} on {trigger} leads to {to:?}")
        })?;
        self.due.extend(to.iter().cloned());
        Ok(())
    }

    /// Only targets of plans are entered, and joins only after waiting.
    fn enter(&mut self, state: &StateInstance) -> Checked {
        let waited = self
            .state_instances
            .get(&state.id)
            .is_some_and(|known| known.place == VisitPhase::Waiting);
        if !waited {
            let is_join = self
                .graph()
                .state(&state.name)
                .is_some_and(|declared| declared.join.is_join());
            ensure(!is_join, || format!("{} joins nothing", state.name))?;
            self.come(&state.name)?;
        }
        self.state_instances
            .insert(state.id, begun(state, VisitPhase::Active));
        self.waits(state)
    }

    fn come(&mut self, name: &str) -> Checked {
        let place = self.due.iter().position(|due| due == name);
        let place = place.ok_or_else(|| format!("nothing led to {name}"))?;
        self.due.remove(place);
        Ok(())
    }

    /// The targets of a trigger, if its source is declared.
    fn fired(
        &mut self,
        state_instance: StateId,
        trigger: &str,
        now: &Moment<'_>,
    ) -> Result<Vec<String>, String> {
        ensure(self.life == Life::Running, || "moved at rest".into())?;
        let name = self.state_instances[&state_instance].name.clone();
        let graph = self.graph();
        let is_router = graph
            .state(&name)
            .is_some_and(|state| state.kind == StateKind::Router);
        let way = graph.transition(&name, trigger).cloned();
        let by = match (now.command, self.firing.take()) {
            (_, Some(firing)) if !is_router => {
                ensure(
                    firing.state_instance == state_instance && firing.trigger == trigger,
                    || format!("{trigger} moves {name}, not {firing:?}"),
                )?;
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
                if outcome == trigger && self.tasks[task].state_instance == state_instance =>
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
        let state_instance = self
            .state_instances
            .get_mut(&id)
            .ok_or("an unknown state instance is left")?;
        ensure(state_instance.place != VisitPhase::Left, || {
            format!("{id} is left twice")
        })?;
        state_instance.place = VisitPhase::Left;
        let open = self.open_tasks(id).count();
        ensure(open == 0, || {
            format!("{open} tasks outlive their state instance")
        })
    }

    /// The instance must equal the state built from the events.
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
            let state_instances = self
                .state_instances
                .iter()
                .filter(move |(_, state_instance)| state_instance.place == place);
            state_instances.map(|(id, _)| *id).collect::<BTreeSet<_>>()
        };
        let ids = |state_instances: &[StateInstance]| {
            state_instances
                .iter()
                .map(|state_instance| state_instance.id)
                .collect::<BTreeSet<_>>()
        };
        ensure(at(VisitPhase::Active) == ids(&instance.active), || {
            "other active state instances".into()
        })?;
        ensure(at(VisitPhase::Waiting) == ids(&instance.waiting), || {
            "other waiting state instances".into()
        })?;
        let keyed = instance.active.iter().filter(|one| one.key.is_some());
        let items: BTreeSet<_> = keyed.clone().map(|one| (&one.name, &one.key)).collect();
        ensure(items.len() == keyed.count(), || "one item twice".into())?;
        ensure((life == Life::Ended) == instance.active.is_empty(), || {
            "idle, not ended".into()
        })?;
        self.labels_agree(instance)?;
        self.waits_agree(instance)?;
        for state_instance in instance.state_instances() {
            let known = &self.state_instances[&state_instance.id];
            let marked = known.marked && known.place == VisitPhase::Active;
            ensure(
                marked == state_instance.unassignable_since.is_some(),
                || format!("mark of {}", state_instance.id),
            )?;
            for task in &state_instance.tasks {
                self.same(task, &state_instance.tasks)?;
            }
        }
        Ok(())
    }
}

fn begun(state: &StateInstance, place: VisitPhase) -> StateVisit {
    StateVisit {
        name: state.name.clone(),
        place,
        exclude: state.exclude.clone(),
        fallback: state.fallback.clone(),
        needed: state.needed as usize,
        decisions: 0,
        spent: BTreeSet::new(),
        marked: false,
        since: state.entered_at,
        buffered: waits::buffered(&state.subscriptions),
    }
}

fn migrates(now: &Moment<'_>) -> bool {
    matches!(now.command, Command::Migrate { .. })
}
