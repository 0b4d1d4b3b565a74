//! Enters states. Flow logic is asked once for the work in all of them.

use std::collections::{BTreeSet, VecDeque};

use super::assign::{self, LookupPurpose};
use super::deadline;
use super::fault::{self, ExecutionError, Fault};
use super::plan::TRANSITION;
use super::{Execution, Moving, Pending, Phase, ROUTER_STEPS_MAX};
use crate::answer::{Reason, Refusal, ServiceCall, SignalSubscription, Waiting, Work};
use crate::event::Event;
use crate::graph::{FiredBy, Graph, StateKind, Transition};
use crate::ids::StateId;
use crate::instance::StateInstance;
use crate::json::Json;
use crate::lookup::{Findings, Lookup};
use crate::question::{Entry, EntryCause, Occurrence, Source};
use crate::rejection::Rejection;
use crate::shown::BRANCHES_MAX;

pub(super) const ENTER: &str = "enter";
/// How many routers one command or trigger without a caller may enter. Flow logic is called for each.
const ROUTERS_MAX: usize = BRANCHES_MAX + ROUTER_STEPS_MAX as usize;
/// How many subscriptions a state instance may have.
const SUBSCRIPTIONS_MAX: usize = 20;

/// A state instance for which the execution asks `enter`, and why.
pub(super) struct PendingEntry {
    pub(super) state_instance: StateInstance,
    pub(super) cause: EntryCause,
}

impl PendingEntry {
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
    /// Enters the pending states. A terminal state comes first, because no other state is entered after it. Then one question
    /// asks for the work in all states that need it.
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
                asked.push(PendingEntry {
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
        self.phase = Phase::Enter(vec![PendingEntry {
            state_instance,
            cause,
        }]);
    }

    /// Enters one state that needs no work, or arrives at a join.
    fn enter(&mut self, pending: &Pending) -> Result<(), ExecutionError> {
        let state_instance = self.state_instance(pending);
        if self.declared(&pending.name).join.is_join() {
            self.arrive(state_instance);
            return Ok(());
        }
        self.begin_state(state_instance)
    }

    /// Enters a state instance by the kind of its state.
    pub(super) fn begin_state(
        &mut self,
        state_instance: StateInstance,
    ) -> Result<(), ExecutionError> {
        let declared = self.declared(&state_instance.name);
        match &declared.kind {
            StateKind::Task | StateKind::Service | StateKind::Wait => {
                self.phase = Phase::Enter(vec![PendingEntry {
                    state_instance,
                    cause: EntryCause::Entered,
                }]);
            }
            StateKind::Router => {
                if self.routers.len() == ROUTERS_MAX {
                    return self.reject(too_many_routers());
                }
                self.count_router(&state_instance)?;
                let way_out = self
                    .context
                    .version
                    .graph
                    .leaving(&state_instance.name)
                    .next()
                    .expect("a router has one transition");
                let occurrence = Occurrence {
                    state_instance: state_instance.id.to_string(),
                    trigger: way_out.trigger.clone(),
                    source: Source::Entry,
                    input: Json::empty(),
                };
                self.phase = Phase::Transition(
                    occurrence.into(),
                    Moving {
                        state: state_instance.id,
                        decision: None,
                    },
                );
                self.emit_entered(state_instance);
            }
            StateKind::Terminal(outcome) => {
                self.entering.clear();
                self.works.clear();
                self.ready_joins.clear();
                self.cancel_open_tasks(None);
                self.emit_entered(state_instance);
                self.emit(Event::FlowCompleted {
                    outcome: outcome.clone(),
                });
            }
        }
        Ok(())
    }

    /// Counts a router before it is entered. A flow that leads from router to router without end is faulty.
    fn count_router(&mut self, state_instance: &StateInstance) -> Result<(), Fault> {
        // A join follows the routers of all its branches.
        let before = state_instance.predecessors.iter();
        let before = before.filter_map(|id| self.routers.get(id)).max();
        let in_a_row = before.map_or(1, |before| before + 1);
        if in_a_row > ROUTER_STEPS_MAX {
            let message = format!("more than {ROUTER_STEPS_MAX} router states in a row");
            return Err(Fault::new(TRANSITION, message));
        }
        self.routers.insert(state_instance.id, in_a_row);
        Ok(())
    }

    /// Checks the whole answer of `enter`, then takes it.
    pub(super) fn entered(
        &mut self,
        asked: Vec<PendingEntry>,
        works: Vec<Work>,
    ) -> Result<(), Fault> {
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

    /// Takes a refusal of `enter`. For overdue work, a refusal is a fault: no caller would see the refusal, and the work
    /// would stay overdue.
    pub(super) fn work_refused(
        &mut self,
        asked: &[PendingEntry],
        refusal: Refusal,
    ) -> Result<(), ExecutionError> {
        let rejection = fault::rejection(ENTER, refusal)?;
        let is_overdue = |asked: &&PendingEntry| matches!(asked.cause, EntryCause::Overdue { .. });
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
    pub(super) fn begin_work(
        &mut self,
        asked: PendingEntry,
        work: Work,
    ) -> Result<(), ExecutionError> {
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
        asked: PendingEntry,
        work: Work,
        findings: &Findings,
    ) -> Result<(), ExecutionError> {
        match work {
            Work::Task(assignment) => match self.for_members(&asked, assignment, findings) {
                Ok(assignment) => match assign::room(&asked, &assignment) {
                    Ok(()) => self.allocate(asked, assignment, findings),
                    Err(rejection) => self.reject(rejection),
                },
                Err(rejection) => self.reject(rejection),
            },
            Work::Service(call) => self.enter_service(asked.state_instance, call, findings),
            Work::Wait(waiting) => self.enter_wait(asked.state_instance, waiting, findings),
        }
    }

    /// The declared name of a priority.
    pub(super) fn priority_name(&self, priority: u8) -> Option<String> {
        let name = self.context.version.graph.priority_name(priority);
        name.map(str::to_owned)
    }
}

fn too_many_routers() -> Rejection {
    let message = format!(
        "more than {ROUTERS_MAX} router states would follow at once; the plan must begin fewer branches"
    );
    Rejection::not_now("limit_reached", message)
}

/// Checks the subscriptions of a state.
pub(super) fn check_subscriptions(
    graph: &Graph,
    state: &str,
    subscriptions: &[SignalSubscription],
) -> Result<(), Fault> {
    let fault = |message| Err(Fault::new(ENTER, message));
    let count = subscriptions.len();
    if count > SUBSCRIPTIONS_MAX {
        let message = format!("{state} has {SUBSCRIPTIONS_MAX} subscriptions at most, not {count}");
        return fault(message);
    }
    let by_signal = |way: &Transition| way.by.contains(&FiredBy::Signal);
    let mut known = BTreeSet::new();
    for one in subscriptions {
        let trigger = one.trigger.chars().take(100).collect::<String>();
        if !graph.transition(state, &one.trigger).is_some_and(by_signal) {
            let message =
                format!("{state} subscribes to {trigger:?}, which is declared for no signal there");
            return fault(message);
        }
        if let Some(key) = &one.correlation {
            fault::id(ENTER, "a correlation key", key)?;
        } else if !one.buffered {
            let message = format!(
                "{state} subscribes to {trigger} without a correlation key, and buffered signals do not count: the subscription \
                 has no effect"
            );
            return fault(message);
        }
        if !known.insert((&one.trigger, &one.correlation)) {
            let key = one.correlation.as_deref();
            let key = key.map_or_else(String::new, |key| format!(" under the key {key}"));
            return fault(format!("{state} subscribes to {trigger}{key} twice"));
        }
    }
    Ok(())
}
