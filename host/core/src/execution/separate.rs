//! Separation of duties between states: a person decides in one state of each list that the graph declares.
//!
//! A person who decided in such a state, or on whose behalf somebody decided, is excluded from the other states: at once if the work
//! there is assigned already, otherwise when it is assigned. [`eligibility`](super::eligibility) checks the rule again at each command.

use std::collections::BTreeSet;

use super::Execution;
use super::eligibility::Workplace;
use super::reassessment::releases;
use crate::event::Event;
use crate::graph::Graph;
use crate::ids::TaskId;
use crate::instance::{Instance, StateInstance, Task};
use crate::rejection::Rejection;

/// The people who decided in states that are separate from this one, or were acted for, each with the state.
fn decided_elsewhere<'a>(
    graph: &'a Graph,
    instance: &'a Instance,
    state: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let separate = graph.separate_from(state);
    let others = instance
        .state_instances()
        .filter(move |other| separate.contains(other.name.as_str()));
    others.flat_map(|other| {
        let tasks = other.tasks.iter();
        let people = tasks.flat_map(Task::deciders);
        people.map(|person| (person, other.name.as_str()))
    })
}

impl Workplace<'_> {
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

/// The people who decided in states that are separate from this one, or were acted for.
pub(super) fn deciders_elsewhere<'a>(
    graph: &'a Graph,
    instance: &'a Instance,
    state: &str,
) -> BTreeSet<&'a str> {
    let decided = decided_elsewhere(graph, instance, state);
    decided.map(|(person, _)| person).collect()
}

/// The people whom flow logic excludes from a state, and those who decided in states separate from it.
pub(super) fn all_excluded(
    graph: &Graph,
    instance: &Instance,
    state: &str,
    mut exclude: Vec<String>,
) -> Vec<String> {
    let mut more = deciders_elsewhere(graph, instance, state);
    for person in &exclude {
        more.remove(person.as_str());
    }
    exclude.extend(more.into_iter().map(str::to_owned));
    exclude
}

/// Excludes the people of a new decision from the active states that are separate from its state. Their tasks there are
/// released. `blind`: the decision is hidden.
pub(super) fn exclude_elsewhere(
    execution: &mut Execution<'_>,
    task: TaskId,
    decided_in: &str,
    blind: bool,
) {
    let (graph, instance) = (&execution.context.version.graph, &execution.instance);
    let separate = graph.separate_from(decided_in);
    if separate.is_empty() {
        return;
    }
    let decided = instance.task(task).expect("a task with a decision");
    let people: BTreeSet<&str> = decided.deciders().collect();
    let active = instance.active.iter();
    let others = active.filter(|other| separate.contains(other.name.as_str()));
    let changes: Vec<_> = others
        .flat_map(|other| exclusion(graph, instance, other, &people, blind))
        .collect();
    for change in changes {
        execution.emit(change);
    }
}

/// The events that exclude these people from a state instance; empty if they are excluded already.
fn exclusion(
    graph: &Graph,
    instance: &Instance,
    state_instance: &StateInstance,
    people: &BTreeSet<&str>,
    blind: bool,
) -> Vec<Event> {
    let (name, known) = (&state_instance.name, &state_instance.exclude);
    let exclude = all_excluded(graph, instance, name, known.clone());
    if exclude == *known {
        return Vec::new();
    }
    let mut changes = vec![Event::StateReassigned {
        state: state_instance.id,
        needed: state_instance.needed,
        share: state_instance.share,
        exclude,
        fallback: state_instance.fallback.clone(),
        priority: state_instance.priority,
        priority_name: state_instance.priority_name.clone(),
        deadlines: None,
        subscriptions: None,
    }];
    changes.extend(releases(state_instance, people, blind));
    changes
}
