//! Separation of duties between states: a person decides in one state of each list that the graph declares.
//!
//! Who has decided in such a state, or was acted for, is excluded from the others: when their work is assigned, and at once
//! where it is assigned already. [`eligibility`](super::eligibility) checks the rule again at each command.

use std::collections::BTreeSet;

use super::Execution;
use super::eligibility::Place;
use super::reassessment::LOST_ELIGIBILITY;
use super::staffing::{deciders, represented};
use crate::event::Event;
use crate::graph::Graph;
use crate::ids::{StateId, TaskId};
use crate::instance::Instance;
use crate::rejection::Rejection;

/// The people who decided in states that are separate from this one, or were acted for, each with the state.
fn decided_elsewhere<'a>(
    graph: &'a Graph,
    instance: &'a Instance,
    state: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let others = instance
        .state_instances()
        .filter(move |other| graph.are_separate(state, &other.name));
    others.flat_map(|other| {
        let tasks = other.tasks.iter();
        let people = tasks.flat_map(deciders);
        people.map(|person| (person, other.name.as_str()))
    })
}

impl Place<'_> {
    /// Refuses a person who decided in a state that is separate from this one.
    pub(super) fn not_decided_elsewhere(self, person: &str) -> Result<(), Rejection> {
        let (graph, name) = (&self.context.version.graph, &self.state_instance.name);
        let mut decided = decided_elsewhere(graph, self.instance, name);
        let Some((_, other)) = decided.find(|(decider, _)| *decider == person) else {
            return Ok(());
        };
        let message =
            format!("{person} decided in {other}, and nobody decides in both {other} and {name}");
        Err(Rejection::forbidden("decided_elsewhere", message))
    }
}

impl Execution<'_> {
    /// Whether the person decided in a state that is separate from this one.
    pub(super) fn has_decided_elsewhere(&self, state: &str, person: &str) -> bool {
        let graph = &self.context.version.graph;
        decided_elsewhere(graph, &self.instance, state).any(|(decider, _)| decider == person)
    }

    /// The people whom flow logic excludes from a state, and those who decided in states separate from it.
    pub(super) fn all_excluded(&self, state: &str, mut exclude: Vec<String>) -> Vec<String> {
        let graph = &self.context.version.graph;
        let known: BTreeSet<&str> = exclude.iter().map(String::as_str).collect();
        let decided = decided_elsewhere(graph, &self.instance, state).map(|(person, _)| person);
        let more: BTreeSet<&str> = decided.filter(|person| !known.contains(person)).collect();
        let more: Vec<String> = more.into_iter().map(str::to_owned).collect();
        exclude.extend(more);
        exclude
    }

    /// Excludes whoever a new decision concerns from the active states that are separate from its own. Tasks that they own there
    /// are released.
    pub(super) fn exclude_elsewhere(&mut self, task: TaskId, decided_in: &str) {
        let graph = &self.context.version.graph;
        if graph.separate.is_empty() {
            return;
        }
        let decided = self.instance.task(task).expect("a task with a decision");
        let people: BTreeSet<String> = deciders(decided).map(str::to_owned).collect();
        let active = self.instance.active.iter();
        let others = active.filter(|other| graph.are_separate(decided_in, &other.name));
        let others: Vec<StateId> = others.map(|other| other.id).collect();
        for state in others {
            self.exclude(state, &people);
        }
    }

    fn exclude(&mut self, state: StateId, people: &BTreeSet<String>) {
        let Some(open_state) = self.open_state(state) else {
            return;
        };
        let concerned = |person: &str| people.contains(person);
        let owned = open_state.open().filter_map(|task| {
            let owner = task.owner()?;
            let theirs = concerned(owner) || represented(task).any(concerned);
            theirs.then(|| (task.id, owner.to_owned()))
        });
        let owned: Vec<_> = owned.collect();
        let reassigned = open_state.state_instance;
        let event = Event::StateReassigned {
            state,
            needed: reassigned.needed,
            exclude: self.all_excluded(&reassigned.name, reassigned.exclude.clone()),
            fallback: reassigned.fallback.clone(),
            priority: reassigned.priority,
            deadlines: None,
        };
        self.emit(event);
        for (task, owner) in owned {
            self.emit(Event::TaskReleased {
                task,
                state,
                owner,
                reason: Some(LOST_ELIGIBILITY.to_owned()),
            });
        }
    }
}
