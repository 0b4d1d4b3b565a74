//! What an event tells of the decisions that a blind state hid.

use jiff::Timestamp;

use crate::declare::record;
use crate::ids::TaskId;

record! {
    /// A decision that was hidden.
    #[derive(Eq)]
    pub struct Disclosed {
        /// The task.
        pub task: TaskId,
        /// The chosen outcome.
        pub outcome: String,
        /// Who decided.
        pub actor: String,
        /// The person on whose behalf the decision was made.
        pub on_behalf_of: Option<String>,
        /// The comment on the decision.
        pub comment: Option<String>,
        /// When it was made.
        pub decided_at: Timestamp,
    }
}
