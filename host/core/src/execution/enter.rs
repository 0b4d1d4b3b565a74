//! Enters states. Flow logic is asked once for the work in all of them.

use std::collections::VecDeque;

use super::assign::LookupPurpose;
use super::deadline;
use super::fault::{self, ExecutionError, Fault};
use super::{Execution, Pending, Phase};
use crate::answer::{Reason, Refusal, ServiceCall, Waiting, Work};
use crate::graph::StateKind;
use crate::ids::StateId;
use crate::instance::StateInstance;
use crate::lookup::{Findings, Lookup};
use crate::question::{Entry, EntryCause};
use crate::rejection::Rejection;

pub(super) const ENTER: &str = "enter";

/// A state instance for which `enter` is asked, and why.
pub(super) struct Asked {
    pub(super) state_instance: StateInstance,
    pub(super) cause: EntryCause,
}

impl Asked {
    /// Its entry in the question.
    pub(super) fn entry(&self) -> Entry {
        Entry {
            state_instance: self.state_instance.id.to_string(),
            state: self.state_instance.name.clone(),
            cause: self.cause.clone(),
        }
    }
}

impl Execution<'_> {
    /// Enters the pending states. A terminal state comes first, since nothing else is entered after it. Then one question asks
    /// for the work in all states that need it.
    pub(super) fn enter_pending(&mut self) -> Result<(), ExecutionError> {
        let is_end = |pending: &Pending| {
            let declared = self.declared(&pending.name);
            !declared.join.is_join() && matches!(declared.kind, StateKind::Terminal(_))
        };
        let end = self.entering.iter().position(is_end);
        if let Some(end) = end.and_then(|place| self.entering.remove(place)) {
            return self.enter(&end);
        }
        let mut asked = Vec::new();
        let mut others = VecDeque::new();
        for pending in std::mem::take(&mut self.entering) {
            let declared = self.declared(&pending.name);
            if !declared.join.is_join() && declared.kind.has_work() {
                let state_instance = self.state_instance(&pending);
                let cause = EntryCause::Entered;
                asked.push(Asked {
                    state_instance,
                    cause,
                });
            } else {
                others.push_back(pending);
            }
        }
        self.entering = others;
        if !asked.is_empty() {
            self.phase = Phase::Enter(asked);
        } else if let Some(next) = self.entering.pop_front() {
            self.enter(&next)?;
        }
        Ok(())
    }

    /// Asks for the work in an active state instance once more.
    pub(super) fn ask_again(&mut self, state: StateId, cause: EntryCause) {
        let state_instance = self.state_instance_of(state).clone();
        self.phase = Phase::Enter(vec![Asked {
            state_instance,
            cause,
        }]);
    }

    /// Enters one state for which no work is asked, or arrives at a join.
    fn enter(&mut self, pending: &Pending) -> Result<(), ExecutionError> {
        let state_instance = self.state_instance(pending);
        if self.declared(&pending.name).join.is_join() {
            self.arrive(state_instance);
            return Ok(());
        }
        self.begin_state(state_instance)
    }

    /// Takes the answer of `enter`, after checking all of it.
    pub(super) fn entered(&mut self, asked: Vec<Asked>, works: Vec<Work>) -> Result<(), Fault> {
        if works.len() != asked.len() {
            let message = format!(
                "the work in {} states was asked for, and the answer has {}",
                asked.len(),
                works.len()
            );
            return Err(Fault::new(ENTER, message));
        }
        for (asked, work) in asked.iter().zip(&works) {
            let state = &asked.state_instance.name;
            match (&self.declared(state).kind, work) {
                (StateKind::Task, Work::Task(assignment)) => self.check(asked, assignment)?,
                (StateKind::Service, Work::Service(call)) => self.check_call(state, call)?,
                (StateKind::Wait, Work::Wait(waiting)) => self.check_waiting(state, waiting)?,
                (kind, _) => {
                    let kind = kind.name();
                    let message =
                        format!("{state} is a {kind} state, and its work is of another kind");
                    return Err(Fault::new(ENTER, message));
                }
            }
        }
        self.works.extend(asked.into_iter().zip(works));
        Ok(())
    }

    /// Takes a refusal of `enter`.
    pub(super) fn work_refused(
        &mut self,
        asked: &[Asked],
        refusal: Refusal,
    ) -> Result<(), ExecutionError> {
        let rejection = fault::rejection(ENTER, refusal)?;
        self.work_rejected(asked, rejection)
    }

    /// Ends the command with this rejection. For overdue work it is a fault: no caller would see it, and the work would stay
    /// overdue.
    fn work_rejected(
        &mut self,
        asked: &[Asked],
        rejection: Rejection,
    ) -> Result<(), ExecutionError> {
        let is_overdue = |asked: &&Asked| matches!(asked.cause, EntryCause::Overdue { .. });
        let Some(overdue) = asked.iter().find(is_overdue) else {
            return self.reject(rejection);
        };
        let Reason { code, message } = rejection.into_reason();
        let state = &overdue.state_instance.name;
        let message =
            format!("the escalation of overdue work in {state} is refused: {message} ({code})");
        Err(Fault::new(ENTER, fault::bounded(message)).into())
    }

    /// Asks the directory for the managers and calendars that the work names, if any, and begins it.
    pub(super) fn begin_work(&mut self, asked: Asked, work: Work) -> Result<(), ExecutionError> {
        let lookup = match &work {
            Work::Task(assignment) => {
                let mut lookup = super::assign::lookup(assignment);
                self.ask_for_members(&asked, assignment, &mut lookup);
                self.ask_for_familiar(assignment, &mut lookup);
                self.ask_for_candidates(&asked, assignment, &mut lookup);
                lookup
            }
            Work::Service(ServiceCall { deadlines, .. })
            | Work::Wait(Waiting { deadlines, .. }) => Lookup {
                calendars: deadline::calendars(deadlines).cloned().collect(),
                ..Lookup::default()
            },
        };
        if lookup.is_empty() {
            return self.work(asked, work, &Findings::default());
        }
        self.phase = Phase::Lookup(lookup, LookupPurpose::Work(Box::new(asked), work));
        Ok(())
    }

    /// Begins the work in a state.
    pub(super) fn work(
        &mut self,
        asked: Asked,
        work: Work,
        findings: &Findings,
    ) -> Result<(), ExecutionError> {
        match work {
            Work::Task(assignment) => match self.for_members(&asked, assignment, findings) {
                Ok(assignment) => self.allocate(asked, assignment, findings),
                Err(rejection) => self.work_rejected(&[asked], rejection),
            },
            Work::Service(call) => self.enter_service(asked.state_instance, call, findings),
            Work::Wait(waiting) => self.enter_wait(asked.state_instance, waiting, findings),
        }
    }
}
