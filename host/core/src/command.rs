//! Commands: the changes that callers ask for.

mod declare;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::declare::commands;
use super::audit::sha256;
use super::ids::{DeadlineId, InstanceId, StateId, TaskId};
use super::instance::Entity;
use super::json::Json;

commands! {
    /// One command. HTTP, the command line, deadlines and ended children all issue one of these. No role grants `host:act`: only
    /// the host issues commands that need it.
    pub enum Command {
        Start() = "start" needs "instance:start" {
            definition: String,
            entity: Entity,
            data: Json,
            /// Where a restarted or child instance comes from; none for any other start.
            #[serde(skip_serializing_if = "Option::is_none")]
            lineage: Option<Box<Lineage>>,
        }
        Claim(task) = "claim" needs "task:act" {
            task: TaskId,
        }
        Release(task) = "release" needs "task:act" {
            task: TaskId,
        }
        Decide(task) = "decide" needs "task:act" {
            task: TaskId,
            outcome: String,
            comment: Option<String>,
            input: Json,
        }
        /// The owner gives the task to somebody who decides it on their behalf.
        Delegate(task) = "delegate" needs "task:act" {
            task: TaskId,
            to: String,
            reason: String,
        }
        /// A delegate gives the task back to the delegator.
        Resolve(task) = "resolve" needs "task:act" {
            task: TaskId,
        }
        /// An operator gives the task to another owner.
        Reassign(task) = "reassign" needs "task:assign" {
            task: TaskId,
            to: String,
            reason: String,
        }
        /// An operator opens a claimed task for its candidates again.
        Reset(task) = "reset" needs "task:assign" {
            task: TaskId,
            reason: String,
        }
        /// The owner or an operator suspends an open task.
        SuspendTask(task) = "suspend_task" needs "task:act" {
            task: TaskId,
            reason: Option<String>,
            /// When the host resumes it; none until somebody does.
            until: Option<Timestamp>,
        }
        /// The owner or an operator resumes a suspended task.
        ResumeTask(task) = "resume_task" needs "task:act" {
            task: TaskId,
        }
        /// Somebody who may read the instance comments on it, also after its end.
        Comment(instance) = "comment" needs "instance:read" {
            instance: InstanceId,
            comment: String,
            /// The people whom it mentions.
            mentions: Vec<String>,
        }
        Cancel(instance) = "cancel" needs "instance:cancel" {
            instance: InstanceId,
            reason: String,
        }
        Suspend(instance) = "suspend" needs "instance:suspend" {
            instance: InstanceId,
            reason: String,
        }
        Resume(instance) = "resume" needs "instance:suspend" {
            instance: InstanceId,
        }
        /// Continues the instance under another version of the definition.
        Migrate(instance) = "migrate" needs "instance:migrate" {
            instance: InstanceId,
            version: u32,
            /// The new name of each state that does not keep its own.
            states: BTreeMap<String, String>,
        }
        Signal(instance) = "signal" needs "instance:signal" {
            instance: InstanceId,
            trigger: String,
            /// The sender's id of the signal. A repeated signal of one sender counts once.
            id: String,
            input: Json,
            /// The correlation key by which it was sent; none if it was sent to the instance itself.
            #[serde(skip_serializing_if = "Option::is_none")]
            correlation: Option<String>,
            /// The state instance that it is for, if it was sent to all; none: the oldest that takes it.
            #[serde(skip_serializing_if = "Option::is_none")]
            state: Option<StateId>,
        }
        /// A deadline is due. Issued by the host.
        Deadline(instance) = "deadline" needs "host:act" {
            instance: InstanceId,
            deadline: DeadlineId,
            due_at: Timestamp,
        }
        /// A child ended or could not be started. Issued by the host.
        ChildEnded(instance) = "child_ended" needs "host:act" {
            instance: InstanceId,
            child: InstanceId,
            /// The version that it ran; none if it could not be started.
            #[serde(skip_serializing_if = "Option::is_none")]
            version: Option<u32>,
            outcome: String,
            /// The child's data at its end.
            data: Json,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<String>,
        }
        /// The service of a service state answered. Issued by the host.
        ServiceAnswered(instance) = "service_answered" needs "host:act" {
            instance: InstanceId,
            state: StateId,
            /// The attempts, the last one included.
            attempts: u32,
            output: Json,
            /// The model that answered, and its version, as the reply names them.
            #[serde(skip_serializing_if = "Option::is_none")]
            model: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            model_version: Option<String>,
        }
        /// The last attempt to call the service of a service state failed. Issued by the host.
        ServiceFailed(instance) = "service_failed" needs "host:act" {
            instance: InstanceId,
            state: StateId,
            attempts: u32,
            error: String,
        }
        /// Groups, managers or absences changed, or a command left buffered signals: checks the owners and the staffing again, and
        /// takes signals as every command does. Issued by the host.
        Reassessment(instance) = "reassessment" needs "host:act" {
            instance: InstanceId,
        }
    }
}

/// What a restarted or child instance inherits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lineage {
    /// Its id, if a parent has chosen it.
    pub id: Option<InstanceId>,
    /// Its initiator, if not the actor.
    pub initiator: Option<String>,
    /// The ended instance that it restarts.
    pub predecessor: Option<InstanceId>,
    /// The instance whose child it is.
    pub parent: Option<InstanceId>,
    /// The requesters of the predecessor or parent.
    pub requesters: Vec<String>,
}

/// The action of a start that restarts an ended instance.
pub const RESTART: &str = "restart";

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Command, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Command::stored(text.get()).map_err(D::Error::custom)
    }
}

impl Command {
    /// The action's name in logs, metrics and the audit.
    pub fn action(&self) -> &'static str {
        match self {
            Command::Start {
                lineage: Some(lineage),
                ..
            } if lineage.predecessor.is_some() => RESTART,
            command => command.declared_name(),
        }
    }

    /// Whether it is allowed while the version of its instance is stopped. A suspension is, so that deadlines do not go on meanwhile and
    /// act when the version is resumed.
    pub fn passes_a_stop(&self) -> bool {
        matches!(
            self,
            Command::Cancel { .. } | Command::Suspend { .. } | Command::Comment { .. }
        )
    }

    /// The key of the signal; none for any other command.
    pub fn signal(&self) -> Option<SignalKey> {
        match self {
            Command::Signal {
                trigger,
                id,
                correlation,
                state,
                ..
            } => Some(SignalKey {
                trigger: trigger.clone(),
                id: id.clone(),
                correlation: correlation.clone(),
                state: *state,
            }),
            _ => None,
        }
    }

    /// SHA-256 of the signal's input; none for any other command.
    pub fn content(&self) -> Option<[u8; 32]> {
        match self {
            Command::Signal { input, .. } => Some(sha256(input.as_str().as_bytes())),
            _ => None,
        }
    }
}

/// The key of a signal among those of its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalKey {
    pub trigger: String,
    /// The sender's id of the signal.
    pub id: String,
    pub correlation: Option<String>,
    /// The state instance that it is for, if it was sent to all.
    pub state: Option<StateId>,
}

impl SignalKey {
    /// SHA-256 over the sender, the trigger, the correlation key, and the state instance if it was sent to all.
    pub fn identity(&self, sender: &str) -> [u8; 32] {
        let identity = match self.state {
            None => Json::of(&(sender, &self.trigger, &self.correlation)),
            Some(state) => Json::of(&(sender, &self.trigger, &self.correlation, state)),
        };
        sha256(identity.as_str().as_bytes())
    }
}
