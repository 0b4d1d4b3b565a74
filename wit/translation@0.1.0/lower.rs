//! Converts facts and occurrences to the guest's types.

use jiff::Timestamp;

use super::types;
use wrkflw_core::actor::Actor;
use wrkflw_core::answer::AttributeValue;
use wrkflw_core::graph::Read;
use wrkflw_core::instance::{
    Candidate, ChildInstance, Decision, Instance, PastState, StateInstance, Suspension, Task,
    TaskStatus,
};
use wrkflw_core::question::{Entry, EntryCause, Facts, Occurrence, Source};
use wrkflw_core::shown::{Decider, Omitted, Shown, deciders};

/// The snapshot of these facts.
pub(crate) fn snapshot(facts: &Facts<'_>) -> types::Snapshot {
    let instance = facts.instance;
    let shown = Shown::of(instance);
    let past = shown.past.iter();
    let past = past.map(|past| past_state(past, &shown, facts.reads));
    let active = |state| state_instance(state, facts.reads);
    types::Snapshot {
        now: timestamp(facts.now),
        config: facts.config.to_string(),
        instance: envelope(facts.tenant, instance),
        active: instance.active.iter().map(active).collect(),
        waiting: instance.waiting.iter().map(active).collect(),
        past: past.collect(),
        deciders: deciders(instance).map(decider).collect(),
        omitted: omitted(shown.omitted),
        extensions: Vec::new(),
    }
}

fn decider(decider: Decider<'_>) -> types::Decider {
    let Decider {
        state_instance,
        decision,
    } = decider;
    types::Decider {
        state: state_instance.name.clone(),
        state_instance: state_instance.id.to_string(),
        outcome: decision.outcome.clone(),
        actor: decision.actor.clone(),
        on_behalf_of: decision.on_behalf_of.clone(),
        decided_at: timestamp(decision.decided_at),
    }
}

fn omitted(omitted: Omitted) -> types::Omitted {
    let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
    types::Omitted {
        texts: count(omitted.texts),
        states: count(omitted.states),
    }
}

/// The event of this occurrence, limited to the personal data that logic reads.
pub(crate) fn event(occurrence: &Occurrence, reads: &[Read]) -> types::Event {
    types::Event {
        state_instance: occurrence.state_instance.clone(),
        trigger: occurrence.trigger.clone(),
        source: source(&occurrence.source, reads),
        input: occurrence.input.to_string(),
    }
}

/// The contract's form of an instant: RFC 3339, UTC, exactly milliseconds.
pub(crate) fn timestamp(instant: Timestamp) -> String {
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

fn state_instance(state: &StateInstance, reads: &[Read]) -> types::StateInstance {
    types::StateInstance {
        id: state.id.to_string(),
        name: state.name.clone(),
        entered_at: timestamp(state.entered_at),
        due_at: state.due_at.map(timestamp),
        predecessors: state.predecessors.iter().map(ToString::to_string).collect(),
        key: state.key.clone(),
        data: state.data.as_ref().map(ToString::to_string),
        needed: state.needed,
        tasks: state.tasks.iter().map(|one| task(one, reads)).collect(),
        children: state.children.iter().map(child).collect(),
    }
}

fn child(child: &ChildInstance) -> types::ChildStatus {
    types::ChildStatus {
        id: child.id.to_string(),
        key: child.key.clone(),
        entity_type: child.entity.kind.clone(),
        entity_id: child.entity.id.clone(),
        outcome: child.outcome.clone(),
        version: child.version,
    }
}

/// The state that needs work, and why.
pub(crate) fn entry(entry: &Entry) -> types::Entry {
    types::Entry {
        state_instance: entry.state_instance.clone(),
        state: entry.state.clone(),
        cause: cause(&entry.cause),
    }
}

fn cause(cause: &EntryCause) -> types::EntryCause {
    match cause {
        EntryCause::Entered => types::EntryCause::Entered,
        EntryCause::Overdue { task, count } => types::EntryCause::Overdue(types::Overdue {
            task: task.as_ref().map(ToString::to_string),
            count: *count,
        }),
        EntryCause::Migrated => types::EntryCause::Migrated,
        EntryCause::Reoffered => types::EntryCause::Reoffered,
    }
}

/// A past state. Candidates are left out, because its work is over; long texts may be.
fn past_state(past: &PastState, shown: &Shown<'_>, reads: &[Read]) -> types::PastState {
    let state = &past.state;
    let tasks = state.tasks.iter().map(|known| types::Task {
        candidates: Vec::new(),
        decision: known
            .decision()
            .map(|made| decision(made, shown.shows_texts(known.id), reads)),
        ..unsent(known)
    });
    types::PastState {
        id: state.id.to_string(),
        name: state.name.clone(),
        entered_at: timestamp(state.entered_at),
        left_at: timestamp(past.left_at),
        left_trigger: past.left_trigger.clone(),
        actor: past.actor.clone(),
        predecessors: state.predecessors.iter().map(ToString::to_string).collect(),
        key: state.key.clone(),
        needed: state.needed,
        tasks: tasks.collect(),
        children: state.children.iter().map(child).collect(),
    }
}

fn task(task: &Task, reads: &[Read]) -> types::Task {
    types::Task {
        candidates: task.candidates.iter().map(principal).collect(),
        decision: task.decision().map(|made| decision(made, true, reads)),
        ..unsent(task)
    }
}

/// The task without candidates and decision.
fn unsent(task: &Task) -> types::Task {
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
        candidates: Vec::new(),
        owner: task.owner().map(str::to_owned),
        created_at: timestamp(task.created_at),
        claimed_at: claimed_at.map(timestamp),
        due_at: task.due_at.map(timestamp),
        suspended: task.suspended.as_ref().map(suspension),
        decision: None,
    }
}

/// The suspension without its reason, which is for people only.
fn suspension(suspension: &Suspension) -> types::Suspension {
    types::Suspension {
        by: suspension.by.clone(),
        at: timestamp(suspension.at),
        until: suspension.until.map(timestamp),
    }
}

pub(crate) fn principal(candidate: &Candidate) -> types::Principal {
    match candidate {
        Candidate::User(id) => types::Principal::User(id.clone()),
        Candidate::Group(id) => types::Principal::Group(id.clone()),
        Candidate::Member { person, group } => types::Principal::Member(types::Member {
            person: person.clone(),
            group: group.clone(),
        }),
    }
}

/// The decision. Its texts are included if there is room for them and logic reads them.
pub(crate) fn decision(decision: &Decision, has_room: bool, reads: &[Read]) -> types::Decision {
    let told = |read| has_room && reads.contains(&read);
    types::Decision {
        outcome: decision.outcome.clone(),
        actor: decision.actor.clone(),
        on_behalf_of: decision.on_behalf_of.clone(),
        comment: decision.comment.clone().filter(|_| told(Read::Comments)),
        input: if told(Read::Inputs) {
            decision.input.to_string()
        } else {
            "{}".to_owned()
        },
        omitted: !has_room,
        decided_at: timestamp(decision.decided_at),
    }
}

fn source(source: &Source, reads: &[Read]) -> types::EventSource {
    match source {
        Source::Task {
            task,
            actor: by,
            comment,
        } => types::EventSource::Task(types::TaskDecision {
            task: task.clone(),
            actor: actor(by, reads),
            comment: comment.clone(),
        }),
        Source::Signal {
            sender,
            id,
            correlation,
            at,
        } => types::EventSource::Signal(types::ReceivedSignal {
            actor: actor(sender, reads),
            id: id.clone(),
            correlation: correlation.clone(),
            received_at: timestamp(*at),
        }),
        Source::Deadline {
            task,
            due_at,
            count,
        } => types::EventSource::Deadline(types::PassedDeadline {
            task: task.as_ref().map(ToString::to_string),
            due_at: timestamp(*due_at),
            count: *count,
        }),
        Source::Child {
            id,
            key,
            entity,
            version,
            outcome,
            reason,
        } => types::EventSource::Child(types::EndedChild {
            id: id.clone(),
            key: key.clone(),
            entity_type: entity.kind.clone(),
            entity_id: entity.id.clone(),
            version: *version,
            outcome: outcome.clone(),
            reason: reason.clone(),
        }),
        Source::Service { service, result } => types::EventSource::Service(types::ServiceAnswer {
            service: service.clone(),
            attempts: result.attempts,
            error: result.error.clone(),
            model: result.model.clone(),
            model_version: result.model_version.clone(),
        }),
        Source::Entry => types::EventSource::Entry,
    }
}

pub(crate) fn actor(actor: &Actor, reads: &[Read]) -> types::Actor {
    let told = |read, texts: &[String]| {
        if reads.contains(&read) {
            texts.to_vec()
        } else {
            Vec::new()
        }
    };
    types::Actor {
        id: actor.id.clone(),
        groups: told(Read::Groups, &actor.groups),
        permissions: told(Read::Permissions, &actor.permissions),
        on_behalf_of: actor.on_behalf_of.clone(),
    }
}
