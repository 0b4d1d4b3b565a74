//! How the API shows instances and tasks.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::shapes::{self, InstanceStatus};
use super::started::{CallView, ChildView};
use wrkflw_core::answer::{AttributeValue, SignalSubscription};
use wrkflw_core::graph::Graph;
use wrkflw_core::instance::blind::{hidden_end, hidden_entry};
use wrkflw_core::instance::{
    Candidate, Decision, Delegation, Instance, Ownership, PastState, StateInstance, Status,
    Suspension, Task, TaskStatus,
};
use wrkflw_core::json::Json;

/// An instance with its active states.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceView {
    pub id: Uuid,
    pub definition_key: String,
    pub definition_version: u32,
    #[schema(value_type = InstanceStatus)]
    pub status: &'static str,
    /// The outcome of the terminal state, once it is reached.
    pub outcome: Option<String>,
    /// The optimistic lock, also sent as `ETag`.
    pub revision: u32,
    pub entity_type: String,
    pub entity_id: String,
    pub initiator: String,
    pub requesters: Vec<String>,
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// Why and by whom it was cancelled.
    pub cancelled: Option<CancelView>,
    /// Why, by whom and when it was suspended.
    pub suspended: Option<SuspendView>,
    /// The ended instance that it restarts.
    pub predecessor_id: Option<Uuid>,
    /// The instance that started it as its child.
    pub parent_id: Option<Uuid>,
    /// The active state instances.
    pub states: Vec<StateView>,
    /// Joins that some branches have reached and others not yet.
    pub waiting: Vec<StateView>,
    #[schema(value_type = Object)]
    pub data: Json,
    /// By the template of the definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[schema(value_type = Object)]
    pub attributes: BTreeMap<String, AttributeValue>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct CancelView {
    pub reason: String,
    pub by: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct SuspendView {
    pub reason: String,
    pub by: String,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
}

/// A state instance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateView {
    pub id: Uuid,
    pub name: String,
    pub title: String,
    /// What is done in it; may be empty.
    pub description: String,
    #[schema(value_type = String, format = DateTime)]
    pub entered_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub due_at: Option<Timestamp>,
    /// Since when it is unassignable: too few people are eligible for its work. None if enough are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub unassignable_since: Option<Timestamp>,
    /// The trigger that led here. None for the first state, and if it is a hidden decision of a blind state.
    pub entered_trigger: Option<String>,
    /// Who fired it. None for the host itself, and where the trigger is hidden.
    pub caller: Option<String>,
    pub predecessor_ids: Vec<Uuid>,
    /// The forks around it, from the outermost.
    pub fork_ids: Vec<Uuid>,
    /// Which item it is for, where a plan began one branch per item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What its plan told it of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub data: Option<Json>,
    /// How signals reach it besides being sent to its instance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subscriptions: Vec<SignalSubscriptionView>,
    /// The instances that it started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildView>,
    /// The call of a service state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallView>,
    /// How many decisions with the same outcome the state instance needs.
    pub needed: u32,
    /// Higher is more urgent.
    pub priority: u8,
    /// As the definition names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_name: Option<String>,
    /// Whether decisions of other people are hidden until it ends: `decision` and `owner` of their tasks are null.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blind: bool,
    /// The owners of its tasks, or the last owners of ended ones. Each person once, in the order of the tasks.
    pub owners: Vec<String>,
    pub tasks: Vec<TaskView>,
    /// None while the state is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftView>,
}

/// How a signal reaches a state instance besides being sent to its instance.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignalSubscriptionView {
    pub trigger: String,
    /// The correlation key by which signals find the state instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<String>,
    /// Whether signals count that came before it was entered.
    pub buffered: bool,
}

/// How a state instance ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct LeftView {
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// None if it is a hidden decision of a blind state.
    pub trigger: Option<String>,
    pub actor: Option<String>,
}

/// A work item.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    pub id: Uuid,
    pub label: String,
    #[schema(value_type = shapes::TaskStatus)]
    pub status: &'static str,
    pub owner: Option<String>,
    pub candidates: Vec<CandidateView>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub due_at: Option<Timestamp>,
    /// Who suspended it. None if it is not suspended.
    pub suspended: Option<SuspensionView>,
    /// How its owner got it. None without an owner, and for an ended task.
    pub ownership: Option<OwnershipView>,
    pub decision: Option<DecisionView>,
    /// Why the host cancelled it, if it did so on its own.
    #[schema(value_type = Option<shapes::TaskCancelReason>)]
    pub cancel_reason: Option<String>,
}

/// The suspension of a task: nobody may decide it, and its own deadlines do not count.
#[derive(Debug, Serialize, ToSchema)]
pub struct SuspensionView {
    pub by: String,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    pub reason: Option<String>,
    /// When the host resumes it. None until somebody does.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
}

/// How an owner got a task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnershipView {
    /// Whether an assignment or an operator gave it to the owner.
    pub assigned: bool,
    /// Whether the host gave it to the owner, by round robin or as the least loaded of its candidates.
    pub allocated: bool,
    /// The absent candidate on whose behalf it was claimed.
    pub on_behalf_of: Option<String>,
    /// The delegations, oldest first.
    pub delegations: Vec<DelegationView>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct DelegationView {
    pub from: String,
    pub to: String,
    pub reason: String,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
}

/// A person or group to whom a task is offered.
#[derive(Debug, Serialize, ToSchema)]
pub struct CandidateView {
    #[serde(rename = "type")]
    #[schema(value_type = shapes::CandidateType)]
    pub kind: &'static str,
    pub id: String,
    /// The group of a `member`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionView {
    pub outcome: String,
    pub actor: String,
    pub on_behalf_of: Option<String>,
    pub comment: Option<String>,
    #[schema(value_type = Object)]
    pub input: Json,
    #[schema(value_type = String, format = DateTime)]
    pub decided_at: Timestamp,
}

impl InstanceView {
    /// As this person may see it.
    pub fn of(instance: &Instance, graph: &Graph, viewer: &str) -> InstanceView {
        let (outcome, cancelled) = match &instance.status {
            Status::Running | Status::Suspended { .. } => (None, None),
            Status::Completed { outcome, .. } => (Some(outcome.clone()), None),
            Status::Cancelled { reason, by, .. } => (
                None,
                Some(CancelView {
                    reason: reason.clone(),
                    by: by.clone(),
                }),
            ),
        };
        let suspended = match &instance.status {
            Status::Suspended { reason, by, at } => Some(SuspendView {
                reason: reason.clone(),
                by: by.clone(),
                at: *at,
            }),
            Status::Running | Status::Completed { .. } | Status::Cancelled { .. } => None,
        };
        let states = |state_instances: &[StateInstance]| {
            let view = |state| StateView::of(state, instance, graph, viewer);
            state_instances.iter().map(view).collect()
        };
        InstanceView {
            id: instance.id.0,
            definition_key: instance.definition.key.clone(),
            definition_version: instance.definition.version,
            status: instance.status.name(),
            outcome,
            revision: instance.revision,
            entity_type: instance.entity.kind.clone(),
            entity_id: instance.entity.id.clone(),
            initiator: instance.initiator.clone(),
            requesters: instance.requesters.clone(),
            started_at: instance.started_at,
            updated_at: instance.updated_at,
            ended_at: instance.status.ended_at(),
            cancelled,
            suspended,
            predecessor_id: instance.predecessor.map(|id| id.0),
            parent_id: instance.parent.map(|id| id.0),
            states: states(&instance.active),
            waiting: states(&instance.waiting),
            data: instance.data.clone(),
            title: instance.labels.title.clone(),
            summary: instance.labels.summary.clone(),
            attributes: instance.attributes.clone(),
        }
    }
}

impl StateView {
    /// An active state instance of the instance, as this person may see it.
    pub fn of(state: &StateInstance, within: &Instance, graph: &Graph, viewer: &str) -> StateView {
        let view = StateView::hiding(state, graph, |task| hides(state, task, viewer));
        view.hiding_entry(hidden_entry(within, state), viewer)
    }

    /// Without what led to it, if that is hidden from this person.
    fn hiding_entry(mut self, decision: Option<&Decision>, viewer: &str) -> StateView {
        if is_hidden(decision, viewer) {
            (self.entered_trigger, self.caller) = (None, None);
        }
        self
    }

    fn hiding(state: &StateInstance, graph: &Graph, hides: impl Fn(&Task) -> bool) -> StateView {
        let declared = graph.state(&state.name);
        let view = |task| {
            if hides(task) {
                TaskView::hidden(task)
            } else {
                TaskView::of(task)
            }
        };
        StateView {
            id: state.id.0,
            name: state.name.clone(),
            title: declared.map_or(&state.name, |state| &state.title).clone(),
            description: declared.map_or_else(String::new, |state| state.description.clone()),
            entered_at: state.entered_at,
            due_at: state.due_at,
            unassignable_since: state.unassignable_since,
            entered_trigger: state.entered_trigger.clone(),
            caller: state.caller.clone(),
            predecessor_ids: state.predecessors.iter().map(|id| id.0).collect(),
            fork_ids: state.forks.iter().map(|fork| fork.0).collect(),
            key: state.key.clone(),
            data: state.data.clone(),
            subscriptions: state
                .subscriptions
                .iter()
                .map(SignalSubscriptionView::of)
                .collect(),
            children: state.children.iter().map(ChildView::of).collect(),
            call: state.call.as_ref().map(CallView::of),
            needed: state.needed,
            priority: state.priority,
            priority_name: state.priority_name.clone(),
            blind: state.blind,
            owners: owners(state.tasks.iter().filter(|task| !hides(task))),
            tasks: state.tasks.iter().map(view).collect(),
            left: None,
        }
    }

    /// A state instance that has ended, as this person may see it.
    pub fn past(past: &PastState, within: &Instance, graph: &Graph, viewer: &str) -> StateView {
        let tells = !is_hidden(hidden_end(within, past), viewer);
        let left = LeftView {
            at: past.left_at,
            trigger: tells.then(|| past.left_trigger.clone()),
            actor: past.actor.clone().filter(|_| tells),
        };
        let state = StateView::hiding(&past.state, graph, |_| false);
        let state = state.hiding_entry(hidden_entry(within, &past.state), viewer);
        StateView {
            left: Some(left),
            call: state.call.map(CallView::into_ended),
            ..state
        }
    }
}

impl SignalSubscriptionView {
    fn of(subscription: &SignalSubscription) -> SignalSubscriptionView {
        SignalSubscriptionView {
            trigger: subscription.trigger.clone(),
            correlation: subscription.correlation.clone(),
            buffered: subscription.buffered,
        }
    }
}

/// Whether the decision on the task is hidden from this person: another person made it, and the state instance is active and blind.
pub fn hides(state: &StateInstance, task: &Task, viewer: &str) -> bool {
    state.blind && is_hidden(task.decision(), viewer)
}

/// Whether there is a decision in an active blind state that another person made.
pub fn is_hidden(decision: Option<&Decision>, viewer: &str) -> bool {
    decision.is_some_and(|decision| !decision.is_of(viewer))
}

fn owners<'a>(tasks: impl Iterator<Item = &'a Task>) -> Vec<String> {
    let mut owners: Vec<String> = Vec::new();
    for owner in tasks.filter_map(Task::owner) {
        if !owners.iter().any(|known| known == owner) {
            owners.push(owner.to_owned());
        }
    }
    owners
}

impl TaskView {
    /// A task of an instance, as this person may see it.
    pub(crate) fn in_instance(instance: &Instance, task: &Task, viewer: &str) -> TaskView {
        let found = instance.open_task(task.id);
        match found {
            Some((state, _)) if hides(state, task, viewer) => TaskView::hidden(task),
            _ => TaskView::of(task),
        }
    }

    /// Without its decision.
    fn hidden(task: &Task) -> TaskView {
        TaskView {
            owner: None,
            decision: None,
            ..TaskView::of(task)
        }
    }

    fn of(task: &Task) -> TaskView {
        let (mut ownership, mut cancel_reason) = (None, None);
        match &task.status {
            TaskStatus::Claimed {
                ownership: held, ..
            } => ownership = Some(OwnershipView::of(held)),
            TaskStatus::Cancelled { reason, .. } => cancel_reason.clone_from(reason),
            TaskStatus::Pending | TaskStatus::Completed { .. } => {}
        }
        TaskView {
            id: task.id.0,
            label: task.label.clone(),
            status: task.status.name(),
            owner: task.owner().map(str::to_owned),
            candidates: task.candidates.iter().map(CandidateView::of).collect(),
            created_at: task.created_at,
            due_at: task.due_at,
            suspended: task.suspended.clone().map(SuspensionView::of),
            ownership,
            decision: task.decision().map(DecisionView::of),
            cancel_reason,
        }
    }
}

impl SuspensionView {
    pub fn of(suspension: Suspension) -> SuspensionView {
        let Suspension {
            by,
            at,
            reason,
            until,
        } = suspension;
        SuspensionView {
            by,
            at,
            reason,
            until,
        }
    }
}

impl OwnershipView {
    fn of(ownership: &Ownership) -> OwnershipView {
        let link = |link: &Delegation| DelegationView {
            from: link.from.clone(),
            to: link.to.clone(),
            reason: link.reason.clone(),
            at: link.at,
        };
        OwnershipView {
            assigned: ownership.assigned,
            allocated: ownership.allocated,
            on_behalf_of: ownership.on_behalf_of.clone(),
            delegations: ownership.delegations.iter().map(link).collect(),
        }
    }
}

impl CandidateView {
    pub fn of(candidate: &Candidate) -> CandidateView {
        CandidateView {
            kind: candidate.kind(),
            id: candidate.id().to_owned(),
            group: candidate.member_of().map(str::to_owned),
        }
    }
}

impl DecisionView {
    fn of(decision: &Decision) -> DecisionView {
        DecisionView {
            outcome: decision.outcome.clone(),
            actor: decision.actor.clone(),
            on_behalf_of: decision.on_behalf_of.clone(),
            comment: decision.comment.clone(),
            input: decision.input.clone(),
            decided_at: decision.decided_at,
        }
    }
}
