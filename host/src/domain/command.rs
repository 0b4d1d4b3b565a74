//! What is asked of an instance.

use serde::Serialize;

use super::ids::{InstanceId, TaskId};
use super::instance::Entity;
use super::json::Json;

/// One command. Every way in - HTTP, command line, later timers and replies - ends in one of these.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "action"
)]
pub enum Command {
    Start {
        definition: String,
        entity: Entity,
        data: Json,
    },
    Claim {
        task: TaskId,
    },
    Release {
        task: TaskId,
    },
    Decide {
        task: TaskId,
        outcome: String,
        comment: Option<String>,
        input: Json,
    },
    Cancel {
        instance: InstanceId,
        reason: String,
    },
}

impl Command {
    /// The action's name in logs, metrics and the audit.
    pub fn action(&self) -> &'static str {
        match self {
            Command::Start { .. } => "start",
            Command::Claim { .. } => "claim",
            Command::Release { .. } => "release",
            Command::Decide { .. } => "decide",
            Command::Cancel { .. } => "cancel",
        }
    }

    /// The permission that the action itself needs, whatever the instance says.
    pub fn permission(&self) -> &'static str {
        match self {
            Command::Start { .. } => "instance:start",
            Command::Claim { .. } | Command::Release { .. } | Command::Decide { .. } => "task:act",
            Command::Cancel { .. } => "instance:cancel",
        }
    }

    /// The task that it is about.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Command::Claim { task } | Command::Release { task } | Command::Decide { task, .. } => {
                Some(*task)
            }
            Command::Start { .. } | Command::Cancel { .. } => None,
        }
    }
}
