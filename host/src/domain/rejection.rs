//! Every business "no", in one enum. The HTTP layer turns each into one problem; nothing else decides a status.

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use super::answer::{Reason, Violation};
use super::ids::{InstanceId, TaskId};
use super::instance::{Instance, Status};

/// Why a command is not carried out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rejection {
    /// The actor may not, now or ever.
    #[error("{}", .0.message)]
    Forbidden(Reason),
    /// The data or the input does not permit it yet.
    #[error("the request does not satisfy the flow: {}", list(.0))]
    Invalid(Vec<Violation>),
    /// The flow refuses what follows, for a reason that its guard could not foresee.
    #[error("{}", .0.message)]
    Refused(Reason),
    /// Only who owns the task may, which the actor does not, or no longer.
    #[error("{message}")]
    NotOwner { owned: Owned, message: String },
    /// Somebody was faster.
    #[error("{}", .0)]
    Taken(Winner),
    #[error("instance {id} has ended: {status}")]
    Ended {
        id: InstanceId,
        status: &'static str,
        at: Timestamp,
        /// Who cancelled it, where somebody did.
        by: Option<String>,
        revision: u32,
    },
    /// Nothing happens to it until somebody lets it go on.
    #[error("instance {id} was suspended by {by} at {at}: {reason}")]
    Suspended {
        id: InstanceId,
        reason: String,
        by: String,
        at: Timestamp,
        revision: u32,
    },
    /// It does not fit how things stand; they may change.
    #[error("{message}")]
    NotNow { code: &'static str, message: String },
    /// `If-Match` named another revision.
    #[error("the revision is {current}, not {given}")]
    Stale { given: u32, current: u32 },
    /// The entity is in another running instance of the same definition.
    #[error("instance {running} of this definition already runs about this entity{}", told(.started.as_ref()))]
    AlreadyRunning {
        running: InstanceId,
        /// For those who may read instances.
        started: Option<Started>,
    },
    /// The sender's id of the signal stands for one with other content.
    #[error("{trigger} with the id {id} was sent at {} with other content; give another signal another id", .first.at)]
    SignalIdReused {
        trigger: String,
        id: String,
        first: FirstSignal,
    },
    /// After a migration nobody could do the work of these states.
    #[error("nobody would be able to do the work of {}", .states.join(", "))]
    NobodyLeft { states: Vec<String> },
}

/// Who has a task now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owned {
    pub task: TaskId,
    /// None where it waits for somebody to claim it.
    pub owner: Option<String>,
    /// Since when they have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Of the instance, as this was judged.
    pub revision: u32,
}

/// The signal that an id stands for, as its sender is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstSignal {
    /// The host's id of it, where it was sent by correlation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<Uuid>,
    /// Which instance has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
    /// The event by which the instance received it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Uuid>,
    pub at: Timestamp,
}

/// By whom and when an instance was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Started {
    pub by: String,
    pub at: Timestamp,
}

fn told(started: Option<&Started>) -> String {
    started.map_or_else(String::new, |Started { by, at }| {
        format!(", started by {by} at {at}")
    })
}

/// Who was faster, at what, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Winner {
    pub task: TaskId,
    /// `claimed`, `decided` or `cancelled`.
    pub action: &'static str,
    /// None for the host itself.
    pub by: Option<String>,
    pub at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Of the instance, as this was judged.
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

fn list(violations: &[Violation]) -> String {
    violations
        .iter()
        .map(|violation| format!("{}: {}", violation.field, violation.message))
        .collect::<Vec<_>>()
        .join("; ")
}

impl Rejection {
    /// The instance is over since `at`.
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

    /// A refusal of the host's own, by its code.
    pub fn forbidden(code: &str, message: impl Into<String>) -> Rejection {
        Rejection::Forbidden(Reason {
            code: code.to_owned(),
            message: message.into(),
        })
    }

    /// A refusal for how things stand. Callers branch on its code, which the API's list has.
    pub fn not_now(code: &'static str, message: impl Into<String>) -> Rejection {
        Rejection::NotNow {
            code,
            message: message.into(),
        }
    }

    /// One thing wrong with one field.
    pub fn invalid(field: &str, code: &str, message: impl Into<String>) -> Rejection {
        Rejection::Invalid(vec![Violation {
            field: field.to_owned(),
            code: code.to_owned(),
            message: message.into(),
        }])
    }

    /// Why the actor may not, where that is so.
    pub fn forbids(&self) -> Option<&str> {
        match self {
            Rejection::Forbidden(reason) => Some(&reason.code),
            Rejection::NotOwner { .. } => Some("not_owner"),
            _ => None,
        }
    }

    /// The stable code that callers branch on. A guard's own code travels as the reason's.
    pub fn code(&self) -> &str {
        match self {
            Rejection::Forbidden(_) | Rejection::NotOwner { .. } => "forbidden",
            Rejection::Invalid(_) => "invalid_input",
            Rejection::Refused(_) => "refused_by_flow",
            Rejection::Taken(_) => "task_taken",
            Rejection::Ended { .. } => "instance_ended",
            Rejection::Suspended { .. } => "instance_suspended",
            Rejection::NotNow { code, .. } => code,
            Rejection::Stale { .. } => "stale_revision",
            Rejection::AlreadyRunning { .. } => "already_running",
            Rejection::SignalIdReused { .. } => "signal_id_reused",
            Rejection::NobodyLeft { .. } => "nobody_left",
        }
    }
}
