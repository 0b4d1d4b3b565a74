//! Child instances and service calls that state instances have started.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::views::StateView;
use wrkflw_core::instance::{ChildInstance, OpenCall};
use wrkflw_store::jobs::CallProgress;

/// An instance that a state instance started.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChildView {
    pub id: Uuid,
    #[serde(rename = "definitionKey")]
    pub key: String,
    /// None while it runs. `CANCELLED` or `NOT_STARTED` if it reached no outcome of its own.
    pub outcome: Option<String>,
    /// Whether it goes on when the state instance ends before it.
    pub detached: bool,
}

/// The call of a service state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallView {
    /// The name of the service.
    pub service: String,
    #[schema(value_type = CallStatus)]
    pub status: CallStatus,
    /// The attempts so far. While the call is open, only `GET /v1/instances/{id}` has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// How many attempts it has at most.
    pub attempts_max: u32,
    /// Why the last attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When the next attempt is due, or by when the attempt in flight is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_attempt_at: Option<Timestamp>,
    /// The model that answered, and its version, as the reply names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_version: Option<String>,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CallStatus {
    Open,
    Answered,
    Failed,
    /// The state ended before the service answered.
    Cancelled,
}

impl ChildView {
    pub(super) fn of(child: &ChildInstance) -> ChildView {
        ChildView {
            id: child.id.0,
            key: child.key.clone(),
            outcome: child.outcome.clone(),
            detached: child.detached,
        }
    }
}

impl CallView {
    pub(super) fn of(call: &OpenCall) -> CallView {
        let result = call.result.as_ref();
        let error = result.and_then(|result| result.error.clone());
        CallView {
            service: call.service.clone(),
            status: match (result, &error) {
                (None, _) => CallStatus::Open,
                (Some(_), None) => CallStatus::Answered,
                (Some(_), Some(_)) => CallStatus::Failed,
            },
            attempts: result.map(|result| result.attempts),
            attempts_max: call.attempts_max(),
            error,
            next_attempt_at: None,
            model: result.and_then(|result| result.model.clone()),
            model_version: result.and_then(|result| result.model_version.clone()),
        }
    }

    /// The call of a state that has ended. A call that is still open counts as cancelled.
    pub(super) fn into_ended(mut self) -> CallView {
        if let CallStatus::Open = self.status {
            self.status = CallStatus::Cancelled;
        }
        self
    }
}

/// Adds attempts, last error and next attempt to the open calls.
pub(super) fn add_progress(states: &mut [StateView], progress: &[CallProgress]) {
    for state in states {
        let id = state.id;
        let of_state = progress.iter().find(|known| known.state.0 == id);
        if let (Some(call), Some(known)) = (&mut state.call, of_state) {
            // Its job also counts how often the instance could not take the result.
            call.attempts = Some(known.attempts.min(call.attempts_max));
            call.error.clone_from(&known.last_error);
            call.next_attempt_at = Some(known.next_at);
        }
    }
}
