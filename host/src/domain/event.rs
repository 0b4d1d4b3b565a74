//! What happened to an instance: the audit's vocabulary. [`apply`](super::apply) folds events into the instance.

pub(super) mod stored;

use serde::{Deserialize, Serialize};

use super::answer::Attribute;
use super::ids::{InstanceId, StateId, TaskId, VersionRef};
use super::instance::{Entity, StateInstance, Task};
use super::json::{Json, Node};

/// One fact. Its JSON is the payload of an audit entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase",
    try_from = "stored::StoredEvent"
)]
pub enum Event {
    FlowStarted {
        definition: VersionRef,
        entity: Entity,
        initiator: String,
        requesters: Vec<String>,
        predecessor: Option<InstanceId>,
        parent: Option<InstanceId>,
        data: Json,
    },
    /// The stay, still without tasks.
    StateEntered {
        state: StateInstance,
    },
    TaskCreated {
        state: StateId,
        state_name: String,
        task: Task,
    },
    TaskClaimed {
        task: TaskId,
        state: StateId,
        owner: String,
    },
    /// Back to its candidates.
    TaskReleased {
        task: TaskId,
        state: StateId,
        owner: String,
    },
    DecisionRecorded {
        task: TaskId,
        state: StateId,
        state_name: String,
        outcome: String,
        on_behalf_of: Option<String>,
        comment: Option<String>,
        input: Json,
    },
    TaskCancelled {
        task: TaskId,
        state: StateId,
    },
    /// A trigger moved a state on. `to` is empty where its branch ends.
    StateTransitioned {
        state: StateId,
        from: String,
        trigger: String,
        to: Vec<String>,
        #[serde(flatten)]
        effects: Effects,
    },
    /// A trigger had effects, and the state goes on.
    StateContinued {
        state: StateId,
        trigger: String,
        #[serde(flatten)]
        effects: Effects,
    },
    /// A plan ended another branch.
    StateCancelled {
        state: StateId,
        name: String,
        trigger: String,
    },
    FlowCompleted {
        outcome: String,
    },
    FlowCancelled {
        reason: String,
    },
    /// Published by the flow's own plan.
    Custom {
        name: String,
        data: Json,
    },
}

/// What a plan changes besides the place of the instance.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// JSON Merge Patch for the instance's data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute>,
    /// Why the logic chose so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Event {
    /// The audit type, such as `TASK_CLAIMED`.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::FlowStarted { .. } => "FLOW_STARTED",
            Event::StateEntered { .. } => "STATE_ENTERED",
            Event::TaskCreated { .. } => "TASK_CREATED",
            Event::TaskClaimed { .. } => "TASK_CLAIMED",
            Event::TaskReleased { .. } => "TASK_RELEASED",
            Event::DecisionRecorded { .. } => "DECISION_RECORDED",
            Event::TaskCancelled { .. } => "TASK_CANCELLED",
            Event::StateTransitioned { .. } => "STATE_TRANSITIONED",
            Event::StateContinued { .. } => "STATE_CONTINUED",
            Event::StateCancelled { .. } => "STATE_CANCELLED",
            Event::FlowCompleted { .. } => "FLOW_COMPLETED",
            Event::FlowCancelled { .. } => "FLOW_CANCELLED",
            Event::Custom { .. } => CUSTOM,
        }
    }

    /// Whether consumers see it.
    pub fn is_public(&self) -> bool {
        !matches!(self, Event::StateContinued { .. })
    }

    /// The task that it is about.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Event::TaskCreated { task, .. } => Some(task.id),
            Event::TaskClaimed { task, .. }
            | Event::TaskReleased { task, .. }
            | Event::DecisionRecorded { task, .. }
            | Event::TaskCancelled { task, .. } => Some(*task),
            Event::FlowStarted { .. }
            | Event::StateEntered { .. }
            | Event::StateTransitioned { .. }
            | Event::StateContinued { .. }
            | Event::StateCancelled { .. }
            | Event::FlowCompleted { .. }
            | Event::FlowCancelled { .. }
            | Event::Custom { .. } => None,
        }
    }

    /// What consumers are told: [`public_view`] of this event's payload.
    pub fn public_data(&self) -> Json {
        Json::from(&public_view(self.kind(), Json::of(self).node()))
    }
}

/// The payload of an entry without the instance's data and the decider's input, which may be large or
/// confidential and are read over HTTP by those who may. It works on the stored text, so that numbers stay as
/// they were written and an older host still publishes what a newer one recorded.
pub fn public_view(kind: &str, payload: Node) -> Node {
    let mut payload = payload;
    if let Node::Object(members) = &mut payload {
        members.remove("type");
        if kind != CUSTOM {
            members.remove("data");
            members.remove("input");
        }
        if let Some(Node::Object(task)) = members.get_mut("task") {
            task.remove("form");
        }
    }
    payload
}

/// The audit type of events that flows publish themselves.
pub const CUSTOM: &str = "CUSTOM";

/// The suffix of the CloudEvents type of an audit type: `task.claimed` for `TASK_CLAIMED`; the name that the
/// flow chose, below `custom.`, for its own events. The operator's prefix comes before it.
pub fn type_suffix(kind: &str, custom_name: Option<&str>) -> String {
    match custom_name {
        Some(name) => format!("custom.{name}"),
        None => kind.to_ascii_lowercase().replacen('_', ".", 1),
    }
}
