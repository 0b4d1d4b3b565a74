//! The questions of the host to flow logic: a snapshot, and one of the contract's functions with its argument.

use jiff::Timestamp;
use serde::Serialize;

use super::actor::Actor;
use super::answer::{Assignment, Plan, Reason, Verdict, Waiting};
use super::ids::TaskId;
use super::instance::Instance;
use super::json::Json;

/// The snapshot that flow logic is shown. The digest of an evaluation covers its canonical JSON.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Facts<'a> {
    pub now: Timestamp,
    pub tenant: &'a str,
    pub config: &'a Json,
    pub instance: &'a Instance,
}

/// One call of flow logic.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "function", content = "argument")]
pub enum Question {
    Guard(Occurrence),
    Transition(Occurrence),
    /// Who works on the task state of this name?
    Assign(String, AssignCause),
    /// What does the wait state of this name wait for?
    Wait(String),
}

/// Why `assign` is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum AssignCause {
    /// The state is being entered.
    Entered,
    /// A task is overdue for the count-th time; without a task, the state as a whole.
    Overdue { task: Option<TaskId>, count: u32 },
    /// The instance was migrated from another version.
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

/// What has happened or is about to happen.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Occurrence {
    /// The id of the active state instance that it concerns; none for a start.
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
    /// A child of this state instance has ended.
    Child {
        id: String,
        key: String,
        outcome: String,
    },
    Entry,
}

/// The answer to a question, with one variant per function.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "function", content = "answer")]
pub enum Answer {
    Verdict(Verdict),
    Plan(Result<Plan, Reason>),
    Assignment(Assignment),
    Waiting(Waiting),
}
