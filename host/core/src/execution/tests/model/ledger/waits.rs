//! Signals and children in the model, checked against the rules.

use std::collections::BTreeSet;

use super::{
    Buffered, Checked, Child, Firing, Ledger, Life, Moment, StateVisit, VisitPhase, ensure,
};
use crate::answer::{OverdueAction, SignalSubscription};
use crate::command::Command;
use crate::event::Event;
use crate::graph::{FiredBy, Graph, StateKind, Transition};
use crate::ids::StateId;
use crate::instance::{Instance, OpenDeadline, StateInstance};

impl Ledger {
    /// The way that a signal fires in the state of this name.
    pub(in super::super) fn heard(&self, state: &str, trigger: &str) -> Option<&Transition> {
        let way = self.graph().transition(state, trigger);
        way.filter(|way| way.by.contains(&FiredBy::Signal))
    }

    /// The oldest state instance that takes the signal now. None if the signal goes behind those that are still to be taken.
    pub(in super::super) fn taker(&self, trigger: &str) -> Option<StateId> {
        let taker = self.oldest(|visit| self.heard(&visit.name, trigger).is_some());
        taker.filter(|taker| self.waited().is_none() || self.listener(trigger) != Some(*taker))
    }

    /// The oldest state instance that takes the buffered signal.
    fn listener(&self, trigger: &str) -> Option<StateId> {
        self.oldest(|visit| {
            visit.buffered.contains(trigger) && self.heard(&visit.name, trigger).is_some()
        })
    }

    /// The first buffered signal that some state instance takes.
    fn waited(&self) -> Option<&Buffered> {
        let mut buffered = self.buffered.iter();
        buffered.find(|signal| self.listener(&signal.trigger).is_some())
    }

    fn oldest(&self, is_meant: impl Fn(&StateVisit) -> bool) -> Option<StateId> {
        let here = self.state_instances.iter();
        here.filter(|(_, state_instance)| state_instance.place == VisitPhase::Active)
            .filter(|(_, state_instance)| is_meant(state_instance))
            .min_by_key(|(id, state_instance)| (state_instance.since, **id))
            .map(|(id, _)| *id)
    }

    pub(super) fn is_wait(&self, name: &str) -> bool {
        let declared = self.graph().state(name);
        declared.is_some_and(|state| state.kind == StateKind::Wait)
    }

    /// A state instance that waits waits for something, and puts an end to signals from before that it does not count.
    pub(super) fn waits(&mut self, state: &StateInstance) -> Checked {
        if !self.is_wait(&state.name) {
            return ensure(state.children.is_empty(), || "people start children".into());
        }
        ensure(self.is_movable(state), || {
            format!("nothing could move {}", state.name)
        })?;
        let entities: BTreeSet<_> = state
            .children
            .iter()
            .map(|child| (&child.key, &child.entity.kind, &child.entity.id))
            .collect();
        ensure(entities.len() == state.children.len(), || {
            "two children about one entity".into()
        })?;
        for child in &state.children {
            let new = Child {
                state_instance: state.id,
                on_end: child.on_end.clone(),
                ended: None,
            };
            let before = self.children.insert(child.id, new);
            ensure(before.is_none(), || format!("{} begins twice", child.id))?;
        }
        self.new_waits.push(state.id);
        Ok(())
    }

    /// Once all that follows is entered, new waits have put an end to the signals that they declare and that nobody takes.
    fn have_ended_signals(&mut self) -> Checked {
        for state in std::mem::take(&mut self.new_waits) {
            let state_instance = &self.state_instances[&state];
            // One that it takes has itself as a listener.
            let mut buffered = self.buffered.iter();
            let kept = buffered.find(|signal| {
                self.heard(&state_instance.name, &signal.trigger).is_some()
                    && self.listener(&signal.trigger).is_none()
            });
            ensure(
                kept.is_none() || state_instance.place != VisitPhase::Active,
                || format!("{kept:?} is kept on"),
            )?;
        }
        Ok(())
    }

    fn is_movable(&self, state_instance: &StateInstance) -> bool {
        is_movable_in(self.graph(), &state_instance.name, state_instance)
    }

    /// What goes on after a trigger without being left can go on at all.
    pub(in super::super) fn goes_on(
        &self,
        instance: &Instance,
        state_instance: StateId,
    ) -> Checked {
        let state_instance = instance
            .active
            .iter()
            .find(|active| active.id == state_instance);
        ensure(
            state_instance.is_none_or(|state_instance| self.is_movable(state_instance)),
            || "goes on, and nothing can move it".into(),
        )
    }

    pub(super) fn write_wait(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        match event {
            Event::SignalReceived { .. } => self.receive(event, now),
            Event::SignalTaken { id, state, .. } => self.take(id, *state),
            Event::ChildEnded {
                state,
                child,
                outcome,
                ..
            } => {
                let is_reported = matches!(now.command,
                    Command::ChildEnded { child: of, outcome: with, .. } if of == child && with == outcome);
                ensure(is_reported, || {
                    format!("{} ends a child", now.command.action())
                })?;
                self.active(*state)?;
                let known = self.children.get_mut(child);
                let known =
                    known.filter(|known| known.state_instance == *state && known.ended.is_none());
                let known = known.ok_or_else(|| format!("{child} does not run"))?;
                known.ended = Some(outcome.clone());
                if let Some(trigger) = known.on_end.clone() {
                    self.fire(*state, trigger, FiredBy::Child, true)?;
                }
                Ok(())
            }
            Event::TriggerRefused { state, trigger, .. } => {
                self.active(*state)?;
                let firing = self.firing.take();
                let by_deadline = matches!(now.command, Command::Deadline { .. });
                let is_same = firing.is_some_and(|firing| {
                    firing.state_instance == *state && firing.trigger == *trigger
                });
                ensure(is_same || by_deadline, || {
                    format!("{trigger} was not fired")
                })
            }
            other => Err(format!("{} is no event of a wait", other.kind())),
        }
    }

    fn fire(
        &mut self,
        state_instance: StateId,
        trigger: String,
        by: FiredBy,
        presses: bool,
    ) -> Checked {
        let new = Firing {
            state_instance,
            trigger,
            by,
            presses,
        };
        let before = self.firing.replace(new);
        ensure(before.is_none(), || format!("{before:?} is forgotten"))
    }

    /// The oldest that takes it gets it; it is kept where there is none.
    fn receive(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        let (
            Event::SignalReceived {
                id, trigger, state, ..
            },
            Command::Signal {
                id: sent,
                trigger: wanted,
                ..
            },
        ) = (event, now.command)
        else {
            return Err(format!("{} signals", now.command.action()));
        };
        ensure(id == sent && trigger == wanted, || {
            format!("{trigger} {id} was not sent")
        })?;
        let taker = self.taker(trigger);
        ensure(*state == taker, || {
            format!("{state:?} takes it, not {taker:?}")
        })?;
        let presses = now.world.may_press(now.actor);
        if let Some(state_instance) = taker {
            return self.fire(state_instance, trigger.clone(), FiredBy::Signal, presses);
        }
        self.buffered.push(Buffered {
            id: id.clone(),
            trigger: trigger.clone(),
            presses,
        });
        Ok(())
    }

    fn take(&mut self, id: &str, state: StateId) -> Checked {
        let place = self.buffered.iter().position(|signal| signal.id == id);
        let signal = self
            .buffered
            .remove(place.ok_or_else(|| format!("{id} is not kept"))?);
        let listener = self.listener(&signal.trigger);
        let state_instance = self.active(state)?.clone();
        let heard = self.heard(&state_instance.name, &signal.trigger).is_some();
        let takes = state_instance.buffered.contains(&signal.trigger);
        ensure(
            heard && (takes || self.is_wait(&state_instance.name)),
            || format!("{} takes {}", state_instance.name, signal.trigger),
        )?;
        if !takes {
            return ensure(listener.is_none(), || {
                format!("{id} is waited for, and dropped")
            });
        }
        ensure(listener == Some(state), || format!("{listener:?} is older"))?;
        self.have_ended_signals()?;
        ensure(self.life == Life::Running, || "taken at rest".into())?;
        self.taken += 1;
        ensure(self.taken <= 16, || "too many at once".into())?;
        self.fire(state, signal.trigger, FiredBy::Signal, signal.presses)
    }

    /// Nothing is left half done, and no state waits for what has come, unless the command has taken as much as it may.
    pub(in super::super) fn settled(&mut self) -> Checked {
        ensure(self.firing.is_none(), || {
            format!("{:?} moves nothing", self.firing)
        })?;
        let taken = std::mem::take(&mut self.taken);
        if self.life != Life::Running {
            self.new_waits.clear();
            return Ok(());
        }
        self.have_ended_signals()?;
        let waited = self.waited();
        ensure(waited.is_none() || taken == 16, || {
            format!("{waited:?} is waited for in vain")
        })
    }

    pub(super) fn waits_agree(&self, instance: &Instance) -> Checked {
        let buffered = instance.buffered.iter().map(|signal| &signal.id);
        ensure(
            buffered.eq(self.buffered.iter().map(|signal| &signal.id)),
            || "other signals are kept".into(),
        )?;
        // Those of state instances that are over as well: whoever has not ended there is to be cancelled.
        let children: Vec<_> = instance
            .state_instances()
            .flat_map(|state_instance| {
                state_instance
                    .children
                    .iter()
                    .map(move |child| (state_instance.id, child))
            })
            .collect();
        ensure(children.len() == self.children.len(), || {
            "children are lost".into()
        })?;
        for (state_instance, child) in children {
            let known = self.children.get(&child.id);
            let is_same = known.is_some_and(|known| {
                known.state_instance == state_instance
                    && known.ended == child.outcome
                    && known.on_end == child.on_end
            });
            ensure(is_same, || format!("{child:?} is not {known:?}"))?;
        }
        Ok(())
    }
}

/// The triggers of which buffered signals are taken.
pub(super) fn buffered(subscriptions: &[SignalSubscription]) -> BTreeSet<String> {
    let buffered = subscriptions.iter().filter(|one| one.buffered);
    buffered.map(|one| one.trigger.clone()).collect()
}

/// Whether people, a signal, a deadline or a child may still move it in the state of this name.
pub(super) fn is_movable_in(graph: &Graph, name: &str, state_instance: &StateInstance) -> bool {
    let by = |trigger: &str, by: FiredBy| {
        let way = graph.transition(name, trigger);
        way.is_some_and(|way| way.by.contains(&by))
    };
    let leads = |by: FiredBy| graph.leaving(name).any(|way| way.by.contains(&by));
    let due = |deadlines: &[OpenDeadline]| {
        deadlines.iter().any(|open| match &open.action {
            OverdueAction::Fire(to) => by(to, FiredBy::Deadline),
            other => other.moves(),
        })
    };
    let mut open = state_instance
        .tasks
        .iter()
        .filter(|task| task.status.is_open());
    let mut children = state_instance.children.iter();
    leads(FiredBy::Signal)
        || open.any(|task| leads(FiredBy::Decision) || due(&task.deadlines))
        || due(&state_instance.deadlines)
        || children.any(|child| {
            let on_end = child.on_end.iter();
            let mut fires = on_end.filter(|trigger| by(trigger, FiredBy::Child));
            child.outcome.is_none() && fires.next().is_some()
        })
}
