//! The commands that fit the present state of an instance and its tasks, whether or not somebody is allowed to give them.

use std::collections::BTreeSet;

use wrkflw_core::command::Command;
use wrkflw_core::graph::{CommentRule, FiredBy, Graph};
use wrkflw_core::instance::{Instance, StateInstance, Status, Task};
use wrkflw_core::json::Json;
use wrkflw_core::version::Version;

/// The comment of a dry run that requires one, so that flow logic is asked, too.
const SAMPLE: &str = "-";

/// The commands on the open tasks, for this person.
pub(super) fn of_tasks(
    version: &Version,
    instance: &Instance,
    person: &str,
) -> Vec<(Command, Option<String>)> {
    let mut commands = Vec::new();
    for state in &instance.active {
        let open = state.tasks.iter().filter(|task| task.status.is_open());
        for task in open {
            let of_task = of_task(&version.graph, &state.name, task, person);
            commands.extend(of_task.map(|command| (command, Some(state.name.clone()))));
        }
    }
    commands
}

/// The commands that fit an open task of this state, whether or not this person is allowed to give them. Reasons, inputs and
/// recipients are empty.
pub(crate) fn of_task(
    graph: &Graph,
    state: &str,
    of: &Task,
    person: &str,
) -> impl Iterator<Item = Command> {
    let (to, reason, task) = (String::new, String::new, of.id);
    let is_suspended = of.suspended.is_some();
    let whole = [
        (of.owner() != Some(person), Command::Claim { task }),
        (of.owner().is_some(), Command::Release { task }),
        (
            of.owner().is_some(),
            Command::Delegate {
                task,
                to: to(),
                reason: reason(),
            },
        ),
        (of.is_delegated(), Command::Resolve { task }),
        (
            true,
            Command::Reassign {
                task,
                to: to(),
                reason: reason(),
            },
        ),
        (
            of.owner().is_some(),
            Command::Reset {
                task,
                reason: reason(),
            },
        ),
        (
            !is_suspended,
            Command::SuspendTask {
                task,
                reason: None,
                until: None,
            },
        ),
        (is_suspended, Command::ResumeTask { task }),
    ];
    let whole = whole.into_iter().filter(|(fits, _)| *fits);
    let ways = graph.leaving(state);
    let ways = ways.filter(|way| way.by.contains(&FiredBy::Decision));
    let decisions = ways.map(move |way| Command::Decide {
        task,
        outcome: way.trigger.clone(),
        comment: (way.comment == CommentRule::Required).then(|| SAMPLE.to_owned()),
        input: Json::empty(),
    });
    whole.map(|(_, command)| command).chain(decisions)
}

/// The signals that the active states take. If several states take the same signal, it is shown for the oldest one.
pub(super) fn signals(version: &Version, instance: &Instance) -> Vec<(Command, Option<String>)> {
    let mut seen = BTreeSet::new();
    let of = |state: &StateInstance| -> Vec<(Command, Option<String>)> {
        let ways = version.graph.leaving(&state.name);
        let ways = ways.filter(|way| way.by.contains(&FiredBy::Signal));
        ways.filter(|way| seen.insert(way.trigger.clone()))
            .map(|way| {
                let signal = Command::Signal {
                    instance: instance.id,
                    trigger: way.trigger.clone(),
                    id: "explain".to_owned(),
                    input: Json::empty(),
                    correlation: None,
                    state: None,
                };
                (signal, Some(state.name.clone()))
            })
            .collect()
    };
    instance.active.iter().flat_map(of).collect()
}

/// The commands that fit the present state of the instance, except a restart.
pub(super) fn instance_commands(of: &Instance) -> impl Iterator<Item = Command> {
    let (instance, reason) = (of.id, String::new());
    let comment = Command::Comment {
        instance,
        comment: String::new(),
        mentions: Vec::new(),
    };
    let cancel = Command::Cancel {
        instance,
        reason: reason.clone(),
    };
    let other = match of.status {
        Status::Running => Some(Command::Suspend { instance, reason }),
        Status::Suspended { .. } => Some(Command::Resume { instance }),
        Status::Completed { .. } | Status::Cancelled { .. } => None,
    };
    [comment, cancel].into_iter().chain(other)
}
