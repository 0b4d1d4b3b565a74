//! Enters states. Flow logic is asked once for the work in all of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::assign::LookupPurpose;
use super::fault::{self, ExecutionError, Fault};
use super::plan::TRANSITION;
use super::{
    Context, Execution, Ids, Moving, Pending, Phase, ROUTER_STEPS_MAX, allocation, assign, blind,
    deadline, declared, familiar, fork, members, plan, savepoint, service, state_instance_of, wait,
};
use crate::answer::{Reason, Refusal, ServiceCall, SignalSubscription, Waiting, Work};
use crate::event::Event;
use crate::graph::{FiredBy, Graph, StateKind, Transition};
use crate::ids::StateId;
use crate::instance::{Instance, StateInstance};
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

/// Enters the pending states. A terminal state comes first, because no other state is entered after it. Then one question
/// asks for the work in all states that need it.
pub(super) fn begin_pending(execution: &mut Execution<'_>) -> Result<(), ExecutionError> {
    let graph = &execution.context.version.graph;
    let is_end = |pending: &Pending| {
        let declared = declared(graph, &pending.name);
        !declared.join.is_join() && matches!(declared.kind, StateKind::Terminal(_))
    };
    let end = execution.entering.iter().position(is_end);
    if let Some(end) = end.and_then(|place| execution.entering.remove(place)) {
        return enter(execution, &end);
    }
    let mut entries = Vec::new();
    let mut others = VecDeque::new();
    for pending in std::mem::take(&mut execution.entering) {
        let declared = declared(graph, &pending.name);
        if !declared.join.is_join() && declared.kind.has_work() {
            let state_instance = new_state_instance(execution.context, execution.ids, &pending);
            entries.push(PendingEntry {
                state_instance,
                cause: EntryCause::Entered,
            });
        } else {
            others.push_back(pending);
        }
    }
    execution.entering = others;
    if !entries.is_empty() {
        execution.phase = Phase::Enter(entries);
    } else if let Some(next) = execution.entering.pop_front() {
        enter(execution, &next)?;
    }
    Ok(())
}

/// The new state instance of a state that is entered.
fn new_state_instance(context: Context<'_>, ids: &mut Ids<'_>, pending: &Pending) -> StateInstance {
    StateInstance {
        predecessors: pending.predecessors.clone(),
        entered_trigger: pending.by.clone(),
        caller: context.by().map(str::to_owned),
        forks: pending.forks.clone(),
        choices: pending.choices,
        key: pending.key.clone(),
        data: pending.data.clone(),
        ..StateInstance::new(StateId(ids()), &pending.name, context.now)
    }
}

/// The instance with these state instances. A state instance that is already active does not change.
pub(super) fn with_entered<'i>(
    instance: &'i Instance,
    entries: &[PendingEntry],
) -> Cow<'i, Instance> {
    let is_active = |id: StateId| instance.active.iter().any(|active| active.id == id);
    let new = entries.iter().map(|entry| &entry.state_instance);
    let new: Vec<_> = new.filter(|new| !is_active(new.id)).collect();
    if new.is_empty() {
        return Cow::Borrowed(instance);
    }
    let mut instance = instance.clone();
    for new in new {
        instance.waiting.retain(|waiting| waiting.id != new.id);
        instance.active.push(new.clone());
    }
    Cow::Owned(instance)
}

/// Asks for the work in an active state instance once more.
pub(super) fn ask_again(execution: &mut Execution<'_>, state: StateId, cause: EntryCause) {
    let state_instance = state_instance_of(&execution.instance, state).clone();
    execution.phase = Phase::Enter(vec![PendingEntry {
        state_instance,
        cause,
    }]);
}

/// Enters one state that needs no work, or arrives at a join.
fn enter(execution: &mut Execution<'_>, pending: &Pending) -> Result<(), ExecutionError> {
    let state_instance = new_state_instance(execution.context, execution.ids, pending);
    let graph = &execution.context.version.graph;
    if declared(graph, &pending.name).join.is_join() {
        fork::arrive(execution, state_instance);
        return Ok(());
    }
    begin_state(execution, state_instance)
}

/// Enters a state instance by the kind of its state.
pub(super) fn begin_state(
    execution: &mut Execution<'_>,
    state_instance: StateInstance,
) -> Result<(), ExecutionError> {
    let graph = &execution.context.version.graph;
    let declared = declared(graph, &state_instance.name);
    match &declared.kind {
        StateKind::Task | StateKind::Service | StateKind::Wait => {
            execution.phase = Phase::Enter(vec![PendingEntry {
                state_instance,
                cause: EntryCause::Entered,
            }]);
        }
        StateKind::Router => {
            if execution.routers.len() == ROUTERS_MAX {
                return savepoint::reject(execution, too_many_routers());
            }
            count_router(&mut execution.routers, &state_instance)?;
            let way_out = graph
                .leaving(&state_instance.name)
                .next()
                .expect("a router has one transition");
            let occurrence = Occurrence {
                state_instance: state_instance.id.to_string(),
                trigger: way_out.trigger.clone(),
                source: Source::Entry,
                input: Json::empty(),
            };
            execution.phase = Phase::Transition(
                occurrence.into(),
                Moving {
                    state: state_instance.id,
                    decision: None,
                },
            );
            blind::emit_entered(execution, state_instance);
        }
        StateKind::Terminal(outcome) => {
            execution.entering.clear();
            execution.works.clear();
            execution.ready_joins.clear();
            plan::cancel_open_tasks(execution, None);
            blind::emit_entered(execution, state_instance);
            execution.emit(Event::FlowCompleted {
                outcome: outcome.clone(),
            });
        }
    }
    Ok(())
}

/// Counts a router before it is entered. A flow that leads from router to router without end is faulty.
fn count_router(
    routers: &mut BTreeMap<StateId, u32>,
    state_instance: &StateInstance,
) -> Result<(), Fault> {
    // A join follows the routers of all its branches.
    let before = state_instance.predecessors.iter();
    let before = before.filter_map(|id| routers.get(id)).max();
    let in_a_row = before.map_or(1, |before| before + 1);
    if in_a_row > ROUTER_STEPS_MAX {
        let message = format!("more than {ROUTER_STEPS_MAX} router states in a row");
        return Err(Fault::new(TRANSITION, message));
    }
    routers.insert(state_instance.id, in_a_row);
    Ok(())
}

/// Checks the whole answer of `enter`, then takes it.
pub(super) fn take_answer(
    execution: &mut Execution<'_>,
    entries: Vec<PendingEntry>,
    works: Vec<Work>,
) -> Result<(), Fault> {
    if works.len() != entries.len() {
        let message = format!(
            "the work in {} states was asked for, and the answer has {}",
            entries.len(),
            works.len()
        );
        return Err(Fault::new(ENTER, message));
    }
    let graph = &execution.context.version.graph;
    for (entry, work) in entries.iter().zip(&works) {
        let state = &entry.state_instance.name;
        match (&declared(graph, state).kind, work) {
            (StateKind::Task, Work::Task(assignment)) => {
                assign::check(graph, &execution.instance, entry, assignment)?;
            }
            (StateKind::Service, Work::Service(call)) => service::check(graph, state, call)?,
            (StateKind::Wait, Work::Wait(waiting)) => wait::check(graph, state, waiting)?,
            (kind, _) => {
                let kind = kind.name();
                let message = format!("{state} is a {kind} state, and its work is of another kind");
                return Err(Fault::new(ENTER, message));
            }
        }
    }
    execution.works.extend(entries.into_iter().zip(works));
    Ok(())
}

/// Takes a refusal of `enter`. For overdue work, a refusal is a fault: no caller would see the refusal, and the work
/// would stay overdue.
pub(super) fn work_refused(
    execution: &mut Execution<'_>,
    entries: &[PendingEntry],
    refusal: Refusal,
) -> Result<(), ExecutionError> {
    let rejection = fault::rejection(ENTER, refusal)?;
    let is_overdue = |entry: &&PendingEntry| matches!(entry.cause, EntryCause::Overdue { .. });
    let Some(overdue) = entries.iter().find(is_overdue) else {
        return savepoint::reject(execution, rejection);
    };
    let Reason { code, message } = rejection.into_reason();
    let state = &overdue.state_instance.name;
    let message =
        format!("the escalation of overdue work in {state} is refused: {message} ({code})");
    Err(Fault::new(ENTER, fault::bounded(message)).into())
}

/// Asks the directory for what the work needs: managers, calendars, members of groups, memberships. Work that needs
/// nothing begins at once.
pub(super) fn look_up_work(
    execution: &mut Execution<'_>,
    entry: PendingEntry,
    work: Work,
) -> Result<(), ExecutionError> {
    let lookup = match &work {
        Work::Task(assignment) => {
            let (graph, instance) = (&execution.context.version.graph, &execution.instance);
            let mut lookup = assign::lookup(assignment);
            members::ask_for_groups(graph, instance, &entry, assignment, &mut lookup);
            familiar::ask_for_people(instance, assignment, &mut lookup);
            allocation::ask_for_candidates(graph, instance, &entry, assignment, &mut lookup);
            lookup
        }
        Work::Service(ServiceCall { deadlines, .. }) | Work::Wait(Waiting { deadlines, .. }) => {
            Lookup {
                calendars: deadline::calendars(deadlines).cloned().collect(),
                ..Lookup::default()
            }
        }
    };
    if lookup.is_empty() {
        return start_work(execution, entry, work, &Findings::default());
    }
    execution.phase = Phase::Lookup(lookup, LookupPurpose::Work(Box::new(entry), work));
    Ok(())
}

/// Begins the work in a state, with the answer of the directory.
pub(super) fn start_work(
    execution: &mut Execution<'_>,
    entry: PendingEntry,
    work: Work,
    findings: &Findings,
) -> Result<(), ExecutionError> {
    match work {
        Work::Task(assignment) => {
            let (graph, instance) = (&execution.context.version.graph, &execution.instance);
            let expanded = members::expand(graph, instance, &entry, assignment, findings);
            let checked = expanded.and_then(|assignment| {
                assign::check_room(&entry, &assignment)?;
                Ok(assignment)
            });
            match checked {
                Ok(assignment) => allocation::allocate(execution, entry, assignment, findings),
                Err(rejection) => savepoint::reject(execution, rejection),
            }
        }
        Work::Service(call) => service::enter(execution, entry.state_instance, call, findings),
        Work::Wait(waiting) => wait::enter(execution, entry.state_instance, waiting, findings),
    }
}

/// The declared name of a priority.
pub(super) fn priority_name(graph: &Graph, priority: u8) -> Option<String> {
    let name = graph.priority_name(priority);
    name.map(str::to_owned)
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
    for subscription in subscriptions {
        let trigger = subscription.trigger.chars().take(100).collect::<String>();
        let way = graph.transition(state, &subscription.trigger);
        if !way.is_some_and(by_signal) {
            let message =
                format!("{state} subscribes to {trigger:?}, which is declared for no signal there");
            return fault(message);
        }
        if let Some(key) = &subscription.correlation {
            fault::id(ENTER, "a correlation key", key)?;
        } else if !subscription.buffered {
            let message = format!(
                "{state} subscribes to {trigger} without a correlation key, and buffered signals do not count: the subscription \
                 has no effect"
            );
            return fault(message);
        }
        if !known.insert((&subscription.trigger, &subscription.correlation)) {
            let key = subscription.correlation.as_deref();
            let key = key.map_or_else(String::new, |key| format!(" under the key {key}"));
            return fault(format!("{state} subscribes to {trigger}{key} twice"));
        }
    }
    Ok(())
}
