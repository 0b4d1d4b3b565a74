//! The events of an instance. [`apply`](super::apply) folds them into the instance.

mod about;
mod declare;
mod disclosed;
mod public;
pub mod reasons;

use std::collections::BTreeMap;

pub use self::about::About;
use self::declare::events;
pub use self::disclosed::Disclosed;
pub use self::public::{CUSTOM, DefinitionTexts, EventContext, published, type_suffix};
pub(crate) use self::public::{changed_pointers, is_blind};
use super::actor::Actor;
use super::answer::{Attribute, Note, OverdueAction, Share, SignalSubscription};
use super::ids::{DeadlineId, InstanceId, StateId, TaskId, VersionRef};
use super::instance::{CallResult, Candidate, Entity, OpenDeadline, StateInstance, Task};
use super::json::Json;
use jiff::Timestamp;

events! {
    /// One fact. Its JSON is the payload of an audit entry.
    pub enum Event {
        /// An instance started.
        public FlowStarted = "FLOW_STARTED" {
            /// The version that it runs.
            definition: VersionRef,
            /// The entity that it is about.
            entity: Entity,
            /// Who started it.
            #[public("initiator")] initiator: String,
            /// The requesters, who must not decide in it.
            #[public("requesters")] requesters: Vec<String>,
            /// The ended instance that it restarts.
            #[public("predecessorId")] predecessor: Option<InstanceId>,
            /// The parent instance, which started it.
            #[public("parentId")] parent: Option<InstanceId>,
            /// The data that it starts with.
            #[public("dataPointers", Pointers)] data: Json,
            /// Its title, by the template of its definition.
            #[serde(skip_serializing_if = "Option::is_none")] title: Option<String>,
            /// Its summary, by the template of its definition.
            #[serde(skip_serializing_if = "Option::is_none")] summary: Option<String>,
            /// Whether no other instance may run about the entity.
            #[public("sole")] #[serde(skip_serializing_if = "std::ops::Not::not")] sole: bool,
            /// The groups that see it besides its participants; absent if everybody of the tenant does.
            #[serde(skip_serializing_if = "Option::is_none")] observers: Option<Vec<String>>,
        }
        /// An instance entered a state.
        public StateEntered = "STATE_ENTERED" {
            /// The state instance.
            #[public("state")] state: StateInstance,
            /// Whether a decision that is hidden led to it: who made it and the trigger are hidden, too.
            #[public("blind")] #[serde(skip_serializing_if = "std::ops::Not::not")] blind: bool,
        }
        /// A task was created.
        public TaskCreated = "TASK_CREATED" {
            /// The state instance.
            state: StateId,
            /// The state's name.
            #[public("stateName")] state_name: String,
            /// The task.
            #[public("task")] task: Task,
        }
        /// A candidate, or a substitute of one, claimed a task.
        public TaskClaimed = "TASK_CLAIMED" {
            /// The task.
            task: TaskId,
            /// The state instance.
            state: StateId,
            /// The new owner.
            #[public("owner")] owner: String,
            /// The absent candidate for whom the owner claimed it.
            #[public("onBehalfOf")] #[serde(skip_serializing_if = "Option::is_none")] on_behalf_of: Option<String>,
            /// The deadlines that count from this claim.
            #[serde(skip_serializing_if = "Vec::is_empty")] deadlines: Vec<OpenDeadline>,
        }
        /// A task lost its owner; its candidates may claim it again.
        public TaskReleased = "TASK_RELEASED" {
            /// The task.
            task: TaskId,
            /// The state instance.
            state: StateId,
            /// The former owner.
            #[public("previousOwner")] owner: String,
            /// Why it was released; absent if the owner released it.
            #[public("reason", RELEASE)] #[serde(skip_serializing_if = "Option::is_none")] reason: Option<String>,
            /// The reason, for people.
            #[public("message")] #[serde(skip_serializing_if = "Option::is_none")] message: Option<String>,
            /// Whether a decision that is hidden took it from its owner: who made it is hidden, too.
            #[public("blind")] #[serde(skip_serializing_if = "std::ops::Not::not")] blind: bool,
        }
        /// A task was delegated.
        public TaskDelegated = "TASK_DELEGATED" {
            /// The task.
            task: TaskId,
            /// The state instance.
            state: StateId,
            /// The former owner.
            #[public("previousOwner")] from: String,
            /// The new owner.
            #[public("owner")] to: String,
            /// The reason for the delegation.
            #[public("reason")] reason: String,
        }
        /// A delegate gave a task back to the person who delegated it.
        public TaskResolved = "TASK_RESOLVED" {
            /// The task.
            task: TaskId,
            /// The state instance.
            state: StateId,
            /// The former owner: the delegate.
            #[public("previousOwner")] from: String,
            /// The new owner: the person who had delegated it.
            #[public("owner")] to: String,
        }
        /// An operator gave a task to another owner.
        public TaskReassigned = "TASK_REASSIGNED" {
            /// The task.
            task: TaskId,
            /// The state instance.
            state: StateId,
            /// The former owner, if it had one.
            #[public("previousOwner")] previous: Option<String>,
            /// The new owner.
            #[public("owner")] to: String,
            /// The reason for the reassignment.
            #[public("reason")] reason: String,
            /// The deadlines that count from now, as after a claim.
            #[serde(skip_serializing_if = "Vec::is_empty")] deadlines: Vec<OpenDeadline>,
        }
        /// An operator opened a claimed task for its candidates again.
        public TaskReset = "TASK_RESET" {
            /// The task.
            task: TaskId,
            /// The state instance.
            state: StateId,
            /// The former owner.
            #[public("previousOwner")] owner: String,
            /// The reason for the reset.
            #[public("reason")] reason: String,
        }
        /// A task was suspended: nobody may decide it, and its own deadlines do not count.
        public TaskSuspended = "TASK_SUSPENDED" {
            /// The task.
            task: TaskId,
            /// The state instance.
            state: StateId,
            /// The reason for the suspension.
            #[public("reason")] #[serde(skip_serializing_if = "Option::is_none")] reason: Option<String>,
            /// When the host resumes it.
            #[public("until")] #[serde(skip_serializing_if = "Option::is_none")] until: Option<Timestamp>,
        }
        /// A suspended task was resumed, by somebody or by the host at the time that was set.
        public TaskResumed = "TASK_RESUMED" {
            /// The task.
            task: TaskId,
            /// The state instance.
            state: StateId,
        }
        /// The candidates of a task changed: because too few people were eligible, after a migration, or because a plan offered
        /// the work anew.
        public TaskRerouted = "TASK_REROUTED" {
            /// The task.
            task: TaskId,
            /// The state instance.
            state: StateId,
            /// Why: `manager` or `fallback` was added because too few people were eligible, the work was `migrated` or
            /// `reoffered`, or a candidate `left_group`.
            #[public("step", STEP)] step: String,
            /// The new candidates.
            #[public("candidates")] candidates: Vec<Candidate>,
            /// The candidates before.
            #[public("previousCandidates")] previous: Vec<Candidate>,
        }
        /// A task was decided.
        public DecisionRecorded = "DECISION_RECORDED" {
            /// The task.
            task: TaskId,
            /// The state instance.
            state: StateId,
            /// The state's name.
            #[public("stateName")] state_name: String,
            /// The chosen outcome; absent if it is blind.
            #[public("outcome")] #[serde(skip_serializing_if = "String::is_empty")] outcome: String,
            /// The person on whose behalf the decision was made.
            #[public("onBehalfOf")] on_behalf_of: Option<String>,
            /// The comment on the decision.
            #[public("comment")] comment: Option<String>,
            /// The decider's input.
            #[public("input", Input)] input: Json,
            /// Whether the decision is hidden until its state ends: who made it, the outcome and the comment.
            #[public("blind")] #[serde(skip_serializing_if = "std::ops::Not::not")] blind: bool,
        }
        /// The decisions of a state in which they were hidden. It ends with the same command.
        public StateDisclosed = "STATE_DISCLOSED" {
            /// The state instance.
            state: StateId,
            /// The state's name.
            #[public("stateName")] name: String,
            /// Its decisions, in the order of the tasks.
            #[public("decisions")] decisions: Vec<Disclosed>,
        }
        /// A task was cancelled.
        public TaskCancelled = "TASK_CANCELLED" {
            /// The task.
            task: TaskId,
            /// The state instance.
            state: StateId,
            /// Why it was cancelled; absent if its state or instance ended.
            #[public("reason", CANCELLATION)] #[serde(skip_serializing_if = "Option::is_none")] reason: Option<String>,
        }
        /// A deadline passed. Its effects are further events of the same command.
        internal DeadlinePassed = "DEADLINE_PASSED" {
            /// The deadline.
            deadline: DeadlineId,
            /// The state instance.
            state: StateId,
            /// None for a deadline of the state as a whole.
            task: Option<TaskId>,
            /// Its action.
            action: OverdueAction,
            /// When it was due.
            due_at: Timestamp,
            /// How many times it has passed.
            count: u32,
            /// How late the host was, in seconds.
            late: u64,
            /// When it is due next; none if it does not repeat.
            next: Option<Timestamp>,
        }
        /// Work is due, and its owners or candidates are reminded.
        public TaskReminded = "TASK_REMINDED" {
            /// The state instance.
            state: StateId,
            /// The task; none for all open tasks of the state.
            task: Option<TaskId>,
            /// The owners, or the candidates of tasks without an owner.
            #[public("recipients")] recipients: Vec<Candidate>,
            /// When it was due.
            #[public("dueAt")] due_at: Timestamp,
            /// How many times they were reminded.
            #[public("count")] count: u32,
        }
        /// Work was escalated: overdue work, whose old tasks are cancelled and new ones follow, or a task for which too few people were
        /// eligible, and which goes to others as well.
        public TaskEscalated = "TASK_ESCALATED" {
            /// The state instance.
            state: StateId,
            /// The task; none for all open tasks of the state.
            task: Option<TaskId>,
            /// Why: `overdue` or `too_few_eligible`.
            #[public("reason", ESCALATION)] reason: String,
            /// The former owners, or the candidates of tasks without an owner.
            #[public("previousCandidates")] from: Vec<Candidate>,
            /// The new candidates; absent for overdue work, whose new tasks have them.
            #[public("candidates")] #[serde(skip_serializing_if = "Vec::is_empty")] to: Vec<Candidate>,
            /// When it was due; absent if it was not overdue.
            #[public("dueAt")] #[serde(skip_serializing_if = "Option::is_none")] due_at: Option<Timestamp>,
            /// How many times overdue work was escalated; absent if it was not overdue.
            #[public("count")] #[serde(skip_serializing_if = "Option::is_none")] count: Option<u32>,
        }
        /// The assignment of a state changed: after a migration, because a plan offered the work anew, or because of a decision
        /// in a state that is separate from it.
        internal StateReassigned = "STATE_REASSIGNED" {
            /// The state instance.
            state: StateId,
            /// How many decisions with the same outcome the state needs.
            needed: u32,
            /// The part of its tasks that this number is.
            #[serde(skip_serializing_if = "Option::is_none")] share: Option<Share>,
            /// People who must not decide.
            exclude: Vec<String>,
            /// The group that gets the work when nobody else is left.
            fallback: Option<String>,
            /// Higher is more urgent.
            priority: u8,
            /// The name of the priority.
            #[serde(skip_serializing_if = "Option::is_none")] priority_name: Option<String>,
            /// The new deadlines of the state as a whole; none if they stay as they are.
            deadlines: Option<Vec<OpenDeadline>>,
            /// How signals reach the state from now on; none if that stays as it is.
            #[serde(skip_serializing_if = "Option::is_none")] subscriptions: Option<Vec<SignalSubscription>>,
        }
        /// Too few people are eligible for the work of a state.
        public StateUnassignable = "STATE_UNASSIGNABLE" {
            /// The state instance.
            state: StateId,
            /// The state's name.
            #[public("stateName")] name: String,
        }
        /// Enough people are eligible for the work of a state again.
        public StateAssignable = "STATE_ASSIGNABLE" {
            /// The state instance.
            state: StateId,
            /// The state's name.
            #[public("stateName")] name: String,
        }
        /// A branch arrived at a join and waits for others.
        internal BranchArrived = "BRANCH_ARRIVED" {
            /// The join, with the branches that have arrived.
            state: StateInstance,
        }
        /// A signal was received.
        public SignalReceived = "SIGNAL_RECEIVED" {
            /// The sender's id of the signal.
            #[public("id")] id: String,
            /// The trigger that it fires.
            #[public("trigger")] trigger: String,
            /// The state instance that takes it; none if it is buffered.
            state: Option<StateId>,
            /// The sender's input.
            #[public("input", Input)] input: Json,
            /// The sender, with their groups and permissions at that time.
            sender: Actor,
        }
        /// A buffered signal was taken by a state, or dropped when a state was entered that takes no buffered signals.
        internal SignalTaken = "SIGNAL_TAKEN" {
            /// The sender's id of the signal.
            id: String,
            /// The state instance.
            state: StateId,
            /// How many older buffered signals have the same id; none if it is the oldest.
            #[serde(skip_serializing_if = "Option::is_none")] older: Option<u32>,
        }
        /// A child instance ended or could not be started.
        public ChildEnded = "CHILD_ENDED" {
            /// The state instance.
            state: StateId,
            /// The child.
            #[public("childId")] child: InstanceId,
            /// The version that it ran; none if it could not be started.
            #[public("childVersion")] #[serde(skip_serializing_if = "Option::is_none")] version: Option<u32>,
            /// Its outcome.
            #[public("outcome")] outcome: String,
            /// Why it could not be started.
            #[public("reason")] #[serde(skip_serializing_if = "Option::is_none")] reason: Option<String>,
        }
        /// A service is called for a state.
        public ServiceRequested = "SERVICE_REQUESTED" {
            /// The state instance.
            state: StateId,
            /// The name of the service.
            #[public("service")] service: String,
        }
        /// A service answered.
        public ServiceAnswered = "SERVICE_ANSWERED" {
            /// The state instance.
            state: StateId,
            /// The name of the service.
            #[public("service")] service: String,
            /// What became of the call.
            #[public("result")] result: CallResult,
        }
        /// The last attempt to call a service failed.
        public ServiceFailed = "SERVICE_FAILED" {
            /// The state instance.
            state: StateId,
            /// The name of the service.
            #[public("service")] service: String,
            /// What became of the call.
            #[public("result")] result: CallResult,
        }
        /// The trigger of a deadline, a child's end, a service or a buffered signal was refused, or came too late.
        internal TriggerRefused = "TRIGGER_REFUSED" {
            /// The state instance.
            state: StateId,
            /// The trigger.
            trigger: String,
            /// The reason, for programs.
            code: String,
            /// The reason, for people.
            message: String,
        }
        /// A trigger moved an instance from one state to the next states.
        public StateTransitioned = "STATE_TRANSITIONED" {
            /// The state instance.
            state: StateId,
            /// The state's name.
            #[public("stateName")] from: String,
            /// The trigger.
            #[public("trigger")] trigger: String,
            /// The names of the next states; empty if the branch ends.
            #[public("to")] to: Vec<String>,
            /// JSON Merge Patch for the instance's data.
            #[public("dataPointers", Pointers)] #[serde(skip_serializing_if = "Option::is_none")] data: Option<Json>,
            /// Attributes that changed.
            #[public("attributes")] #[serde(skip_serializing_if = "Vec::is_empty")] attributes: Vec<Attribute>,
            /// Their values before, of those that had one.
            #[public("previousAttributes")] #[serde(skip_serializing_if = "Vec::is_empty")] previous: Vec<Attribute>,
            /// The flow's notes on why it chose this plan.
            #[public("notes")] #[serde(skip_serializing_if = "Vec::is_empty")] notes: Vec<Note>,
        }
        /// A trigger had effects, and the state stays active.
        public StateContinued = "STATE_CONTINUED" {
            /// The state instance.
            state: StateId,
            /// The trigger; absent if it is blind.
            #[public("trigger")] #[serde(skip_serializing_if = "String::is_empty")] trigger: String,
            /// The names of the states that begin beside it.
            #[public("to")] #[serde(skip_serializing_if = "Vec::is_empty")] to: Vec<String>,
            /// JSON Merge Patch for the instance's data.
            #[public("dataPointers", Pointers)] #[serde(skip_serializing_if = "Option::is_none")] data: Option<Json>,
            /// Attributes that changed.
            #[public("attributes")] #[serde(skip_serializing_if = "Vec::is_empty")] attributes: Vec<Attribute>,
            /// Their values before, of those that had one.
            #[public("previousAttributes")] #[serde(skip_serializing_if = "Vec::is_empty")] previous: Vec<Attribute>,
            /// The flow's notes on why it chose this plan; absent if it is blind.
            #[public("notes")] #[serde(skip_serializing_if = "Vec::is_empty")] notes: Vec<Note>,
            /// Whether it follows a decision that is hidden until the state ends: who made it, the trigger and the notes.
            #[public("blind")] #[serde(skip_serializing_if = "std::ops::Not::not")] blind: bool,
        }
        /// A flow or a join that waits for a count cancelled a state of another branch.
        public StateCancelled = "STATE_CANCELLED" {
            /// The state instance.
            state: StateId,
            /// The state's name.
            #[public("stateName")] name: String,
            /// The trigger whose plan cancelled it, or by which the last branch arrived at the join; absent if it is blind.
            #[public("trigger")] #[serde(skip_serializing_if = "String::is_empty")] trigger: String,
            /// Whether a decision that is hidden cancelled it: who made it and the trigger are hidden, too.
            #[public("blind")] #[serde(skip_serializing_if = "std::ops::Not::not")] blind: bool,
        }
        /// An instance reached a terminal state.
        public FlowCompleted = "FLOW_COMPLETED" {
            /// Its outcome.
            #[public("outcome")] outcome: String,
        }
        /// An instance was cancelled.
        public FlowCancelled = "FLOW_CANCELLED" {
            /// The reason for the cancellation.
            #[public("reason")] reason: String,
            /// The deadline that cancelled it; absent if it was cancelled otherwise.
            #[public("deadlineId")] #[serde(skip_serializing_if = "Option::is_none")] deadline: Option<DeadlineId>,
            /// The state instance of that deadline.
            #[serde(skip_serializing_if = "Option::is_none")] state: Option<StateId>,
        }
        /// An instance was suspended.
        public FlowSuspended = "FLOW_SUSPENDED" {
            /// The reason for the suspension.
            #[public("reason")] reason: String,
        }
        /// An instance was resumed.
        public FlowResumed = "FLOW_RESUMED" {}
        /// An instance was started as the restart of an ended one.
        public FlowRestarted = "FLOW_RESTARTED" {
            /// The ended instance.
            #[public("predecessorId")] predecessor: InstanceId,
        }
        /// An instance was migrated to another version.
        public FlowMigrated = "FLOW_MIGRATED" {
            /// The former version.
            #[public("previousDefinitionVersion", Version)] previous: VersionRef,
            /// The version that it runs now.
            definition: VersionRef,
            /// The new name of each renamed state, by its old name.
            #[public("renamedStates")] states: BTreeMap<String, String>,
            /// Whether no other instance may run about the entity from now on.
            #[public("sole")] #[serde(skip_serializing_if = "std::ops::Not::not")] sole: bool,
            /// The groups that see it besides its participants from now on; absent if everybody of the tenant does.
            #[serde(skip_serializing_if = "Option::is_none")] observers: Option<Vec<String>>,
        }
        /// The title or the summary of an instance changed, with its data or its version.
        public FlowRetitled = "FLOW_RETITLED" {
            /// The new title; absent if it has none.
            #[serde(skip_serializing_if = "Option::is_none")] title: Option<String>,
            /// The new summary; absent if it has none.
            #[serde(skip_serializing_if = "Option::is_none")] summary: Option<String>,
            /// The title before; absent if it had none.
            #[public("previousTitle")] #[serde(skip_serializing_if = "Option::is_none")] previous_title: Option<String>,
            /// The summary before; absent if it had none.
            #[public("previousSummary")] #[serde(skip_serializing_if = "Option::is_none")] previous_summary: Option<String>,
        }
        /// Somebody commented on an instance.
        public FlowCommented = "FLOW_COMMENTED" {
            /// The comment.
            #[public("comment")] comment: String,
            /// The people whom it mentions.
            #[public("mentions")] mentions: Vec<String>,
        }
        /// A flow published an event.
        public Custom = "CUSTOM" {
            /// The name that the flow gave it.
            #[public("name")] name: String,
            /// The data that the flow gave it.
            #[public("data")] data: Json,
        }
    }
}

#[cfg(test)]
mod tests;
