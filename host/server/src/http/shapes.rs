//! Shapes of values that the core serialises, for the API's document.
//!
//! The core has no API annotations. Most of these types are never built; the contract run compares them with what is sent.
#![expect(dead_code, reason = "these types describe what others serialise")]

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use wrkflw_store::tasks::Status;

/// The status of an instance.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum InstanceStatus {
    Running,
    Suspended,
    Completed,
    Cancelled,
}

impl InstanceStatus {
    pub(super) fn name(self) -> &'static str {
        match self {
            InstanceStatus::Running => "RUNNING",
            InstanceStatus::Suspended => "SUSPENDED",
            InstanceStatus::Completed => "COMPLETED",
            InstanceStatus::Cancelled => "CANCELLED",
        }
    }
}

/// The status of a task.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum TaskStatus {
    Pending,
    Claimed,
    Completed,
    Cancelled,
}

impl TaskStatus {
    pub(super) fn filter(self) -> Status {
        match self {
            TaskStatus::Pending => Status::Pending,
            TaskStatus::Claimed => Status::Claimed,
            TaskStatus::Completed => Status::Completed,
            TaskStatus::Cancelled => Status::Cancelled,
        }
    }
}

/// The status of an operation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum OperationStatus {
    Running,
    Done,
    Stopped,
}

/// A definition version by key and number.
#[derive(Serialize, ToSchema)]
pub(super) struct VersionShape {
    key: String,
    version: u32,
}

/// What an input lacks.
#[derive(Serialize, ToSchema)]
pub(super) struct ViolationShape {
    /// JSON Pointer (RFC 6901) into the body of the command.
    field: String,
    code: String,
    message: String,
}

/// Why a person may act.
#[derive(Serialize, ToSchema)]
pub(super) struct WayShape {
    /// `candidate`, `group`, `owner` or `substitute`.
    how: String,
    /// The group of `group`.
    group: Option<String>,
    /// For whom a substitute acts.
    of: Option<String>,
    /// The substitutes between the two people, who are absent, too.
    via: Option<Vec<String>>,
}

/// Why a person may not act.
#[derive(Serialize, ToSchema)]
pub(super) struct ExclusionShape {
    /// Such as `requester`, `excluded`, `already_decided`, or `for_requester`.
    why: String,
    /// Whose work it is, if they would act for somebody.
    of: Option<String>,
    /// Who owns the task, if somebody else does.
    by: Option<String>,
}

/// An event (`CloudEvents` 1.0, structured form). `/asyncapi.json` describes each type and its data.
#[derive(Serialize, ToSchema)]
pub(super) struct CloudEventShape {
    specversion: String,
    id: String,
    /// Names the instance. `sequence` counts per source.
    source: String,
    /// Such as `wrkflw.task.created`.
    #[serde(rename = "type")]
    kind: String,
    /// The id of the instance.
    subject: String,
    /// When it happened.
    #[schema(format = DateTime)]
    time: String,
    /// Where the schema of `data` is.
    dataschema: String,
    datacontenttype: String,
    /// The key of the record in Kafka: the id of the instance.
    partitionkey: String,
    /// Counts the events of the source, in 20 digits. None for notifications.
    sequence: Option<String>,
    /// `user`, `system`, or `unknown` for a blind vote.
    authtype: String,
    /// Who caused it.
    authid: Option<String>,
    traceparent: Option<String>,
    #[schema(value_type = Object)]
    data: (),
}
