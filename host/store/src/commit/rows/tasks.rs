//! Tasks, their candidates and their decisions as rows.

use super::{CandidateRow, Decided, Of, Rows, TaskRow, filled};
use crate::commit::Change;
use crate::time::Time;
use wrkflw_core::instance::{Candidate, StateInstance, Task, TaskStatus};
use wrkflw_core::json::Json;

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
                    self.created.push(TaskRow::of(of, ordinal, state, task));
                    if task.status.is_open() {
                        self.offer(of, task, &[]);
                    }
                }
                Some(old) if old != task => self.alter(of, ordinal, state, old, task),
                Some(_) => continue,
            }
            if task.decision().is_some() && old.is_none_or(|old| old.decision().is_none()) {
                self.decided.push(Decided::of(of, change, task));
            }
        }
    }

    fn alter(
        &mut self,
        of: Of,
        ordinal: i32,
        state: &'a StateInstance,
        old: &'a Task,
        task: &'a Task,
    ) {
        self.changed.push(TaskRow::of(of, ordinal, state, task));
        if task.status.is_open() {
            self.offer(of, task, &old.candidates);
            let gone = listed(&old.candidates, &task.candidates);
            self.withdrawn
                .extend(gone.map(|candidate| CandidateRow::of(of, task, Some(candidate))));
        } else if old.status.is_open() {
            // A row without a candidate withdraws all of them.
            self.withdrawn.push(CandidateRow::of(of, task, None));
        }
    }

    /// Adds the rows of the new candidates.
    fn offer(&mut self, of: Of, task: &'a Task, known: &'a [Candidate]) {
        let new = listed(&task.candidates, known);
        self.offered
            .extend(new.map(|candidate| CandidateRow::of(of, task, Some(candidate))));
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
            outcome: &decision.outcome,
            actor: &decision.actor,
            on_behalf_of: decision.on_behalf_of.as_deref(),
            comment: decision.comment.as_deref(),
            input: decision.input.as_str(),
            decided_at: Time(decision.decided_at),
            key_id: &seal.key_id,
            mac_version: seal.version,
            mac: &seal.mac,
        }
    }
}

impl<'a> TaskRow<'a> {
    fn of(of: Of, ordinal: i32, state: &StateInstance, task: &'a Task) -> TaskRow<'a> {
        let (claimed_at, ended_at) = times(&task.status);
        let (mut ownership, mut cancel_reason) = (None, None);
        match &task.status {
            TaskStatus::Claimed {
                ownership: held, ..
            } if !held.is_plain() => ownership = Some(Json::of(held).to_string()),
            TaskStatus::Cancelled { reason, .. } => cancel_reason = reason.as_deref(),
            _ => {}
        }
        TaskRow {
            member: of.member,
            tenant_id: of.tenant,
            instance_id: of.instance,
            state_id: state.id.0,
            id: task.id.0,
            ordinal,
            label: &task.label,
            status: task.status.name(),
            owner: task.owner(),
            candidates: Json::of(&task.candidates).to_string(),
            form: task.form.as_ref().map(Json::as_str),
            created_at: Time(task.created_at),
            claimed_at,
            ended_at,
            due_at: task.due_at.map(Time),
            deadlines: filled(&task.deadlines),
            ownership,
            cancel_reason,
        }
    }
}

/// The kinds and ids of the candidates that are not in `others`, without duplicates.
fn listed<'a>(
    candidates: &'a [Candidate],
    others: &'a [Candidate],
) -> impl Iterator<Item = (&'static str, &'a str)> {
    let mut listed: Vec<_> = candidates
        .iter()
        .filter(|candidate| !others.contains(candidate))
        .map(|candidate| match candidate {
            Candidate::User(id) => ("user", id.as_str()),
            Candidate::Group(id) => ("group", id.as_str()),
        })
        .collect();
    listed.sort_unstable();
    listed.dedup();
    listed.into_iter()
}

/// When the task was claimed, and when it ended.
fn times(status: &TaskStatus) -> (Option<Time>, Option<Time>) {
    match status {
        TaskStatus::Pending => (None, None),
        TaskStatus::Claimed { claimed_at, .. } => (Some(Time(*claimed_at)), None),
        TaskStatus::Completed {
            claimed_at,
            decision,
            ..
        } => (Some(Time(*claimed_at)), Some(Time(decision.decided_at))),
        TaskStatus::Cancelled { cancelled_at, .. } => (None, Some(Time(*cancelled_at))),
    }
}
