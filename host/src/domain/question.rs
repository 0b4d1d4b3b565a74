//! What the host asks flow logic: the facts of one moment, and one of the contract's questions.

use jiff::Timestamp;
use serde::Serialize;

use super::actor::Actor;
use super::answer::{Assignment, Plan, Reason, Verdict};
use super::instance::Instance;
use super::json::Json;

/// The snapshot that a question is asked about. Its canonical JSON is what an evaluation's digest covers.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Facts<'a> {
    pub now: Timestamp,
    pub tenant: &'a str,
    pub config: &'a Json,
    pub instance: &'a Instance,
}

/// One question about the facts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "function", content = "argument")]
pub enum Question {
    Guard(Occurrence),
    Transition(Occurrence),
    /// Who works on the task state of this name, which is being entered?
    Assign(String),
}

impl Question {
    /// The contract's function that answers it.
    pub fn function(&self) -> &'static str {
        match self {
            Question::Guard(_) => "guard",
            Question::Transition(_) => "transition",
            Question::Assign(_) => "assign",
        }
    }
}

/// What happened, or is proposed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Occurrence {
    /// The text of the id of the active state instance it concerns; none at a start.
    pub state_instance: Option<String>,
    pub trigger: String,
    pub source: Source,
    /// Form fields, signal payload, service reply or the child's data.
    pub input: Json,
}

/// Where an occurrence comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "type", content = "by")]
pub enum Source {
    Start(Actor),
    Task {
        task: String,
        actor: Actor,
        comment: Option<String>,
    },
    Entry,
}

/// The answer to a question, of the kind that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "function", content = "answer")]
pub enum Answer {
    Verdict(Verdict),
    Plan(Result<Plan, Reason>),
    Assignment(Assignment),
}
