//! What guards often ask of an event. `?` returns the refusal: `event.require_comment("Say why.")?;`.
//!
//! The host's own rules need not be repeated here.

use serde_json::Value;

use crate::{Event, Facts, Flow, Verdict, allow, deny, invalid};

/// The JSON Pointer into the body of the request to this field of the input.
pub(crate) fn of_input(field: &str) -> String {
    format!("/input{field}")
}

impl<F: Flow> Event<F> {
    /// It takes a comment; the message says what about. This is for a rule that depends on data; otherwise use
    /// [`comment`](crate::TransitionBuilder::comment) in the graph.
    pub fn require_comment(&self, message: &str) -> Verdict {
        if self.comment().is_empty() {
            return invalid("/comment", "required", message);
        }
        allow()
    }

    /// It takes this field of the input, named by a JSON Pointer into the input. This is for a rule that depends on data; otherwise use
    /// [`input`](crate::TransitionBuilder::input) in the graph.
    pub fn require_field(&self, field: &str) -> Verdict {
        let given = self.input.pointer(field);
        if given.is_none_or(Value::is_null) {
            return invalid(&of_input(field), "required", "Fill this in.");
        }
        allow()
    }

    /// Only requesters may, as for a withdrawal by a signal. Where no person acts, it is allowed.
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

    /// None of these people may, nor anybody for them, such as those who decided elsewhere.
    pub fn not_by(&self, people: &[&str]) -> Verdict {
        let mut actor = self.actor().into_iter();
        if actor.any(|actor| actor.is_among(people)) {
            return deny("four_eyes", "You have decided on this elsewhere.");
        }
        allow()
    }
}
