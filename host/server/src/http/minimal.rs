//! The form of the response to a command: `Prefer: return=minimal` or `return=representation` (RFC 7240).
//!
//! Without the header, a command gets the minimal response: ids, status, revision, outcome and open tasks. A dry run gets
//! the full one, because the response is its only result.

use super::shapes::{InstanceStatus, TaskStatus};
use axum::http::HeaderMap;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;
use wrkflw_core::instance::{Instance, StateInstance, Status, Task};

/// The form that a caller prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    Minimal,
    Representation,
}

impl Preference {
    /// The preference in the headers, if any. Unknown preferences are ignored, as RFC 7240 requires. The first of several
    /// counts.
    pub fn of(headers: &HeaderMap) -> Option<Preference> {
        let values = headers.get_all("prefer").iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        texts
            .flat_map(|text| text.split(','))
            .find_map(|preference| {
                let (name, value) = preference.split(';').next()?.split_once('=')?;
                if !name.trim().eq_ignore_ascii_case("return") {
                    return None;
                }
                match value.trim().trim_matches('"') {
                    "minimal" => Some(Preference::Minimal),
                    "representation" => Some(Preference::Representation),
                    _ => None,
                }
            })
    }

    pub fn name(self) -> &'static str {
        match self {
            Preference::Minimal => "minimal",
            Preference::Representation => "representation",
        }
    }
}

/// An instance with its open tasks.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MinimalInstance {
    pub id: Uuid,
    pub definition_key: String,
    pub definition_version: u32,
    #[schema(value_type = InstanceStatus)]
    pub status: &'static str,
    /// The outcome of the terminal state, once it is reached.
    pub outcome: Option<String>,
    /// The optimistic lock, also sent as `ETag`.
    pub revision: u32,
    /// The active state instances.
    pub states: Vec<MinimalState>,
}

/// An active state instance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MinimalState {
    pub id: Uuid,
    pub name: String,
    /// Since when too few people are eligible for its work; absent if enough are.
    #[serde(rename = "unassignableSince", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub unassignable_since: Option<Timestamp>,
    /// The open tasks.
    pub tasks: Vec<MinimalTask>,
}

/// A task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MinimalTask {
    pub id: Uuid,
    pub label: String,
    #[schema(value_type = TaskStatus)]
    pub status: &'static str,
    pub owner: Option<String>,
    /// The outcome of its decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

impl MinimalInstance {
    pub fn of(instance: &Instance) -> MinimalInstance {
        let outcome = match &instance.status {
            Status::Completed { outcome, .. } => Some(outcome.clone()),
            Status::Running | Status::Suspended { .. } | Status::Cancelled { .. } => None,
        };
        MinimalInstance {
            id: instance.id.0,
            definition_key: instance.definition.key.clone(),
            definition_version: instance.definition.version,
            status: instance.status.name(),
            outcome,
            revision: instance.revision,
            states: instance.active.iter().map(MinimalState::of).collect(),
        }
    }
}

impl MinimalState {
    fn of(state: &StateInstance) -> MinimalState {
        let open = state.tasks.iter().filter(|task| task.status.is_open());
        MinimalState {
            id: state.id.0,
            name: state.name.clone(),
            unassignable_since: state.unassignable_since,
            tasks: open.map(MinimalTask::of).collect(),
        }
    }
}

impl MinimalTask {
    pub fn of(task: &Task) -> MinimalTask {
        MinimalTask {
            id: task.id.0,
            label: task.label.clone(),
            status: task.status.name(),
            owner: task.owner().map(str::to_owned),
            outcome: task.decision().map(|decision| decision.outcome.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
