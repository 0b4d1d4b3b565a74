//! Work for a person who is familiar with the instance: somebody who decided in it before, or has another task of it.
//!
//! The choice depends only on the instance and on the memberships in the directory's answer, so a replay makes the same choice.

use std::collections::BTreeSet;

use super::state_instance_of;
use crate::answer::{Assignment, Offer};
use crate::graph::Graph;
use crate::ids::StateId;
use crate::instance::{Candidate, Instance, StateInstance, Task};
use crate::lookup::{Findings, Lookup};

/// How many people are considered, the newest deciders first.
const FAMILIAR_MAX: usize = 50;

/// Adds the people who are familiar with the instance to the question to the directory, if an offer wants one of them.
pub(super) fn ask_for_people(instance: &Instance, assignment: &Assignment, lookup: &mut Lookup) {
    lookup
        .memberships_of
        .extend(people_for(instance, &assignment.offers));
}

/// The people who are familiar with the instance, if an offer wants one of them.
pub(super) fn people_for(instance: &Instance, offers: &[Offer]) -> Vec<String> {
    if !offers.iter().any(|offer| offer.retain) {
        return Vec::new();
    }
    let people = all_people(instance).into_iter();
    people.map(str::to_owned).collect()
}

/// The owner of a new task whose offer wants somebody who is familiar with the instance. None if the offer does not want
/// that, or if there is no such person.
pub(super) fn owner(
    graph: &Graph,
    instance: &Instance,
    state: StateId,
    offer: &Offer,
    familiar: &[String],
    findings: &Findings,
) -> Option<String> {
    if !offer.retain || offer.owner.is_some() {
        return None;
    }
    let candidates = offer.candidates.iter().cloned();
    let candidates: Vec<_> = candidates
        .filter_map(|candidate| candidate.resolved(findings))
        .collect();
    retained(graph, instance, state, &candidates, familiar, findings)
}

/// The person who gets a new task of the state instance, as a candidate who is familiar with the instance.
fn retained(
    graph: &Graph,
    instance: &Instance,
    state: StateId,
    candidates: &[Candidate],
    familiar: &[String],
    findings: &Findings,
) -> Option<String> {
    let state_instance = state_instance_of(instance, state);
    let busy = busy_in(graph, instance, state_instance);
    let is_candidate = |person: &str| {
        let groups = findings.groups.get(person).map_or(&[][..], Vec::as_slice);
        Candidate::among(candidates, person, groups)
    };
    let is_able = |person: &&String| !busy.contains(person.as_str()) && is_candidate(person);
    familiar.iter().find(is_able).cloned()
}

/// The people who decided in the instance, the newest first, then the owners of its open tasks. Each is listed once.
fn all_people(instance: &Instance) -> Vec<&str> {
    let tasks = || {
        let state_instances = instance.state_instances();
        state_instances.flat_map(|state_instance| &state_instance.tasks)
    };
    let mut decisions: Vec<_> = tasks().filter_map(Task::decision).collect();
    decisions.sort_by_key(|decision| std::cmp::Reverse(decision.decided_at));
    let decided = decisions
        .into_iter()
        .map(|decision| decision.actor.as_str());
    let owners = tasks().filter(|task| task.status.is_open());
    let owners = owners.filter_map(Task::owner);
    let mut people: Vec<&str> = Vec::new();
    for person in decided.chain(owners) {
        if people.len() == FAMILIAR_MAX {
            break;
        }
        if !people.contains(&person) {
            people.push(person);
        }
    }
    people
}

/// The people who get no further task in the state instance: they must not decide there, have decided, or own one.
pub(super) fn busy_in<'s>(
    graph: &Graph,
    instance: &'s Instance,
    state_instance: &'s StateInstance,
) -> BTreeSet<&'s str> {
    let requesters = instance.requesters.iter();
    let is_own_work = graph.is_own_work(&state_instance.name);
    let requesters = requesters.filter(|_| !is_own_work);
    let excluded = requesters.chain(&state_instance.exclude);
    let decided = state_instance.tasks.iter().flat_map(Task::deciders);
    let open = state_instance.tasks.iter();
    let owners = open.filter(|task| task.status.is_open());
    let owners = owners.filter_map(Task::owner);
    excluded
        .map(String::as_str)
        .chain(decided)
        .chain(owners)
        .collect()
}
