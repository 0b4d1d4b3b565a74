//! The events that a test puts to a flow.

use serde_json::{Value, json};

use crate::{States, Triggers};

/// An event in the making; [`Scenario::when`](super::Scenario::when) puts it to the flow.
#[derive(Clone, Debug)]
pub struct When<T> {
    pub(super) what: What<T>,
    pub(super) comment: Option<String>,
    pub(super) input: Value,
    pub(super) label: Option<String>,
    pub(super) state: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(super) enum What<T> {
    Start {
        actor: String,
        data: Value,
    },
    Decide {
        actor: String,
        trigger: T,
    },
    Signal {
        actor: String,
        trigger: T,
    },
    Deadline(T),
    Reply(T),
    Failure(T),
    Child {
        trigger: T,
        key: String,
        outcome: String,
    },
    Escalate {
        count: u32,
    },
}

/// Somebody starts an instance with this data.
pub fn start<T: Triggers>(actor: &str, data: Value) -> When<T> {
    When::new(What::Start {
        actor: actor.into(),
        data,
    })
}

/// Somebody claims the task that they are offered and decides it.
pub fn decide<T: Triggers>(actor: &str, trigger: T) -> When<T> {
    When::new(What::Decide {
        actor: actor.into(),
        trigger,
    })
}

/// Somebody or some system sends a signal.
pub fn signal<T: Triggers>(actor: &str, trigger: T) -> When<T> {
    When::new(What::Signal {
        actor: actor.into(),
        trigger,
    })
}

/// A deadline passes that fires this trigger.
pub fn deadline<T: Triggers>(trigger: T) -> When<T> {
    When::new(What::Deadline(trigger))
}

/// The service answers.
pub fn reply<T: Triggers>(trigger: T, answer: Value) -> When<T> {
    When::new(What::Reply(trigger)).input(answer)
}

/// Every attempt to reach the service has failed.
pub fn failure<T: Triggers>(trigger: T) -> When<T> {
    When::new(What::Failure(trigger))
}

/// A child instance of this definition ends with this outcome.
pub fn child<T: Triggers>(trigger: T, key: &str, outcome: &str) -> When<T> {
    When::new(What::Child {
        trigger,
        key: key.into(),
        outcome: outcome.into(),
    })
}

/// A deadline with the action `escalate` passes, for the count-th time.
pub fn escalate<T: Triggers>(count: u32) -> When<T> {
    When::new(What::Escalate { count })
}

impl<T: Triggers> When<T> {
    fn new(what: What<T>) -> Self {
        Self {
            what,
            comment: None,
            input: json!({}),
            label: None,
            state: None,
        }
    }

    /// With this comment.
    pub fn comment(mut self, comment: &str) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// With this form filled in, or this payload.
    pub fn input(mut self, input: Value) -> Self {
        self.input = input;
        self
    }

    /// Of several tasks, the one with this label.
    pub fn task(mut self, label: &str) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Of several states being worked on, this one.
    pub fn in_state(mut self, state: impl States) -> Self {
        self.state = Some(state.name());
        self
    }
}
