//! What is asked of an instance.

mod stored;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::audit::sha256;
use super::ids::{DeadlineId, InstanceId, TaskId};
use super::instance::Entity;
use super::json::Json;

/// One command. Every way in - HTTP, command line, deadlines, children - ends in one of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "action",
    try_from = "stored::StoredCommand"
)]
pub enum Command {
    Start {
        definition: String,
        entity: Entity,
        data: Json,
        /// Where the instance comes from, when it is not the first of its line.
        #[serde(skip_serializing_if = "Option::is_none")]
        lineage: Option<Box<Lineage>>,
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
    /// The owner hands the task on, and stays on record.
    Delegate {
        task: TaskId,
        to: String,
        reason: String,
    },
    /// A delegate hands the task back.
    Resolve {
        task: TaskId,
    },
    /// An operator gives the task to somebody.
    Reassign {
        task: TaskId,
        to: String,
        reason: String,
    },
    /// An operator puts a claimed task back to its candidates.
    Reset {
        task: TaskId,
        reason: String,
    },
    Cancel {
        instance: InstanceId,
        reason: String,
    },
    Suspend {
        instance: InstanceId,
        reason: String,
    },
    Resume {
        instance: InstanceId,
    },
    /// Go on under another version of the definition.
    Migrate {
        instance: InstanceId,
        version: u32,
        /// The new name of each state that does not keep its own.
        states: BTreeMap<String, String>,
    },
    Signal {
        instance: InstanceId,
        trigger: String,
        /// Told apart by it: the same signal of one sender counts once.
        id: String,
        input: Json,
        /// The name under which it looks for who waits; none where it was sent to the instance itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        correlation: Option<String>,
    },
    /// A deadline is due. Of the host itself.
    Deadline {
        instance: InstanceId,
        deadline: DeadlineId,
        due_at: Timestamp,
    },
    /// A child has ended, or could not be started. Of the host itself.
    ChildEnded {
        instance: InstanceId,
        child: InstanceId,
        outcome: String,
        /// The child's data at its end.
        data: Json,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Groups, managers or absences changed: look again who is able to act. Of the host itself.
    Recheck {
        instance: InstanceId,
    },
}

/// What an instance that is not the first of its line has from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lineage {
    /// Its id, where the one that starts it has chosen it.
    pub id: Option<InstanceId>,
    /// Who started it, where that is not the actor.
    pub initiator: Option<String>,
    /// The ended instance that it restarts.
    pub predecessor: Option<InstanceId>,
    /// The instance whose child it is.
    pub parent: Option<InstanceId>,
    /// The requesters of those.
    pub requesters: Vec<String>,
}

impl Command {
    /// The action's name in logs, metrics and the audit.
    pub fn action(&self) -> &'static str {
        match self {
            Command::Start { lineage, .. } => match lineage {
                Some(lineage) if lineage.predecessor.is_some() => "restart",
                _ => "start",
            },
            Command::Claim { .. } => "claim",
            Command::Release { .. } => "release",
            Command::Decide { .. } => "decide",
            Command::Delegate { .. } => "delegate",
            Command::Resolve { .. } => "resolve",
            Command::Reassign { .. } => "reassign",
            Command::Reset { .. } => "reset",
            Command::Cancel { .. } => "cancel",
            Command::Suspend { .. } => "suspend",
            Command::Resume { .. } => "resume",
            Command::Migrate { .. } => "migrate",
            Command::Signal { .. } => "signal",
            Command::Deadline { .. } => "deadline",
            Command::ChildEnded { .. } => "child_ended",
            Command::Recheck { .. } => "recheck",
        }
    }

    /// The permission that the action itself needs, whatever the instance says.
    pub fn permission(&self) -> &'static str {
        match self {
            Command::Start { .. } => "instance:start",
            Command::Claim { .. }
            | Command::Release { .. }
            | Command::Decide { .. }
            | Command::Delegate { .. }
            | Command::Resolve { .. } => "task:act",
            Command::Reassign { .. } | Command::Reset { .. } => "task:assign",
            Command::Cancel { .. } => "instance:cancel",
            Command::Suspend { .. } | Command::Resume { .. } => "instance:suspend",
            Command::Migrate { .. } => "instance:migrate",
            Command::Signal { .. } => "instance:signal",
            // Nobody has it: these are of the host itself.
            Command::Deadline { .. } | Command::ChildEnded { .. } | Command::Recheck { .. } => {
                "host:act"
            }
        }
    }

    /// Whether it may be carried out though the version of its instance is stopped: it asks nothing of it.
    pub fn passes_a_stop(&self) -> bool {
        matches!(self, Command::Cancel { .. })
    }

    /// The task that it is about.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Command::Claim { task }
            | Command::Release { task }
            | Command::Decide { task, .. }
            | Command::Delegate { task, .. }
            | Command::Resolve { task }
            | Command::Reassign { task, .. }
            | Command::Reset { task, .. } => Some(*task),
            _ => None,
        }
    }

    /// The instance that it names; none for a start, and where it names a task of it.
    pub fn instance(&self) -> Option<InstanceId> {
        match self {
            Command::Cancel { instance, .. }
            | Command::Suspend { instance, .. }
            | Command::Resume { instance }
            | Command::Migrate { instance, .. }
            | Command::Signal { instance, .. }
            | Command::Deadline { instance, .. }
            | Command::ChildEnded { instance, .. }
            | Command::Recheck { instance } => Some(*instance),
            _ => None,
        }
    }

    /// What tells the signal that it is from others of its sender.
    pub fn signal(&self) -> Option<SignalKey> {
        match self {
            Command::Signal {
                trigger,
                id,
                correlation,
                ..
            } => Some(SignalKey {
                trigger: trigger.clone(),
                id: id.clone(),
                correlation: correlation.clone(),
            }),
            _ => None,
        }
    }

    /// SHA-256 over what the signal that it is says.
    pub fn content(&self) -> Option<[u8; 32]> {
        match self {
            Command::Signal { input, .. } => Some(sha256(input.as_str().as_bytes())),
            _ => None,
        }
    }
}

/// What tells a signal from others of its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalKey {
    pub trigger: String,
    /// The sender's.
    pub id: String,
    pub correlation: Option<String>,
}

impl SignalKey {
    /// SHA-256 over whose it is, what it fires, and under which name.
    pub fn identity(&self, sender: &str) -> [u8; 32] {
        sha256(
            Json::of(&(sender, &self.trigger, &self.correlation))
                .as_str()
                .as_bytes(),
        )
    }
}
