//! The actions on an instance, allowed or refused, as the API shows them.

use super::problem::FieldError;
use super::shapes::ActionName;
use super::view::{each, maybe, view};
use wrkflw_core::ids::TaskId;

view! {
    of wrkflw_engine::Action;
    /// One thing that might be done.
    pub(super) struct ActionView {
        /// Of a task, if `taskId` is given, or else of the instance.
        #[schema(value_type = ActionName)]
        pub action: &'static str,
        #[serde(rename = "taskId", skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<uuid::Uuid>)]
        pub task: Option<TaskId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub state: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub outcome: Option<String>,
        /// Of a signal.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub trigger: Option<String>,
        /// The title of the outcome or signal, for people.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub title: Option<String>,
        pub allowed: bool,
        /// What the input must still supply.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub required: Vec<FieldError> => each,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub refusal: Option<Refusal> => maybe,
    }
}

view! {
    of wrkflw_engine::Refusal;
    /// Why an action is not open to this actor.
    pub(super) struct Refusal {
        pub code: String,
        pub message: String,
    }
}
