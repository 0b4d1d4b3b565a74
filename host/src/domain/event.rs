//! What happened to an instance: the audit's vocabulary. [`apply`](super::apply) folds events into the instance.

pub(super) mod stored;

use serde::{Deserialize, Serialize};

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::actor::Actor;
use super::answer::{Attribute, OverdueAction, Principal};
use super::ids::{DeadlineId, InstanceId, StateId, TaskId, VersionRef};
use super::instance::{Entity, OpenDeadline, StateInstance, Task};
use super::json::{Json, JsonError, Member, members};

/// One fact. Its JSON is the payload of an audit entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase",
    try_from = "stored::StoredEvent"
)]
pub enum Event {
    FlowStarted {
        definition: VersionRef,
        entity: Entity,
        initiator: String,
        requesters: Vec<String>,
        predecessor: Option<InstanceId>,
        parent: Option<InstanceId>,
        data: Json,
    },
    /// The stay, still without tasks.
    StateEntered {
        state: StateInstance,
    },
    TaskCreated {
        state: StateId,
        state_name: String,
        task: Task,
    },
    TaskClaimed {
        task: TaskId,
        state: StateId,
        owner: String,
        /// The absent candidate for whom the owner claimed it.
        #[serde(skip_serializing_if = "Option::is_none")]
        on_behalf_of: Option<String>,
    },
    /// Back to its candidates.
    TaskReleased {
        task: TaskId,
        state: StateId,
        owner: String,
        /// Why somebody else than the owner did so.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The owner handed it on; they stay on record.
    TaskDelegated {
        task: TaskId,
        state: StateId,
        from: String,
        to: String,
        reason: String,
    },
    /// The delegate handed it back.
    TaskResolved {
        task: TaskId,
        state: StateId,
        from: String,
        to: String,
    },
    /// An operator gave it to somebody.
    TaskReassigned {
        task: TaskId,
        state: StateId,
        /// Who had it.
        previous: Option<String>,
        to: String,
        reason: String,
    },
    /// An operator put a claimed task back to its candidates.
    TaskReset {
        task: TaskId,
        state: StateId,
        owner: String,
        reason: String,
    },
    /// Nobody was left who could do it, so the host offers it to others as well.
    TaskRerouted {
        task: TaskId,
        state: StateId,
        /// `manager` or `fallback`; `migrated` where another version offers it so.
        step: String,
        /// Who may claim it from now on.
        candidates: Vec<Principal>,
    },
    DecisionRecorded {
        task: TaskId,
        state: StateId,
        state_name: String,
        outcome: String,
        on_behalf_of: Option<String>,
        comment: Option<String>,
        input: Json,
    },
    TaskCancelled {
        task: TaskId,
        state: StateId,
        /// Why the host did so of itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A deadline passed. What it does follows in further events of the same command.
    DeadlinePassed {
        deadline: DeadlineId,
        state: StateId,
        /// None for a deadline of the state as a whole.
        task: Option<TaskId>,
        action: OverdueAction,
        due_at: Timestamp,
        /// How often it has passed by now.
        count: u32,
        /// How late the host was, in seconds.
        late: u64,
        /// When it passes again.
        next: Option<Timestamp>,
    },
    TaskReminded {
        state: StateId,
        /// None for all that is open in the state.
        task: Option<TaskId>,
        recipients: Vec<Principal>,
        due_at: Timestamp,
        count: u32,
    },
    /// The work was taken from those who had it; to whom it goes follows as new tasks.
    TaskEscalated {
        state: StateId,
        /// None for all that is open in the state.
        task: Option<TaskId>,
        from: Vec<Principal>,
        due_at: Timestamp,
        count: u32,
    },
    /// The state's work was assigned anew, by an escalation or after a migration.
    StateReassigned {
        state: StateId,
        needed: u32,
        exclude: Vec<String>,
        fallback: Option<String>,
        priority: u8,
        /// Those of the state as a whole; none leaves them as they are.
        deadlines: Option<Vec<OpenDeadline>>,
    },
    /// Nobody is able to do the work of a state.
    StateUnassignable {
        state: StateId,
        name: String,
    },
    /// Somebody is able to do it again.
    StateAssignable {
        state: StateId,
        name: String,
    },
    /// A branch came to a join that others have not reached yet; the join as it stands now.
    BranchArrived {
        state: StateInstance,
    },
    SignalReceived {
        id: String,
        trigger: String,
        /// The state that takes it; none when it is kept for a state to come.
        state: Option<StateId>,
        input: Json,
        sender: Actor,
    },
    /// A signal that was kept is kept no longer: a state took it, or was entered that takes none from before.
    SignalTaken {
        id: String,
        state: StateId,
        /// How many older ones are kept with the same id, of other senders or triggers; none where it is the oldest.
        #[serde(skip_serializing_if = "Option::is_none")]
        older: Option<u32>,
    },
    ChildEnded {
        state: StateId,
        child: InstanceId,
        outcome: String,
        /// Why it could not be started.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Flow logic refused what a deadline, a child's end or a kept signal would have moved.
    TriggerRefused {
        state: StateId,
        trigger: String,
        code: String,
        message: String,
    },
    /// A trigger moved a state on. `to` is empty where its branch ends.
    StateTransitioned {
        state: StateId,
        from: String,
        trigger: String,
        to: Vec<String>,
        #[serde(flatten)]
        effects: Effects,
    },
    /// A trigger had effects, and the state goes on.
    StateContinued {
        state: StateId,
        trigger: String,
        #[serde(flatten)]
        effects: Effects,
    },
    /// A plan ended another branch.
    StateCancelled {
        state: StateId,
        name: String,
        trigger: String,
    },
    FlowCompleted {
        outcome: String,
    },
    FlowCancelled {
        reason: String,
    },
    FlowSuspended {
        reason: String,
    },
    FlowResumed {},
    /// The instance takes up what an ended one was about.
    FlowRestarted {
        predecessor: InstanceId,
    },
    /// The instance goes on under another version.
    FlowMigrated {
        previous: VersionRef,
        definition: VersionRef,
        /// The new name of each state that has one.
        states: BTreeMap<String, String>,
    },
    /// Published by the flow's own plan.
    Custom {
        name: String,
        data: Json,
    },
}

/// What a plan changes besides the place of the instance.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// JSON Merge Patch for the instance's data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute>,
    /// Why the logic chose so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Event {
    /// The audit type, such as `TASK_CLAIMED`.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::FlowStarted { .. } => "FLOW_STARTED",
            Event::StateEntered { .. } => "STATE_ENTERED",
            Event::TaskCreated { .. } => "TASK_CREATED",
            Event::TaskClaimed { .. } => "TASK_CLAIMED",
            Event::TaskReleased { .. } => "TASK_RELEASED",
            Event::DecisionRecorded { .. } => "DECISION_RECORDED",
            Event::TaskDelegated { .. } => "TASK_DELEGATED",
            Event::TaskResolved { .. } => "TASK_RESOLVED",
            Event::TaskReassigned { .. } => "TASK_REASSIGNED",
            Event::TaskReset { .. } => "TASK_RESET",
            Event::TaskRerouted { .. } => "TASK_REROUTED",
            Event::TaskCancelled { .. } => "TASK_CANCELLED",
            Event::DeadlinePassed { .. } => "DEADLINE_PASSED",
            Event::TaskReminded { .. } => "TASK_REMINDED",
            Event::TaskEscalated { .. } => "TASK_ESCALATED",
            Event::StateReassigned { .. } => "STATE_REASSIGNED",
            Event::StateUnassignable { .. } => "STATE_UNASSIGNABLE",
            Event::StateAssignable { .. } => "STATE_ASSIGNABLE",
            Event::BranchArrived { .. } => "BRANCH_ARRIVED",
            Event::SignalReceived { .. } => "SIGNAL_RECEIVED",
            Event::SignalTaken { .. } => "SIGNAL_TAKEN",
            Event::ChildEnded { .. } => "CHILD_ENDED",
            Event::TriggerRefused { .. } => "TRIGGER_REFUSED",
            Event::FlowSuspended { .. } => "FLOW_SUSPENDED",
            Event::FlowResumed {} => "FLOW_RESUMED",
            Event::FlowRestarted { .. } => "FLOW_RESTARTED",
            Event::FlowMigrated { .. } => "FLOW_MIGRATED",
            Event::StateTransitioned { .. } => "STATE_TRANSITIONED",
            Event::StateContinued { .. } => "STATE_CONTINUED",
            Event::StateCancelled { .. } => "STATE_CANCELLED",
            Event::FlowCompleted { .. } => "FLOW_COMPLETED",
            Event::FlowCancelled { .. } => "FLOW_CANCELLED",
            Event::Custom { .. } => CUSTOM,
        }
    }

    /// Whether consumers see it.
    pub fn is_public(&self) -> bool {
        !matches!(
            self,
            Event::StateContinued { .. }
                | Event::DeadlinePassed { .. }
                | Event::StateReassigned { .. }
                | Event::BranchArrived { .. }
                | Event::SignalTaken { .. }
                | Event::TriggerRefused { .. }
        )
    }

    /// The task that it is about.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Event::TaskCreated { task, .. } => Some(task.id),
            Event::TaskClaimed { task, .. }
            | Event::TaskReleased { task, .. }
            | Event::TaskDelegated { task, .. }
            | Event::TaskResolved { task, .. }
            | Event::TaskReassigned { task, .. }
            | Event::TaskReset { task, .. }
            | Event::TaskRerouted { task, .. }
            | Event::DecisionRecorded { task, .. }
            | Event::TaskCancelled { task, .. } => Some(*task),
            Event::DeadlinePassed { task, .. }
            | Event::TaskReminded { task, .. }
            | Event::TaskEscalated { task, .. } => *task,
            _ => None,
        }
    }
}

/// The payload of an entry without the instance's data and the decider's input, which may be large or
/// confidential and are read over HTTP by those who may. It works on the stored text, so that numbers stay as
/// they were written and an older host still publishes what a newer one recorded.
pub fn public_view<'a>(kind: &str, payload: &'a str) -> Result<Vec<Member<'a>>, JsonError> {
    let mut members = members(payload)?;
    members.retain(|(name, _)| match &**name {
        "type" => false,
        "data" | "input" | "sender" => kind == CUSTOM,
        _ => true,
    });
    for (name, value) in &mut members {
        match &**name {
            "task" => leave_out(value, "form")?,
            // Children start with data of their own.
            "state" => leave_out(value, "children")?,
            _ => {}
        }
    }
    Ok(members)
}

/// Takes the member of this name from an object.
fn leave_out(object: &mut Cow<'_, str>, name: &str) -> Result<(), JsonError> {
    if !object.starts_with('{') || !object.contains(name) {
        return Ok(());
    }
    let all = members(object)?;
    let others = all.iter().filter(|(held, _)| held != name);
    let rest = Json::of_members(others.map(|(name, value)| (&**name, &**value)));
    *object = Cow::Owned(rest.to_string());
    Ok(())
}

/// The audit type of events that flows publish themselves.
pub const CUSTOM: &str = "CUSTOM";

/// The suffix of the CloudEvents type of an audit type: `task.claimed` for `TASK_CLAIMED`; the name that the
/// flow chose, below `custom.`, for its own events. The operator's prefix comes before it.
pub fn type_suffix(kind: &str, custom_name: Option<&str>) -> String {
    match custom_name {
        Some(name) => format!("custom.{name}"),
        None => kind.to_ascii_lowercase().replacen('_', ".", 1),
    }
}
