//! Every reason to reject a command, in one enum. The HTTP layer maps each variant to one problem type and status.

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use super::answer::{Reason, Violation};
use super::ids::{InstanceId, TaskId};
use super::instance::{Instance, Status, Suspension};

/// Why a command was rejected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rejection {
    /// The actor is not allowed, regardless of the data and the input.
    #[error("{}", .0.message)]
    Forbidden(Reason),
    /// The data or the input is invalid.
    #[error("the input is not accepted: {}", list(.0))]
    Invalid(Vec<Violation>),
    /// Flow logic does not allow it at the moment; a later attempt may succeed.
    #[error("{}", .0.message)]
    RefusedNow(Reason),
    /// Only the owner of the task is allowed, and the actor is not, or no longer, the owner.
    #[error("{message}")]
    NotOwner { owned: Owned, message: String },
    /// Somebody else acted on the task first.
    #[error("{}", .0)]
    Taken(Winner),
    #[error("instance {id} has ended: {status}")]
    Ended {
        id: InstanceId,
        status: &'static str,
        at: Timestamp,
        /// Who cancelled it, if it was cancelled.
        by: Option<String>,
        revision: u32,
    },
    /// The instance is suspended until somebody resumes it.
    #[error("instance {id} was suspended by {by} at {at}: {reason}")]
    Suspended {
        id: InstanceId,
        reason: String,
        by: String,
        at: Timestamp,
        revision: u32,
    },
    /// The task is suspended until somebody resumes it, or until a set time.
    #[error("task {task} was suspended by {} at {}{}", .suspension.by, .suspension.at, why(.suspension))]
    TaskSuspended {
        task: TaskId,
        suspension: Suspension,
        revision: u32,
    },
    /// The current state does not allow it; a later attempt may succeed.
    #[error("{message}")]
    NotNow { code: &'static str, message: String },
    /// `If-Match` named another revision.
    #[error("the revision is {current}, not {given}")]
    Stale { given: u32, current: u32 },
    /// Another running instance is about the same entity: an instance of the same definition, or of any definition if
    /// either of the two is sole per entity.
    #[error("{} already runs about this entity{}", which(*.running), started_by(.started.as_ref()))]
    AlreadyRunning {
        /// None for callers who do not see it.
        running: Option<InstanceId>,
        /// Only for callers who may read instances.
        started: Option<Started>,
    },
    /// The sender has used the id for a signal with other content.
    #[error("{trigger} with the id {id} was sent at {} with other content; give another signal another id", .first.at)]
    SignalIdReused {
        trigger: String,
        id: String,
        first: FirstSignal,
    },
    /// After the migration, nobody would be eligible for the work of these states.
    #[error("nobody would be able to do the work of {}", .states.join(", "))]
    NobodyLeft { states: Vec<String> },
}

/// The current owner of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owned {
    #[serde(rename = "taskId")]
    pub task: TaskId,
    /// None if nobody has claimed it.
    pub owner: Option<String>,
    /// When the owner got it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The instance's revision when the command was checked.
    pub revision: u32,
}

/// The first signal with an id, as shown to its sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstSignal {
    /// The host's id of the signal, if it was sent by correlation.
    #[serde(rename = "signalId", skip_serializing_if = "Option::is_none")]
    pub signal: Option<Uuid>,
    /// The instance that has received it.
    #[serde(rename = "instanceId", skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
    /// The event by which the instance received it.
    #[serde(rename = "eventId", skip_serializing_if = "Option::is_none")]
    pub event: Option<Uuid>,
    pub at: Timestamp,
}

/// By whom and when an instance was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Started {
    pub by: String,
    pub at: Timestamp,
}

fn which(instance: Option<InstanceId>) -> String {
    instance.map_or_else(
        || "another instance".to_owned(),
        |instance| format!("instance {instance}"),
    )
}

fn started_by(started: Option<&Started>) -> String {
    started.map_or_else(String::new, |Started { by, at }| {
        format!(", started by {by} at {at}")
    })
}

/// Who acted on a task first, how and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Winner {
    #[serde(rename = "taskId")]
    pub task: TaskId,
    /// `claimed`, `decided` or `cancelled`.
    pub action: &'static str,
    /// None for the host itself.
    pub by: Option<String>,
    pub at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The instance's revision when the command was checked.
    pub revision: u32,
}

impl std::fmt::Display for Winner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by = self.by.as_deref().unwrap_or("the host");
        write!(
            f,
            "task {} was {} by {by} at {}",
            self.task, self.action, self.at
        )?;
        self.outcome
            .as_ref()
            .map_or(Ok(()), |outcome| write!(f, " with {outcome}"))
    }
}

fn why(suspension: &Suspension) -> String {
    let reason = suspension.reason.iter().map(|reason| format!(": {reason}"));
    let until = suspension
        .until
        .iter()
        .map(|until| format!(", until {until}"));
    until.chain(reason).collect()
}

fn list(violations: &[Violation]) -> String {
    violations
        .iter()
        .map(|violation| format!("{}: {}", violation.field, violation.message))
        .collect::<Vec<_>>()
        .join("; ")
}

impl Rejection {
    /// The instance has ended at `at`.
    pub fn ended(instance: &Instance, at: Timestamp) -> Rejection {
        let by = match &instance.status {
            Status::Cancelled { by, .. } => Some(by.clone()),
            Status::Running | Status::Suspended { .. } | Status::Completed { .. } => None,
        };
        Rejection::Ended {
            id: instance.id,
            status: instance.status.name(),
            at,
            by,
            revision: instance.revision,
        }
    }

    /// [`Rejection::Forbidden`] by a rule of the host.
    pub fn forbidden(code: &str, message: impl Into<String>) -> Rejection {
        Rejection::Forbidden(Reason {
            code: code.to_owned(),
            message: message.into(),
        })
    }

    /// [`Rejection::NotNow`]. Callers branch on the code, which must be in the API's list.
    pub fn not_now(code: &'static str, message: impl Into<String>) -> Rejection {
        Rejection::NotNow {
            code,
            message: message.into(),
        }
    }

    /// [`Rejection::Invalid`] with one violation.
    pub fn invalid(field: &str, code: &str, message: impl Into<String>) -> Rejection {
        Rejection::Invalid(vec![Violation {
            expected: None,
            field: field.to_owned(),
            code: code.to_owned(),
            message: message.into(),
        }])
    }

    /// The rejection as a code and a sentence.
    pub fn into_reason(self) -> Reason {
        match self {
            Rejection::Forbidden(reason) | Rejection::RefusedNow(reason) => reason,
            Rejection::Invalid(violations) => Reason {
                message: list(&violations),
                code: violations
                    .into_iter()
                    .next()
                    .map_or_else(|| "invalid_input".to_owned(), |first| first.code),
            },
            other => Reason {
                code: other.code().to_owned(),
                message: other.to_string(),
            },
        }
    }

    /// The code of the reason if the actor is not allowed; none for any other rejection.
    pub fn forbids(&self) -> Option<&str> {
        match self {
            Rejection::Forbidden(reason) => Some(&reason.code),
            Rejection::NotOwner { .. } => Some("not_owner"),
            _ => None,
        }
    }

    /// The stable code of the rejection, for programs. The code that flow logic gave is in its reason.
    pub fn code(&self) -> &str {
        match self {
            Rejection::Forbidden(_) | Rejection::NotOwner { .. } => "forbidden",
            Rejection::Invalid(_) => "invalid_input",
            Rejection::RefusedNow(_) => "refused_now",
            Rejection::Taken(_) => "task_taken",
            Rejection::Ended { .. } => "instance_ended",
            Rejection::Suspended { .. } => "instance_suspended",
            Rejection::TaskSuspended { .. } => "task_suspended",
            Rejection::NotNow { code, .. } => code,
            Rejection::Stale { .. } => "stale_revision",
            Rejection::AlreadyRunning { .. } => "already_running",
            Rejection::SignalIdReused { .. } => "signal_id_reused",
            Rejection::NobodyLeft { .. } => "nobody_left",
        }
    }
}
