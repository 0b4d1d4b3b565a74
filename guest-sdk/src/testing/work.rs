//! Selects the task on which somebody works in a test, among those that the host allows.

use wrkflw_core::command::Command;
use wrkflw_core::ids::TaskId;
use wrkflw_core::instance::{Instance, StateInstance, Task};
use wrkflw_core::rejection::Rejection;

use super::event::{What, When};
use super::outcome::{Answer, Outcome};
use super::scenario::{Scenario, canonical};
use super::when::denied;
use crate::{Flow, Triggers};

impl<F: Flow> Scenario<F> {
    /// Somebody claims, releases or decides a task: the first for which the host allows it.
    #[track_caller]
    pub(super) fn works(&mut self, when: &When<F::Trigger>, user: &str) -> Outcome {
        let tasks = meant(self.started(), when, user);
        if tasks.is_empty() {
            return denied(
                "no_task",
                format!("there is no task that {user} could mean"),
            );
        }
        let absent = when.on_behalf_of.as_deref();
        let actor = self.directory.actor(user, absent);
        let version = self.version();
        let (mut refused, mut for_themselves) = (Vec::new(), false);
        for task in tasks {
            let command = on(task, when);
            match self
                .prepared(&version, &actor)
                .judge(self.started(), &command)
            {
                Ok(for_whom) if is_decided(when) && for_whom.as_deref() != absent => {
                    for_themselves = true;
                }
                Ok(_) => return self.run(&actor, &command),
                Err(rejection) => refused.push(rejection),
            }
        }
        if for_themselves {
            let message = format!("{user} decides here for themselves, and not for {absent:?}");
            return denied("own_task", message);
        }
        let telling = refused
            .iter()
            .position(|rejection| !is_elsewhere(rejection));
        let rejection = refused.swap_remove(telling.unwrap_or(0));
        Outcome {
            answer: Answer::from(rejection),
            ..Outcome::nothing()
        }
    }
}

fn is_decided<T: Triggers>(when: &When<T>) -> bool {
    matches!(when.what, What::Decide { .. })
}

/// Whether the task is refused because it is somebody else's. Another task may then be the right one.
fn is_elsewhere(rejection: &Rejection) -> bool {
    matches!(rejection.forbids(), Some("not_a_candidate" | "not_owner"))
        || matches!(rejection, Rejection::Taken(_))
}

/// The tasks that a test may mean: open ones, with those of the person first. If there is none, the last closed one.
fn meant<T: Triggers>(instance: &Instance, when: &When<T>, user: &str) -> Vec<TaskId> {
    let here = |state: &&StateInstance| when.means(state);
    let labelled = |task: &&Task| when.label.as_ref().is_none_or(|label| &task.label == label);
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

#[track_caller]
fn on<T: Triggers>(task: TaskId, when: &When<T>) -> Command {
    match &when.what {
        What::Claim { .. } => Command::Claim { task },
        What::Release { .. } => Command::Release { task },
        What::Suspend { .. } => Command::SuspendTask {
            task,
            reason: None,
            until: None,
        },
        What::Resume { .. } => Command::ResumeTask { task },
        What::Decide { trigger, .. } => Command::Decide {
            task,
            outcome: trigger.name().to_owned(),
            comment: when.comment.clone(),
            input: canonical("the form", &when.input.to_string()),
        },
        _ => unreachable!("nobody works on a task so"),
    }
}
