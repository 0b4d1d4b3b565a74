//! Events and tasks read back from the audit.
//!
//! Their JSON is tagged and flat, and serde reads such types by way of a buffer, in which the text of
//! a number is lost. Data and input must come back byte for byte, or a replay would feed flow logic other
//! facts. So the members are read by name here, and each kind takes those that it needs.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{CUSTOM, Effects, Event};
use std::collections::BTreeMap;

use crate::domain::actor::Actor;
use crate::domain::answer::{Attribute, OverdueAction, Principal};
use crate::domain::ids::{DeadlineId, InstanceId, TaskId, VersionRef};
use crate::domain::instance::{Decision, Entity, Holding, OpenDeadline, Task, TaskStatus};
use crate::domain::json::Json;

/// The members of all kinds of events.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredEvent {
    r#type: String,
    definition: Option<VersionRef>,
    entity: Option<Entity>,
    initiator: Option<String>,
    requesters: Option<Vec<String>>,
    predecessor: Option<InstanceId>,
    parent: Option<InstanceId>,
    data: Option<Json>,
    /// An id, or a whole stay.
    state: Option<Box<RawValue>>,
    state_name: Option<String>,
    /// An id, or a whole task.
    task: Option<Box<RawValue>>,
    owner: Option<String>,
    outcome: Option<String>,
    on_behalf_of: Option<String>,
    comment: Option<String>,
    input: Option<Json>,
    /// A state's name, a person, or those who lost the work.
    from: Option<Box<RawValue>>,
    trigger: Option<String>,
    /// Names of states, or a person.
    to: Option<Box<RawValue>>,
    #[serde(default)]
    attributes: Vec<Attribute>,
    #[serde(default)]
    notes: Vec<String>,
    name: Option<String>,
    reason: Option<String>,
    step: Option<String>,
    candidates: Option<Vec<Principal>>,
    recipients: Option<Vec<Principal>>,
    deadline: Option<DeadlineId>,
    action: Option<OverdueAction>,
    due_at: Option<Timestamp>,
    count: Option<u32>,
    older: Option<u32>,
    late: Option<u64>,
    next: Option<Timestamp>,
    needed: Option<u32>,
    exclude: Option<Vec<String>>,
    fallback: Option<String>,
    priority: Option<u8>,
    deadlines: Option<Vec<OpenDeadline>>,
    id: Option<String>,
    sender: Option<Actor>,
    child: Option<InstanceId>,
    code: Option<String>,
    message: Option<String>,
    /// Who had a task, or the version before.
    previous: Option<Box<RawValue>>,
    states: Option<BTreeMap<String, String>>,
}

impl TryFrom<StoredEvent> for Event {
    type Error = String;

    fn try_from(stored: StoredEvent) -> Result<Event, String> {
        match stored.r#type.as_str() {
            "FLOW_STARTED" | "FLOW_COMPLETED" | "FLOW_CANCELLED" | "FLOW_SUSPENDED"
            | "FLOW_RESUMED" | "FLOW_RESTARTED" | "FLOW_MIGRATED" | CUSTOM => of_flow(stored),
            "STATE_TRANSITIONED" | "STATE_CONTINUED" | "STATE_CANCELLED" => of_trigger(stored),
            "STATE_ENTERED" | "BRANCH_ARRIVED" | "STATE_REASSIGNED" | "STATE_UNASSIGNABLE"
            | "STATE_ASSIGNABLE" | "SIGNAL_RECEIVED" | "SIGNAL_TAKEN" | "CHILD_ENDED"
            | "TRIGGER_REFUSED" => of_state(stored),
            "DEADLINE_PASSED" | "TASK_REMINDED" | "TASK_ESCALATED" => of_deadline(stored),
            _ => of_task(stored),
        }
    }
}

fn of_flow(stored: StoredEvent) -> Result<Event, String> {
    Ok(match stored.r#type.as_str() {
        "FLOW_STARTED" => Event::FlowStarted {
            definition: need("definition", stored.definition)?,
            entity: need("entity", stored.entity)?,
            initiator: need("initiator", stored.initiator)?,
            requesters: need("requesters", stored.requesters)?,
            predecessor: stored.predecessor,
            parent: stored.parent,
            data: need("data", stored.data)?,
        },
        "FLOW_COMPLETED" => Event::FlowCompleted {
            outcome: need("outcome", stored.outcome)?,
        },
        "FLOW_CANCELLED" => Event::FlowCancelled {
            reason: need("reason", stored.reason)?,
        },
        "FLOW_SUSPENDED" => Event::FlowSuspended {
            reason: need("reason", stored.reason)?,
        },
        "FLOW_RESUMED" => Event::FlowResumed {},
        "FLOW_RESTARTED" => Event::FlowRestarted {
            predecessor: need("predecessor", stored.predecessor)?,
        },
        "FLOW_MIGRATED" => Event::FlowMigrated {
            previous: parse("previous", stored.previous)?,
            definition: need("definition", stored.definition)?,
            states: need("states", stored.states)?,
        },
        _ => Event::Custom {
            name: need("name", stored.name)?,
            data: need("data", stored.data)?,
        },
    })
}

fn of_state(stored: StoredEvent) -> Result<Event, String> {
    match stored.r#type.as_str() {
        "STATE_ENTERED" => {
            return Ok(Event::StateEntered {
                state: parse("state", stored.state)?,
            });
        }
        "BRANCH_ARRIVED" => {
            return Ok(Event::BranchArrived {
                state: parse("state", stored.state)?,
            });
        }
        "SIGNAL_RECEIVED" => {
            return Ok(Event::SignalReceived {
                id: need("id", stored.id)?,
                trigger: need("trigger", stored.trigger)?,
                state: optional("state", stored.state)?,
                input: need("input", stored.input)?,
                sender: need("sender", stored.sender)?,
            });
        }
        _ => {}
    }
    let state = parse("state", stored.state)?;
    Ok(match stored.r#type.as_str() {
        "STATE_REASSIGNED" => Event::StateReassigned {
            state,
            needed: need("needed", stored.needed)?,
            exclude: need("exclude", stored.exclude)?,
            fallback: stored.fallback,
            priority: need("priority", stored.priority)?,
            deadlines: stored.deadlines,
        },
        "STATE_UNASSIGNABLE" => Event::StateUnassignable {
            state,
            name: need("name", stored.name)?,
        },
        "STATE_ASSIGNABLE" => Event::StateAssignable {
            state,
            name: need("name", stored.name)?,
        },
        "SIGNAL_TAKEN" => Event::SignalTaken {
            state,
            id: need("id", stored.id)?,
            older: stored.older,
        },
        "CHILD_ENDED" => Event::ChildEnded {
            state,
            child: need("child", stored.child)?,
            outcome: need("outcome", stored.outcome)?,
            reason: stored.reason,
        },
        _ => Event::TriggerRefused {
            state,
            trigger: need("trigger", stored.trigger)?,
            code: need("code", stored.code)?,
            message: need("message", stored.message)?,
        },
    })
}

fn of_deadline(stored: StoredEvent) -> Result<Event, String> {
    let state = parse("state", stored.state)?;
    let task = optional("task", stored.task)?;
    let due_at = need("dueAt", stored.due_at)?;
    let count = need("count", stored.count)?;
    Ok(match stored.r#type.as_str() {
        "DEADLINE_PASSED" => Event::DeadlinePassed {
            deadline: need("deadline", stored.deadline)?,
            state,
            task,
            action: need("action", stored.action)?,
            due_at,
            count,
            late: need("late", stored.late)?,
            next: stored.next,
        },
        "TASK_REMINDED" => Event::TaskReminded {
            state,
            task,
            recipients: need("recipients", stored.recipients)?,
            due_at,
            count,
        },
        _ => Event::TaskEscalated {
            state,
            task,
            from: parse("from", stored.from)?,
            due_at,
            count,
        },
    })
}

fn of_trigger(stored: StoredEvent) -> Result<Event, String> {
    let (state, trigger) = (
        parse("state", stored.state)?,
        need("trigger", stored.trigger)?,
    );
    let effects = Effects {
        data: stored.data,
        attributes: stored.attributes,
        notes: stored.notes,
    };
    Ok(match stored.r#type.as_str() {
        "STATE_TRANSITIONED" => Event::StateTransitioned {
            state,
            from: parse("from", stored.from)?,
            trigger,
            to: parse("to", stored.to)?,
            effects,
        },
        "STATE_CONTINUED" => Event::StateContinued {
            state,
            trigger,
            effects,
        },
        _ => Event::StateCancelled {
            state,
            name: need("name", stored.name)?,
            trigger,
        },
    })
}

fn of_task(stored: StoredEvent) -> Result<Event, String> {
    match stored.r#type.as_str() {
        "TASK_CREATED" => Ok(Event::TaskCreated {
            state: parse("state", stored.state)?,
            state_name: need("stateName", stored.state_name)?,
            task: parse("task", stored.task)?,
        }),
        "TASK_DELEGATED" | "TASK_RESOLVED" | "TASK_REASSIGNED" | "TASK_RESET" | "TASK_REROUTED" => {
            of_hand_over(stored)
        }
        _ => of_work(stored),
    }
}

/// A task in other hands, or offered to others.
fn of_hand_over(stored: StoredEvent) -> Result<Event, String> {
    let state = parse("state", stored.state)?;
    let task = parse("task", stored.task)?;
    Ok(match stored.r#type.as_str() {
        "TASK_DELEGATED" => Event::TaskDelegated {
            task,
            state,
            from: parse("from", stored.from)?,
            to: parse("to", stored.to)?,
            reason: need("reason", stored.reason)?,
        },
        "TASK_RESOLVED" => Event::TaskResolved {
            task,
            state,
            from: parse("from", stored.from)?,
            to: parse("to", stored.to)?,
        },
        "TASK_REASSIGNED" => Event::TaskReassigned {
            task,
            state,
            previous: optional("previous", stored.previous)?,
            to: parse("to", stored.to)?,
            reason: need("reason", stored.reason)?,
        },
        "TASK_RESET" => Event::TaskReset {
            task,
            state,
            owner: need("owner", stored.owner)?,
            reason: need("reason", stored.reason)?,
        },
        _ => Event::TaskRerouted {
            task,
            state,
            step: need("step", stored.step)?,
            candidates: need("candidates", stored.candidates)?,
        },
    })
}

/// What candidates and owners do with a task.
fn of_work(stored: StoredEvent) -> Result<Event, String> {
    let kind = stored.r#type;
    if !matches!(
        kind.as_str(),
        "TASK_CLAIMED" | "TASK_RELEASED" | "TASK_CANCELLED" | "DECISION_RECORDED"
    ) {
        return Err(format!("{kind} is no event of this host"));
    }
    let state = parse("state", stored.state)?;
    let task = parse("task", stored.task)?;
    Ok(match kind.as_str() {
        "TASK_CLAIMED" => Event::TaskClaimed {
            task,
            state,
            owner: need("owner", stored.owner)?,
            on_behalf_of: stored.on_behalf_of,
        },
        "TASK_RELEASED" => Event::TaskReleased {
            task,
            state,
            owner: need("owner", stored.owner)?,
            reason: stored.reason,
        },
        "TASK_CANCELLED" => Event::TaskCancelled {
            task,
            state,
            reason: stored.reason,
        },
        _ => Event::DecisionRecorded {
            task,
            state,
            state_name: need("stateName", stored.state_name)?,
            outcome: need("outcome", stored.outcome)?,
            on_behalf_of: stored.on_behalf_of,
            comment: stored.comment,
            input: need("input", stored.input)?,
        },
    })
}

/// The members of a task, whatever its status.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::domain) struct StoredTask {
    id: TaskId,
    label: String,
    candidates: Vec<Principal>,
    form: Option<Json>,
    created_at: Timestamp,
    status: String,
    owner: Option<String>,
    claimed_at: Option<Timestamp>,
    cancelled_at: Option<Timestamp>,
    reason: Option<String>,
    decision: Option<Decision>,
    due_at: Option<Timestamp>,
    #[serde(default)]
    deadlines: Vec<OpenDeadline>,
    #[serde(default)]
    holding: Holding,
}

impl TryFrom<StoredTask> for Task {
    type Error = String;

    fn try_from(stored: StoredTask) -> Result<Task, String> {
        let StoredTask {
            id,
            label,
            candidates,
            form,
            created_at,
            owner,
            due_at,
            deadlines,
            ..
        } = stored;
        let status = match stored.status.as_str() {
            "PENDING" => TaskStatus::Pending,
            "CLAIMED" => TaskStatus::Claimed {
                owner: need("owner", owner)?,
                claimed_at: need("claimedAt", stored.claimed_at)?,
                holding: stored.holding,
            },
            "COMPLETED" => TaskStatus::Completed {
                owner: need("owner", owner)?,
                claimed_at: need("claimedAt", stored.claimed_at)?,
                decision: need("decision", stored.decision)?,
            },
            "CANCELLED" => TaskStatus::Cancelled {
                owner,
                cancelled_at: need("cancelledAt", stored.cancelled_at)?,
                reason: stored.reason,
            },
            other => return Err(format!("{other} is no status of a task")),
        };
        Ok(Task {
            id,
            label,
            candidates,
            form,
            created_at,
            due_at,
            deadlines,
            status,
        })
    }
}

fn need<T>(name: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("the member {name} is missing"))
}

/// A member that may be absent or null.
fn optional<T: DeserializeOwned>(
    name: &str,
    text: Option<Box<RawValue>>,
) -> Result<Option<T>, String> {
    match text {
        Some(text) if text.get() != "null" => parse(name, Some(text)).map(Some),
        _ => Ok(None),
    }
}

fn parse<T: DeserializeOwned>(name: &str, text: Option<Box<RawValue>>) -> Result<T, String> {
    let text = need(name, text)?;
    serde_json::from_str(text.get()).map_err(|error| format!("the member {name}: {error}"))
}

#[cfg(test)]
mod tests;
