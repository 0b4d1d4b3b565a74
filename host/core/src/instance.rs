//! An instance: one run of a definition version, with its state instances and their tasks.

pub mod blind;
mod call;
mod task;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::call::{CallResult, OpenCall};
pub use self::task::{Candidate, Decision, Delegation, Ownership, Suspension, Task, TaskStatus};
use super::actor::Actor;
use super::answer::{AttributeValue, Due, OverdueAction, Share, SignalSubscription};
use super::declare::record;
use super::ids::{DeadlineId, ForkId, InstanceId, StateId, TaskId, VersionRef};
use super::json::Json;
use super::template::Labels;

/// The stored state of one run. Flow logic and readers are shown the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    pub id: InstanceId,
    pub definition: VersionRef,
    /// The optimistic lock: every change of the instance or of a part of it adds one.
    pub revision: u32,
    pub entity: Entity,
    pub initiator: String,
    /// The initiator, and the requesters of the predecessor and the parent.
    pub requesters: Vec<String>,
    pub status: Status,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    pub predecessor: Option<InstanceId>,
    pub parent: Option<InstanceId>,
    pub data: Json,
    /// By the templates of the definition.
    #[serde(default)]
    pub labels: Labels,
    /// Whether no other instance may run about its entity, as its version declares.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub sole: bool,
    /// The groups that see it besides its [participants](super::participant), as its version declares. None: everybody of the
    /// tenant sees it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub observers: Option<Vec<String>>,
    pub attributes: BTreeMap<String, AttributeValue>,
    /// Active state instances, oldest first.
    pub active: Vec<StateInstance>,
    /// Joins that some branches have reached and others have not.
    pub waiting: Vec<StateInstance>,
    /// State instances that have ended, oldest first.
    pub past: Vec<PastState>,
    /// Buffered signals, which no state instance has taken yet, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub buffered: Vec<BufferedSignal>,
}

/// A signal that was kept because nothing waited for it yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BufferedSignal {
    pub id: String,
    pub trigger: String,
    pub input: Json,
    /// Who sent it, with the groups and permissions of that moment.
    pub sender: Actor,
    pub at: Timestamp,
}

record! {
    /// The subject of an instance, such as a document or a purchase order.
    #[derive(Eq)]
    pub struct Entity {
        /// The type of the entity.
        #[serde(rename = "type")]
        pub kind: String,
        /// The id of the entity in its own system.
        pub id: String,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE", tag = "name")]
pub enum Status {
    Running,
    /// Nothing happens to it and its deadlines are paused. No other instance of the definition can start about its entity.
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
    /// The name of the status, as stored and shown.
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

record! {
    /// One visit of an instance to a state.
    pub struct StateInstance {
        columns {
            /// The state instance.
            #[public("id")]
            pub id: StateId,
            /// The state's name.
            #[public("name")]
            pub name: String,
            /// When it was entered.
            #[public("enteredAt")]
            pub entered_at: Timestamp,
            // The next deadline of the state as a whole, or the last one when all have passed.
            /// When its work is due.
            #[public("dueAt")]
            pub due_at: Option<Timestamp>,
            // Several after a join.
            /// The state instances that led here, in order.
            pub predecessors: Vec<StateId>,
            // None for the initial state.
            /// The trigger that led here.
            #[public("enteredTrigger")]
            pub entered_trigger: Option<String>,
            // None for the host itself.
            /// Who fired it.
            pub caller: Option<String>,
            /// How many decisions with the same outcome the state needs.
            #[public("needed")]
            pub needed: u32,
            /// People who must not decide.
            pub exclude: Vec<String>,
            /// The group that becomes a candidate when nobody else is eligible.
            pub fallback: Option<String>,
            /// Higher is more urgent.
            #[public("priority")]
            pub priority: u8,
            /// The forks around it, from the outermost.
            #[serde(skip_serializing_if = "Vec::is_empty", default)]
            pub forks: Vec<ForkId>,
            // Bit 0 is for choices outside any fork.
            /// Bit n: inside the n-th fork, a plan chose one of several targets for its branch.
            #[serde(skip_serializing_if = "is_zero", default)]
            pub choices: u32,
            // Those of the state as a whole.
            /// Its open deadlines.
            #[serde(skip_serializing_if = "Vec::is_empty", default)]
            pub deadlines: Vec<OpenDeadline>,
            // Chosen by the flow. Those with a correlation key have rows of their own besides.
            /// How signals reach it besides being sent to its instance.
            #[public("subscriptions")]
            #[serde(skip_serializing_if = "Vec::is_empty", default)]
            pub subscriptions: Vec<SignalSubscription>,
            /// The instances that it started, in the order of the flow's answer.
            #[serde(skip_serializing_if = "Vec::is_empty", default)]
            pub children: Vec<ChildInstance>,
            /// Since when nobody is able to do its work.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub unassignable_since: Option<Timestamp>,
            // No two active ones of a state have the same.
            /// Which item it is for, as its plan said.
            #[public("key")]
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub key: Option<String>,
            /// What its plan told it of the item.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub data: Option<Json>,
            /// The name of its priority, if its definition has one.
            #[public("priorityName")]
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub priority_name: Option<String>,
            // `needed` follows it, whatever tasks are made or withdrawn.
            /// The part of its tasks that it needs decisions of.
            #[public("share")]
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub share: Option<Share>,
            // Set when it is entered, and never changed.
            /// Whether its decisions are hidden from other people until it ends.
            #[public("blind")]
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            pub blind: bool,
            // Chosen by the flow. The host makes it until it has a result.
            // Not public: its request may be confidential.
            /// The service call of a service state.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub call: Option<OpenCall>,
        }
        besides {
            /// Empty: each task has a separate event.
            pub tasks: Vec<Task>,
        }
    }
}

impl StateInstance {
    /// The columns that [`clear`](Self::clear) clears. Their last values stay in the row.
    pub const CLEARED: [&str; 2] = ["deadlines", "unassignable_since"];

    /// Clears what has no meaning once the state is left.
    pub fn clear(&mut self) {
        self.deadlines.clear();
        self.unassignable_since = None;
    }

    /// A state instance without work, entered now.
    pub fn new(id: StateId, name: &str, at: Timestamp) -> StateInstance {
        StateInstance {
            id,
            name: name.to_owned(),
            entered_at: at,
            due_at: None,
            predecessors: Vec::new(),
            entered_trigger: None,
            caller: None,
            needed: 1,
            exclude: Vec::new(),
            fallback: None,
            priority: 0,
            tasks: Vec::new(),
            forks: Vec::new(),
            choices: 0,
            deadlines: Vec::new(),
            subscriptions: Vec::new(),
            children: Vec::new(),
            unassignable_since: None,
            key: None,
            data: None,
            priority_name: None,
            share: None,
            blind: false,
            call: None,
        }
    }

    /// The subscriptions with a correlation key, each with its key.
    pub fn correlated(&self) -> impl Iterator<Item = (&SignalSubscription, &str)> {
        let all = self.subscriptions.iter();
        all.filter_map(|one| Some((one, one.correlation.as_deref()?)))
    }

    /// The service call that has no result yet.
    pub fn open_call(&self) -> Option<&OpenCall> {
        self.call.as_ref().filter(|call| call.result.is_none())
    }

    /// Whether it takes buffered signals of this trigger.
    pub(crate) fn takes_buffered(&self, trigger: &str) -> bool {
        let mut all = self.subscriptions.iter();
        all.any(|one| one.buffered && one.trigger == trigger)
    }

    /// Counts what is needed again, if that is a part of the tasks. Those that were withdrawn do not count.
    pub fn recount(&mut self) {
        let Some(share) = self.share else {
            return;
        };
        let tasks = self.tasks.iter();
        let counted = tasks.filter(|task| !matches!(task.status, TaskStatus::Cancelled { .. }));
        self.needed = share.of(counted.count());
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(bits: &u32) -> bool {
    *bits == 0
}

/// A deadline whose work has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenDeadline {
    pub id: DeadlineId,
    /// None while it does not count: it counts from the claim of its task, and nobody owns the task.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub due_at: Option<Timestamp>,
    /// How long it counts from each claim of its task; none if it counts from the creation of its work.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub since_claim: Option<Due>,
    /// Seconds between repetitions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repeat: Option<u32>,
    pub action: OverdueAction,
    /// How many times it has passed.
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
    /// The data that it starts with.
    pub data: Json,
    /// The trigger that its end fires.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on_end: Option<String>,
    /// Whether it goes on when the state instance ends before it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub detached: bool,
    /// Its outcome, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<String>,
    /// The version that it ran, once it has ended; none if it could not be started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<u32>,
}

/// The outcome, for its parent, of a child that was cancelled.
pub const CHILD_CANCELLED: &str = "CANCELLED";
/// The outcome, for its parent, of a child that could not be started.
pub const CHILD_NOT_STARTED: &str = "NOT_STARTED";

/// A state instance that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastState {
    #[serde(flatten)]
    pub state: StateInstance,
    pub left_at: Timestamp,
    /// The trigger that ended it, or `CANCEL`.
    pub left_trigger: String,
    /// Who fired it; none for the host itself.
    pub actor: Option<String>,
}

impl PastState {
    /// The sort key of past state instances: when they were left, then when they were entered.
    pub fn order(&self) -> (Timestamp, Timestamp, StateId) {
        (self.left_at, self.state.entered_at, self.state.id)
    }
}

impl Instance {
    /// The active state instance and the task of this id in it.
    pub fn open_task(&self, id: TaskId) -> Option<(&StateInstance, &Task)> {
        self.active.iter().find_map(|state| {
            state
                .tasks
                .iter()
                .find(|task| task.id == id)
                .map(|task| (state, task))
        })
    }

    /// The task of this id in any state instance, past ones included.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.state_instances()
            .flat_map(|state| &state.tasks)
            .find(|task| task.id == id)
    }

    /// Whether an active state instance takes one of the buffered signals. One command takes only some of them.
    pub fn has_signal_to_take(&self) -> bool {
        let takes = |signal: &BufferedSignal| {
            let mut active = self.active.iter();
            active.any(|one| one.takes_buffered(&signal.trigger))
        };
        self.buffered.iter().any(takes)
    }

    /// Sorts the state instances into the order in which they are shown.
    pub fn sort(&mut self) {
        self.past.sort_by_key(PastState::order);
        self.active
            .sort_by_key(|state_instance| (state_instance.entered_at, state_instance.id));
        self.waiting
            .sort_by_key(|state_instance| (state_instance.entered_at, state_instance.id));
    }

    /// Frees memory that the lists of large items have allocated and do not use. A list that was empty before its first item has room
    /// for four.
    pub fn shrink_to_fit(&mut self) {
        self.past.shrink_to_fit();
        self.waiting.shrink_to_fit();
        self.active.shrink_to_fit();
        let past = self.past.iter_mut().map(|past| &mut past.state);
        for state_instance in past.chain(&mut self.waiting).chain(&mut self.active) {
            state_instance.tasks.shrink_to_fit();
            state_instance.children.shrink_to_fit();
        }
    }

    /// All state instances, past ones first.
    pub fn state_instances(&self) -> impl Iterator<Item = &StateInstance> {
        self.past
            .iter()
            .map(|past| &past.state)
            .chain(&self.waiting)
            .chain(&self.active)
    }
}

#[cfg(test)]
mod tests;
