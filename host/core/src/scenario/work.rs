//! Selects the task on which somebody works in a test, among those that the host allows.

use super::{Acting, Stopped, World};
use crate::command::Command;
use crate::ids::{StateId, TaskId};
use crate::instance::{ChildInstance, Instance, OpenCall, StateInstance, Task};
use crate::rejection::Rejection;

/// A test's description of the task or state that it means. Without any member, every task or state matches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meant<'a> {
    /// The name of the state.
    pub state: Option<&'a str>,
    /// The key of the state instance's item.
    pub key: Option<&'a str>,
    /// The label of the task.
    pub label: Option<&'a str>,
    /// The absent person for whom somebody claims or decides.
    pub absent: Option<&'a str>,
}

/// Why somebody cannot work on any matching task.
#[derive(Debug, Clone, PartialEq)]
pub enum Unworked {
    /// There is no such task.
    NoTask,
    /// They claim or decide for themselves or for somebody else, and not for the absent person.
    ForThemselves,
    Stopped(Stopped),
}

impl Meant<'_> {
    /// Whether it is this state instance.
    pub fn is(&self, one: &StateInstance) -> bool {
        self.state.is_none_or(|name| one.name == name)
            && (self.key.is_none() || one.key.as_deref() == self.key)
    }

    fn is_for(&self, for_whom: Option<&str>) -> bool {
        self.absent.is_none() || self.absent == for_whom
    }

    /// The matching tasks: open ones, those of the person first. If there are none, the last closed one.
    fn tasks(&self, instance: &Instance, user: &str) -> Vec<TaskId> {
        let here = |state: &&StateInstance| self.is(state);
        let labelled = |task: &&Task| self.label.is_none_or(|label| task.label == label);
        let active = instance.active.iter().filter(here);
        let open = active.flat_map(|state| &state.tasks).filter(labelled);
        let mut open: Vec<_> = open.filter(|task| task.status.is_open()).collect();
        open.sort_by_key(|task| task.owner() != Some(user));
        if open.is_empty() {
            let all = instance.state_instances().filter(here);
            let closed = all.flat_map(|state| &state.tasks).filter(labelled);
            open.extend(closed.last());
        }
        open.into_iter().map(|task| task.id).collect()
    }
}

impl World {
    /// The command on the first of these tasks for which the host allows it.
    pub fn work(
        &self,
        acting: Acting<'_>,
        meant: Meant<'_>,
        on: impl Fn(TaskId) -> Command,
    ) -> Result<Command, Unworked> {
        let (mut refused, mut for_themselves) = (Vec::new(), false);
        let instance = self.instance.as_ref();
        let tasks = instance.map(|instance| meant.tasks(instance, &acting.actor.id));
        for task in tasks.into_iter().flatten() {
            let command = on(task);
            let is_for_one = matches!(command, Command::Claim { .. } | Command::Decide { .. });
            match self.judge(acting, &command) {
                Ok(for_whom) if is_for_one && !meant.is_for(for_whom.as_deref()) => {
                    for_themselves = true;
                }
                Ok(_) => return Ok(command),
                Err(stopped) => refused.push(stopped),
            }
        }
        if for_themselves {
            return Err(Unworked::ForThemselves);
        }
        if refused.is_empty() {
            return Err(Unworked::NoTask);
        }
        let telling = refused.iter().position(|stopped| !is_elsewhere(stopped));
        let stopped = refused.swap_remove(telling.unwrap_or(0));
        Err(Unworked::Stopped(stopped))
    }

    /// The open service call of such a state, of this service if one is named, and its state instance.
    pub fn call(&self, meant: Meant<'_>, service: Option<&str>) -> Option<(StateId, &OpenCall)> {
        let mut active = self.instance.iter().flat_map(|instance| &instance.active);
        active.find_map(|state| {
            let call = state.open_call().filter(|_| meant.is(state))?;
            let is_meant = service.is_none_or(|name| call.service == name);
            is_meant.then_some((state.id, call))
        })
    }

    /// The running child of this definition that was started in such a state.
    pub fn child(&self, meant: Meant<'_>, definition: &str) -> Option<&ChildInstance> {
        let active = self.instance.iter().flat_map(|instance| &instance.active);
        let here = active.filter(|state| meant.is(state));
        let mut children = here.flat_map(|state| &state.children);
        children.find(|child| child.key == definition && child.outcome.is_none())
    }
}

/// Whether the task is refused because it is somebody else's. Another task may then be the right one.
fn is_elsewhere(stopped: &Stopped) -> bool {
    let Stopped::Rejected(rejection) = stopped else {
        return false;
    };
    matches!(rejection.forbids(), Some("not_a_candidate" | "not_owner"))
        || matches!(rejection, Rejection::Taken(_))
}
