//! Actions of people on tasks in a test.

use wrkflw_core::command::Command;
use wrkflw_core::ids::TaskId;
use wrkflw_core::scenario::Unworked;

use super::event::{What, When};
use super::outcome::Outcome;
use super::scenario::{Scenario, canonical};
use super::when::{acting, denied, stopped};
use crate::{Flow, Triggers};

impl<F: Flow> Scenario<F> {
    /// Runs an action on the first task for which the host allows it.
    #[track_caller]
    pub(super) fn works(&mut self, when: &When<F::Trigger>, user: &str) -> Outcome {
        self.started();
        let absent = when.on_behalf_of.as_deref();
        let actor = self.actor(user, absent);
        let version = self.version();
        let chosen = self
            .world
            .work(acting(&version, &actor), when.meant(), |task| {
                on(task, when)
            });
        match chosen {
            Ok(command) => self.run(&actor, &command),
            Err(Unworked::NoTask) => denied(
                "no_task",
                format!("there is no task that {user} could mean"),
            ),
            Err(Unworked::ForThemselves) => {
                let absent = absent.unwrap_or_default();
                let message = format!(
                    "{user} acts here for themselves or for somebody else, and not for {absent}"
                );
                denied("own_task", message)
            }
            Err(Unworked::Stopped(reason)) => stopped(reason),
        }
    }
}

#[track_caller]
fn on<T: Triggers>(task: TaskId, when: &When<T>) -> Command {
    match &when.what {
        What::Claim { .. } => Command::Claim { task },
        What::Release { .. } => Command::Release { task },
        What::Delegate { to, .. } => Command::Delegate {
            task,
            to: to.clone(),
            reason: "in a test".to_owned(),
        },
        What::Reassign { to, .. } => Command::Reassign {
            task,
            to: to.clone(),
            reason: "in a test".to_owned(),
        },
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
