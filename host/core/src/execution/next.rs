//! What a plan says of the branches: whether the state may be left, go on or end, which states may begin, and how many.
//!
//! A plan that spawns leaves its state instance as it is. Each target begins a branch beside it, inside the same forks. So a join
//! waits for a spawned branch as for any other branch of its fork, until it has arrived at a join or ended.
//!
//! A target may have a key, the item that its state instance is for. So one plan enters a state several times, and a plan for one
//! item opens a fork as one for several does. Nothing is inherited: the plan of an item's state names the key again.

use std::collections::VecDeque;

use super::enter::PendingEntry;
use super::fault::{Fault, bounded};
use super::fork::FORKS_MAX;
use super::plan::TRANSITION;
use super::{Execution, Moving, Pending, declared, state_instance_of};
use crate::answer::{Next, Target, Work};
use crate::graph::{FiredBy, Graph, StateKind};
use crate::ids::{ForkId, StateId, check_id};
use crate::instance::{Instance, OpenDeadline, StateInstance, Task};
use crate::json::{Json, JsonError};
use crate::question::{Occurrence, Source};
use crate::rejection::Rejection;
use crate::shown::{self, BRANCHES_MAX};

/// The longest key of a state instance, in characters.
const KEY_CHARS_MAX: usize = 200;
/// The largest data of a state instance. Every question about the instance contains it while the state instance is active.
const ITEM_BYTES_MAX: usize = 16 * 1024;

/// The branches of an instance: those that it is in, and those that are about to begin.
#[derive(Clone, Copy)]
pub(super) struct Branches<'e> {
    graph: &'e Graph,
    instance: &'e Instance,
    entering: &'e VecDeque<Pending>,
    works: &'e VecDeque<(PendingEntry, Work)>,
}

impl<'e> Branches<'e> {
    pub(super) fn of(execution: &'e Execution<'_>) -> Branches<'e> {
        Branches {
            graph: &execution.context.version.graph,
            instance: &execution.instance,
            entering: &execution.entering,
            works: &execution.works,
        }
    }

    /// Checks what happens next against the graph. `cancel` are the other state instances that the plan cancels.
    pub(super) fn check(
        self,
        occurrence: &Occurrence,
        moving: &Moving,
        next: &Next,
        cancel: &[StateId],
    ) -> Result<(), Fault> {
        let state_instance = state_instance_of(self.instance, moving.state);
        let from = &state_instance.name;
        let refuse = |message: String| Err(Fault::new(TRANSITION, message));
        match next {
            Next::Reoffer if declared(self.graph, from).kind == StateKind::Task => Ok(()),
            Next::Reoffer => refuse(format!("{from} offers no tasks that could be others")),
            Next::Stay => check_movable(self.graph, state_instance, moving),
            Next::Spawn(targets) if targets.is_empty() => refuse(format!(
                "{from} spawns no state; a state goes on alone with `stay`"
            )),
            Next::Spawn(targets) => {
                check_movable(self.graph, state_instance, moving)?;
                check_targets(self.graph, from, &occurrence.trigger, targets)?;
                self.check_keys(targets, |other| cancel.contains(&other))
            }
            Next::Enter(targets) if targets.is_empty() => refuse(format!(
                "{from} enters no state; a branch ends with `end-branch`"
            )),
            Next::Enter(targets) => {
                check_targets(self.graph, from, &occurrence.trigger, targets)?;
                let is_left = |other| other == moving.state || cancel.contains(&other);
                self.check_keys(targets, is_left)?;
                let depth = state_instance.forks.len();
                if depth >= FORKS_MAX && opens_fork(self.instance, state_instance, next) {
                    return refuse(format!(
                        "{from} opens a fork inside {FORKS_MAX} others, which is the limit"
                    ));
                }
                Ok(())
            }
            Next::EndBranch if self.is_last(moving.state, cancel) => {
                refuse(format!("{from} ends the last branch without an outcome"))
            }
            Next::EndBranch => Ok(()),
        }
    }

    /// A key must not be that of another state instance of the same state that is active or about to begin.
    fn check_keys(
        self,
        targets: &[Target],
        is_left: impl Fn(StateId) -> bool,
    ) -> Result<(), Fault> {
        let has = |name: &String, key: &Option<String>, target: &Target| {
            target.name == *name && target.key == *key
        };
        for target in targets.iter().filter(|target| target.key.is_some()) {
            let mut active = self.instance.active.iter();
            let mut soon = self.entering.iter();
            let mut works = self.works.iter().map(|(entry, _)| &entry.state_instance);
            if active.any(|one| has(&one.name, &one.key, target) && !is_left(one.id))
                || soon.any(|one| has(&one.name, &one.key, target))
                || works.any(|one| has(&one.name, &one.key, target) && !is_left(one.id))
            {
                let (name, key) = (&target.name, target.key.as_deref().unwrap_or_default());
                let message = format!("{name} is active already with the key {key:?}");
                return Err(Fault::new(TRANSITION, message));
            }
        }
        Ok(())
    }

    /// Whether no other branch is left, once these state instances are cancelled.
    fn is_last(self, state: StateId, cancel: &[StateId]) -> bool {
        let here = self.instance.active.iter().chain(&self.instance.waiting);
        let mut others = here.filter(|other| other.id != state && !cancel.contains(&other.id));
        others.next().is_none() && self.entering.is_empty()
    }

    /// Refuses more state instances than an instance may have, at a time and in all.
    pub(super) fn check_count(
        self,
        occurrence: &Occurrence,
        next: &Next,
        cancelled: usize,
    ) -> Result<(), Rejection> {
        let begun = next.targets().len();
        // States entered from a router are not limited in all, since the router itself was allowed.
        if !matches!(occurrence.source, Source::Entry) {
            shown::check_state_instances(self.instance, begun)?;
        }
        let left = usize::from(!next.goes_on());
        let here = self.instance.active.len() + self.instance.waiting.len();
        let soon = self.entering.len() + self.works.len();
        if begun <= left || here + soon + begun - left - cancelled <= BRANCHES_MAX {
            return Ok(());
        }
        let message = format!(
            "the instance would be in more than {BRANCHES_MAX} states at a time; it must leave some before others begin"
        );
        Err(Rejection::not_now("limit_reached", message))
    }
}

/// Targets must be declared for the trigger, each at most once with the same key.
fn check_targets(
    graph: &Graph,
    from: &str,
    trigger: &str,
    targets: &[Target],
) -> Result<(), Fault> {
    let way = graph
        .transition(from, trigger)
        .expect("checked before `transition` was asked");
    if targets.len() > BRANCHES_MAX {
        let message = format!("a plan enters at most {BRANCHES_MAX} states");
        return Err(Fault::new(TRANSITION, message));
    }
    for (place, target) in targets.iter().enumerate() {
        let name = &target.name;
        if !way.targets.contains(name) {
            let message = format!(
                "{from} on {trigger} may lead to {}, not to {name:?}",
                way.targets.join(", ")
            );
            return Err(Fault::new(TRANSITION, bounded(message)));
        }
        check_item(target, declared(graph, name).join.is_join())?;
        let is_same = |other: &Target| other.name == *name && other.key == target.key;
        if targets[..place].iter().any(is_same) {
            let message = match &target.key {
                None => "a plan must not enter a state twice".to_owned(),
                Some(key) => format!("a plan must not enter {name} twice with the key {key:?}"),
            };
            return Err(Fault::new(TRANSITION, message));
        }
    }
    Ok(())
}

/// Whether the targets are branches of a fork of their own: several, or one for an item that is new here.
fn opens_fork(instance: &Instance, state_instance: &StateInstance, next: &Next) -> bool {
    let Next::Enter(targets) = next else {
        return false;
    };
    let [target] = &targets[..] else {
        return targets.len() > 1;
    };
    let around = &state_instance.forks;
    let mut all = instance.state_instances();
    // The item's branch may have been in states without the key meanwhile.
    target.key.is_some() && !all.any(|one| one.key == target.key && one.forks == *around)
}

/// Refuses a state that would go on although nothing may move it any more.
fn check_movable(
    graph: &Graph,
    state_instance: &StateInstance,
    moving: &Moving,
) -> Result<(), Fault> {
    let decided = moving.decision.as_ref().map(|deciding| deciding.task);
    let from = &state_instance.name;
    let is_over = |task: &Task| Some(task.id) == decided;
    if may_be_moved(graph, from, state_instance, is_over) {
        return Ok(());
    }
    let message = format!("{from} goes on with nothing left that could move it");
    Err(Fault::new(TRANSITION, message))
}

/// Lets the targets of a plan begin.
pub(super) fn begin_branches(
    execution: &mut Execution<'_>,
    from: StateId,
    trigger: &str,
    next: &Next,
) {
    let graph = &execution.context.version.graph;
    let state_instance = state_instance_of(&execution.instance, from);
    let opens_fork = opens_fork(&execution.instance, state_instance, next);
    let fork = opens_fork.then(|| ForkId((execution.ids)()));
    let (forks, choices) = forks_and_choices(graph, state_instance, trigger, next, fork);
    let pending = next.targets().iter().map(|target| Pending {
        name: target.name.clone(),
        predecessors: vec![from],
        by: Some(trigger.to_owned()),
        forks: forks.clone(),
        choices,
        key: target.key.clone(),
        data: data_of(target).unwrap_or_default(),
    });
    execution.entering.extend(pending);
}

/// The forks and choices of the branches that follow a state instance. `fork` is the fork that they open.
fn forks_and_choices(
    graph: &Graph,
    state_instance: &StateInstance,
    trigger: &str,
    next: &Next,
    fork: Option<ForkId>,
) -> (Vec<ForkId>, u32) {
    let (mut forks, mut choices) = (state_instance.forks.clone(), state_instance.choices);
    let declared = graph.transition(&state_instance.name, trigger);
    if next.goes_on() {
        // Branches beside the state belong to its fork.
    } else if let Some(fork) = fork {
        forks.push(fork);
    } else if declared.is_some_and(|declared| declared.targets.len() > 1) {
        choices |= 1 << forks.len();
    }
    (forks, choices)
}

/// Whether anything may still move the state instance in the state of this name, once these tasks are over.
pub(super) fn may_be_moved(
    graph: &Graph,
    name: &str,
    state_instance: &StateInstance,
    is_over: impl Fn(&Task) -> bool,
) -> bool {
    let moves = |open: &[OpenDeadline]| open.iter().any(|one| one.action.moves());
    // Where no decision leads on, only the deadlines of a task do.
    let by_decision = graph.leads(name, FiredBy::Decision);
    let open = |task: &Task| task.status.is_open() && !is_over(task);
    graph.leads(name, FiredBy::Signal)
        || moves(&state_instance.deadlines)
        || state_instance
            .tasks
            .iter()
            .any(|task| open(task) && (by_decision || moves(&task.deadlines)))
        || state_instance
            .children
            .iter()
            .any(|child| child.outcome.is_none() && child.on_end.is_some())
        || state_instance.open_call().is_some()
}

/// Checks the key and the data of a target. A join is for all its branches, so it has neither.
fn check_item(target: &Target, is_join: bool) -> Result<(), Fault> {
    let name = &target.name;
    let refuse = |message: String| Err(Fault::new(TRANSITION, bounded(message)));
    if is_join && (target.key.is_some() || target.data.is_some()) {
        return refuse(format!(
            "{name} is a join, one for all its branches; it has no key and no data"
        ));
    }
    if let Some(Err(rule)) = target
        .key
        .as_deref()
        .map(|key| check_id(key, KEY_CHARS_MAX))
    {
        return refuse(format!("the key of a state {name} is not: {rule}"));
    }
    match data_of(target) {
        Ok(Some(data)) if data.as_str().len() > ITEM_BYTES_MAX => refuse(format!(
            "the data of a state {name} is longer than {ITEM_BYTES_MAX} bytes"
        )),
        Ok(_) => Ok(()),
        Err(error) => refuse(format!("the data of a state {name} has {error}")),
    }
}

/// The data of a target in canonical form; none for null.
fn data_of(target: &Target) -> Result<Option<Json>, JsonError> {
    let data = target.data.as_deref().map(Json::parse).transpose()?;
    Ok(data.filter(|data| data.as_str() != "null"))
}
