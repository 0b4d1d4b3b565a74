//! Runs one command with the core, as the host does. The flow is called natively.

use jiff::Timestamp;
use uuid::Uuid;
use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::event::Event;
use wrkflw_core::execution::{Ask, Context, Execution, ExecutionError};
use wrkflw_core::graph::Read;
use wrkflw_core::instance::Instance;
use wrkflw_core::question::{Answer, Question, Source};
use wrkflw_core::rejection::Rejection;
use wrkflw_core::version::Version;

use super::contract::{lift, lower};
use super::directory::Directory;
use super::outcome::Entered;
use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::bindings::wrkflw::flow::types as wire;
use crate::export::Logic;
use crate::{Attribute, Flow};

/// What a command is run with.
pub(super) struct Run<'a> {
    pub(super) version: &'a Version,
    /// The one that a migration leaves.
    pub(super) previous: Option<&'a Version>,
    pub(super) tenant: &'a str,
    pub(super) actor: &'a Actor,
    pub(super) now: Timestamp,
    pub(super) directory: &'a Directory,
    /// The last one that was used.
    pub(super) ids: Ids,
    /// Places the instance in a state with these attributes, without calling `guard` for the start.
    pub(super) placed: Option<&'a [Attribute]>,
}

/// The result of a command.
pub(super) struct Ran {
    pub(super) instance: Instance,
    pub(super) events: Vec<Event>,
    pub(super) said: Said,
    pub(super) ids: Ids,
}

/// The answers of the flow, in the order of the calls.
#[derive(Default)]
pub(super) struct Said {
    /// For states that were entered or assigned anew.
    pub(super) entered: Vec<Entered>,
    /// The plans of `transition`.
    pub(super) plans: Vec<wire::Plan>,
    /// The lengths of both before the last trigger.
    before: (usize, usize),
}

impl Said {
    /// Remembers the lengths when a trigger begins, in case it is undone.
    fn mark(&mut self, question: &Question) {
        if let Question::Transition(occurrence) = question
            && occurrence.source != Source::Entry
        {
            self.before = (self.entered.len(), self.plans.len());
        }
    }

    /// Undoes the answers of the last trigger, which the flow refused.
    fn take_back(&mut self) {
        self.entered.truncate(self.before.0);
        self.plans.truncate(self.before.1);
    }
}

/// The ids that the core needs, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ids(u128);

impl Ids {
    pub(super) fn next(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }
}

impl Run<'_> {
    fn context(&self) -> Context<'_> {
        Context {
            version: self.version,
            previous: self.previous,
            tenant: self.tenant,
            actor: self.actor,
            now: self.now,
        }
    }

    /// Checks a command up to the first call of the flow. Returns the person on whose behalf the actor decides.
    #[track_caller]
    pub(super) fn judge(
        &self,
        instance: &Instance,
        command: &Command,
    ) -> Result<Option<String>, Rejection> {
        let mut ids = self.ids;
        let mut next = || ids.next();
        let instance = Some(instance.clone());
        let begun = Execution::begin(self.context(), instance, command, &mut next);
        let mut execution = accepted(begun)?;
        Ok(match accepted(execution.ask())? {
            Some(Ask::Logic(Question::Guard(occurrence))) => match occurrence.source {
                Source::Task { actor, .. } => actor.on_behalf_of,
                _ => None,
            },
            _ => None,
        })
    }

    /// Runs the command to its end. An answer that the host rejects fails the test.
    #[track_caller]
    pub(super) fn to_end<F: Flow>(
        &self,
        instance: Option<&Instance>,
        command: &Command,
    ) -> Result<Ran, Rejection> {
        let mut ids = self.ids;
        let mut next = || ids.next();
        let instance = instance.cloned();
        let begun = Execution::begin(self.context(), instance, command, &mut next);
        let mut execution = accepted(begun)?;
        let mut said = Said::default();
        while let Some(ask) = accepted(execution.ask())? {
            let taken = match ask {
                Ask::Directory(lookup) => execution.found(&self.directory.found(&lookup)),
                Ask::Logic(Question::Guard(_)) if self.placed.is_some() => {
                    execution.answer(Answer::Guard(Ok(())))
                }
                Ask::Logic(question) => {
                    let instance = execution.instance();
                    let mut snapshot = lower::snapshot(&execution.facts(&instance));
                    drop(instance);
                    if let Some(attributes) = self.placed {
                        snapshot.instance.attributes = attributes.to_vec();
                    }
                    said.mark(&question);
                    let reads = &self.context().version.graph.reads;
                    let answer = answer::<F>(snapshot, &question, reads, &mut said);
                    let is_refused = is_refusal(&answer);
                    let taken = execution.answer(answer);
                    if is_refused && taken.is_ok() {
                        said.take_back();
                    }
                    taken
                }
            };
            accepted(taken)?;
        }
        let outcome = execution.finish();
        let mut instance = outcome.instance;
        instance.sort();
        Ok(Ran {
            instance,
            events: outcome.events,
            said,
            ids,
        })
    }
}

fn is_refusal(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Guard(Err(_)) | Answer::Transition(Err(_)) | Answer::Enter(Err(_))
    )
}

#[track_caller]
fn accepted<T>(result: Result<T, ExecutionError>) -> Result<T, Rejection> {
    match result {
        Ok(value) => Ok(value),
        Err(ExecutionError::Rejected(rejection)) => Err(rejection),
        Err(ExecutionError::Fault(fault)) => {
            panic!("the host does not accept what the flow answers: {fault}")
        }
    }
}

#[track_caller]
fn answer<F: Flow>(
    snapshot: wire::Snapshot,
    question: &Question,
    reads: &[Read],
    said: &mut Said,
) -> Answer {
    let function = question.function();
    match question {
        Question::Guard(occurrence) => {
            let verdict = Logic::<F>::guard(snapshot, lower::event(occurrence, reads));
            Answer::Guard(well_formed(function, lift::result(verdict, Ok)))
        }
        Question::Transition(occurrence) => {
            let router = occurrence.source == Source::Entry;
            let name = router.then(|| state_of(&snapshot, occurrence.state_instance.as_deref()));
            let planned = Logic::<F>::transition(snapshot, lower::event(occurrence, reads));
            match (&planned, name) {
                (Ok(plan), Some(name)) => said.entered.push(Entered::Router(name, plan.clone())),
                (Ok(plan), None) => said.plans.push(plan.clone()),
                (Err(_), _) => {}
            }
            Answer::Transition(well_formed(function, lift::result(planned, lift::plan)))
        }
        Question::Enter(entries) => {
            let works = Logic::<F>::enter(snapshot, entries.iter().map(lower::entry).collect());
            let given = works.iter().flatten();
            said.entered
                .extend(entries.iter().zip(given).filter_map(|(entry, work)| {
                    Some(match work {
                        wire::Work::Task(task) => Entered::Task(entry.state.clone(), task.clone()),
                        wire::Work::Wait(wait) => Entered::Wait(entry.state.clone(), wait.clone()),
                        wire::Work::Service(_) => return None,
                    })
                }));
            Answer::Enter(well_formed(function, lift::result(works, lift::works)))
        }
    }
}

fn state_of(snapshot: &wire::Snapshot, id: Option<&str>) -> String {
    let mut active = snapshot.active.iter();
    let entered = active.find(|state_instance| Some(state_instance.id.as_str()) == id);
    entered
        .map(|state_instance| state_instance.name.clone())
        .unwrap_or_default()
}

#[track_caller]
pub(super) fn well_formed<T>(function: &str, lifted: lift::Lifted<T>) -> T {
    match lifted {
        Ok(value) => value,
        Err(what) => panic!("the host does not accept what the flow answers: {function}: {what}"),
    }
}
