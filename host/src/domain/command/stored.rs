//! Commands read back from the evidence. Read by name, because serde's way of reading tagged types loses the text of
//! numbers, and a replay must be given the same bytes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::{Command, Lineage};
use crate::domain::ids::{DeadlineId, InstanceId, TaskId};
use crate::domain::instance::Entity;
use crate::domain::json::Json;

/// The members of all commands.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StoredCommand {
    action: String,
    definition: Option<String>,
    entity: Option<Entity>,
    data: Option<Json>,
    lineage: Option<Box<Lineage>>,
    task: Option<TaskId>,
    outcome: Option<String>,
    comment: Option<String>,
    input: Option<Json>,
    instance: Option<InstanceId>,
    reason: Option<String>,
    to: Option<String>,
    version: Option<u32>,
    states: Option<BTreeMap<String, String>>,
    trigger: Option<String>,
    id: Option<String>,
    correlation: Option<String>,
    deadline: Option<DeadlineId>,
    due_at: Option<Timestamp>,
    child: Option<InstanceId>,
}

impl TryFrom<StoredCommand> for Command {
    type Error = String;

    fn try_from(stored: StoredCommand) -> Result<Command, String> {
        match stored.action.as_str() {
            "claim" | "release" | "decide" | "delegate" | "resolve" | "reassign" | "reset" => {
                of_task(stored)
            }
            "start" => Ok(Command::Start {
                definition: need("definition", stored.definition)?,
                entity: need("entity", stored.entity)?,
                data: need("data", stored.data)?,
                lineage: stored.lineage,
            }),
            _ => of_instance(stored),
        }
    }
}

fn of_task(stored: StoredCommand) -> Result<Command, String> {
    let task = need("task", stored.task)?;
    Ok(match stored.action.as_str() {
        "claim" => Command::Claim { task },
        "release" => Command::Release { task },
        "resolve" => Command::Resolve { task },
        "decide" => Command::Decide {
            task,
            outcome: need("outcome", stored.outcome)?,
            comment: stored.comment,
            input: need("input", stored.input)?,
        },
        "delegate" => Command::Delegate {
            task,
            to: need("to", stored.to)?,
            reason: need("reason", stored.reason)?,
        },
        "reassign" => Command::Reassign {
            task,
            to: need("to", stored.to)?,
            reason: need("reason", stored.reason)?,
        },
        _ => Command::Reset {
            task,
            reason: need("reason", stored.reason)?,
        },
    })
}

fn of_instance(stored: StoredCommand) -> Result<Command, String> {
    let instance = need("instance", stored.instance)?;
    Ok(match stored.action.as_str() {
        "cancel" => Command::Cancel {
            instance,
            reason: need("reason", stored.reason)?,
        },
        "suspend" => Command::Suspend {
            instance,
            reason: need("reason", stored.reason)?,
        },
        "resume" => Command::Resume { instance },
        "migrate" => Command::Migrate {
            instance,
            version: need("version", stored.version)?,
            states: need("states", stored.states)?,
        },
        "signal" => Command::Signal {
            instance,
            trigger: need("trigger", stored.trigger)?,
            id: need("id", stored.id)?,
            input: need("input", stored.input)?,
            correlation: stored.correlation,
        },
        "deadline" => Command::Deadline {
            instance,
            deadline: need("deadline", stored.deadline)?,
            due_at: need("dueAt", stored.due_at)?,
        },
        "childEnded" => Command::ChildEnded {
            instance,
            child: need("child", stored.child)?,
            outcome: need("outcome", stored.outcome)?,
            data: need("data", stored.data)?,
            reason: stored.reason,
        },
        "recheck" => Command::Recheck { instance },
        other => return Err(format!("{other} is no command of this host")),
    })
}

fn need<T>(name: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("the member {name} is missing"))
}
