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
use crate::domain::answer::{Attribute, Principal};
use crate::domain::ids::{InstanceId, TaskId, VersionRef};
use crate::domain::instance::{Decision, Entity, Task, TaskStatus};
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
    from: Option<String>,
    trigger: Option<String>,
    to: Option<Vec<String>>,
    #[serde(default)]
    attributes: Vec<Attribute>,
    #[serde(default)]
    notes: Vec<String>,
    name: Option<String>,
    reason: Option<String>,
}

impl TryFrom<StoredEvent> for Event {
    type Error = String;

    fn try_from(stored: StoredEvent) -> Result<Event, String> {
        match stored.r#type.as_str() {
            "FLOW_STARTED" | "FLOW_COMPLETED" | "FLOW_CANCELLED" | CUSTOM => of_flow(stored),
            "STATE_ENTERED" | "STATE_TRANSITIONED" | "STATE_CONTINUED" | "STATE_CANCELLED" => {
                of_state(stored)
            }
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
        _ => Event::Custom {
            name: need("name", stored.name)?,
            data: need("data", stored.data)?,
        },
    })
}

fn of_state(stored: StoredEvent) -> Result<Event, String> {
    if stored.r#type == "STATE_ENTERED" {
        return Ok(Event::StateEntered {
            state: parse("state", stored.state)?,
        });
    }
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
            from: need("from", stored.from)?,
            trigger,
            to: need("to", stored.to)?,
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
    let kind = stored.r#type;
    if !matches!(
        kind.as_str(),
        "TASK_CREATED" | "TASK_CLAIMED" | "TASK_RELEASED" | "TASK_CANCELLED" | "DECISION_RECORDED"
    ) {
        return Err(format!("{kind} is no event of this host"));
    }
    let state = parse("state", stored.state)?;
    if kind == "TASK_CREATED" {
        let state_name = need("stateName", stored.state_name)?;
        return Ok(Event::TaskCreated {
            state,
            state_name,
            task: parse("task", stored.task)?,
        });
    }
    let task = parse("task", stored.task)?;
    Ok(match kind.as_str() {
        "TASK_CLAIMED" => Event::TaskClaimed {
            task,
            state,
            owner: need("owner", stored.owner)?,
        },
        "TASK_RELEASED" => Event::TaskReleased {
            task,
            state,
            owner: need("owner", stored.owner)?,
        },
        "TASK_CANCELLED" => Event::TaskCancelled { task, state },
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
    decision: Option<Decision>,
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
            ..
        } = stored;
        let status = match stored.status.as_str() {
            "PENDING" => TaskStatus::Pending,
            "CLAIMED" => TaskStatus::Claimed {
                owner: need("owner", owner)?,
                claimed_at: need("claimedAt", stored.claimed_at)?,
            },
            "COMPLETED" => TaskStatus::Completed {
                owner: need("owner", owner)?,
                claimed_at: need("claimedAt", stored.claimed_at)?,
                decision: need("decision", stored.decision)?,
            },
            "CANCELLED" => TaskStatus::Cancelled {
                owner,
                cancelled_at: need("cancelledAt", stored.cancelled_at)?,
            },
            other => return Err(format!("{other} is no status of a task")),
        };
        Ok(Task {
            id,
            label,
            candidates,
            form,
            created_at,
            status,
        })
    }
}

fn need<T>(name: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("the member {name} is missing"))
}

fn parse<T: DeserializeOwned>(name: &str, text: Option<Box<RawValue>>) -> Result<T, String> {
    let text = need(name, text)?;
    serde_json::from_str(text.get()).map_err(|error| format!("the member {name}: {error}"))
}

#[cfg(test)]
mod tests;
