//! From facts and occurrences to the guest's types.

use jiff::Timestamp;

use super::types;
use crate::domain::actor::Actor;
use crate::domain::answer::{AttributeValue, Principal};
use crate::domain::instance::{
    ChildInstance, Decision, Instance, PastState, StateInstance, Task, TaskStatus,
};
use crate::domain::question::{AssignCause, Facts, Occurrence, Source};

/// The newest states left that a guest is told of.
const PAST_MAX: usize = 100;
/// What people wrote in them, in bytes: older states are left out beyond it, so that a long history
/// never grows too large to be asked about.
const PAST_BYTES_MAX: usize = 64 << 10;

/// The snapshot of these facts.
pub(in crate::wasm) fn snapshot(facts: &Facts<'_>) -> types::Snapshot {
    let instance = facts.instance;
    types::Snapshot {
        now: timestamp(facts.now),
        config: facts.config.to_string(),
        instance: envelope(facts.tenant, instance),
        active: instance.active.iter().map(state_instance).collect(),
        waiting: instance.waiting.iter().map(state_instance).collect(),
        past: told(&instance.past).iter().map(past_state).collect(),
    }
}

/// The newest states that fit.
fn told(past: &[PastState]) -> &[PastState] {
    let written = |past: &PastState| -> usize {
        let decisions = past.state.tasks.iter().filter_map(Task::decision);
        decisions
            .map(|decision| {
                decision.input.as_str().len() + decision.comment.as_ref().map_or(0, String::len)
            })
            .sum()
    };
    let mut bytes = 0;
    let fits = |past: &&PastState| {
        bytes += written(past);
        bytes <= PAST_BYTES_MAX
    };
    let count = past.iter().rev().take(PAST_MAX).take_while(fits).count();
    &past[past.len() - count..]
}

/// The event of this occurrence.
pub(in crate::wasm) fn event(occurrence: &Occurrence) -> types::Event {
    types::Event {
        state_instance: occurrence.state_instance.clone(),
        trigger: occurrence.trigger.clone(),
        source: source(&occurrence.source),
        input: occurrence.input.to_string(),
    }
}

/// The contract's form of an instant: RFC 3339, UTC, exactly milliseconds.
pub(in crate::wasm) fn timestamp(instant: Timestamp) -> String {
    format!("{instant:.3}")
}

fn envelope(tenant: &str, instance: &Instance) -> types::Instance {
    types::Instance {
        id: instance.id.to_string(),
        tenant: tenant.to_owned(),
        key: instance.definition.key.clone(),
        version: instance.definition.version,
        revision: instance.revision,
        entity_type: instance.entity.kind.clone(),
        entity_id: instance.entity.id.clone(),
        initiator: instance.initiator.clone(),
        requesters: instance.requesters.clone(),
        started_at: timestamp(instance.started_at),
        predecessor: instance.predecessor.map(|id| id.to_string()),
        parent: instance.parent.map(|id| id.to_string()),
        data: instance.data.to_string(),
        attributes: instance
            .attributes
            .iter()
            .map(|(name, value)| types::Attribute {
                name: name.clone(),
                value: Some(attribute_value(value)),
            })
            .collect(),
    }
}

fn attribute_value(value: &AttributeValue) -> types::AttributeValue {
    match value {
        AttributeValue::Text(text) => types::AttributeValue::Text(text.clone()),
        AttributeValue::Boolean(truth) => types::AttributeValue::Boolean(*truth),
        AttributeValue::Decimal(digits) => types::AttributeValue::Decimal(digits.clone()),
        AttributeValue::Float(number) => types::AttributeValue::Float(*number),
        AttributeValue::Timestamp(instant) => types::AttributeValue::Timestamp(timestamp(*instant)),
        AttributeValue::Bytes(bytes) => types::AttributeValue::Bytes(bytes.clone()),
    }
}

fn state_instance(state: &StateInstance) -> types::StateInstance {
    types::StateInstance {
        id: state.id.to_string(),
        name: state.name.clone(),
        entered_at: timestamp(state.entered_at),
        due_at: state.due_at.map(timestamp),
        predecessors: state.predecessors.iter().map(ToString::to_string).collect(),
        needed: state.needed,
        tasks: state.tasks.iter().map(task).collect(),
        children: state.children.iter().map(child).collect(),
    }
}

fn child(child: &ChildInstance) -> types::ChildStatus {
    types::ChildStatus {
        id: child.id.to_string(),
        key: child.key.clone(),
        outcome: child.outcome.clone(),
    }
}

/// Why an assignment is asked for.
pub(in crate::wasm) fn cause(cause: &AssignCause) -> types::AssignCause {
    match cause {
        AssignCause::Entered => types::AssignCause::Entered,
        AssignCause::Overdue { task, count } => types::AssignCause::Overdue(types::Overdue {
            task: task.as_ref().map(ToString::to_string),
            count: *count,
        }),
        AssignCause::Migrated => types::AssignCause::Migrated,
    }
}

fn past_state(past: &PastState) -> types::PastState {
    let state = &past.state;
    types::PastState {
        id: state.id.to_string(),
        name: state.name.clone(),
        entered_at: timestamp(state.entered_at),
        left_at: timestamp(past.left_at),
        left_by: past.left_by.clone(),
        actor: past.actor.clone(),
        predecessors: state.predecessors.iter().map(ToString::to_string).collect(),
        tasks: state.tasks.iter().map(task).collect(),
    }
}

fn task(task: &Task) -> types::Task {
    let (status, claimed_at) = match &task.status {
        TaskStatus::Pending => (types::TaskStatus::Pending, None),
        TaskStatus::Claimed { claimed_at, .. } => (types::TaskStatus::Claimed, Some(*claimed_at)),
        TaskStatus::Completed { claimed_at, .. } => {
            (types::TaskStatus::Completed, Some(*claimed_at))
        }
        TaskStatus::Cancelled { .. } => (types::TaskStatus::Cancelled, None),
    };
    types::Task {
        id: task.id.to_string(),
        label: task.label.clone(),
        status,
        candidates: task.candidates.iter().map(principal).collect(),
        owner: task.owner().map(str::to_owned),
        created_at: timestamp(task.created_at),
        claimed_at: claimed_at.map(timestamp),
        due_at: task.due_at.map(timestamp),
        decision: task.decision().map(decision),
    }
}

fn principal(principal: &Principal) -> types::Principal {
    match principal {
        Principal::User(id) => types::Principal::User(id.clone()),
        Principal::Group(id) => types::Principal::Group(id.clone()),
        Principal::ManagerOf(id) => types::Principal::ManagerOf(id.clone()),
    }
}

fn decision(decision: &Decision) -> types::Decision {
    types::Decision {
        outcome: decision.outcome.clone(),
        actor: decision.actor.clone(),
        on_behalf_of: decision.on_behalf_of.clone(),
        comment: decision.comment.clone(),
        input: decision.input.to_string(),
        decided_at: timestamp(decision.decided_at),
    }
}

fn source(source: &Source) -> types::EventSource {
    match source {
        Source::Start(by) => types::EventSource::Start(actor(by)),
        Source::Task {
            task,
            actor: by,
            comment,
        } => types::EventSource::Task(types::TaskDecision {
            task: task.clone(),
            actor: actor(by),
            comment: comment.clone(),
        }),
        Source::Signal(by) => types::EventSource::Signal(actor(by)),
        Source::Deadline => types::EventSource::Deadline,
        Source::Child { id, key, outcome } => types::EventSource::Child(types::ChildStatus {
            id: id.clone(),
            key: key.clone(),
            outcome: Some(outcome.clone()),
        }),
        Source::Entry => types::EventSource::Entry,
    }
}

fn actor(actor: &Actor) -> types::Actor {
    types::Actor {
        id: actor.id.clone(),
        groups: actor.groups.clone(),
        permissions: actor.permissions.clone(),
        on_behalf_of: actor.on_behalf_of.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::{StateId, TaskId};
    use crate::domain::json::Json;

    /// A stay whose decision has a comment of this length.
    fn left(comment: usize) -> PastState {
        let at = Timestamp::UNIX_EPOCH;
        let decision = Decision {
            outcome: "GO".into(),
            actor: "ann".into(),
            on_behalf_of: None,
            comment: Some("x".repeat(comment)),
            input: Json::empty(),
            decided_at: at,
        };
        let task = Task {
            id: TaskId(uuid::Uuid::nil()),
            label: String::new(),
            candidates: vec![],
            form: None,
            created_at: at,
            due_at: None,
            deadlines: vec![],
            status: TaskStatus::Completed {
                owner: "ann".into(),
                claimed_at: at,
                decision,
            },
        };
        let state = StateInstance {
            id: StateId(uuid::Uuid::nil()),
            name: "Work".into(),
            entered_at: at,
            due_at: None,
            predecessors: vec![],
            entered_by: None,
            caller: None,
            needed: 1,
            exclude: vec![],
            fallback: None,
            priority: 0,
            tasks: vec![task],
            forks: vec![],
            choices: 0,
            deadlines: vec![],
            correlation: None,
            keep_early: false,
            children: vec![],
            unassignable_since: None,
        };
        PastState {
            state,
            left_at: at,
            left_by: "GO".into(),
            actor: None,
        }
    }

    #[test]
    fn a_long_history_is_told_from_its_newest_end() {
        let count = |comment: usize| told(&vec![left(comment); 150]).len();
        assert_eq!(count(10), 100);
        assert_eq!(
            count(16 << 10),
            3,
            "a comment of 16 KiB, and its input of two bytes"
        );
        assert_eq!(count(65 << 10), 0);
    }
}
