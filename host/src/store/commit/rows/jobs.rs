//! What hosts have to do later, as rows: deadlines to watch, children to start or to cancel, parents to tell.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use sqlx::types::Uuid;

use super::Rows;
use crate::domain::ids::{DeadlineId, InstanceId};
use crate::domain::instance::{CHILD_CANCELLED, ChildInstance, Instance, StateInstance, Status};
use crate::domain::json::Json;
use crate::store::commit::Change;
use crate::store::time::Time;

/// Told apart from the job that starts the child, which has the child's id.
const CANCELS_CHILD: u128 = 1;
const TELLS_PARENT: u128 = 2;

/// The job that cancels this child.
pub fn cancelling(child: InstanceId) -> Uuid {
    Uuid::from_u128(child.0.as_u128() ^ CANCELS_CHILD)
}

/// The job that tells the parent of this instance that it has ended.
pub fn telling(child: InstanceId) -> Uuid {
    Uuid::from_u128(child.0.as_u128() ^ TELLS_PARENT)
}

impl Rows {
    pub(super) fn jobs(&mut self, change: &Change) {
        let before = change.before.as_ref().map(|stored| &stored.instance);
        let after = &change.after;
        let (old, new) = (before.map(deadlines).unwrap_or_default(), deadlines(after));
        for id in old.keys().filter(|id| !new.contains_key(id)) {
            self.finish(id.0);
        }
        for (id, due_at) in new
            .iter()
            .filter(|(id, due_at)| old.get(id) != Some(due_at))
        {
            let payload = json!({ "dueAt": due_at });
            self.job(id.0, "deadline", after.id, *due_at, &payload);
        }
        self.children(change, before);
        self.correlations(change, before);
        self.end(change, before);
        for done in &change.done {
            // A deadline that repeats is its own successor.
            if !self.put.id.contains(done) {
                self.finish(*done);
            }
        }
    }

    fn children(&mut self, change: &Change, before: Option<&Instance>) {
        let running =
            |instance: &Instance| -> BTreeMap<InstanceId, (StateInstance, ChildInstance)> {
                let of = |stay: &StateInstance| {
                    let running = stay.children.iter().filter(|child| child.outcome.is_none());
                    let pair = |child: &ChildInstance| (child.id, (stay.clone(), child.clone()));
                    running.map(pair).collect::<Vec<_>>()
                };
                instance.active.iter().flat_map(of).collect()
            };
        let (old, new) = (
            before.map(running).unwrap_or_default(),
            running(&change.after),
        );
        let now = change.after.updated_at;
        for (id, (stay, child)) in new.iter().filter(|(id, _)| !old.contains_key(id)) {
            let payload = json!({ "state": stay.id, "child": child });
            self.job(id.0, "start_child", change.after.id, now, &payload);
        }
        // Those whose stay is over before they are.
        for (id, _) in old.iter().filter(|(id, _)| !new.contains_key(id)) {
            let mut stays = change.after.stays();
            let ended = stays.any(|stay| {
                let mut children = stay.children.iter();
                children.any(|child| child.id == *id && child.outcome.is_some())
            });
            if !ended {
                let payload = json!({ "parent": change.after.id });
                self.job(cancelling(*id), "cancel_child", *id, now, &payload);
                self.finish_idle(id.0, cancelling(*id));
                self.finish(telling(*id));
            }
        }
    }

    /// Signals may have come for a stay before it was there to be found. One that is over takes none.
    fn correlations(&mut self, change: &Change, before: Option<&Instance>) {
        let old = before.into_iter().flat_map(|before| &before.active);
        for stay in old.filter(|stay| stay.correlation.is_some()) {
            if !change.after.active.iter().any(|new| new.id == stay.id) {
                self.finish(stay.id.0);
            }
        }
        let known = |stay: &StateInstance| {
            before.is_some_and(|before| before.active.iter().any(|old| old.id == stay.id))
        };
        for stay in change.after.active.iter().filter(|stay| !known(stay)) {
            if let Some(correlation) = &stay.correlation {
                let payload = json!({ "correlation": correlation });
                let now = change.after.updated_at;
                self.job(stay.id.0, "match_signals", change.after.id, now, &payload);
            }
        }
    }

    /// An end is told to the parent.
    fn end(&mut self, change: &Change, before: Option<&Instance>) {
        let after = &change.after;
        let ended_before = before.is_some_and(|before| before.status.ended_at().is_some());
        let (Some(parent), false) = (after.parent, ended_before) else {
            return;
        };
        let outcome = match &after.status {
            Status::Completed { outcome, .. } => outcome.as_str(),
            Status::Cancelled { .. } => CHILD_CANCELLED,
            Status::Running | Status::Suspended { .. } => return,
        };
        // Nobody needs to cancel it any more.
        self.finish(cancelling(after.id));
        let payload = json!({ "child": after.id, "outcome": outcome, "data": after.data });
        self.job(
            telling(after.id),
            "child_ended",
            parent,
            after.updated_at,
            &payload,
        );
    }

    fn job(
        &mut self,
        id: Uuid,
        kind: &str,
        instance: InstanceId,
        due_at: Timestamp,
        payload: &serde_json::Value,
    ) {
        let member = self.number();
        let rows = &mut self.put;
        rows.member.push(member);
        rows.id.push(id);
        rows.kind.push(kind.to_owned());
        rows.instance.push(instance.0);
        rows.due_at.push(Time(due_at));
        rows.payload.push(Json::of(payload).to_string());
    }

    fn finish(&mut self, id: Uuid) {
        self.finished.member.push(self.number());
        self.finished.id.push(id);
        self.finished.cancels.push(None);
    }

    /// Ends a start that nobody has begun, and what would cancel it.
    fn finish_idle(&mut self, id: Uuid, cancels: Uuid) {
        self.finished.member.push(self.number());
        self.finished.id.push(id);
        self.finished.cancels.push(Some(cancels));
    }
}

/// The deadlines to watch. Those of a suspended instance rest.
fn deadlines(instance: &Instance) -> BTreeMap<DeadlineId, Timestamp> {
    if instance.status != Status::Running {
        return BTreeMap::new();
    }
    let of_stay = |stay: &StateInstance| {
        let open = stay.tasks.iter().filter(|task| task.status.is_open());
        let of_tasks = open.flat_map(|task| &task.deadlines);
        let all = stay.deadlines.iter().chain(of_tasks);
        all.map(|deadline| (deadline.id, deadline.due_at))
            .collect::<Vec<_>>()
    };
    instance.active.iter().flat_map(of_stay).collect()
}
