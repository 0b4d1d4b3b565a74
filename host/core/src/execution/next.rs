//! What a plan says of the branches: whether the state may be left, go on or end, which states may begin, and how many.
//!
//! A plan that spawns leaves its state instance as it is. Each target begins a branch beside it, inside the same forks. So a join
//! waits for a spawned branch as for any other branch of its fork, until it has arrived at a join or ended.

use super::fault::{Fault, bounded};
use super::fork::FORKS_MAX;
use super::plan::TRANSITION;
use super::{Execution, Moving, Pending};
use crate::answer::{Next, OverdueAction, Target};
use crate::graph::{FiredBy, StateKind, Transition};
use crate::ids::{StateId, TaskId};
use crate::instance::StateInstance;
use crate::question::{Occurrence, Source};
use crate::rejection::Rejection;
use crate::shown::{self, BRANCHES_MAX};

impl Execution<'_> {
    /// Checks what happens next against the graph. `cancel` are the other state instances that the plan cancels.
    pub(super) fn check_next(
        &self,
        occurrence: &Occurrence,
        moving: &Moving,
        next: &Next,
        cancel: &[StateId],
    ) -> Result<(), Fault> {
        let from = self.state_name_of(moving.state);
        let refuse = |message: String| Err(Fault::new(TRANSITION, message));
        match next {
            Next::Reoffer if self.declared(&from).kind == StateKind::Task => Ok(()),
            Next::Reoffer => refuse(format!("{from} offers no tasks that could be others")),
            Next::Stay => self.check_movable(moving),
            Next::Spawn(targets) if targets.is_empty() => refuse(format!(
                "{from} spawns no state; a state goes on alone with `stay`"
            )),
            Next::Spawn(targets) => {
                self.check_movable(moving)?;
                self.check_targets(&from, &occurrence.trigger, targets)
            }
            Next::Enter(targets) if targets.is_empty() => refuse(format!(
                "{from} enters no state; a branch ends with `end-branch`"
            )),
            Next::Enter(targets) => {
                self.check_targets(&from, &occurrence.trigger, targets)?;
                let depth = self.state_instance_of(moving.state).forks.len();
                if targets.len() > 1 && depth >= FORKS_MAX {
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

    /// Targets must be declared for the trigger, each at most once.
    fn check_targets(&self, from: &str, trigger: &str, targets: &[Target]) -> Result<(), Fault> {
        let graph = &self.context.version.graph;
        let declared = graph
            .transition(from, trigger)
            .expect("checked before the guard was asked");
        for (place, target) in targets.iter().enumerate() {
            let name = &target.name;
            if !declared.targets.contains(name) {
                let message = format!(
                    "{from} on {trigger} may lead to {}, not to {name:?}",
                    declared.targets.join(", ")
                );
                return Err(Fault::new(TRANSITION, bounded(message)));
            }
            if targets[..place].iter().any(|other| other.name == *name) {
                let message = "a plan must not enter a state twice";
                return Err(Fault::new(TRANSITION, message));
            }
        }
        Ok(())
    }

    /// Whether no other branch is left, once these state instances are cancelled.
    fn is_last(&self, state: StateId, cancel: &[StateId]) -> bool {
        let here = self.instance.active.iter().chain(&self.instance.waiting);
        let mut others = here.filter(|other| other.id != state && !cancel.contains(&other.id));
        others.next().is_none() && self.entering.is_empty()
    }

    /// Refuses a state that would go on although nothing may move it any more.
    fn check_movable(&self, moving: &Moving) -> Result<(), Fault> {
        let decided = moving.decision.as_ref().map(|deciding| deciding.task);
        let state_instance = self.state_instance_of(moving.state);
        if self.may_be_moved(state_instance, decided) {
            return Ok(());
        }
        let from = &state_instance.name;
        let message = format!("{from} goes on with nothing left that could move it");
        Err(Fault::new(TRANSITION, message))
    }

    /// Whether anything may still move the state instance, once this task is decided.
    fn may_be_moved(&self, state_instance: &StateInstance, decided: Option<TaskId>) -> bool {
        let by_signal = |way: &Transition| way.by.contains(&FiredBy::Signal);
        let fires = |action: &OverdueAction| matches!(action, OverdueAction::Fire(_));
        let graph = &self.context.version.graph;
        state_instance
            .tasks
            .iter()
            .any(|task| task.status.is_open() && Some(task.id) != decided)
            || state_instance
                .deadlines
                .iter()
                .any(|open| fires(&open.action))
            || state_instance
                .children
                .iter()
                .any(|child| child.outcome.is_none() && child.on_end.is_some())
            || graph.leaving(&state_instance.name).any(by_signal)
    }

    /// Refuses more state instances than an instance may have, at a time and in all.
    pub(super) fn check_branches(
        &self,
        occurrence: &Occurrence,
        next: &Next,
        cancelled: usize,
    ) -> Result<(), Rejection> {
        let begun = next.targets().len();
        // States entered from a router are not limited in all, since the router itself was allowed.
        if !matches!(occurrence.source, Source::Entry) {
            shown::check_state_instances(&self.instance, begun)?;
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

    /// Lets the targets of a plan begin.
    pub(super) fn begin_branches(&mut self, from: StateId, trigger: &str, next: &Next) {
        let (forks, choices) = self.branches(from, trigger, next);
        let pending = next.targets().iter().map(|target| Pending {
            name: target.name.clone(),
            predecessors: vec![from],
            by: Some(trigger.to_owned()),
            forks: forks.clone(),
            choices,
        });
        self.entering.extend(pending);
    }
}
