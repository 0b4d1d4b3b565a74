//! The events that a test sends to a flow.

use std::fmt::Display;

use serde_json::{Value, json};
use wrkflw_core::scenario::Meant;

use crate::{States, Triggers};

/// An event under construction. [`Scenario::when`](super::Scenario::when) sends it to the flow.
#[derive(Clone, Debug)]
pub struct When<T> {
    pub(super) what: What<T>,
    pub(super) comment: Option<String>,
    pub(super) input: Value,
    pub(super) label: Option<String>,
    pub(super) state: Option<&'static str>,
    pub(super) key: Option<String>,
    pub(super) on_behalf_of: Option<String>,
    pub(super) correlation: Option<String>,
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
    Delegate {
        actor: String,
        to: String,
    },
    Reassign {
        actor: String,
        to: String,
    },
    Suspend {
        actor: String,
    },
    Resume {
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
    Answered {
        attempts: u32,
        model: Option<(String, String)>,
    },
    Unanswered {
        error: String,
    },
    Escalate {
        count: u32,
    },
    Later {
        seconds: u32,
    },
    Migrate,
}

/// Somebody starts an instance with this data: a value of `json!`, or a JSON text, which keeps numbers exactly.
pub fn start<T: Triggers>(actor: &str, data: impl Display) -> When<T> {
    When::new(What::Start {
        actor: actor.into(),
        data: data.to_string(),
    })
}

/// Somebody claims and decides a task: the first one that the host allows. Their own tasks come first.
pub fn decide<T: Triggers>(actor: &str, trigger: T) -> When<T> {
    When::new(What::Decide {
        actor: actor.into(),
        trigger,
    })
}

/// Somebody claims a task that they are offered. [`decide`] claims, too: use this only if a test depends on the owner, such as
/// for an escalation.
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

/// The owner delegates their task to another person, who decides on their behalf.
pub fn delegate<T: Triggers>(actor: &str, to: &str) -> When<T> {
    When::new(What::Delegate {
        actor: actor.into(),
        to: to.into(),
    })
}

/// An operator gives a task to another person, whoever owns it.
pub fn reassign<T: Triggers>(actor: &str, to: &str) -> When<T> {
    When::new(What::Reassign {
        actor: actor.into(),
        to: to.into(),
    })
}

/// The owner suspends their task: nobody decides it, and its deadlines do not count.
pub fn suspend<T: Triggers>(actor: &str) -> When<T> {
    When::new(What::Suspend {
        actor: actor.into(),
    })
}

/// The owner resumes their task.
pub fn resume<T: Triggers>(actor: &str) -> When<T> {
    When::new(What::Resume {
        actor: actor.into(),
    })
}

/// A person or a system sends a signal. If no state accepts it, the host buffers it for a wait state that takes buffered signals.
pub fn signal<T: Triggers>(actor: &str, trigger: T) -> When<T> {
    When::new(What::Signal {
        actor: actor.into(),
        trigger,
    })
}

/// Moves the time to the next deadline that fires this trigger. Earlier deadlines act, too, but are not in the outcome.
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

/// The service of the state answers with this output, at the first attempt. [`When::model`] sets the model that answers.
pub fn answered<T: Triggers>(output: Value) -> When<T> {
    let (attempts, model) = (1, None);
    When::new(What::Answered { attempts, model }).input(output)
}

/// The last attempt to call the service of the state fails, for this reason.
pub fn unanswered<T: Triggers>(error: &str) -> When<T> {
    When::new(What::Unanswered {
        error: error.into(),
    })
}

/// Moves the time by `seconds`. The deadlines that pass act, the earliest first. The outcome has the results of all.
pub fn later<T: Triggers>(seconds: u32) -> When<T> {
    When::new(What::Later { seconds })
}

/// Migrates the instance to another version of the flow. The work of its states is offered anew. Owners keep tasks that are
/// offered to them again.
pub fn migrate<T: Triggers>() -> When<T> {
    When::new(What::Migrate)
}

/// Moves the time until a deadline with the action `escalate` passes for the count-th time. It is a deadline of the state as a
/// whole, or with [`When::task`] of one task. Earlier deadlines act, too, but are not in the outcome.
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
            key: None,
            on_behalf_of: None,
            correlation: None,
        }
    }

    /// With this comment.
    pub fn comment(mut self, comment: &str) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// With this input or payload.
    pub fn input(mut self, input: Value) -> Self {
        self.input = input;
        self
    }

    /// The service answers at this attempt instead of the first.
    pub fn attempts(mut self, count: u32) -> Self {
        if let What::Answered { attempts, .. } = &mut self.what {
            *attempts = count;
        }
        self
    }

    /// The reply of the service names this model and its version.
    pub fn model(mut self, name: &str, version: &str) -> Self {
        if let What::Answered { model, .. } = &mut self.what {
            *model = Some((name.into(), version.into()));
        }
        self
    }

    /// As a substitute of this person, who is absent.
    pub fn on_behalf_of(mut self, user: &str) -> Self {
        self.on_behalf_of = Some(user.into());
        self
    }

    /// Selects the task with this label.
    pub fn task(mut self, label: &str) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Selects this active state.
    pub fn in_state(mut self, state: impl States) -> Self {
        self.state = Some(state.name());
        self
    }

    /// Selects the branch of the item with this key.
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The signal is sent under this correlation key, not to the instance. If no state subscribes to it, the outcome is denied as
    /// `nobody_waits`; a host would buffer the signal.
    pub fn correlation(mut self, key: &str) -> Self {
        self.correlation = Some(key.into());
        self
    }

    /// The selection of a task or state by this event.
    pub(super) fn meant(&self) -> Meant<'_> {
        Meant {
            state: self.state,
            key: self.key.as_deref(),
            label: self.label.as_deref(),
            absent: self.on_behalf_of.as_deref(),
        }
    }
}
