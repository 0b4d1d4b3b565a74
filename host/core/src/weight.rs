//! The approximate size of an instance in memory, from which the cost to read, copy and serialise it is estimated.

use super::instance::{Instance, StateInstance, Task, TaskStatus};
use super::json::Json;

/// The size of a part without its texts, from the sizes of the types and their allocations.
const INSTANCE_BYTES: usize = 1536;
const STATE_INSTANCE_BYTES: usize = 1024;
const TASK_BYTES: usize = 1024;
const ITEM_BYTES: usize = 64;

impl Instance {
    /// The approximate size in bytes, including past states.
    pub fn weight(&self) -> usize {
        let Instance {
            data,
            attributes,
            buffered,
            requesters,
            labels,
            ..
        } = self;
        let attributes = attributes
            .iter()
            .map(|(name, value)| ITEM_BYTES * 2 + name.len() + value.bytes());
        let buffered = buffered
            .iter()
            .map(|signal| ITEM_BYTES * 4 + text(&signal.input));
        let labels = [&labels.title, &labels.summary].into_iter().flatten();
        INSTANCE_BYTES
            + labels.map(String::len).sum::<usize>()
            + text(data)
            + attributes.sum::<usize>()
            + names(requesters)
            + buffered.sum::<usize>()
            + self.state_instances().map(state_instance).sum::<usize>()
    }
}

fn text(json: &Json) -> usize {
    json.as_str().len()
}

fn names(names: &[String]) -> usize {
    names.iter().map(|name| ITEM_BYTES + name.len()).sum()
}

fn state_instance(state_instance: &StateInstance) -> usize {
    let items = state_instance.predecessors.len() + state_instance.deadlines.len();
    let children = state_instance
        .children
        .iter()
        .map(|child| ITEM_BYTES * 4 + text(&child.data));
    let subscriptions = state_instance.subscriptions.iter().map(|one| {
        let key = one.correlation.as_ref().map_or(0, String::len);
        ITEM_BYTES + one.trigger.len() + key
    });
    STATE_INSTANCE_BYTES
        + subscriptions.sum::<usize>()
        + items * ITEM_BYTES
        + names(&state_instance.exclude)
        + state_instance.key.as_ref().map_or(0, String::len)
        + state_instance.data.as_ref().map_or(0, text)
        + children.sum::<usize>()
        + state_instance.tasks.iter().map(task).sum::<usize>()
}

fn task(task: &Task) -> usize {
    let written = match &task.status {
        TaskStatus::Completed { decision, .. } => {
            text(&decision.input) + decision.comment.as_ref().map_or(0, String::len)
        }
        TaskStatus::Claimed { ownership, .. } => {
            let reasons = ownership.delegations.iter().map(|link| link.reason.len());
            reasons.sum()
        }
        TaskStatus::Pending | TaskStatus::Cancelled { .. } => 0,
    };
    let candidates = task.candidates.iter().map(|candidate| {
        let group = candidate.member_of().map_or(0, str::len);
        ITEM_BYTES + candidate.id().len() + group
    });
    let suspended = task.suspended.as_ref();
    let suspended = suspended.and_then(|suspended| suspended.reason.as_ref());
    TASK_BYTES
        + suspended.map_or(0, String::len)
        + task.deadlines.len() * ITEM_BYTES
        + candidates.sum::<usize>()
        + written
}
