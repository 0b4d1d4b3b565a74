//! A change of groups, managers or absences reaches the work that is open: whoever owns a task and may no longer have
//! it gives it back; who is left to do it is then for `ladder`.

use super::Turn;
use super::able::Circle;
use crate::domain::event::Event;
use crate::domain::ids::StateId;
use crate::domain::instance::{Holding, Task, TaskStatus};
use crate::domain::lookup::{Findings, Lookup};

/// Why a task went back to its candidates.
pub const LOST_STANDING: &str = "lost_standing";

/// Adds what there is to know of those who claimed a task of the stay.
pub(super) fn ask_for_owners(circle: Circle<'_>, lookup: &mut Lookup) {
    for (owner, holding) in circle.open().filter_map(claimed) {
        lookup.memberships_of.insert(owner.to_owned());
        if holding.on_behalf_of.is_some() {
            lookup.stand_ins_of.insert(owner.to_owned());
        }
    }
}

impl Turn<'_> {
    /// Takes tasks back from those who are no longer among their candidates, nor stand in for one.
    pub(super) fn release_lost(&mut self, state: StateId, findings: &Findings) {
        let Some(circle) = self.circle(state) else {
            return;
        };
        let lost: Vec<_> = circle
            .open()
            .filter_map(|task| claimed(task).map(|(owner, holding)| (task, owner, holding)))
            .filter(|(task, owner, holding)| !self.keeps(task, owner, holding, findings))
            .map(|(task, owner, _)| (task.id, owner.to_owned()))
            .collect();
        for (task, owner) in lost {
            self.emit(Event::TaskReleased {
                task,
                state,
                owner,
                reason: Some(LOST_STANDING.to_owned()),
            });
        }
    }

    fn keeps(&self, task: &Task, owner: &str, holding: &Holding, findings: &Findings) -> bool {
        let groups = findings.groups.get(owner).map_or(&[][..], Vec::as_slice);
        let own = is_offered(task, owner, groups);
        let Some(absent) = &holding.on_behalf_of else {
            return own;
        };
        let key = &self.instance.definition.key;
        let stands_in = findings.stand_ins.get(owner).into_iter().flatten();
        own || stands_in
            .filter(|stand_in| stand_in.person == *absent)
            .filter(|stand_in| stand_in.definition.iter().all(|of| of == key))
            .any(|stand_in| is_offered(task, absent, &stand_in.groups))
    }
}

/// Who claimed the task, and keeps it only as long as it is offered to them. Work that was assigned or handed on was
/// offered to somebody else.
fn claimed(task: &Task) -> Option<(&str, &Holding)> {
    match &task.status {
        TaskStatus::Claimed { owner, holding, .. }
            if !holding.assigned && holding.delegations.is_empty() =>
        {
            Some((owner, holding))
        }
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
