//! Checks that guards often make on an event. `?` returns the refusal: `event.require_comment("Say why.")?;`.
//!
//! Do not repeat the rules of the host here.

use serde_json::Value;

use crate::{Event, Facts, Flow, Verdict, allow, deny, invalid};

/// The JSON Pointer of this input field within the body of the request.
pub(crate) fn of_input(field: &str) -> String {
    format!("/input{field}")
}

impl<F: Flow> Event<F> {
    /// Refuses an event without a comment; the message says what it should be about. For rules that depend on data. Otherwise use
    /// [`comment`](crate::TransitionBuilder::comment) in the graph.
    pub fn require_comment(&self, message: &str) -> Verdict {
        if self.comment().is_empty() {
            return invalid("/comment", "required", message);
        }
        allow()
    }

    /// Refuses an event without this input field, named by a JSON Pointer into the input. For rules that depend on data. Otherwise use
    /// [`input`](crate::TransitionBuilder::input) in the graph.
    pub fn require_field(&self, field: &str) -> Verdict {
        let given = self.input.pointer(field);
        if given.is_none_or(Value::is_null) {
            return invalid(&of_input(field), "required", "Fill this in.");
        }
        allow()
    }

    /// Refuses everybody but requesters, as for a withdrawal by a signal. Allows an event without a person.
    pub fn only_requester(&self, facts: &Facts<F>) -> Verdict {
        let mut actor = self.actor().into_iter();
        if actor.any(|actor| !facts.is_requester(&actor.id)) {
            return deny(
                "not_requester",
                "Only those whose request it is may do this.",
            );
        }
        allow()
    }

    /// Refuses these people and anyone who acts for them, such as those who decided elsewhere.
    pub fn not_by(&self, people: &[&str]) -> Verdict {
        let mut actor = self.actor().into_iter();
        if actor.any(|actor| actor.is_among(people)) {
            return deny("four_eyes", "You have decided on this elsewhere.");
        }
        allow()
    }
}
