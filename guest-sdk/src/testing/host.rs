//! The host's part once a flow has answered: writes the decision down, applies the plan, enters
//! states and begins joins. A plan that breaks the flow's own graph fails the test.

use std::collections::BTreeMap;

use super::checks;
use super::outcome::Entered;
use super::rules::way;
use super::scenario::Scenario;
use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::bindings::wrkflw::flow::types::{Definition, Event, Plan, StateKind};
use crate::export::Logic;
use crate::{
    AssignCause, ChildStatus, Decider, Decision, EventSource, Flow, PastState, StateInstance,
    TaskDecision, TaskStatus, Waiting, json,
};

/// Routers that one event may pass.
const ROUTERS_MAX: usize = 32;

impl<F: Flow> Scenario<F> {
    /// Writes the decision, or the child's end, into the facts.
    pub(super) fn record(&mut self, event: &Event) {
        let Some(stay) = self
            .snapshot
            .active
            .iter_mut()
            .find(|stay| Some(&stay.id) == event.state_instance.as_ref())
        else {
            return;
        };
        match &event.source {
            EventSource::Task(TaskDecision {
                task,
                actor,
                comment,
            }) => {
                self.snapshot.deciders.push(Decider {
                    state: stay.name.clone(),
                    state_instance: stay.id.clone(),
                    outcome: event.trigger.clone(),
                    actor: actor.id.clone(),
                    on_behalf_of: actor.on_behalf_of.clone(),
                    decided_at: self.snapshot.now.clone(),
                });
                for task in stay.tasks.iter_mut().filter(|one| &one.id == task) {
                    task.status = TaskStatus::Completed;
                    task.owner = Some(actor.id.clone());
                    task.claimed_at
                        .get_or_insert_with(|| self.snapshot.now.clone());
                    task.decision = Some(Decision {
                        outcome: event.trigger.clone(),
                        actor: actor.id.clone(),
                        on_behalf_of: actor.on_behalf_of.clone(),
                        comment: comment.clone(),
                        input: event.input.clone(),
                        omitted: false,
                        decided_at: self.snapshot.now.clone(),
                    });
                }
            }
            EventSource::Child(ended) => {
                for child in stay.children.iter_mut().filter(|one| one.id == ended.id) {
                    child.outcome.clone_from(&ended.outcome);
                }
            }
            _ => {}
        }
    }

    #[track_caller]
    pub(super) fn apply(
        &mut self,
        definition: &Definition,
        event: &Event,
        plan: &Plan,
        entered: &mut Vec<Entered>,
    ) {
        checks::plan(definition, plan);
        self.snapshot.instance.revision += 1;
        if let Some(patch) = &plan.data {
            let mut data = self.data_now();
            json::merge(&mut data, &json::parse(patch).expect("plans hold JSON"));
            self.snapshot.instance.data = data.to_string();
        }
        for attribute in &plan.attributes {
            self.snapshot
                .instance
                .attributes
                .retain(|known| known.name != attribute.name);
            self.snapshot
                .instance
                .attributes
                .extend(attribute.value.is_some().then(|| attribute.clone()));
        }
        for id in &plan.cancel {
            let known = |stay: &StateInstance| &stay.id == id;
            let waits = self.snapshot.waiting.iter().any(known);
            assert!(
                Some(id) != event.state_instance.as_ref()
                    && (waits || self.snapshot.active.iter().any(known)),
                "the plan cancels {id:?}, which is no other active or waiting state"
            );
            self.leave(id, event);
            self.snapshot.waiting.retain(|stay| &stay.id != id);
        }
        let Some(id) = &event.state_instance else {
            return;
        };
        let Some(targets) = &plan.enter else {
            let stays = self.snapshot.active.iter();
            let deadlines = |id| {
                self.stays
                    .get(id)
                    .is_some_and(|known| !known.deadlines.is_empty())
            };
            for stay in stays.filter(|stay| &stay.id == id) {
                checks::goes_on(definition, stay, deadlines(&stay.id));
            }
            return;
        };
        let left = self
            .leave(id, event)
            .expect("the event concerns an active state");
        let way = way(definition, &left.name, &event.trigger);
        for target in targets {
            assert!(
                way.targets.contains(target),
                "{} in {} does not lead to {target}, but to {:?}",
                way.trigger,
                left.name,
                way.targets
            );
        }
        let chosen = way.targets.len() > 1;
        self.enter(definition, targets, Some(&left.id), chosen, entered);
    }

    fn leave(&mut self, id: &str, event: &Event) -> Option<PastState> {
        let at = self.snapshot.active.iter().position(|stay| stay.id == id)?;
        let mut stay = self.snapshot.active.remove(at);
        for task in &mut stay.tasks {
            task.candidates.clear();
            if task.is_open() {
                task.status = TaskStatus::Cancelled;
            }
        }
        let actor = match &event.source {
            EventSource::Task(decision) => Some(decision.actor.id.clone()),
            EventSource::Signal(actor) => Some(actor.id.clone()),
            _ => None,
        };
        let StateInstance {
            id,
            name,
            entered_at,
            predecessors,
            tasks,
            ..
        } = stay;
        let (left_at, left_by) = (self.snapshot.now.clone(), event.trigger.clone());
        self.snapshot.past.push(PastState {
            id,
            name,
            entered_at,
            left_at,
            left_by,
            actor,
            predecessors,
            tasks,
        });
        self.snapshot.past.last().cloned()
    }

    #[track_caller]
    pub(super) fn enter(
        &mut self,
        definition: &Definition,
        states: &[String],
        from: Option<&String>,
        chosen: bool,
        entered: &mut Vec<Entered>,
    ) {
        let fork = (states.len() > 1).then(|| {
            self.ids += 1;
            self.ids
        });
        let known = from.and_then(|id| self.stays.get(id));
        let branch = known.map(|stay| stay.branch.clone()).unwrap_or_default();
        let branch = branch.onward(fork, chosen);
        for name in states {
            if self.ended.is_some() {
                break;
            }
            let state = checks::state(definition, name);
            let forks_of = |id: &String| &self.stays[id].branch.forks;
            let arrived = self
                .snapshot
                .waiting
                .iter_mut()
                .find(|stay| &stay.name == name && *forks_of(&stay.id) == branch.forks);
            if let Some(join) = arrived {
                join.predecessors.extend(from.cloned());
                let known = self.stays.entry(join.id.clone()).or_default();
                known.branch.joined_by(&branch);
                continue;
            }
            let stay = self.stay(name, from);
            let known = self.stays.entry(stay.id.clone()).or_default();
            known.branch = branch.clone();
            if state.join {
                self.snapshot.waiting.push(stay);
                entered.push(Entered::Passive(name.clone()));
            } else {
                self.work_on(definition, stay, entered);
            }
        }
    }

    #[track_caller]
    pub(super) fn work_on(
        &mut self,
        definition: &Definition,
        stay: StateInstance,
        entered: &mut Vec<Entered>,
    ) {
        let (id, name) = (stay.id.clone(), stay.name.clone());
        let kind = &checks::state(definition, &name).kind;
        self.snapshot.active.push(stay);
        let facts = self.snapshot.clone();
        match kind {
            StateKind::Task => {
                let assignment = Logic::<F>::assign(facts, name.clone(), AssignCause::Entered);
                self.offer(&id, &assignment);
                entered.push(Entered::Task(name, assignment));
            }
            StateKind::Service => {
                let call = Logic::<F>::call(facts, name.clone());
                checks::deadlines(definition, &name, &call.deadlines);
                self.schedule(&id, None, &call.deadlines);
                entered.push(Entered::Service(name, call));
            }
            StateKind::Wait => {
                let waiting = Logic::<F>::wait(facts, name.clone());
                checks::waiting(definition, &name, &waiting);
                self.wait(&id, &waiting);
                entered.push(Entered::Wait(name, waiting));
            }
            StateKind::Router => self.route(definition, id, name, entered),
            StateKind::Terminal(outcome) => {
                entered.push(Entered::Passive(name));
                self.snapshot.active.clear();
                self.snapshot.waiting.clear();
                self.ended = Some(outcome.clone());
            }
        }
    }

    /// Starts the children, and minds what else is waited for.
    #[track_caller]
    fn wait(&mut self, id: &str, waiting: &Waiting) {
        self.schedule(id, None, &waiting.deadlines);
        let mut on_end = BTreeMap::new();
        let mut children = vec![];
        for child in &waiting.children {
            let id = self.id("child");
            on_end.insert(id.clone(), child.on_end.clone());
            let (key, outcome) = (child.key.clone(), None);
            children.push(ChildStatus { id, key, outcome });
        }
        let known = self.stays.entry(id.into()).or_default();
        (known.on_end, known.keep_early) = (on_end, waiting.keep_early);
        for stay in self.snapshot.active.iter_mut().filter(|stay| stay.id == id) {
            stay.children.clone_from(&children);
        }
    }

    #[track_caller]
    fn route(
        &mut self,
        definition: &Definition,
        id: String,
        name: String,
        entered: &mut Vec<Entered>,
    ) {
        assert!(
            entered.len() <= ROUTERS_MAX,
            "the routers lead in a circle: {entered:#?}"
        );
        let way = definition
            .transitions
            .iter()
            .find(|way| way.source == name)
            .expect("a router has one transition");
        let (trigger, source) = (way.trigger.clone(), EventSource::Entry);
        let event = Event {
            state_instance: Some(id),
            trigger,
            source,
            input: "{}".into(),
        };
        let plan = Logic::<F>::transition(self.snapshot.clone(), event.clone());
        let plan = plan.unwrap_or_else(|reason| panic!("the router {name} refuses: {reason:?}"));
        entered.push(Entered::Router(name, plan.clone()));
        self.apply(definition, &event, &plan, entered);
    }
}
