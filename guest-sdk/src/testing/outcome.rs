//! The outcome of an event, with assertions.
//!
//! A failed assertion panics at the line of the test, with the expected and the actual outcome.

use std::fmt::Debug;

use wrkflw_core::answer;
use wrkflw_core::rejection::Rejection;
use wrkflw_core::template::Labels;

use crate::bindings::wrkflw::flow::types::{Next, Plan};
use crate::{Assignment, Principal, Reason, ServiceCall, States, Violation, Waiting};

/// The answer of a flow to an event, and its effects.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub(super) answer: Answer,
    pub(super) entered: Vec<Entered>,
    /// The final candidates of tasks, after the host has resolved managers and applied fallbacks.
    pub(super) offered: Vec<Principal>,
    pub(super) plans: Vec<Plan>,
    pub(super) ended: Option<String>,
    /// The reason for which the instance was cancelled.
    pub(super) cancelled: Option<String>,
    pub(super) reminded: Vec<String>,
    /// States that are unassignable.
    pub(super) unassignable: Vec<String>,
    /// The title and the summary of the instance.
    pub(super) labels: Labels,
}

#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The event needed no plan, such as the start of an instance or an escalation.
    Done,
    Planned(Plan),
    /// A signal that was buffered, because no state accepts it yet.
    Kept,
    /// Denied by a rule of the host, or by the flow.
    Denied(Reason),
    Invalid(Vec<Violation>),
    /// The flow said "not now", or refused an event without a caller.
    Refused(Reason),
}

/// A state that was entered, and the flow's answer for it.
#[derive(Clone, Debug)]
pub enum Entered {
    /// A task state, and who works on it.
    Task(String, Assignment),
    /// A service state, and its request.
    Service(String, ServiceCall),
    /// A wait state, and what it waits for.
    Wait(String, Waiting),
    /// A router, and what it planned.
    Router(String, Plan),
    /// A terminal state, or a join that other branches have not reached.
    Passive(String),
}

impl Entered {
    /// The name of the state.
    pub fn state(&self) -> &str {
        match self {
            Self::Task(state, _)
            | Self::Service(state, _)
            | Self::Wait(state, _)
            | Self::Router(state, _)
            | Self::Passive(state) => state,
        }
    }
}

impl From<Rejection> for Answer {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Forbidden(because) => Self::Denied(reason(because)),
            Rejection::Invalid(found) => Self::Invalid(found.into_iter().map(violation).collect()),
            Rejection::RefusedNow(because) => Self::Refused(reason(because)),
            other => {
                let code = other.forbids().unwrap_or_else(|| other.code());
                Self::Denied(Reason::new(code, other.to_string()))
            }
        }
    }
}

fn reason(reason: answer::Reason) -> Reason {
    let answer::Reason { code, message } = reason;
    Reason { code, message }
}

fn violation(violation: answer::Violation) -> Violation {
    let answer::Violation {
        field,
        code,
        message,
        expected: _,
    } = violation;
    Violation {
        field,
        code,
        message,
    }
}

impl Outcome {
    /// The outcome before any command is executed.
    pub(super) fn nothing() -> Self {
        Self {
            answer: Answer::Done,
            entered: vec![],
            offered: vec![],
            plans: vec![],
            ended: None,
            cancelled: None,
            reminded: vec![],
            unassignable: vec![],
            labels: Labels::default(),
        }
    }

    /// The flow or a rule of the host denied the event with this code.
    #[track_caller]
    pub fn denied(&self, code: &str) -> &Self {
        self.expect(
            matches!(&self.answer, Answer::Denied(reason) if reason.code == code),
            "a denial",
            code,
        )
    }

    /// The flow or the host found this field invalid, with this code.
    #[track_caller]
    pub fn invalid(&self, field: &str, code: &str) -> &Self {
        let found =
            |all: &[Violation]| all.iter().any(|one| one.field == field && one.code == code);
        self.expect(
            matches!(&self.answer, Answer::Invalid(all) if found(all)),
            "a violation",
            (field, code),
        )
    }

    /// The flow refused with "not now" and this code, or refused an event without a caller (a deadline, a child's end).
    #[track_caller]
    pub fn refused(&self, code: &str) -> &Self {
        self.expect(
            matches!(&self.answer, Answer::Refused(reason) if reason.code == code),
            "a refusal",
            code,
        )
    }

    /// The event was accepted.
    #[track_caller]
    pub fn allowed(&self) -> &Self {
        self.expect(
            matches!(
                self.answer,
                Answer::Done | Answer::Planned(_) | Answer::Kept
            ),
            "it",
            "allowed",
        )
    }

    /// The instance entered this state, or arrived at this join.
    #[track_caller]
    pub fn enters(&self, state: impl States) -> &Self {
        self.expect(
            self.entered.iter().any(|one| one.state() == state.name()),
            "an entry into",
            state,
        )
    }

    /// The event is recorded, and the state goes on: the plan is to stay, to offer the work anew, or to spawn branches.
    #[track_caller]
    pub fn stays(&self) -> &Self {
        self.expect(
            matches!(
                &self.answer,
                Answer::Planned(plan)
                    if matches!(plan.next, Next::Stay | Next::Reoffer | Next::Spawn(_))
            ),
            "it",
            "to go on",
        )
    }

    /// The signal is buffered for a later state.
    #[track_caller]
    pub fn is_kept(&self) -> &Self {
        self.expect(matches!(self.answer, Answer::Kept), "it", "to be kept")
    }

    /// A reminder was sent for the task with this label, or for the state with this name.
    #[track_caller]
    pub fn reminds(&self, of: &str) -> &Self {
        self.expect(
            self.reminded.iter().any(|one| one == of),
            "a reminder of",
            of,
        )
    }

    /// The instance has ended with this outcome.
    #[track_caller]
    pub fn ends(&self, outcome: &str) -> &Self {
        self.expect(self.ended.as_deref() == Some(outcome), "the end", outcome)
    }

    /// A deadline cancelled the instance for this reason.
    #[track_caller]
    pub fn is_cancelled(&self, reason: &str) -> &Self {
        let is_so = self.cancelled.as_deref() == Some(reason);
        self.expect(is_so, "a cancellation for", reason)
    }

    /// This state is unassignable.
    #[track_caller]
    pub fn has_nobody_for(&self, state: impl States) -> &Self {
        let mut states = self.unassignable.iter();
        let found = states.any(|one| one == state.name());
        self.expect(found, "nobody to be able to work in", state)
    }

    /// The instance has this title; empty for none.
    #[track_caller]
    pub fn is_titled(&self, title: &str) -> &Self {
        let shown = self.labels.title.as_deref().unwrap_or_default();
        self.expect(shown == title, "the title", title)
    }

    /// The instance has this summary; empty for none.
    #[track_caller]
    pub fn is_summarised(&self, summary: &str) -> &Self {
        let shown = self.labels.summary.as_deref().unwrap_or_default();
        self.expect(shown == summary, "the summary", summary)
    }

    /// Work is offered to this group.
    #[track_caller]
    pub fn offers_to_group(&self, group: &str) -> &Self {
        self.offers_to(&Principal::Group(group.into()))
    }

    /// Work is offered to this person.
    #[track_caller]
    pub fn offers_to_user(&self, user: &str) -> &Self {
        self.offers_to(&Principal::User(user.into()))
    }

    /// Work is offered to the manager of this person.
    #[track_caller]
    pub fn offers_to_manager_of(&self, user: &str) -> &Self {
        self.offers_to(&Principal::ManagerOf(user.into()))
    }

    /// A custom event is published.
    #[track_caller]
    pub fn publishes(&self, name: &str) -> &Self {
        let published = self
            .plans()
            .flat_map(|plan| &plan.publish)
            .any(|event| event.name == name);
        self.expect(published, "the event", name)
    }

    /// A note for the audit has this code.
    #[track_caller]
    pub fn notes(&self, code: &str) -> &Self {
        let noted = self
            .plans()
            .flat_map(|plan| &plan.notes)
            .any(|note| note.code == code);
        self.expect(noted, "a note with the code", code)
    }

    /// The assignment of the only task state that was entered.
    #[track_caller]
    pub fn assignment(&self) -> &Assignment {
        match self.assignments().collect::<Vec<_>>()[..] {
            [assignment] => assignment,
            _ => panic!("expected one task state, but {self:#?}"),
        }
    }

    /// The call of the first service state that was entered.
    #[track_caller]
    pub fn call(&self) -> &ServiceCall {
        let mut calls = self.entered.iter().filter_map(|one| {
            if let Entered::Service(_, call) = one {
                Some(call)
            } else {
                None
            }
        });
        calls
            .next()
            .unwrap_or_else(|| panic!("expected a service state, but {self:#?}"))
    }

    /// What the first wait state that was entered waits for.
    #[track_caller]
    pub fn waiting(&self) -> &Waiting {
        let mut waiting = self.entered.iter().filter_map(|one| {
            if let Entered::Wait(_, waiting) = one {
                Some(waiting)
            } else {
                None
            }
        });
        waiting
            .next()
            .unwrap_or_else(|| panic!("expected a wait state, but {self:#?}"))
    }

    /// Every state entered, in order.
    pub fn entered(&self) -> &[Entered] {
        &self.entered
    }

    fn plans(&self) -> impl Iterator<Item = &Plan> {
        let routers = self.entered.iter().filter_map(|one| {
            if let Entered::Router(_, plan) = one {
                Some(plan)
            } else {
                None
            }
        });
        self.plans.iter().chain(routers)
    }

    fn assignments(&self) -> impl Iterator<Item = &Assignment> {
        self.entered.iter().filter_map(|one| {
            if let Entered::Task(_, assignment) = one {
                Some(assignment)
            } else {
                None
            }
        })
    }

    /// Work is offered to this principal.
    #[track_caller]
    pub fn offers_to(&self, principal: &Principal) -> &Self {
        let offers = self.assignments().flat_map(|assignment| &assignment.offers);
        let mut candidates = offers
            .flat_map(|offer| &offer.candidates)
            .chain(&self.offered);
        let offered = candidates.any(|candidate| candidate == principal);
        self.expect(offered, "an offer to", principal)
    }

    #[track_caller]
    fn expect(&self, holds: bool, what: &str, which: impl Debug) -> &Self {
        assert!(holds, "expected {what} {which:?}, but {self:#?}");
        self
    }
}
