//! The actions on an instance, allowed or refused, as the API shows them.

use super::shapes::ViolationShape;
use super::view::{maybe, view};
use wrkflw_core::answer::Violation;
use wrkflw_core::ids::TaskId;

view! {
    of wrkflw_engine::Action;
    /// One thing that might be done.
    pub(super) struct Action {
        /// Of a task `claim`, `release`, `decide`, `delegate`, `resolve`, `reassign`, `reset`, `suspend` or `resume`; of the
        /// instance `cancel`, `suspend`, `resume`, `restart` or `signal`.
        pub action: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
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
        #[schema(value_type = Vec<ViolationShape>)]
        pub required: Vec<Violation>,
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
