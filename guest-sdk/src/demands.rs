//! What guards often ask of an event, each as the verdict to return.
//!
//! They are about the event alone; put them together with [`Verdict::and`](crate::Verdict::and) and
//! [`Verdict::when`](crate::Verdict::when). The host's own rules need not be repeated here.

use serde_json::Value;

use crate::{Event, Facts, Flow, Verdict, deny, invalid};

impl<F: Flow> Event<F> {
    /// It takes a comment; the message says what about.
    pub fn with_comment(&self, message: &str) -> Verdict {
        invalid("/comment", "required", message).when(self.comment().is_empty())
    }

    /// It takes this field of the input, named by a JSON Pointer. For what not every trigger asks;
    /// what all of them ask stands in the offer's form.
    pub fn with_field(&self, field: &str) -> Verdict {
        let given = self.input.pointer(field);
        invalid(field, "required", "Fill this in.").when(given.is_none_or(Value::is_null))
    }

    /// Only requesters may, as for a withdrawal by a signal. Nobody else is asked where no person acts.
    pub fn by_requester(&self, facts: &Facts<F>) -> Verdict {
        let stranger = self
            .actor()
            .is_some_and(|actor| !facts.is_requester(&actor.id));
        deny(
            "not_requester",
            "Only those whose request it is may do this.",
        )
        .when(stranger)
    }

    /// None of these people may, nor anybody for them, such as those who decided elsewhere.
    pub fn by_none_of(&self, people: &[&str]) -> Verdict {
        let among = self.actor().is_some_and(|actor| actor.is_among(people));
        deny("four_eyes", "You have had your say elsewhere.").when(among)
    }
}
