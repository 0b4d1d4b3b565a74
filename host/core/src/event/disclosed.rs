//! The parts of an event about decisions that a blind state hid.

use jiff::Timestamp;

use crate::declare::record;
use crate::ids::TaskId;

record! {
    /// A decision that was hidden.
    #[derive(Eq)]
    pub struct Disclosed {
        /// The task.
        #[public("taskId")]
        pub task: TaskId,
        /// The chosen outcome.
        #[public("outcome")]
        pub outcome: String,
        /// Who decided.
        #[public("actor")]
        pub actor: String,
        /// The person on whose behalf the decision was made.
        #[public("onBehalfOf")]
        pub on_behalf_of: Option<String>,
        /// The comment on the decision.
        #[public("comment")]
        pub comment: Option<String>,
        /// When it was made.
        #[public("decidedAt")]
        pub decided_at: Timestamp,
    }
}
