//! Tasks, their candidates and their decisions as rows.

use super::{Rows, Tasks, filled};
use crate::domain::answer::Principal;
use crate::domain::instance::{StateInstance, Task, TaskStatus};
use crate::domain::json::Json;
use crate::store::commit::Change;
use crate::store::time::Time;

impl Rows {
    pub(super) fn tasks(&mut self, change: &Change, known: &[Task], state: &StateInstance) {
        let member = self.number();
        for (ordinal, task) in (0_i32..).zip(&state.tasks) {
            let old = known.iter().find(|old| old.id == task.id);
            match old {
                None => {
                    self.created.push(member, ordinal, state, task);
                    if task.status.is_open() {
                        self.offer(member, task, &[]);
                    }
                }
                Some(old) if old != task => self.alter(member, ordinal, state, old, task),
                Some(_) => continue,
            }
            if task.decision().is_some() && old.is_none_or(|old| old.decision().is_none()) {
                self.decide(change, task);
            }
        }
    }

    /// The candidates that are new.
    fn offer(&mut self, member: i32, task: &Task, known: &[Principal]) {
        for (kind, principal) in listed(&task.candidates, known) {
            self.offered.member.push(member);
            self.offered.task.push(task.id.0);
            self.offered.kind.push(kind.to_owned());
            self.offered.principal.push(principal);
        }
    }

    /// The candidates that are none any more.
    fn retract(&mut self, member: i32, old: &Task, task: &Task) {
        for (kind, principal) in listed(&old.candidates, &task.candidates) {
            self.withdraw(member, task, Some((kind, principal)));
        }
    }

    /// One candidate, or all.
    fn withdraw(&mut self, member: i32, task: &Task, candidate: Option<(&str, String)>) {
        let (kind, principal) = candidate.unzip();
        self.withdrawn.member.push(member);
        self.withdrawn.task.push(task.id.0);
        self.withdrawn.kind.push(kind.map(str::to_owned));
        self.withdrawn.principal.push(principal);
    }

    fn alter(&mut self, member: i32, ordinal: i32, state: &StateInstance, old: &Task, task: &Task) {
        self.changed.push(member, ordinal, state, task);
        if task.status.is_open() {
            self.offer(member, task, &old.candidates);
            self.retract(member, old, task);
        } else if old.status.is_open() {
            self.withdraw(member, task, None);
        }
    }

    fn decide(&mut self, change: &Change, task: &Task) {
        let decision = task.decision().expect("asked for a decided task only");
        let seal = change
            .seals
            .iter()
            .find(|seal| seal.task == task.id)
            .expect("every decision is sealed");
        let member = self.number();
        let rows = &mut self.decided;
        rows.member.push(member);
        rows.task.push(task.id.0);
        rows.outcome.push(decision.outcome.clone());
        rows.actor.push(decision.actor.clone());
        rows.on_behalf_of.push(decision.on_behalf_of.clone());
        rows.comment.push(decision.comment.clone());
        rows.input.push(decision.input.to_string());
        rows.decided_at.push(Time(decision.decided_at));
        rows.key_id.push(seal.key_id.clone());
        rows.mac_version.push(seal.version);
        rows.mac.push(seal.mac.to_vec());
    }
}

impl Tasks {
    fn push(&mut self, member: i32, ordinal: i32, state: &StateInstance, task: &Task) {
        let (claimed_at, ended_at) = times(&task.status);
        self.member.push(member);
        self.id.push(task.id.0);
        self.state.push(state.id.0);
        self.ordinal.push(ordinal);
        self.label.push(task.label.clone());
        self.status.push(task.status.name().to_owned());
        self.owner.push(task.owner().map(str::to_owned));
        self.candidates.push(Json::of(&task.candidates).to_string());
        self.form.push(task.form.as_ref().map(Json::to_string));
        self.created_at.push(Time(task.created_at));
        self.claimed_at.push(claimed_at);
        self.ended_at.push(ended_at);
        self.due_at.push(task.due_at.map(Time));
        self.deadlines.push(filled(&task.deadlines));
        let (mut holding, mut reason) = (None, None);
        match &task.status {
            TaskStatus::Claimed { holding: held, .. } if !held.is_plain() => {
                holding = Some(Json::of(held).to_string());
            }
            TaskStatus::Cancelled { reason: why, .. } => reason.clone_from(why),
            _ => {}
        }
        self.holding.push(holding);
        self.cancel_reason.push(reason);
    }
}

/// Those of the candidates who are not among the others, each once, as rows name them.
fn listed(candidates: &[Principal], others: &[Principal]) -> Vec<(&'static str, String)> {
    let mut candidates = candidates.to_vec();
    candidates.sort_unstable();
    candidates.dedup();
    candidates.retain(|candidate| !others.contains(candidate));
    let rows = candidates
        .into_iter()
        .filter_map(|candidate| match candidate {
            Principal::User(id) => Some(("user", id)),
            Principal::Group(id) => Some(("group", id)),
            Principal::ManagerOf(_) => None,
        });
    rows.collect()
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
