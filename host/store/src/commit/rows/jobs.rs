//! The jobs of a change as rows: deadlines, starts and cancellations of children, ends for parents, service calls, reassessments.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use sqlx::types::Uuid;

use super::{FinishedJob, Job, Of, Rows};
use crate::commit::Change;
use crate::time::Time;
use wrkflw_core::ids::{DeadlineId, InstanceId, StateId};
use wrkflw_core::instance::{CHILD_CANCELLED, ChildInstance, Instance, StateInstance, Status};
use wrkflw_core::json::Json;

/// Combined with an instance's id by XOR to make the ids of its jobs. The job that starts a child has the child's own id,
/// and the job of a service call that of its state instance.
const CANCELS_CHILD: u128 = 1;
const TELLS_PARENT: u128 = 2;
const REASSESSES: u128 = 3;
/// Combined with the id of a state instance, because a service state also has the job of its call under that id.
const MATCHES_SIGNALS: u128 = 4;

/// The type of the entry of a task that was given back to its delegator.
const RESOLVED: &str = "TASK_RESOLVED";

/// The id of the job that cancels this child.
pub fn cancelling(child: InstanceId) -> Uuid {
    Uuid::from_u128(child.0.as_u128() ^ CANCELS_CHILD)
}

/// The id of the job that reports the end of this instance to its parent.
pub fn telling(child: InstanceId) -> Uuid {
    Uuid::from_u128(child.0.as_u128() ^ TELLS_PARENT)
}

/// The id of the job that reassesses this instance: on the resumption of its version, after a failure or a delegation, or for
/// buffered signals.
pub fn reassessing(instance: InstanceId) -> Uuid {
    Uuid::from_u128(instance.0.as_u128() ^ REASSESSES)
}

/// The id of the job that matches the signals that were sent before this state instance was entered.
pub fn matching(state: StateId) -> Uuid {
    Uuid::from_u128(state.0.as_u128() ^ MATCHES_SIGNALS)
}

/// Adds the jobs of a change. True if a child instance ended, so that its place below its root is free.
pub(super) fn add(rows: &mut Rows<'_>, of: Of, change: &Change) -> bool {
    let before = change.before.as_ref().map(|stored| &stored.instance);
    let after = &change.after;
    let (old, new) = (before.map(deadlines).unwrap_or_default(), deadlines(after));
    for id in old.keys().filter(|id| !new.contains_key(id)) {
        finish(rows, of, id.0);
    }
    for (id, due_at) in new
        .iter()
        .filter(|(id, due_at)| old.get(id) != Some(due_at))
    {
        let payload = json!({ "dueAt": due_at });
        job(rows, of, id.0, "deadline", after.id, *due_at, &payload);
    }
    children(rows, of, change, before);
    calls(rows, of, change, before);
    reassess(rows, of, change);
    let vacates = end(rows, of, change, before);
    for done in &change.done {
        // A repeating deadline keeps its job, which is due again.
        if !rows.jobs.iter().any(|job| job.id == *done) {
            finish(rows, of, *done);
        }
    }
    vacates
}

fn children(rows: &mut Rows<'_>, of: Of, change: &Change, before: Option<&Instance>) {
    let (old, new) = (
        before.map(running).unwrap_or_default(),
        running(&change.after),
    );
    let now = change.now;
    let begun = new
        .values()
        .filter(|(_, child)| !old.contains_key(&child.id))
        .copied();
    for (state, child) in begun.chain(change.children_of_passed_states()) {
        let payload = json!({ "state": state, "child": child });
        job(
            rows,
            of,
            child.id.0,
            "start_child",
            change.after.id,
            now,
            &payload,
        );
    }
    // Children whose state instance was left before they ended. Detached children go on, or still start.
    let left = old.iter().filter(|(id, _)| !new.contains_key(id));
    for (id, _) in left.filter(|(_, (_, child))| !child.detached) {
        let mut state_instances = change.after.state_instances();
        let ended = state_instances.any(|state_instance| {
            let mut children = state_instance.children.iter();
            children.any(|child| child.id == *id && child.outcome.is_some())
        });
        if !ended {
            let payload = json!({ "parent": change.after.id });
            job(
                rows,
                of,
                cancelling(*id),
                "cancel_child",
                *id,
                now,
                &payload,
            );
            finish_idle(rows, of, id.0, cancelling(*id));
            finish(rows, of, telling(*id));
        }
    }
}

/// Adds the jobs of new service calls, and removes the jobs of calls that have a result or whose state was left. A call of a
/// suspended instance keeps its job, which waits. If a job keeps a report, the command that records the report removes the job.
fn calls(rows: &mut Rows<'_>, of: Of, change: &Change, before: Option<&Instance>) {
    let open = |instance: &Instance| -> BTreeMap<StateId, String> {
        let active = instance.active.iter();
        let open = active.filter_map(|one| Some((one.id, one.open_call()?.service.clone())));
        open.collect()
    };
    let old = before.map(open).unwrap_or_default();
    let new = open(&change.after);
    // An ended instance records no reply.
    let keeps_report = change.after.status.ended_at().is_none();
    for id in old.keys().filter(|id| !new.contains_key(id)) {
        rows.finished.push(FinishedJob {
            keeps_report,
            ..finished(of, id.0)
        });
    }
    let now = change.now;
    for (id, service) in new.iter().filter(|(id, _)| !old.contains_key(id)) {
        let payload = json!({});
        job(
            rows,
            of,
            id.0,
            "call_service",
            change.after.id,
            now,
            &payload,
        );
        if let Some(job) = rows.jobs.last_mut() {
            job.service = Some(service.clone());
        }
    }
}

/// Adds the job that reassesses the instance after a task was given back to its delegator. The delegator may have lost
/// eligibility while somebody else owned the task, and reassessments skip delegated tasks. The job also takes buffered
/// signals that a command left, and is added again until none is left.
fn reassess(rows: &mut Rows<'_>, of: Of, change: &Change) {
    let after = &change.after;
    let mut entries = change.entries.iter();
    let is_resolved = entries.any(|entry| entry.draft.kind == RESOLVED);
    // An ended instance has no owners, and its end removes the job. A suspended instance is reassessed when it is resumed.
    if after.status == Status::Running && (is_resolved || after.has_signal_to_take()) {
        let (id, payload) = (reassessing(after.id), json!({}));
        let now = change.now;
        job(rows, of, id, "reassess_instance", after.id, now, &payload);
    }
}

/// Adds the job that reports the end to the parent, and removes jobs that an ended instance does not need. True if a child ended.
fn end(rows: &mut Rows<'_>, of: Of, change: &Change, before: Option<&Instance>) -> bool {
    let after = &change.after;
    if after.status.ended_at().is_some() {
        finish(rows, of, reassessing(after.id));
    }
    let ended_before = before.is_some_and(|before| before.status.ended_at().is_some());
    let (Some(parent), false) = (after.parent, ended_before) else {
        return false;
    };
    let outcome = match &after.status {
        Status::Completed { outcome, .. } => outcome.as_str(),
        Status::Cancelled { .. } => CHILD_CANCELLED,
        Status::Running | Status::Suspended { .. } => return false,
    };
    // An ended child needs no cancellation.
    finish(rows, of, cancelling(after.id));
    let payload = json!({
        "child": after.id, "version": after.definition.version, "outcome": outcome, "data": after.data,
    });
    job(
        rows,
        of,
        telling(after.id),
        "child_ended",
        parent,
        change.now,
        &payload,
    );
    true
}

pub(super) fn job(
    rows: &mut Rows<'_>,
    of: Of,
    id: Uuid,
    kind: &'static str,
    instance: InstanceId,
    due_at: Timestamp,
    payload: &serde_json::Value,
) {
    rows.jobs.push(Job {
        member: of.member,
        tenant_id: of.tenant,
        id,
        kind,
        instance_id: instance.0,
        due_at: Time(due_at),
        payload: Json::of(payload).to_string(),
        service: None,
    });
}

pub(super) fn finish(rows: &mut Rows<'_>, of: Of, id: Uuid) {
    rows.finished.push(finished(of, id));
}

/// Removes the job `id` if no worker has claimed it yet. In that case the job `cancels` is not added.
fn finish_idle(rows: &mut Rows<'_>, of: Of, id: Uuid, cancels: Uuid) {
    rows.finished.push(FinishedJob {
        cancels: Some(cancels),
        ..finished(of, id)
    });
}

fn finished(of: Of, id: Uuid) -> FinishedJob {
    FinishedJob {
        member: of.member,
        tenant_id: of.tenant,
        id,
        cancels: None,
        keeps_report: false,
    }
}

/// The children that run, each with its state instance.
fn running(instance: &Instance) -> BTreeMap<InstanceId, (StateId, &ChildInstance)> {
    let active = instance.active.iter();
    let running = active.flat_map(|state_instance| {
        let children = state_instance.children.iter();
        let running = children.filter(|child| child.outcome.is_none());
        running.map(move |child| (child.id, (state_instance.id, child)))
    });
    running.collect()
}

/// The open deadlines that count, and those at which suspended tasks are resumed. None while the instance is suspended.
fn deadlines(instance: &Instance) -> BTreeMap<DeadlineId, Timestamp> {
    if instance.status != Status::Running {
        return BTreeMap::new();
    }
    let of_state_instance = |state_instance: &StateInstance| {
        let open = state_instance
            .tasks
            .iter()
            .filter(|task| task.status.is_open());
        let open: Vec<_> = open.collect();
        let of_tasks = open.iter().flat_map(|task| task.counting());
        let all = state_instance.deadlines.iter().chain(of_tasks);
        let resumptions = open.iter().filter_map(|task| task.resumption());
        all.filter_map(|deadline| Some((deadline.id, deadline.due_at?)))
            .chain(resumptions)
            .collect::<Vec<_>>()
    };
    instance.active.iter().flat_map(of_state_instance).collect()
}
