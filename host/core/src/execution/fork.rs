//! Forks and joins: which branches belong together, and when all of them have arrived.
//!
//! A plan that enters several states, or one for a new item, opens a fork. Every state instance records the forks around it. A branch that
//! arrives at a join waits there until every other branch of the innermost fork has arrived at a join or ended. Then the join begins and
//! closes the fork. If branches wait in several joins, only those joins begin that cannot be reached from another of them, and the fork
//! stays open.
//!
//! A join that waits for a count begins when that many branches have arrived. Then the other branches of the fork are cancelled.
//!
//! A plan that spawns opens no fork: its branches belong to the fork around the state instance that goes on beside them.
//!
//! A plan may also choose one of several targets. The graph does not say whether such a choice is a fork with one branch or no fork. If
//! no other branch of the surrounding fork can reach the join, the choice counts as a fork with one branch. Then the join does not wait.

use std::cell::OnceCell;

use super::forward::Forward;
use super::{Execution, ExecutionError, declared, enter, plan};
use crate::event::Event;
use crate::graph::{Graph, Join};
use crate::ids::{ForkId, StateId};
use crate::instance::blind::hidden_entry;
use crate::instance::{Instance, StateInstance};

/// How deep forks may be nested.
pub(super) const FORKS_MAX: usize = 16;

/// The states ahead of each state. They are computed at the first call.
fn forward_of<'f, 'g>(graph: &'g Graph, forward: &'f OnceCell<Forward<'g>>) -> &'f Forward<'g> {
    forward.get_or_init(|| Forward::of(graph))
}

/// Lets a branch arrive at a join.
pub(super) fn arrive(execution: &mut Execution<'_>, arriving: StateInstance) {
    let known = execution
        .instance
        .waiting
        .iter()
        .find(|waiting| waiting.name == arriving.name && waiting.forks == arriving.forks);
    let state = match known {
        None => arriving,
        Some(waiting) => {
            let mut waiting = waiting.clone();
            let new = arriving.predecessors.into_iter();
            waiting.predecessors.extend(
                new.filter(|id| !known.is_some_and(|known| known.predecessors.contains(id))),
            );
            waiting.choices |= arriving.choices;
            // The join is entered by the last branch that arrives.
            waiting.entered_trigger = arriving.entered_trigger;
            waiting.caller = arriving.caller;
            waiting
        }
    };
    execution.emit(Event::BranchArrived { state });
}

/// Begins the next join that waits for no further branch, if there is one.
pub(super) fn begin_joins(execution: &mut Execution<'_>) -> Result<bool, ExecutionError> {
    if execution.ready_joins.is_empty() {
        let (graph, instance) = (&execution.context.version.graph, &execution.instance);
        execution.ready_joins = find_ready_joins(graph, instance, &execution.forward).into();
    }
    let Some((id, closes)) = execution.ready_joins.pop_front() else {
        return Ok(false);
    };
    // A join that began before it may have cancelled it.
    let waiting = execution
        .instance
        .waiting
        .iter()
        .find(|state_instance| state_instance.id == id);
    if let Some(mut state_instance) = waiting.cloned() {
        state_instance.entered_at = execution.context.now;
        if closes {
            cancel_beside(execution, &state_instance);
            // The join may have closed either the fork or a choice inside it, and another join may follow for the other of
            // the two. So the choice is kept, moved to the surrounding fork.
            let chosen = state_instance.choices >> state_instance.forks.len() != 0;
            state_instance.choices &= (1 << state_instance.forks.len()) - 1;
            if state_instance.forks.pop().is_some() && chosen {
                state_instance.choices |= 1 << state_instance.forks.len();
            }
        }
        enter::begin_state(execution, state_instance)?;
    }
    Ok(true)
}

/// Cancels the other branches of the fork that a join closes. There are none, unless it waits for a count.
fn cancel_beside(execution: &mut Execution<'_>, join: &StateInstance) {
    let instance = &execution.instance;
    let here = instance.active.iter().chain(&instance.waiting);
    let beside = here.filter(|other| other.id != join.id && other.forks.starts_with(&join.forks));
    let beside: Vec<_> = beside.map(|other| other.id).collect();
    let trigger = join.entered_trigger.clone().unwrap_or_default();
    let blind = hidden_entry(instance, join).is_some();
    for state in beside {
        plan::cancel_state(execution, state, &trigger, blind);
    }
}

/// The join that has reached its count of branches, if there is one.
fn counted_join(graph: &Graph, instance: &Instance) -> Option<StateId> {
    let mut waiting = instance.waiting.iter();
    let full = waiting.find(|state_instance| {
        let Join::Count(count) = declared(graph, &state_instance.name).join else {
            return false;
        };
        state_instance.predecessors.len() >= count as usize
    });
    full.map(|state_instance| state_instance.id)
}

/// The joins that wait for no further branch, and whether they close their fork.
fn find_ready_joins<'g>(
    graph: &'g Graph,
    instance: &Instance,
    forward: &OnceCell<Forward<'g>>,
) -> Vec<(StateId, bool)> {
    if let Some(counted) = counted_join(graph, instance) {
        return vec![(counted, true)];
    }
    let waiting = &instance.waiting;
    // Inner forks close before outer ones.
    let Some(innermost) = waiting
        .iter()
        .filter(|state_instance| running_branches(instance, &state_instance.forks).is_empty())
        .max_by_key(|state_instance| state_instance.forks.len())
    else {
        let join = unreachable_join(graph, instance, forward);
        return join.into_iter().collect();
    };
    let forward = forward_of(graph, forward);
    let together: Vec<_> = waiting
        .iter()
        .filter(|state_instance| state_instance.forks == innermost.forks)
        .collect();
    let foremost: Vec<_> = together
        .iter()
        .filter(|state_instance| {
            let mut others = together
                .iter()
                .filter(|other| other.id != state_instance.id);
            !others.any(|other| forward.leads(&other.name, &state_instance.name))
        })
        .collect();
    let closes = together.len() == 1;
    foremost
        .into_iter()
        .map(|state_instance| (state_instance.id, closes))
        .collect()
}

/// A join at which a chosen branch waits and that no other branch of its fork can reach. It does not close the fork.
fn unreachable_join<'g>(
    graph: &'g Graph,
    instance: &Instance,
    forward: &OnceCell<Forward<'g>>,
) -> Option<(StateId, bool)> {
    let waiting = &instance.waiting;
    let chosen = |state_instance: &&StateInstance| {
        state_instance.choices & (1 << state_instance.forks.len()) != 0
    };
    let mut candidates = waiting.iter().filter(chosen).peekable();
    candidates.peek()?;
    let forward = forward_of(graph, forward);
    candidates
        .find(|state_instance| {
            let live = running_branches(instance, &state_instance.forks);
            let others = waiting.iter().filter(|other| {
                other.id != state_instance.id && other.forks.starts_with(&state_instance.forks)
            });
            !live
                .into_iter()
                .chain(others)
                .any(|other| forward.leads(&other.name, &state_instance.name))
        })
        .map(|state_instance| (state_instance.id, false))
}

/// The branches inside these forks that have neither arrived at a join nor ended.
fn running_branches<'i>(instance: &'i Instance, forks: &[ForkId]) -> Vec<&'i StateInstance> {
    let inside = |state_instance: &&StateInstance| state_instance.forks.starts_with(forks);
    let inner = instance
        .waiting
        .iter()
        .filter(|state_instance| state_instance.forks.len() > forks.len());
    instance.active.iter().chain(inner).filter(inside).collect()
}
