//! Runs the author's flow natively as the logic of a scenario.

use std::marker::PhantomData;

use wrkflw_core::graph::Read;
use wrkflw_core::question::{Answer, Facts, Question, Source};
use wrkflw_core::scenario::Logic as Answers;

use super::contract::{lift, lower};
use super::outcome::Entered;
use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::bindings::wrkflw::flow::types as wire;
use crate::export::Logic;
use crate::{Attribute, Flow};

/// Calls the flow, and records its answers.
pub(super) struct Native<'a, F> {
    /// Set while the test puts the instance into a state: each call gets these attributes, and `start` is not called.
    placed: Option<&'a [Attribute]>,
    pub(super) recorded: Said,
    flow: PhantomData<fn() -> F>,
}

/// The answers of the flow, in the order of the calls.
#[derive(Default)]
pub(super) struct Said {
    /// The answers for states that were entered or assigned anew.
    pub(super) entered: Vec<Entered>,
    /// The plans of `transition`.
    pub(super) plans: Vec<wire::Plan>,
    /// The lengths of both lists before the last trigger.
    before: (usize, usize),
}

impl Said {
    /// Remembers the lengths at the beginning of a trigger, in case the trigger is undone.
    fn mark(&mut self, question: &Question) {
        let begins = match question {
            Question::Start(_) => true,
            Question::Transition(occurrence) => occurrence.source != Source::Entry,
            Question::Enter(_) => false,
        };
        if begins {
            self.before = (self.entered.len(), self.plans.len());
        }
    }
}

impl<'a, F> Native<'a, F> {
    pub(super) fn new(placed: Option<&'a [Attribute]>) -> Self {
        Self {
            placed,
            recorded: Said::default(),
            flow: PhantomData,
        }
    }
}

impl<F: Flow> Answers for Native<'_, F> {
    fn answer(&mut self, facts: &Facts<'_>, question: &Question) -> Result<Answer, String> {
        if self.placed.is_some() && matches!(question, Question::Start(_)) {
            return Ok(Answer::Start(Ok(())));
        }
        let mut snapshot = lower::snapshot(facts);
        if let Some(attributes) = self.placed {
            snapshot.instance.attributes = attributes.to_vec();
        }
        self.recorded.mark(question);
        let answer = answer::<F>(snapshot, question, facts.reads, &mut self.recorded);
        answer.map_err(|what| format!("{}: {what}", question.function()))
    }

    fn undone(&mut self) {
        let (entered, plans) = self.recorded.before;
        self.recorded.entered.truncate(entered);
        self.recorded.plans.truncate(plans);
    }
}

fn answer<F: Flow>(
    snapshot: wire::Snapshot,
    question: &Question,
    reads: &[Read],
    recorded: &mut Said,
) -> lift::Lifted<Answer> {
    match question {
        Question::Start(by) => {
            let verdict = Logic::<F>::start(snapshot, lower::actor(by, reads));
            lift::result(verdict, Ok).map(Answer::Start)
        }
        Question::Transition(occurrence) => {
            let router = occurrence.source == Source::Entry;
            let name = router.then(|| state_of(&snapshot, &occurrence.state_instance));
            let planned = Logic::<F>::transition(snapshot, lower::event(occurrence, reads));
            match (&planned, name) {
                (Ok(plan), Some(name)) => {
                    recorded.entered.push(Entered::Router(name, plan.clone()));
                }
                (Ok(plan), None) => recorded.plans.push(plan.clone()),
                (Err(_), _) => {}
            }
            lift::result(planned, lift::plan).map(Answer::Transition)
        }
        Question::Enter(entries) => {
            let works = Logic::<F>::enter(snapshot, entries.iter().map(lower::entry).collect());
            let given = works.iter().flatten();
            recorded
                .entered
                .extend(entries.iter().zip(given).map(|(entry, work)| match work {
                    wire::Work::Task(task) => Entered::Task(entry.state.clone(), task.clone()),
                    wire::Work::Wait(wait) => Entered::Wait(entry.state.clone(), wait.clone()),
                    wire::Work::Service(call) => {
                        Entered::Service(entry.state.clone(), call.clone())
                    }
                }));
            lift::result(works, lift::works).map(Answer::Enter)
        }
    }
}

fn state_of(snapshot: &wire::Snapshot, id: &str) -> String {
    let mut active = snapshot.active.iter();
    let entered = active.find(|state_instance| state_instance.id == id);
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
