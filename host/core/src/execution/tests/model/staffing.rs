//! Staffing of a state instance by exhaustive search, and whether the fallbacks were used.

use super::ledger::{Checked, Ledger, Life, StateVisit, VisitPhase, ensure};
use super::world::{PEOPLE, World};
use crate::ids::{StateId, TaskId};
use crate::instance::Candidate;

/// Who could do the task: its candidates, and its owner unless they have it in the name of an excluded person.
pub(super) fn eligible(
    ledger: &Ledger,
    world: &World,
    state_instance: StateId,
    task: TaskId,
) -> Vec<&'static str> {
    let work = &ledger.tasks[&task];
    let has = |person: &str| {
        work.hand.as_ref().is_some_and(|hand| {
            let mut behind = hand.chain.iter().chain(&hand.absent);
            hand.owner == person
                && !behind.any(|other| ledger.excluded_people(state_instance, other))
        })
    };
    let is_able = |person: &&&str| {
        !ledger.excluded_people(state_instance, person)
            && (has(person) || world.is_offered(&work.offered, person))
    };
    PEOPLE.iter().filter(is_able).copied().collect()
}

/// Whether the state instance can still have the decisions that it needs.
pub(super) fn suffices(eligible: &[Vec<&str>], state_instance: &StateVisit) -> bool {
    let required = state_instance
        .needed
        .saturating_sub(state_instance.decisions)
        .max(1);
    most(eligible, &mut Vec::new()) >= required.min(eligible.len())
}

/// How many of the tasks can be done when each person does one.
fn most<'a>(eligible: &[Vec<&'a str>], busy: &mut Vec<&'a str>) -> usize {
    let Some((first, rest)) = eligible.split_first() else {
        return 0;
    };
    let mut best = most(rest, busy);
    for &person in first {
        // No more than one for each task.
        if best == eligible.len() {
            break;
        }
        if !busy.contains(&person) {
            busy.push(person);
            best = best.max(1 + most(rest, busy));
            busy.pop();
        }
    }
    best
}

impl Ledger {
    /// Each of these state instances is marked exactly if too few people are able, and then the fallbacks did not help.
    pub(super) fn marks(&self, world: &World, of: impl Fn(StateId) -> bool) -> Checked {
        if self.life != Life::Running {
            return Ok(());
        }
        let state_instances = self.state_instances.iter();
        for (id, state_instance) in state_instances
            .filter(|(id, state_instance)| state_instance.place == VisitPhase::Active && of(**id))
        {
            let tasks: Vec<_> = self.open_tasks(*id).collect();
            if tasks.is_empty() {
                continue;
            }
            let mut all: Vec<_> = tasks
                .iter()
                .map(|(task, _)| eligible(self, world, *id, **task))
                .collect();
            let is_able = suffices(&all, state_instance);
            ensure(is_able != state_instance.marked, || {
                format!(
                    "{} {id}: able {all:?}, marked {}",
                    state_instance.name, state_instance.marked
                )
            })?;
            if is_able || self.is_own_work(*id) {
                continue;
            }
            let mut fallbacks: Vec<_> = state_instance
                .fallback
                .clone()
                .map(Candidate::Group)
                .into_iter()
                .collect();
            let manager = world.manager(&self.initiator);
            fallbacks.extend(manager.map(|id| Candidate::User(id.to_owned())));
            let others = PEOPLE
                .iter()
                .filter(|person| !self.excluded_people(*id, person));
            let others: Vec<_> = others
                .filter(|person| world.is_offered(&fallbacks, person))
                .collect();
            for people in &mut all {
                people.extend(others.iter().copied());
            }
            ensure(!suffices(&all, state_instance), || {
                format!("{others:?} were not asked to {}", state_instance.name)
            })?;
        }
        Ok(())
    }
}
