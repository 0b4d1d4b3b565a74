//! The questions of the host to flow logic: a snapshot, and one of the contract's functions with its argument.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::actor::Actor;
use super::answer::{Plan, Refusal, Work};
use super::graph::Read;
use super::ids::TaskId;
use super::instance::{CallResult, Entity, Instance};
use super::json::Json;

/// The inputs of the snapshot that flow logic is shown.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub now: Timestamp,
    pub tenant: &'a str,
    pub config: &'a Json,
    pub instance: &'a Instance,
    /// The facts about people that are shown.
    pub reads: &'a [Read],
}

/// One call of flow logic.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// May this person start the instance?
    Start(Actor),
    Transition(Arc<Occurrence>),
    /// Asks for the work in these states.
    Enter(Vec<Entry>),
}

/// A state for which `enter` is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The id of the state instance.
    pub state_instance: String,
    /// The name of the state.
    pub state: String,
    pub cause: EntryCause,
}

/// Why `enter` is asked for a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryCause {
    /// The state is being entered.
    Entered,
    /// The task is overdue for the `count`-th time; without a task, the state as a whole is.
    Overdue { task: Option<TaskId>, count: u32 },
    /// The instance was migrated from another version.
    Migrated,
    /// A plan asked for other work in the state.
    Reoffered,
}

impl Question {
    /// The contract's function that answers it.
    pub fn function(&self) -> &'static str {
        match self {
            Question::Start(_) => "start",
            Question::Transition(_) => "transition",
            Question::Enter(_) => "enter",
        }
    }

    /// The answer that refuses.
    pub fn refused(&self, refusal: Refusal) -> Answer {
        match self {
            Question::Start(_) => Answer::Start(Err(refusal)),
            Question::Transition(_) => Answer::Transition(Err(refusal)),
            Question::Enter(_) => Answer::Enter(Err(refusal)),
        }
    }
}

/// A trigger that has happened or that somebody proposes, with its source and input.
#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    /// The id of the active state instance that it concerns.
    pub state_instance: String,
    pub trigger: String,
    pub source: Source,
    /// Form fields, signal payload, service reply or the child's data.
    pub input: Json,
}

/// Where an occurrence comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    Task {
        task: String,
        actor: Actor,
        comment: Option<String>,
    },
    Signal {
        sender: Actor,
        id: String,
        correlation: Option<String>,
        /// When the instance received it.
        at: Timestamp,
    },
    Deadline {
        /// None for the state as a whole.
        task: Option<TaskId>,
        due_at: Timestamp,
        /// How often it has passed.
        count: u32,
    },
    /// A child of this state instance has ended.
    Child {
        id: String,
        key: String,
        entity: Entity,
        /// The version that it ran; none if it could not be started.
        version: Option<u32>,
        outcome: String,
        /// Why it could not be started.
        reason: Option<String>,
    },
    /// The service of this state instance has answered, or its last attempt has failed.
    Service {
        service: String,
        result: CallResult,
    },
    Entry,
}

/// The answer to a question, with one variant per function.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "function", content = "answer")]
pub enum Answer {
    Start(Result<(), Refusal>),
    Transition(Result<Plan, Refusal>),
    /// The work in each state, in the order of the question.
    Enter(Result<Vec<Work>, Refusal>),
}

#[cfg(test)]
mod tests;
