//! Checks who works on a task state, as `enter` answers it, and creates the tasks. Also passes each answer of the directory to the module
//! that asked.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::allocation::Allocating;
use super::enter::{ENTER, PendingEntry, check_subscriptions};
use super::fallback::{Cause, StaffingCheck};
use super::fault::{self, ExecutionError, Fault};
use super::next::may_be_moved;
use super::ownership::OwnerChange;
use super::reoffer::ReofferCause;
use super::{
    Execution, Ids, Phase, allocation, blind, comment, deadline, enter, fallback, familiar,
    members, overdue, ownership, reoffer, separate, state_instance_of,
};
use crate::answer::{Assignment, Deadline, Offer, Principal, Work};
use crate::event::Event;
use crate::graph::{FiredBy, Graph};
use crate::ids::{StateId, TaskId};
use crate::instance::{Instance, Ownership, StateInstance, Task, TaskStatus};
use crate::lookup::{Findings, Lookup};
use crate::question::EntryCause;
use crate::rejection::Rejection;
use crate::text::counted;

/// How many tasks one state instance may have.
pub(super) const OFFERS_MAX: usize = 200;
/// How many tasks one state instance may have had in all, escalations included.
pub(super) const TASKS_MAX: usize = 1_000;
const CANDIDATES_MAX: usize = 200;
const EXCLUDED_MAX: usize = 200;

/// What the pending question to the directory is for.
pub(super) enum LookupPurpose {
    /// To begin the work in a state.
    Work(Box<PendingEntry>, Work),
    /// To give the tasks of an assignment to some of its candidates.
    Allocate(Box<Allocating>),
    /// To check the staffing of a state instance.
    Staffing(StaffingCheck),
    /// To find the fallbacks, with the findings about the candidates.
    Fallback(StaffingCheck, Findings),
    /// To check that a new owner exists, and to compute the deadlines that count from the change.
    ChangeOwner(Box<OwnerChange>),
    /// To check that the people whom a comment mentions exist.
    Comment(Box<Event>),
}

/// Refuses offers that a state has no room for, with all tasks that it has had.
pub(super) fn check_room(entry: &PendingEntry, assignment: &Assignment) -> Result<(), Rejection> {
    let PendingEntry { state_instance, .. } = entry;
    let (had, more) = (state_instance.tasks.len(), assignment.offers.len());
    if had + more <= TASKS_MAX {
        return Ok(());
    }
    let state = &state_instance.name;
    let message = format!(
        "{state} has had {} and takes no {more} more",
        counted(had, "task")
    );
    Err(Rejection::not_now("limit_reached", message))
}

/// Takes the answer of the directory.
pub(super) fn take_findings(
    execution: &mut Execution<'_>,
    findings: &Findings,
) -> Result<(), ExecutionError> {
    match std::mem::replace(&mut execution.phase, Phase::Settle) {
        Phase::Lookup(_, LookupPurpose::Work(entry, work)) => {
            enter::start_work(execution, *entry, work, findings)?;
        }
        Phase::Lookup(_, LookupPurpose::Allocate(allocating)) => {
            let Allocating {
                entry,
                assignment,
                known,
            } = *allocating;
            let workloads = findings.workloads.clone();
            let known = Findings { workloads, ..known };
            begin(execution, entry, assignment, &known)?;
        }
        Phase::Lookup(_, LookupPurpose::Staffing(staffing_check)) => {
            fallback::candidates_found(execution, staffing_check, findings.clone());
        }
        Phase::Lookup(_, LookupPurpose::Fallback(staffing_check, known)) => {
            fallback::use_fallbacks(execution, staffing_check, known, findings);
        }
        Phase::Lookup(_, LookupPurpose::ChangeOwner(change)) => {
            ownership::new_owner_found(execution, *change, findings)?;
        }
        Phase::Lookup(_, LookupPurpose::Comment(commented)) => {
            comment::mentioned_found(execution, *commented, findings)?;
        }
        _ => unreachable!("the driver answers the pending question"),
    }
    Ok(())
}

/// Checks who works on a task state.
pub(super) fn check(
    graph: &Graph,
    instance: &Instance,
    entry: &PendingEntry,
    assignment: &Assignment,
) -> Result<(), Fault> {
    let PendingEntry {
        state_instance,
        cause,
    } = entry;
    let state = &state_instance.name;
    check_assignment(state_instance, cause, assignment)?;
    let working = deadline::of(assignment).flat_map(deadline::calendars);
    if working.count() > deadline::WORKING_MAX {
        let message = format!(
            "{state} counts more than {} deadlines by calendars",
            deadline::WORKING_MAX
        );
        return Err(Fault::new(ENTER, message));
    }
    deadline::check(graph, state, &assignment.deadlines, false)?;
    check_subscriptions(graph, state, &assignment.subscriptions)?;
    for offer in &assignment.offers {
        deadline::check(graph, state, &offer.deadlines, true)?;
    }
    for offer in &assignment.offers {
        check_offer(graph, instance, state, offer, &assignment.exclude)?;
    }
    check_movable_work(graph, entry, assignment)
}

/// Refuses work in a state that nothing could ever move. Where neither a decision nor a signal leads on, only deadlines do.
fn check_movable_work(
    graph: &Graph,
    entry: &PendingEntry,
    assignment: &Assignment,
) -> Result<(), Fault> {
    let state = &entry.state_instance.name;
    let moves = |deadlines: &[Deadline]| deadlines.iter().any(|one| one.action.moves());
    let is_movable = graph.leads(state, FiredBy::Decision)
        || graph.leads(state, FiredBy::Signal)
        || assignment
            .offers
            .iter()
            .any(|offer| moves(&offer.deadlines))
        || match &entry.cause {
            EntryCause::Entered | EntryCause::Migrated => moves(&assignment.deadlines),
            // The deadlines of the state go on, and those of tasks that are not overdue or are offered again.
            cause => may_be_moved(graph, state, &entry.state_instance, |task| match cause {
                EntryCause::Reoffered => {
                    let mut offers = assignment.offers.iter();
                    !offers.any(|offer| members::is_same_work(offer, task))
                }
                _ => may_be_replaced(task, cause),
            }),
        };
    if is_movable {
        return Ok(());
    }
    let message = format!(
        "{state} offers work that nothing could move on: no decision and no signal is declared, no deadline fires or cancels"
    );
    Err(Fault::new(ENTER, message))
}

/// Creates the tasks of a checked assignment.
pub(super) fn begin(
    execution: &mut Execution<'_>,
    entry: PendingEntry,
    mut assignment: Assignment,
    findings: &Findings,
) -> Result<(), ExecutionError> {
    let PendingEntry {
        mut state_instance,
        cause,
    } = entry;
    let state = state_instance.id;
    let graph = &execution.context.version.graph;
    let from = deadline::counting_from(&execution.instance, execution.context.now);
    let events = &execution.events;
    deadline::prepare(events, from, &state_instance, &cause, &mut assignment);
    if let EntryCause::Overdue { task, .. } = cause {
        overdue::withdraw(execution, &state_instance, task, &assignment);
        create_tasks(execution, state, assignment.offers, findings)?;
        return Ok(());
    }
    let why = match cause {
        EntryCause::Migrated => Some(ReofferCause::Migrated),
        EntryCause::Reoffered => Some(ReofferCause::Reoffered),
        EntryCause::Entered | EntryCause::Overdue { .. } => None,
    };
    if let Some(why) = why {
        return reoffer::replace_offers(execution, &state_instance, why, assignment, findings);
    }
    let ids = &mut *execution.ids;
    state_instance.deadlines = deadline::open(ids, from, &assignment.deadlines, false, findings)?;
    state_instance.due_at = deadline::earliest(&state_instance.deadlines);
    state_instance.needed = assignment.needed_of(assignment.offers.len());
    state_instance.share = assignment.share;
    state_instance.blind = assignment.blind;
    state_instance.subscriptions = assignment.subscriptions;
    state_instance.exclude = if graph.separate.is_empty() {
        assignment.exclude
    } else {
        let (instance, name) = (&execution.instance, &state_instance.name);
        separate::all_excluded(graph, instance, name, assignment.exclude)
    };
    state_instance.fallback = assignment.fallback;
    state_instance.priority = assignment.priority;
    state_instance.priority_name = enter::priority_name(graph, assignment.priority);
    blind::emit_entered(execution, state_instance);
    create_tasks(execution, state, assignment.offers, findings)?;
    Ok(())
}

/// The offers of which tasks are created. If there is none, one task without candidates is created; the fallbacks apply to it. A
/// task is not given to a person who decided in the state instance or in a separate state.
pub(super) fn effective_offers(
    graph: &Graph,
    instance: &Instance,
    state_instance: &StateInstance,
    mut offers: Vec<Offer>,
) -> Vec<Offer> {
    let state_name = state_instance.name.as_str();
    if offers.is_empty() {
        let declared = graph.state(state_name);
        offers.push(Offer {
            label: declared.map_or(state_name, |state| &state.title).to_owned(),
            ..Offer::default()
        });
    }
    let deciders = state_instance.tasks.iter().flat_map(Task::deciders);
    let mut decided: BTreeSet<&str> = deciders.collect();
    if !graph.separate.is_empty() {
        decided.extend(separate::deciders_elsewhere(graph, instance, state_name));
    }
    for offer in &mut offers {
        let may_decide = |owner: &String| !decided.contains(owner.as_str());
        offer.owner = offer.owner.take().filter(may_decide);
    }
    if graph.is_own_work(state_name) {
        for offer in &mut offers {
            if offer.candidates.is_empty() && offer.owner.is_none() {
                let initiator = instance.initiator.clone();
                offer.candidates.push(Principal::User(initiator));
            }
        }
    }
    offers
}

/// Creates the tasks of an active state instance.
fn create_tasks(
    execution: &mut Execution<'_>,
    state: StateId,
    offers: Vec<Offer>,
    findings: &Findings,
) -> Result<(), Fault> {
    let graph = &execution.context.version.graph;
    let instance = &execution.instance;
    let state_instance = state_instance_of(instance, state);
    let state_name = state_instance.name.clone();
    let offers = effective_offers(graph, instance, state_instance, offers);
    let mut familiar = familiar::people_for(instance, &offers);
    // Whom an offer names as the owner gets no other task, also if that offer comes later.
    let is_named = |person: &String| {
        offers
            .iter()
            .any(|offer| offer.owner.as_ref() == Some(person))
    };
    familiar.retain(|person| !is_named(person));
    let mut pool = allocation::pool(graph, instance, state, &offers, findings);
    for offer in offers {
        let instance = &execution.instance;
        let retained = familiar::owner(graph, instance, state, &offer, &familiar, findings);
        let chosen = match &retained {
            Some(_) => None,
            None => pool.choose(&offer, findings),
        };
        let allocated = chosen.is_some();
        let owned = retained.or(chosen).map(|owner| {
            pool.leave(&owner);
            let ownership = Ownership {
                allocated,
                ..Ownership::default()
            };
            owned_now(execution.context.now, owner, ownership)
        });
        let (ids, now) = (&mut *execution.ids, execution.context.now);
        let task = new_task(ids, instance, now, offer, owned.as_ref(), findings)?;
        execution.emit(Event::TaskCreated {
            state,
            state_name: state_name.clone(),
            task,
        });
    }
    fallback::queue_check(state, Cause::Assigned, &mut execution.staffing_checks);
    Ok(())
}

/// The status of a task that this person owns from now on.
fn owned_now(now: Timestamp, owner: String, ownership: Ownership) -> TaskStatus {
    TaskStatus::Claimed {
        owner,
        claimed_at: now,
        ownership,
    }
}

/// The task of an offer. `given` is its status if it is allocated or replaces a task.
pub(super) fn new_task(
    ids: &mut Ids<'_>,
    instance: &Instance,
    now: Timestamp,
    offer: Offer,
    given: Option<&TaskStatus>,
    findings: &Findings,
) -> Result<Task, Fault> {
    let id = TaskId(ids());
    let status = match (given, offer.owner) {
        (Some(status), _) => status.clone(),
        (None, Some(owner)) => {
            let ownership = Ownership {
                assigned: true,
                ..Ownership::default()
            };
            owned_now(now, owner, ownership)
        }
        (None, None) => TaskStatus::Pending,
    };
    let is_owned = matches!(status, TaskStatus::Claimed { .. });
    let from = deadline::counting_from(instance, now);
    let deadlines = deadline::open(ids, from, &offer.deadlines, is_owned, findings)?;
    let candidates = offer.candidates.into_iter();
    let candidates = candidates.filter_map(|candidate| candidate.resolved(findings));
    let (label, candidates) = (offer.label, candidates.collect());
    Ok(Task {
        id,
        label,
        candidates,
        created_at: now,
        due_at: deadline::earliest(&deadlines),
        deadlines,
        suspended: None,
        status,
    })
}

fn check_assignment(
    state_instance: &StateInstance,
    cause: &EntryCause,
    assignment: &Assignment,
) -> Result<(), Fault> {
    let state = &state_instance.name;
    let refuse = |message: String| Err(Fault::new(ENTER, message));
    if assignment.offers.len() > OFFERS_MAX {
        return refuse(format!(
            "{state} may have {OFFERS_MAX} offers at most, not {}",
            assignment.offers.len()
        ));
    }
    let kept = count_kept(state_instance, cause);
    let tasks_max = if members::is_for_each_member(assignment) {
        OFFERS_MAX
    } else {
        (assignment.offers.len() + kept).max(1)
    };
    if assignment.needed as usize > tasks_max {
        return refuse(format!(
            "{state} needs {} and offers {} besides {}",
            counted(assignment.needed, "decision"),
            counted(assignment.offers.len(), "task"),
            counted(kept, "existing one")
        ));
    }
    if let Some(share) = assignment.share.filter(|share| !share.is_possible()) {
        return refuse(format!(
            "{state} needs {} {}/{} of its tasks, which no decisions can be",
            if share.exceeded {
                "more than"
            } else {
                "at least"
            },
            share.numerator,
            share.denominator
        ));
    }
    if assignment.exclude.len() > EXCLUDED_MAX {
        return refuse(format!("{state} excludes more than {EXCLUDED_MAX} people"));
    }
    for id in assignment.exclude.iter().chain(&assignment.fallback) {
        fault::principal(ENTER, "an excluded person or fallback group", id)?;
    }
    Ok(())
}

fn check_offer(
    graph: &Graph,
    instance: &Instance,
    state: &str,
    offer: &Offer,
    exclude: &[String],
) -> Result<(), Fault> {
    let own_work = graph.is_own_work(state);
    let refuse = |message: String| Err(Fault::new(ENTER, message));
    fault::text(ENTER, "a label", &offer.label, fault::NAME_BYTES_MAX)?;
    if offer.candidates.len() > CANDIDATES_MAX {
        return refuse(format!(
            "an offer in {state} names {CANDIDATES_MAX} candidates at most"
        ));
    }
    for candidate in &offer.candidates {
        for id in std::iter::once(candidate.id()).chain(candidate.member_of()) {
            fault::principal(ENTER, "a candidate", id)?;
        }
    }
    if let Some(group) = &offer.each_member {
        fault::principal(ENTER, "a group", group)?;
        if own_work || offer.owner.is_some() || !offer.candidates.is_empty() {
            return refuse(format!(
                "{state} has a task for each member of {group}, which has no other candidates, no owner, and is not the \
                 initiator's own work"
            ));
        }
    }
    if let Some(owner) = &offer.owner {
        fault::principal(ENTER, "an owner", owner)?;
        if exclude.contains(owner) || (!own_work && instance.requesters.contains(owner)) {
            return refuse(format!(
                "{state} is given to {}, who must not decide there",
                owner.escape_debug()
            ));
        }
    }
    let initiator = &instance.initiator;
    let is_for_initiator = offer.owner.iter().all(|owner| owner == initiator)
        && offer
            .candidates
            .iter()
            .all(|candidate| matches!(candidate, Principal::User(id) if id == initiator));
    if own_work && !is_for_initiator {
        return refuse(format!(
            "{state} is the initiator's own work and is offered to somebody else"
        ));
    }
    Ok(())
}

/// How many tasks of the state instance a new assignment leaves unchanged.
pub(super) fn count_kept(state_instance: &StateInstance, cause: &EntryCause) -> usize {
    let is_cancelled = |task: &Task| matches!(task.status, TaskStatus::Cancelled { .. });
    let tasks = state_instance.tasks.iter();
    tasks
        .filter(|task| !may_be_replaced(task, cause) && !is_cancelled(task))
        .count()
}

/// Whether a new assignment replaces the task, or may do so.
pub(super) fn may_be_replaced(task: &Task, cause: &EntryCause) -> bool {
    match cause {
        EntryCause::Entered => true,
        EntryCause::Overdue { task: overdue, .. } => {
            overdue.is_none_or(|overdue| overdue == task.id) && task.status.is_open()
        }
        EntryCause::Migrated | EntryCause::Reoffered => task.status.is_open(),
    }
}

/// The calendars and people that the assignment names, as a question to the directory.
pub(super) fn lookup(assignment: &Assignment) -> Lookup {
    let calendars = deadline::of(assignment).flat_map(deadline::calendars);
    let mut lookup = Lookup {
        calendars: calendars.cloned().collect(),
        ..Lookup::default()
    };
    for candidate in assignment.offers.iter().flat_map(|offer| &offer.candidates) {
        candidate.ask(&mut lookup);
    }
    lookup
}
