//! Shapes of values that the core serialises, for the API's document.
//!
//! The core has no API annotations. Most of these types are never built; the contract run compares them with the sent values.
#![expect(dead_code, reason = "these types describe what others serialise")]

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use wrkflw_core::command::{ACTIONS, RESTART};
use wrkflw_core::event::reasons::{CANCELLATIONS, ESCALATIONS};
use wrkflw_core::ids::VersionRef;
use wrkflw_core::notification::Kind;

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

/// The status of an instance that has not ended.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum AliveStatus {
    Running,
    Suspended,
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

/// The status of a signal that was sent by correlation key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum SignalStatusName {
    Kept,
    Assigned,
    Delivered,
    Expired,
    Refused,
}

/// What an operation does to its instances.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OperationAction {
    Migrate,
    Cancel,
}

/// What became of one instance of an operation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ItemResult {
    Done,
    Refused,
    Failed,
}

/// What might be done to a task or an instance.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ActionName {
    Claim,
    Release,
    Decide,
    Delegate,
    Resolve,
    Reassign,
    Reset,
    Suspend,
    Resume,
    Comment,
    Cancel,
    Restart,
    Signal,
}

/// Declares the schema of a text that is one of these.
macro_rules! one_of {
    ($(#[doc = $about:literal] $name:ident = $values:expr;)*) => {$(
        #[doc = $about]
        pub(super) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let name = ObjectBuilder::new().schema_type(Type::String);
                let name = name.description(Some($about.trim()));
                name.enum_values(Some($values)).into()
            }
        }

        impl ToSchema for $name {}
    )*};
}

one_of! {
    /// A command.
    CommandName = ACTIONS.iter().copied().chain([RESTART]);
    /// Why work was escalated.
    EscalationReason = ESCALATIONS.iter().copied();
    /// Why the host cancelled a task on its own.
    TaskCancelReason = CANCELLATIONS.iter().copied();
}

/// What a job does.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum JobKind {
    Deadline,
    StartChild,
    CancelChild,
    ChildEnded,
    MatchSignals,
    DeliverSignal,
    ReassessInstance,
    CallService,
}

/// The id of somebody, in a list of a body.
#[derive(ToSchema)]
#[schema(format = "name")]
pub(super) struct Named(String);

/// Who caused an event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum AuthType {
    User,
    System,
    /// For a blind vote.
    Unknown,
}

/// What a notification reports.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum NotificationKind {
    AssignmentCreated,
    StatusChanged,
    Mention,
    TimeoutWarning,
    Escalation,
}

impl From<Kind> for NotificationKind {
    fn from(kind: Kind) -> NotificationKind {
        match kind {
            Kind::AssignmentCreated => NotificationKind::AssignmentCreated,
            Kind::StatusChanged => NotificationKind::StatusChanged,
            Kind::Mention => NotificationKind::Mention,
            Kind::TimeoutWarning => NotificationKind::TimeoutWarning,
            Kind::Escalation => NotificationKind::Escalation,
        }
    }
}

impl NotificationKind {
    pub(super) fn kind(self) -> Kind {
        match self {
            NotificationKind::AssignmentCreated => Kind::AssignmentCreated,
            NotificationKind::StatusChanged => Kind::StatusChanged,
            NotificationKind::Mention => Kind::Mention,
            NotificationKind::TimeoutWarning => Kind::TimeoutWarning,
            NotificationKind::Escalation => Kind::Escalation,
        }
    }
}

/// What a name that a version uses stands for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum NameKind {
    Group,
    Person,
    Calendar,
    Service,
    Permission,
}

/// What a state is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum StateKindName {
    Task,
    Service,
    Router,
    Wait,
    Terminal,
}

/// What an id is of.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum IdKind {
    Instance,
    Task,
}

/// The status of an instance or of a task.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum NamedStatus {
    Running,
    Suspended,
    Pending,
    Claimed,
    Completed,
    Cancelled,
}

/// To whom a notification is addressed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RecipientType {
    User,
    Group,
}

/// To whom a task is offered. `member`: to a person as long as they are a member of the group.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CandidateType {
    User,
    Group,
    Member,
}

/// Whether a decision has a comment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CommentNeed {
    Required,
    Optional,
    None,
}

/// What the entries of an audit stream are about.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum AuditStream {
    Instance,
    Definition,
    Directory,
    Operation,
}

/// A definition version by key and number.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionFields {
    pub definition_key: String,
    pub definition_version: u32,
}

impl From<VersionRef> for VersionFields {
    fn from(version: VersionRef) -> VersionFields {
        VersionFields {
            definition_key: version.key,
            definition_version: version.version,
        }
    }
}

/// A definition version, if there is one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MaybeVersionFields {
    pub definition_key: Option<String>,
    pub definition_version: Option<u32>,
}

impl From<Option<VersionRef>> for MaybeVersionFields {
    fn from(version: Option<VersionRef>) -> MaybeVersionFields {
        MaybeVersionFields {
            definition_version: version.as_ref().map(|version| version.version),
            definition_key: version.map(|version| version.key),
        }
    }
}

/// How a person may act.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum How {
    Candidate,
    Group,
    Owner,
    Substitute,
}

/// A rule by which a person may not act.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Why {
    Requester,
    Excluded,
    AlreadyDecided,
    NotInitiator,
    ForRequester,
    ForExcluded,
    ForDecided,
    Owned,
    LostEligibility,
}

/// Why a person may act.
#[derive(Serialize, ToSchema)]
pub(super) struct WayShape {
    how: How,
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
    why: Why,
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
    authtype: AuthType,
    /// Who caused it.
    authid: Option<String>,
    traceparent: Option<String>,
    #[schema(value_type = Object)]
    data: (),
}
