//! Tasks, their candidates and their decisions as rows.

use super::{CandidateRow, Decided, Of, Rows, TaskRow};
use crate::commit::Change;
use wrkflw_core::instance::{Candidate, StateInstance, Task};

impl<'a> Rows<'a> {
    pub(super) fn tasks(
        &mut self,
        of: Of,
        change: &'a Change,
        known: &'a [Task],
        state: &'a StateInstance,
    ) {
        for (ordinal, task) in (0_i32..).zip(&state.tasks) {
            let old = known.iter().find(|old| old.id == task.id);
            match old {
                None => {
                    self.created
                        .push(TaskRow::of((of, ordinal), change, state, task));
                    if task.status.is_open() {
                        let offered = listed(&task.candidates, &[]);
                        self.offered.extend(
                            offered.map(|candidate| CandidateRow::of(of, task, Some(candidate))),
                        );
                    }
                }
                Some(old) if old != task || change.is_resighted() => {
                    self.alter((of, ordinal), change, state, (old, task));
                }
                Some(_) => continue,
            }
            if task.decision().is_some() && old.is_none_or(|old| old.decision().is_none()) {
                self.decided.push(Decided::of(of, change, task));
            }
        }
    }

    fn alter(
        &mut self,
        (of, ordinal): (Of, i32),
        change: &Change,
        state: &'a StateInstance,
        (old, task): (&'a Task, &'a Task),
    ) {
        self.changed
            .push(TaskRow::of((of, ordinal), change, state, task));
        if task.status.is_open() {
            let new = listed(&task.candidates, &old.candidates);
            self.reoffered
                .extend(new.map(|candidate| CandidateRow::of(of, task, Some(candidate))));
            let gone = listed(&old.candidates, &task.candidates);
            self.withdrawn
                .extend(gone.map(|candidate| CandidateRow::of(of, task, Some(candidate))));
        } else if old.status.is_open() {
            // A row without a candidate withdraws all of them.
            self.withdrawn.push(CandidateRow::of(of, task, None));
        }
    }
}

impl<'a> CandidateRow<'a> {
    fn of(of: Of, task: &Task, candidate: Option<(&'static str, &'a str)>) -> CandidateRow<'a> {
        let (kind, principal) = candidate.unzip();
        CandidateRow {
            member: of.member,
            tenant_id: of.tenant,
            task_id: task.id.0,
            kind,
            principal,
        }
    }
}

impl<'a> Decided<'a> {
    fn of(of: Of, change: &'a Change, task: &'a Task) -> Decided<'a> {
        let decision = task.decision().expect("asked for a decided task only");
        let mut seals = change.seals.iter();
        let seal = seals.find(|seal| seal.task == task.id);
        let seal = seal.expect("every decision is sealed");
        Decided {
            member: of.member,
            tenant_id: of.tenant,
            instance_id: of.instance,
            task_id: task.id.0,
            key_id: &seal.key_id,
            mac_version: seal.version,
            mac: &seal.mac,
            record: decision.columns(),
        }
    }
}

impl<'a> TaskRow<'a> {
    fn of(
        (of, ordinal): (Of, i32),
        change: &Change,
        state: &StateInstance,
        task: &'a Task,
    ) -> TaskRow<'a> {
        let mut record = task.columns();
        record.extend(task.status.columns());
        TaskRow {
            member: of.member,
            tenant_id: of.tenant,
            instance_id: of.instance,
            state_id: state.id.0,
            ordinal,
            restricted: change.after.observers.is_some(),
            record,
        }
    }
}

/// The kinds and ids of the candidates that are not in `others`, without duplicates.
fn listed<'a>(
    candidates: &'a [Candidate],
    others: &'a [Candidate],
) -> impl Iterator<Item = (&'static str, &'a str)> {
    fn row(candidate: &Candidate) -> (&'static str, &str) {
        (candidate.principal(), candidate.id())
    }
    let others: Vec<_> = others.iter().map(row).collect();
    let rows = candidates.iter().map(row);
    let mut listed: Vec<_> = rows.filter(|row| !others.contains(row)).collect();
    listed.sort_unstable();
    listed.dedup();
    listed.into_iter()
}
