//! The events that a test puts to a flow.

use std::fmt::Display;

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
    pub(super) on_behalf_of: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum What<T> {
    Start {
        actor: String,
        data: String,
    },
    Decide {
        actor: String,
        trigger: T,
    },
    Claim {
        actor: String,
    },
    Release {
        actor: String,
    },
    Signal {
        actor: String,
        trigger: T,
    },
    Deadline(T),
    Child {
        trigger: T,
        key: String,
        outcome: String,
    },
    Escalate {
        count: u32,
    },
    Later {
        seconds: u32,
    },
    Migrate,
}

/// Somebody starts an instance with this data: by `json!`, or a text whose numbers stay as they are.
pub fn start<T: Triggers>(actor: &str, data: impl Display) -> When<T> {
    When::new(What::Start {
        actor: actor.into(),
        data: data.to_string(),
    })
}

/// Somebody claims the task that they are offered and decides it. Of several tasks it is the first that the host lets them
/// decide, one that they own before others.
pub fn decide<T: Triggers>(actor: &str, trigger: T) -> When<T> {
    When::new(What::Decide {
        actor: actor.into(),
        trigger,
    })
}

/// Somebody claims the task that they are offered. Deciding does it too; what matters is whose it
/// is when it is late, or that others are offered it no more.
pub fn claim<T: Triggers>(actor: &str) -> When<T> {
    When::new(What::Claim {
        actor: actor.into(),
    })
}

/// Somebody gives back the task that they have claimed.
pub fn release<T: Triggers>(actor: &str) -> When<T> {
    When::new(What::Release {
        actor: actor.into(),
    })
}

/// Somebody or some system sends a signal. Where no state takes it, it is kept for a wait state that
/// counts early ones.
pub fn signal<T: Triggers>(actor: &str, trigger: T) -> When<T> {
    When::new(What::Signal {
        actor: actor.into(),
        trigger,
    })
}

/// Time goes on until the next deadline passes that fires this trigger. What is due before acts before, and is not told.
pub fn deadline<T: Triggers>(trigger: T) -> When<T> {
    When::new(What::Deadline(trigger))
}

/// A child instance of this definition ends with this outcome.
pub fn child<T: Triggers>(trigger: T, key: &str, outcome: &str) -> When<T> {
    When::new(What::Child {
        trigger,
        key: key.into(),
        outcome: outcome.into(),
    })
}

/// So many seconds go by, and the deadlines that pass meanwhile act, the earliest first. All that comes of them is told.
pub fn later<T: Triggers>(seconds: u32) -> When<T> {
    When::new(What::Later { seconds })
}

/// The instance goes on under another version of the flow, in the states that it is in: their work is
/// offered anew, and owners keep theirs where it is offered to them again.
pub fn migrate<T: Triggers>() -> When<T> {
    When::new(What::Migrate)
}

/// Time goes on until a deadline with the action `escalate` passes for the count-th time: of the state as a whole, or
/// with [`When::task`] of one task. What is due before acts before, and is not told.
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
            on_behalf_of: None,
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

    /// As a substitute of this person, who is absent.
    pub fn on_behalf_of(mut self, user: &str) -> Self {
        self.on_behalf_of = Some(user.into());
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
