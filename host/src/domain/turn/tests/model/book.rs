//! The record as an outsider keeps it: who was offered, given and decided what, from the events alone. Each event is held
//! against the rules as it is written down.

use std::collections::{BTreeMap, BTreeSet};

use super::world::World;
use crate::domain::answer::Principal;
use crate::domain::command::Command;
use crate::domain::event::Event;
use crate::domain::graph::{FiredBy, Graph, StateKind};
use crate::domain::ids::{StateId, TaskId};
use crate::domain::instance::{Instance, StateInstance, Status, Task, TaskStatus};
use crate::domain::turn::{LOST_STANDING, NOBODY_ABLE};

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
#[derive(Debug, Clone, Default)]
pub(super) struct Hand {
    pub(super) owner: String,
    pub(super) absent: Option<String>,
    pub(super) chain: Vec<String>,
    pub(super) given: bool,
}

pub(super) struct Book {
    pub(super) graph: Graph,
    pub(super) initiator: String,
    pub(super) requesters: Vec<String>,
    pub(super) life: Life,
    pub(super) stays: BTreeMap<StateId, Stay>,
    pub(super) tasks: BTreeMap<TaskId, Work>,
    /// Targets of plans that were not entered yet.
    due: Vec<String>,
}

/// The moment at which events were written.
pub(super) struct Moment<'a> {
    pub(super) world: &'a World,
    pub(super) actor: &'a str,
    pub(super) command: &'a Command,
}

impl Book {
    pub(super) fn new(graph: Graph) -> Book {
        Book {
            due: vec![graph.initial.clone()],
            graph,
            initiator: String::new(),
            requesters: Vec::new(),
            life: Life::Running,
            stays: BTreeMap::new(),
            tasks: BTreeMap::new(),
        }
    }

    pub(super) fn is_own_work(&self, stay: StateId) -> bool {
        let state = self.graph.state(&self.stays[&stay].name);
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
            Event::TaskCreated { state, task, .. } => self.create(*state, task),
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
                let targets = self.fired(&name, trigger, now)?;
                ensure(to.iter().all(|target| targets.contains(target)), || {
                    format!("{name} on {trigger} leads to {to:?}")
                })?;
                self.due.extend(to.iter().cloned());
                self.leave(*state)
            }
            Event::StateContinued { state, trigger, .. } => {
                let name = self.active(*state)?.name.clone();
                self.fired(&name, trigger, now).map(drop)
            }
            Event::StateCancelled { state, .. } => self.leave(*state),
            Event::StateReassigned {
                state,
                needed,
                exclude,
                fallback,
                ..
            } => {
                let stay = self.active(*state)?;
                stay.needed = *needed as usize;
                stay.exclude.clone_from(exclude);
                stay.fallback.clone_from(fallback);
                Ok(())
            }
            Event::StateUnassignable { state, .. } => {
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
                .graph
                .state(&state.name)
                .is_some_and(|declared| declared.join);
            ensure(!is_join, || format!("{} joins nothing", state.name))?;
            self.come(&state.name)?;
        }
        self.stays.insert(state.id, begun(state, Place::Active));
        Ok(())
    }

    fn come(&mut self, name: &str) -> Checked {
        let place = self.due.iter().position(|due| due == name);
        let place = place.ok_or_else(|| format!("nothing led to {name}"))?;
        self.due.remove(place);
        Ok(())
    }

    /// Where a trigger may lead, if what fired it is declared to.
    fn fired(&self, name: &str, trigger: &str, now: &Moment<'_>) -> Result<Vec<String>, String> {
        let is_router = self
            .graph
            .state(name)
            .is_some_and(|state| state.kind == StateKind::Router);
        let by = match now.command {
            _ if is_router => FiredBy::Entry,
            Command::Decide { outcome, .. } if outcome == trigger => FiredBy::Decision,
            Command::Deadline { .. } => FiredBy::Deadline,
            other => return Err(format!("{} fires {trigger} in {name}", other.action())),
        };
        let way = self.graph.transition(name, trigger);
        let way = way.filter(|way| way.by.contains(&by));
        way.map(|way| way.targets.clone())
            .ok_or_else(|| format!("{by:?} fires {trigger} in {name}"))
    }

    fn leave(&mut self, id: StateId) -> Checked {
        let stay = self.stays.get_mut(&id).ok_or("an unknown stay is left")?;
        ensure(stay.place != Place::Left, || format!("{id} is left twice"))?;
        stay.place = Place::Left;
        let open = self.open_tasks(id).count();
        ensure(open == 0, || format!("{open} tasks outlive their stay"))
    }

    fn create(&mut self, state: StateId, task: &Task) -> Checked {
        self.active(state)?;
        let hand = match &task.status {
            TaskStatus::Claimed { owner, .. } => Some(Hand {
                owner: owner.clone(),
                given: true,
                ..Hand::default()
            }),
            _ => None,
        };
        if let Some(hand) = &hand {
            let place = &self.stays[&state];
            let requested = !self.is_own_work(state) && self.requesters.contains(&hand.owner);
            ensure(!requested && !place.exclude.contains(&hand.owner), || {
                format!("{} is given what they must not decide", hand.owner)
            })?;
        }
        if self.is_own_work(state) {
            let mine = Principal::User(self.initiator.clone());
            let theirs = task.candidates.iter().all(|candidate| *candidate == mine)
                && hand.iter().all(|hand| hand.owner == self.initiator);
            ensure(theirs, || format!("own work of others: {task:?}"))?;
        }
        let work = Work {
            stay: state,
            offered: task.candidates.clone(),
            hand,
            open: true,
            decided: false,
        };
        let before = self.tasks.insert(task.id, work);
        ensure(before.is_none(), || format!("{} is made twice", task.id))
    }

    fn decide(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        let (
            Event::DecisionRecorded {
                task,
                state,
                outcome,
                on_behalf_of,
                ..
            },
            Command::Decide {
                task: asked,
                outcome: wanted,
                ..
            },
        ) = (event, now.command)
        else {
            return Err(format!("{} decides", now.command.action()));
        };
        ensure(task == asked && outcome == wanted, || {
            format!("{task} {outcome} was not asked")
        })?;
        let owner = self
            .open(*task)?
            .hand
            .as_ref()
            .map(|hand| hand.owner.clone());
        let owner = owner.ok_or("nobody's task is decided")?;
        let mut people = BTreeSet::from([now.actor.to_owned(), owner]);
        people.extend(on_behalf_of.clone());
        for person in &people {
            ensure(!self.barred(*state, person), || {
                format!("{person} is barred and decides")
            })?;
        }
        if self.is_own_work(*state) {
            ensure(now.actor == self.initiator, || {
                "own work is done for another".into()
            })?;
        }
        let work = self.open(*task)?;
        (work.open, work.decided) = (false, true);
        ensure(work.stay == *state, || "decided elsewhere".into())?;
        let stay = self.active(*state)?;
        stay.decisions += 1;
        stay.spent.extend(people);
        Ok(())
    }

    fn write_task(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        match event {
            Event::TaskClaimed {
                task,
                owner,
                on_behalf_of,
                ..
            } => {
                ensure(owner == now.actor, || {
                    format!("{} claims for {owner}", now.actor)
                })?;
                let work = self.open(*task)?;
                ensure(work.hand.is_none(), || format!("{task} is claimed twice"))?;
                let right = on_behalf_of.as_ref().unwrap_or(owner);
                ensure(now.world.is_offered(&work.offered, right), || {
                    format!("{task} was not offered to {right}")
                })?;
                work.hand = Some(Hand {
                    owner: owner.clone(),
                    absent: on_behalf_of.clone(),
                    ..Hand::default()
                });
                Ok(())
            }
            Event::TaskReassigned { task, to, .. } => {
                self.open(*task)?.hand = Some(Hand {
                    owner: to.clone(),
                    given: true,
                    ..Hand::default()
                });
                Ok(())
            }
            Event::TaskReleased { task, reason, .. } => {
                let hand = self.open(*task)?.hand.take();
                let hand = hand.ok_or("nobody's task is released")?;
                let lost = reason.as_deref() == Some(LOST_STANDING);
                let kept = hand.given || !hand.chain.is_empty() || {
                    let work = &self.tasks[task];
                    super::rules::is_entitled(now.world, work, &hand, &hand.owner)
                };
                ensure(!(lost && kept), || format!("{} lost nothing", hand.owner))
            }
            Event::TaskReset { task, .. } => {
                let hand = self.open(*task)?.hand.take();
                ensure(hand.is_some(), || "nobody's task is reset".into())
            }
            Event::TaskDelegated { task, from, to, .. } => {
                let hand = self
                    .open(*task)?
                    .hand
                    .as_mut()
                    .ok_or("nobody's is delegated")?;
                ensure(hand.owner == *from, || {
                    format!("{from} delegates another's task")
                })?;
                hand.chain
                    .push(std::mem::replace(&mut hand.owner, to.clone()));
                ensure(hand.chain.len() <= 3, || "delegated once too often".into())?;
                ensure(!hand.chain.contains(to), || {
                    format!("a circle back to {to}")
                })
            }
            Event::TaskResolved { task, from, to, .. } => {
                let hand = self
                    .open(*task)?
                    .hand
                    .as_mut()
                    .ok_or("nobody's is handed back")?;
                ensure(hand.owner == *from, || {
                    format!("{from} hands another's task back")
                })?;
                let back = hand.chain.pop();
                ensure(back.as_ref() == Some(to), || {
                    format!("back to {to}, not {back:?}")
                })?;
                hand.owner.clone_from(to);
                Ok(())
            }
            Event::TaskRerouted {
                task,
                step,
                candidates,
                ..
            } => self.reroute(*task, step, candidates, now),
            Event::TaskCancelled {
                task,
                reason,
                state,
            } => {
                if reason.as_deref() == Some(NOBODY_ABLE) {
                    let able = super::ability::able(self, now.world, *state, *task);
                    ensure(able.is_empty(), || {
                        format!("{able:?} could have done {task}")
                    })?;
                }
                self.open(*task)?.open = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The ladder offers work to the initiator's manager and to the fallback group, besides those who have it.
    fn reroute(&mut self, task: TaskId, step: &str, to: &[Principal], now: &Moment<'_>) -> Checked {
        let work = self.open(task)?.clone();
        ensure(!self.is_own_work(work.stay), || {
            "own work is for nobody else".into()
        })?;
        let rung = match step {
            "manager" => {
                let manager = now.world.manager(&self.initiator);
                manager.map(|id| Principal::User(id.to_owned()))
            }
            "fallback" => self.stays[&work.stay]
                .fallback
                .clone()
                .map(Principal::Group),
            _ => None,
        };
        let mut wanted = work.offered;
        wanted.extend(rung);
        ensure(wanted == to, || format!("{step}: {to:?}, not {wanted:?}"))?;
        self.open(task)?.offered = wanted;
        Ok(())
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

    fn same(&self, task: &Task) -> Checked {
        let work = &self.tasks[&task.id];
        let owner = work.hand.as_ref().map(|hand| hand.owner.as_str());
        let is_same = work.open == task.status.is_open()
            && work.decided == task.decision().is_some()
            && owner == task.owner()
            && work.offered == task.candidates;
        ensure(is_same, || format!("{task:?} is not {work:?}"))
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
    }
}
