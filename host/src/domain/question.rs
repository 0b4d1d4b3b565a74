//! What the host asks flow logic: the facts of one moment, and one of the contract's questions.

use jiff::Timestamp;
use serde::Serialize;

use super::actor::Actor;
use super::answer::{Assignment, Plan, Reason, Verdict, Waiting};
use super::ids::TaskId;
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
    /// Who works on the task state of this name, and why is that asked?
    Assign(String, AssignCause),
    /// What does the wait state of this name, which is being entered, wait for?
    Wait(String),
}

/// Why somebody is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum AssignCause {
    /// The state is being entered.
    Entered,
    /// A task, or with none the state as a whole, is overdue for the count-th time.
    Overdue { task: Option<TaskId>, count: u32 },
    /// The instance has come from another version.
    Migrated,
}

impl Question {
    /// The contract's function that answers it.
    pub fn function(&self) -> &'static str {
        match self {
            Question::Guard(_) => "guard",
            Question::Transition(_) => "transition",
            Question::Assign(..) => "assign",
            Question::Wait(_) => "wait",
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
    Signal(Actor),
    Deadline,
    /// A child of this stay has ended.
    Child {
        id: String,
        key: String,
        outcome: String,
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
    Waiting(Waiting),
}
