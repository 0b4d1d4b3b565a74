//! Staffing checks and fallbacks. When too few people are eligible for the open tasks of a state instance, the initiator's
//! manager becomes a candidate, then the fallback group. If that is not enough, the state instance is marked unassignable. This
//! is never an error.
//!
//! A state instance is checked when its tasks are created, when a task changes its owner, when a decision leaves the state
//! instance open, and after a change of the directory. Every check ends before the execution ends. So every state instance that
//! nobody can complete is marked.

use std::collections::VecDeque;

use super::assign::LookupPurpose;
use super::members::ask_for_memberships;
use super::reassessment::ask_for_owners;
use super::staffing::Staffing;
use super::{Execution, Phase, members, reassessment};
use crate::event::Event;
use crate::event::reasons::{FALLBACK, MANAGER, NOBODY_ELIGIBLE, TOO_FEW_ELIGIBLE};
use crate::ids::{StateId, TaskId};
use crate::instance::{Candidate, Instance};
use crate::lookup::{Findings, Lookup};

/// A state instance whose staffing is to be checked.
#[derive(Clone, Copy)]
pub(super) struct StaffingCheck {
    pub(super) state: StateId,
    pub(super) cause: Cause,
}

/// The cause of the check. The questions to the directory of each cause include those of the causes before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// A task has another owner or none, or the state instance stays active after a decision.
    Changed,
    /// Tasks were created.
    Assigned,
    /// The directory has changed.
    Reassessed,
    /// The offers were replaced by a migration or a reoffer, and people may have kept tasks.
    Replaced,
}

/// Who becomes a candidate when too few people are eligible.
#[derive(Clone, Copy)]
enum Fallback {
    Manager,
    Fallback,
}

impl Fallback {
    fn name(self) -> &'static str {
        match self {
            Fallback::Manager => MANAGER,
            Fallback::Fallback => FALLBACK,
        }
    }
}

/// Queues a staffing check of a state instance. Two checks of one become one, for the cause that asks more.
pub(super) fn queue_check(state: StateId, cause: Cause, checks: &mut VecDeque<StaffingCheck>) {
    match checks.iter_mut().find(|queued| queued.state == state) {
        Some(queued) => queued.cause = queued.cause.max(cause),
        None => checks.push_back(StaffingCheck { state, cause }),
    }
}

/// Queues a staffing check of the state instance that the event may have left without eligible people.
pub(super) fn queue_check_after(
    instance: &Instance,
    event: &Event,
    checks: &mut VecDeque<StaffingCheck>,
) {
    match event {
        // The new owner may have been the only person left for another task.
        Event::TaskReleased { state, .. }
        | Event::TaskReset { state, .. }
        | Event::TaskReassigned { state, .. }
        | Event::TaskDelegated { state, .. }
        | Event::TaskResolved { state, .. }
        | Event::StateReassigned { state, .. }
        | Event::StateContinued { state, .. } => queue_check(*state, Cause::Changed, checks),
        Event::TaskClaimed { state, .. } if is_unassignable(instance, *state) => {
            queue_check(*state, Cause::Changed, checks);
        }
        // There were no checks while the instance was suspended.
        Event::FlowResumed {} => queue_all_checks(instance, checks),
        _ => {}
    }
}

/// Queues staffing checks of all active state instances.
pub(super) fn queue_all_checks(instance: &Instance, checks: &mut VecDeque<StaffingCheck>) {
    for state_instance in &instance.active {
        queue_check(state_instance.id, Cause::Reassessed, checks);
    }
}

/// Runs a check. It ends at once if it needs nothing from the directory.
pub(super) fn review(execution: &mut Execution<'_>, staffing_check: StaffingCheck) {
    let Some(open_state) = execution.open_state(staffing_check.state) else {
        return;
    };
    let mut lookup = open_state.lookup();
    if staffing_check.cause >= Cause::Reassessed {
        ask_for_owners(open_state, &mut lookup);
        ask_for_memberships(open_state, &mut lookup);
    } else {
        let staffing = Staffing::of(open_state, &Findings::default());
        let is_settled = staffing_check.cause == Cause::Changed || staffing.nobody.is_empty();
        if staffing.suffices() && is_settled {
            lookup = Lookup::default();
        }
    }
    if lookup.is_empty() {
        candidates_found(execution, staffing_check, Findings::default());
    } else {
        execution.phase = Phase::Lookup(lookup, LookupPurpose::Staffing(staffing_check));
    }
}

/// Takes the directory's answer about the candidates. If too few people are eligible, asks for the fallbacks.
pub(super) fn candidates_found(
    execution: &mut Execution<'_>,
    staffing_check: StaffingCheck,
    findings: Findings,
) {
    if staffing_check.cause >= Cause::Reassessed {
        reassessment::release_lost(execution, staffing_check.state, &findings);
        members::take_from_former(execution, staffing_check.state, &findings);
    }
    let Some(open_state) = execution.open_state(staffing_check.state) else {
        return;
    };
    if open_state.own_work || Staffing::of(open_state, &findings).suffices() {
        return conclude(execution, staffing_check, &findings);
    }
    let lookup = Lookup {
        managers_of: [execution.instance.initiator.clone()].into(),
        groups: open_state.state_instance.fallback.iter().cloned().collect(),
        members_max: open_state.members_max(),
        ..Lookup::default()
    };
    execution.phase = Phase::Lookup(lookup, LookupPurpose::Fallback(staffing_check, findings));
}

/// Uses the fallbacks, one after the other, until the staffing is sufficient.
pub(super) fn use_fallbacks(
    execution: &mut Execution<'_>,
    staffing_check: StaffingCheck,
    mut known: Findings,
    findings: &Findings,
) {
    for (group, members) in &findings.members {
        known.members.insert(group.clone(), members.clone());
    }
    for fallback in [Fallback::Manager, Fallback::Fallback] {
        let Some(open_state) = execution.open_state(staffing_check.state) else {
            return;
        };
        let staffing = Staffing::of(open_state, &known);
        if staffing.suffices() {
            break;
        }
        let candidate = match fallback {
            Fallback::Manager => {
                let manager = findings.managers.get(&open_state.instance.initiator);
                let manager =
                    manager.filter(|id| !open_state.excluded_people().contains(id.as_str()));
                manager.cloned().map(Candidate::User)
            }
            Fallback::Fallback => open_state
                .state_instance
                .fallback
                .clone()
                .map(Candidate::Group),
        };
        if let Some(candidate) = candidate {
            reroute(
                execution,
                staffing_check.state,
                fallback,
                &staffing.unstaffed,
                &candidate,
            );
        }
    }
    conclude(execution, staffing_check, &known);
}

/// Makes somebody a candidate of these tasks, unless they are one.
fn reroute(
    execution: &mut Execution<'_>,
    state: StateId,
    fallback: Fallback,
    tasks: &[TaskId],
    to: &Candidate,
) {
    for task in tasks {
        let known = execution.instance.task(*task).expect("an open task");
        if known.candidates.contains(to) {
            continue;
        }
        let previous = known.candidates.clone();
        let mut candidates = previous.clone();
        candidates.push(to.clone());
        // This event records the escalation. The event of the changed candidates follows.
        execution.emit(Event::TaskEscalated {
            state,
            task: Some(*task),
            reason: TOO_FEW_ELIGIBLE.to_owned(),
            from: previous.clone(),
            to: candidates.clone(),
            due_at: None,
            count: None,
        });
        execution.emit(Event::TaskRerouted {
            task: *task,
            state,
            step: fallback.name().to_owned(),
            candidates,
            previous,
        });
    }
}

/// Emits the result of the check, if it has changed.
fn conclude(execution: &mut Execution<'_>, staffing_check: StaffingCheck, findings: &Findings) {
    let state = staffing_check.state;
    let Some(open_state) = execution.open_state(state) else {
        return;
    };
    let staffing = Staffing::of(open_state, findings);
    let name = open_state.state_instance.name.clone();
    let was_marked = is_unassignable(&execution.instance, state);
    match (staffing.suffices(), was_marked) {
        (true, true) => execution.emit(Event::StateAssignable { state, name }),
        (false, false) => execution.emit(Event::StateUnassignable { state, name }),
        _ => {}
    }
    let is_new = matches!(staffing_check.cause, Cause::Assigned | Cause::Replaced);
    if staffing.suffices() && is_new {
        // A quorum must not wait for these tasks.
        for task in staffing.nobody {
            execution.emit(Event::TaskCancelled {
                task,
                state,
                reason: Some(NOBODY_ELIGIBLE.to_owned()),
            });
        }
    }
    execution
        .staffing_checks
        .retain(|other| other.state != state);
}

fn is_unassignable(instance: &Instance, state: StateId) -> bool {
    let state_instance = instance
        .active
        .iter()
        .find(|state_instance| state_instance.id == state);
    state_instance.is_some_and(|state_instance| state_instance.unassignable_since.is_some())
}
