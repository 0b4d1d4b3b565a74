//! One instance in memory, with a directory, a time and ids of its own, for the tests of flows.
//!
//! A [`World`] runs commands as a host does, without its database. The tests of the SDK and scenario files both use it, with
//! another [`Logic`] each: the flow's own code, or its component. It has no rules of its own. It selects the task or deadline
//! that a test means, answers the execution's questions to the directory, and moves the time.

mod directory;
mod time;
mod work;

use std::fmt;

use jiff::Timestamp;
use uuid::Uuid;

pub use self::directory::Directory;
pub use self::time::{Due, PASSING_MAX, due, is_still_due, next_moment};
pub use self::work::{Meant, Unworked};
use super::actor::Actor;
use super::answer::{Reason, Refusal};
use super::check::{self, Problem};
use super::command::Command;
use super::event::Event;
use super::execution::{Ask, Context, Execution, ExecutionError, LOGIC_FAULT};
use super::graph::Graph;
use super::ids::{Digest, InstanceId, VersionRef};
use super::instance::{Instance, Status, TaskStatus};
use super::json::Json;
use super::question::{Answer, Facts, Question, Source};
use super::rejection::Rejection;
use super::schema::Schema;
use super::template::Templates;
use super::version::Version;

/// Answers the questions of an execution.
pub trait Logic {
    /// The answer of the flow. The error says why a host does not accept it.
    fn answer(&mut self, facts: &Facts<'_>, question: &Question) -> Result<Answer, String>;

    /// Called when the flow refused the last trigger, which had no caller, and its effects are undone.
    fn undone(&mut self) {}
}

/// Why a command has no effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Stopped {
    /// The host or the flow refuses it.
    Rejected(Rejection),
    /// The flow cannot answer, or a host does not accept its answer.
    Fault(String),
}

impl From<ExecutionError> for Stopped {
    fn from(error: ExecutionError) -> Self {
        match error {
            ExecutionError::Rejected(rejection) => Stopped::Rejected(rejection),
            ExecutionError::Fault(fault) => Stopped::Fault(fault.to_string()),
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Rejected(rejection) => rejection.fmt(f),
            Stopped::Fault(fault) => f.write_str(fault),
        }
    }
}

/// An instance and everything around it.
#[derive(Debug, Clone)]
pub struct World {
    pub directory: Directory,
    /// The tenant's public name.
    pub tenant: String,
    pub now: Timestamp,
    /// Once it has started.
    pub instance: Option<Instance>,
    ids: u128,
}

/// Who acts, and under which version.
#[derive(Debug, Clone, Copy)]
pub struct Acting<'a> {
    pub version: &'a Version,
    /// For a migration, the version that the instance runs before it.
    pub previous: Option<&'a Version>,
    pub actor: &'a Actor,
}

impl World {
    /// A world without people, in which nothing has started.
    pub fn new(tenant: &str, now: Timestamp) -> World {
        World {
            directory: Directory::default(),
            tenant: tenant.to_owned(),
            now,
            instance: None,
            ids: 0,
        }
    }

    /// The next id: they count from one.
    pub fn next_id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(self.ids)
    }

    /// Runs the command to its end, and takes the buffered signals that it leaves, as a job of a host does. An error of the command
    /// leaves the instance as it was.
    pub fn run(
        &mut self,
        acting: Acting<'_>,
        command: &Command,
        logic: &mut impl Logic,
    ) -> Result<Vec<Event>, Stopped> {
        let mut events = self.run_alone(acting, command, logic)?;
        let host = Actor::host();
        let acting = Acting {
            version: acting.version,
            previous: None,
            actor: &host,
        };
        while let Some(instance) = self.leaves_signals() {
            let command = Command::Reassessment { instance };
            let more = self.run_alone(acting, &command, logic)?;
            if more.is_empty() {
                break;
            }
            events.extend(more);
        }
        Ok(events)
    }

    /// The instance, if it runs and has buffered signals to take.
    fn leaves_signals(&self) -> Option<InstanceId> {
        let instance = self.instance.as_ref();
        let leaving = instance
            .filter(|instance| instance.status == Status::Running && instance.has_signal_to_take());
        leaving.map(|instance| instance.id)
    }

    fn run_alone(
        &mut self,
        acting: Acting<'_>,
        command: &Command,
        logic: &mut impl Logic,
    ) -> Result<Vec<Event>, Stopped> {
        let mut last = self.ids;
        let mut ids = || {
            last += 1;
            Uuid::from_u128(last)
        };
        let context = self.context(acting);
        let mut execution = Execution::begin(context, self.instance.clone(), command, &mut ids)?;
        while let Some(ask) = execution.ask()? {
            match ask {
                Ask::Directory(lookup) => {
                    execution.found(&self.directory.found(&lookup, self.now))?;
                }
                Ask::Logic(question) => {
                    let instance = execution.instance();
                    let answer = logic.answer(&execution.facts(&instance), &question);
                    drop(instance);
                    let answer = match answer {
                        Err(message) if execution.survives_fault() => {
                            let code = LOGIC_FAULT.to_owned();
                            question.refused(Refusal::Fault(Reason { code, message }))
                        }
                        answer => answer.map_err(Stopped::Fault)?,
                    };
                    let is_refused = is_refusal(&answer);
                    execution.answer(answer)?;
                    if is_refused {
                        logic.undone();
                    }
                }
            }
        }
        let outcome = execution.finish();
        let mut instance = outcome.instance;
        instance.sort();
        self.instance = Some(instance);
        self.ids = last;
        for (state, user) in outcome.events.iter().filter_map(Event::allocation) {
            self.directory.remember_given(user, state, self.now);
        }
        Ok(outcome.events)
    }

    /// Checks a command up to the first question to the flow. Returns the person on whose behalf the actor claims or decides.
    pub fn judge(&self, acting: Acting<'_>, command: &Command) -> Result<Option<String>, Stopped> {
        let mut last = self.ids;
        let mut ids = || {
            last += 1;
            Uuid::from_u128(last)
        };
        let context = self.context(acting);
        let mut execution = Execution::begin(context, self.instance.clone(), command, &mut ids)?;
        let mut ask = execution.ask()?;
        if let Command::Claim { task } = command {
            // The deadlines that count from the claim may need calendars.
            while let Some(Ask::Directory(lookup)) = &ask {
                execution.found(&self.directory.found(lookup, self.now))?;
                ask = execution.ask()?;
            }
            let instance = execution.instance();
            return Ok(match instance.task(*task).map(|task| &task.status) {
                Some(TaskStatus::Claimed { ownership, .. }) => ownership.on_behalf_of.clone(),
                _ => None,
            });
        }
        Ok(match ask {
            Some(Ask::Logic(Question::Transition(occurrence))) => match &occurrence.source {
                Source::Task { actor, .. } => actor.on_behalf_of.clone(),
                _ => None,
            },
            _ => None,
        })
    }

    fn context<'a>(&'a self, acting: Acting<'a>) -> Context<'a> {
        Context {
            version: acting.version,
            previous: acting.previous,
            tenant: &self.tenant,
            actor: acting.actor,
            now: self.now,
        }
    }
}

/// The version that publishing makes of a graph and its config. The error says why a host does not publish it.
pub fn version(reference: VersionRef, config: Json, graph: Graph) -> Result<Version, Vec<Problem>> {
    let problems = check::check(&graph);
    if !problems.is_empty() {
        return Err(problems);
    }
    let schema = graph.data_schema.as_ref();
    let schema = schema.map(|schema| Schema::admit(schema).expect("checked with the graph"));
    let templates = Templates::of(&graph).expect("checked with the graph");
    Ok(Version {
        reference,
        component: Digest([0; 32]),
        config: config.into(),
        graph,
        schema,
        templates,
    })
}

fn is_refusal(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Start(Err(_)) | Answer::Transition(Err(_)) | Answer::Enter(Err(_))
    )
}

#[cfg(test)]
mod tests;
