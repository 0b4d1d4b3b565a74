//! An instance: one run of a definition version, with the stays in its states and their tasks.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::actor::Actor;
use super::answer::{AttributeValue, OverdueAction, Principal};
use super::event::stored::StoredTask;
use super::ids::{DeadlineId, ForkId, InstanceId, StateId, TaskId, VersionRef};
use super::json::Json;

/// The stored facts of one run, as flow logic, decisions and readers see them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    pub id: InstanceId,
    pub definition: VersionRef,
    /// The optimistic lock: every change of the instance or of anything in it adds one.
    pub revision: u32,
    pub entity: Entity,
    pub initiator: String,
    /// The initiator, and those of the predecessor and the parent.
    pub requesters: Vec<String>,
    pub status: Status,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    pub predecessor: Option<InstanceId>,
    pub parent: Option<InstanceId>,
    pub data: Json,
    pub attributes: BTreeMap<String, AttributeValue>,
    /// States being worked on, oldest first.
    pub active: Vec<StateInstance>,
    /// Joins that some branches have reached and others not yet.
    pub waiting: Vec<StateInstance>,
    /// States already left, oldest first.
    pub past: Vec<PastState>,
    /// Signals that came before a state waited for them, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub early: Vec<EarlySignal>,
}

/// A signal that waits for the state that takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlySignal {
    pub id: String,
    pub trigger: String,
    pub input: Json,
    /// Who sent it, with the standing of that moment.
    pub sender: Actor,
    pub at: Timestamp,
}

/// What the instance is about: a document, a purchase order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    #[serde(rename = "type")]
    pub kind: String,
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE", tag = "name")]
pub enum Status {
    Running,
    /// Keeps its entity's place, and nothing happens to it; its deadlines rest.
    Suspended {
        reason: String,
        by: String,
        at: Timestamp,
    },
    /// Reached a terminal state with this outcome.
    Completed {
        outcome: String,
        at: Timestamp,
    },
    Cancelled {
        reason: String,
        by: String,
        at: Timestamp,
    },
}

impl Status {
    /// The status without its details, as stored and shown.
    pub fn name(&self) -> &'static str {
        match self {
            Status::Running => "RUNNING",
            Status::Suspended { .. } => "SUSPENDED",
            Status::Completed { .. } => "COMPLETED",
            Status::Cancelled { .. } => "CANCELLED",
        }
    }

    /// When the instance ended, if it has.
    pub fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Status::Running | Status::Suspended { .. } => None,
            Status::Completed { at, .. } | Status::Cancelled { at, .. } => Some(*at),
        }
    }
}

/// One stay in a state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateInstance {
    pub id: StateId,
    pub name: String,
    pub entered_at: Timestamp,
    /// The next deadline of the state as a whole, or the last one when all have passed.
    pub due_at: Option<Timestamp>,
    /// The stays it was entered from, in order; several after a join.
    pub predecessors: Vec<StateId>,
    /// The trigger that led here; none for the initial state.
    pub entered_by: Option<String>,
    /// Who fired that trigger; none for the host itself.
    pub caller: Option<String>,
    pub needed: u32,
    pub exclude: Vec<String>,
    pub fallback: Option<String>,
    pub priority: u8,
    pub tasks: Vec<Task>,
    /// The forks around it, from the outermost.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub forks: Vec<ForkId>,
    /// Bit n is set when its branch was one chosen among several since the n-th fork around it was opened; bit 0
    /// stands for the time before any fork.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub choices: u32,
    /// Of the state as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub deadlines: Vec<OpenDeadline>,
    /// A name of the flow's own by which signals find it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub correlation: Option<String>,
    /// Signals that came before it was entered count.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub keep_early: bool,
    /// The instances that it started, in the order of its answer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub children: Vec<ChildInstance>,
    /// Since when nobody is able to do its work.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unassignable_since: Option<Timestamp>,
}

impl StateInstance {
    /// A stay without work, entered now.
    pub fn new(id: StateId, name: &str, at: Timestamp) -> StateInstance {
        StateInstance {
            id,
            name: name.to_owned(),
            entered_at: at,
            due_at: None,
            predecessors: Vec::new(),
            entered_by: None,
            caller: None,
            needed: 1,
            exclude: Vec::new(),
            fallback: None,
            priority: 0,
            tasks: Vec::new(),
            forks: Vec::new(),
            choices: 0,
            deadlines: Vec::new(),
            correlation: None,
            keep_early: false,
            children: Vec::new(),
            unassignable_since: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(bits: &u32) -> bool {
    *bits == 0
}

/// Something that happens when it is not forestalled in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenDeadline {
    pub id: DeadlineId,
    pub due_at: Timestamp,
    /// Seconds between repetitions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repeat: Option<u32>,
    pub action: OverdueAction,
    /// How often it has passed.
    pub count: u32,
}

/// An instance that a wait state started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildInstance {
    pub id: InstanceId,
    /// The key of its definition.
    pub key: String,
    pub entity: Entity,
    /// What it starts with.
    pub data: Json,
    /// The trigger that its end fires.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on_end: Option<String>,
    /// Its outcome, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<String>,
}

/// The outcome, for its parent, of a child that was cancelled.
pub const CHILD_CANCELLED: &str = "CANCELLED";
/// The outcome, for its parent, of a child that could not be started.
pub const CHILD_NOT_STARTED: &str = "NOT_STARTED";

/// A stay that is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastState {
    #[serde(flatten)]
    pub state: StateInstance,
    pub left_at: Timestamp,
    /// The trigger that ended it, or `CANCEL`.
    pub left_by: String,
    /// Who fired it; none for the host itself.
    pub actor: Option<String>,
}

impl PastState {
    /// What past stays are ordered by: when they were left, then in the order of entering.
    pub fn order(&self) -> (Timestamp, Timestamp, StateId) {
        (self.left_at, self.state.entered_at, self.state.id)
    }
}

/// A work item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "StoredTask")]
pub struct Task {
    pub id: TaskId,
    pub label: String,
    pub candidates: Vec<Principal>,
    /// JSON Schema of what the decider fills in.
    pub form: Option<Json>,
    pub created_at: Timestamp,
    /// The next deadline of this task alone, or the last one when all have passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadlines: Vec<OpenDeadline>,
    #[serde(flatten)]
    pub status: TaskStatus,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase",
    tag = "status"
)]
pub enum TaskStatus {
    /// Waits for a candidate to claim it.
    Pending,
    Claimed {
        owner: String,
        claimed_at: Timestamp,
        #[serde(skip_serializing_if = "Holding::is_plain")]
        holding: Holding,
    },
    Completed {
        owner: String,
        claimed_at: Timestamp,
        decision: Decision,
    },
    Cancelled {
        owner: Option<String>,
        cancelled_at: Timestamp,
        /// Why the host did so of itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// How an owner came by a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holding {
    /// Given to them by an assignment or an operator: they need not be a candidate.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub assigned: bool,
    /// The absent candidate for whom they claimed it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on_behalf_of: Option<String>,
    /// Who handed it on to whom, oldest first; the owner is the last one's.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub delegations: Vec<Delegation>,
}

/// One handing on of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delegation {
    pub from: String,
    pub to: String,
    pub reason: String,
    pub at: Timestamp,
}

impl Holding {
    /// Whether the owner claimed it as a candidate, and keeps it.
    pub fn is_plain(&self) -> bool {
        *self == Holding::default()
    }

    /// Whose work it is, where that is not the owner.
    pub fn principal(&self) -> Option<&str> {
        let delegated = self.delegations.first().map(|first| first.from.as_str());
        self.on_behalf_of.as_deref().or(delegated)
    }
}

impl TaskStatus {
    /// The status without its details, as stored and shown.
    pub fn name(&self) -> &'static str {
        match self {
            TaskStatus::Pending => "PENDING",
            TaskStatus::Claimed { .. } => "CLAIMED",
            TaskStatus::Completed { .. } => "COMPLETED",
            TaskStatus::Cancelled { .. } => "CANCELLED",
        }
    }

    /// Whether somebody may still act on the task.
    pub fn is_open(&self) -> bool {
        matches!(self, TaskStatus::Pending | TaskStatus::Claimed { .. })
    }
}

/// The owner's outcome on a task. Never changed afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    pub outcome: String,
    pub actor: String,
    pub on_behalf_of: Option<String>,
    pub comment: Option<String>,
    pub input: Json,
    pub decided_at: Timestamp,
}

impl Task {
    /// Who owns or owned the task.
    pub fn owner(&self) -> Option<&str> {
        match &self.status {
            TaskStatus::Pending => None,
            TaskStatus::Claimed { owner, .. } | TaskStatus::Completed { owner, .. } => Some(owner),
            TaskStatus::Cancelled { owner, .. } => owner.as_deref(),
        }
    }

    /// The decision, once there is one.
    pub fn decision(&self) -> Option<&Decision> {
        match &self.status {
            TaskStatus::Completed { decision, .. } => Some(decision),
            TaskStatus::Pending | TaskStatus::Claimed { .. } | TaskStatus::Cancelled { .. } => None,
        }
    }
}

impl Instance {
    /// The active stay and the task of this id in it.
    pub fn open_task(&self, id: TaskId) -> Option<(&StateInstance, &Task)> {
        self.active.iter().find_map(|state| {
            state
                .tasks
                .iter()
                .find(|task| task.id == id)
                .map(|task| (state, task))
        })
    }

    /// The task of this id, wherever it stands.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.stays()
            .flat_map(|state| &state.tasks)
            .find(|task| task.id == id)
    }

    /// Puts the stays in the order in which everybody sees them.
    pub fn sort(&mut self) {
        self.past.sort_by_key(PastState::order);
        self.active.sort_by_key(|stay| (stay.entered_at, stay.id));
        self.waiting.sort_by_key(|stay| (stay.entered_at, stay.id));
    }

    /// All stays, past ones first.
    pub fn stays(&self) -> impl Iterator<Item = &StateInstance> {
        self.past
            .iter()
            .map(|past| &past.state)
            .chain(&self.waiting)
            .chain(&self.active)
    }
}
