//! Reassessment: after a change of groups, managers or absences, owners lose tasks for which they are no longer eligible. The
//! staffing check in `fallback` follows.

use super::Execution;
use super::eligibility::Place;
use super::staffing::OpenState;
use crate::event::Event;
use crate::event::reasons::LOST_ELIGIBILITY;
use crate::ids::StateId;
use crate::instance::{Ownership, Task, TaskStatus};
use crate::lookup::{Findings, Lookup};

/// Adds the owners of claimed tasks to the question to the directory.
pub(super) fn ask_for_owners(open_state: OpenState<'_>, lookup: &mut Lookup) {
    for (owner, ownership) in open_state.open().filter_map(claimed) {
        lookup.memberships_of.insert(owner.to_owned());
        if ownership.on_behalf_of.is_some() {
            lookup.stand_ins_of.insert(owner.to_owned());
        }
    }
}

impl Execution<'_> {
    /// Releases tasks whose owners claimed them and are no longer candidates or substitutes of candidates.
    pub(super) fn release_lost(&mut self, state: StateId, findings: &Findings) {
        let Some(open_state) = self.open_state(state) else {
            return;
        };
        let place = Place {
            context: self.context,
            instance: &self.instance,
            state_instance: open_state.state_instance,
        };
        let lost: Vec<_> = open_state
            .open()
            .filter_map(|task| claimed(task).map(|(owner, ownership)| (task, owner, ownership)))
            .filter(|(task, owner, ownership)| !keeps(place, task, owner, ownership, findings))
            .map(|(task, owner, _)| (task.id, owner.to_owned()))
            .collect();
        for (task, owner) in lost {
            self.emit(Event::released(task, state, owner, Some(LOST_ELIGIBILITY)));
        }
    }
}

fn keeps(
    place: Place<'_>,
    task: &Task,
    owner: &str,
    ownership: &Ownership,
    findings: &Findings,
) -> bool {
    let groups = findings.groups.get(owner).map_or(&[][..], Vec::as_slice);
    let own = is_offered(task, owner, groups);
    let Some(absent) = &ownership.on_behalf_of else {
        return own;
    };
    let key = &place.instance.definition.key;
    let stands_in = findings.stand_ins.get(owner).into_iter().flatten();
    own || stands_in
        .filter(|stand_in| stand_in.person == *absent)
        .filter(|stand_in| stand_in.definition.iter().all(|of| of == key))
        .filter(|stand_in| place.is_open_to(stand_in))
        .any(|stand_in| is_offered(task, absent, &stand_in.groups))
}

/// The owner, if they claimed the task. None for an owner by assignment or delegation, who need not be a candidate.
fn claimed(task: &Task) -> Option<(&str, &Ownership)> {
    match &task.status {
        TaskStatus::Claimed {
            owner, ownership, ..
        } if !ownership.assigned && ownership.delegations.is_empty() => Some((owner, ownership)),
        TaskStatus::Claimed { .. }
        | TaskStatus::Pending
        | TaskStatus::Completed { .. }
        | TaskStatus::Cancelled { .. } => None,
    }
}

fn is_offered(task: &Task, person: &str, groups: &[String]) -> bool {
    let mut candidates = task.candidates.iter();
    candidates.any(|candidate| candidate.includes(person, groups))
}
