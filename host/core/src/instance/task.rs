//! A task of a state instance: who may claim it, who has it and how, and what was decided.

mod stored;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use self::stored::{StoredCandidate, StoredTask};
use super::OpenDeadline;
use crate::declare::record;
use crate::ids::{DeadlineId, TaskId};
use crate::json::Json;

record! {
    /// A work item.
    #[serde(try_from = "StoredTask")]
    pub struct Task {
        columns {
            /// The task.
            #[public("id")]
            pub id: TaskId,
            /// The task in words.
            #[public("title")]
            pub label: String,
            /// Who may claim it.
            #[public("candidates")]
            pub candidates: Vec<Candidate>,
            /// When it was created.
            #[public("createdAt")]
            pub created_at: Timestamp,
            // The next deadline of this task alone, or the last one when all have passed.
            /// Its next deadline.
            #[public("dueAt")]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub due_at: Option<Timestamp>,
            /// Its open deadlines.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub deadlines: Vec<OpenDeadline>,
            /// Who suspended it, and until when.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub suspended: Option<Suspension>,
        }
        besides {
            /// Its status with the members of that status.
            #[public("status")]
            #[serde(flatten)]
            pub status: TaskStatus,
        }
    }
}

record! {
    /// The suspension of an open task: nobody may decide it, and its own deadlines do not count.
    #[derive(Eq)]
    pub struct Suspension {
        /// Who suspended it.
        pub by: String,
        /// When it was suspended.
        pub at: Timestamp,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
        /// When the host resumes it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub until: Option<Timestamp>,
    }
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
        #[serde(skip_serializing_if = "Ownership::is_plain")]
        ownership: Ownership,
    },
    Completed {
        owner: String,
        claimed_at: Timestamp,
        decision: Decision,
    },
    Cancelled {
        owner: Option<String>,
        cancelled_at: Timestamp,
        /// Why the host cancelled it by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// Who may claim a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "StoredCandidate", into = "StoredCandidate")]
pub enum Candidate {
    User(String),
    Group(String),
    /// This person, as long as they are a member of the group.
    Member {
        person: String,
        group: String,
    },
}

impl Candidate {
    /// The id of the person or group.
    pub fn id(&self) -> &str {
        match self {
            Candidate::User(id) | Candidate::Group(id) | Candidate::Member { person: id, .. } => id,
        }
    }

    /// Whether the person is a candidate, given their groups.
    pub fn includes(&self, person: &str, groups: &[String]) -> bool {
        match self {
            Candidate::User(id) => id == person,
            Candidate::Group(id) => groups.contains(id),
            Candidate::Member { person: id, group } => id == person && groups.contains(group),
        }
    }

    /// Whether the person, given their groups, is one of these candidates.
    pub fn among(candidates: &[Candidate], person: &str, groups: &[String]) -> bool {
        let mut candidates = candidates.iter();
        candidates.any(|candidate| candidate.includes(person, groups))
    }

    /// What kind of candidate it is, as shown.
    pub fn kind(&self) -> &'static str {
        match self {
            Candidate::User(_) => "user",
            Candidate::Group(_) => "group",
            Candidate::Member { .. } => "member",
        }
    }

    /// The kind of its principal, as its row says: a person or a group.
    pub fn principal_kind(&self) -> &'static str {
        match self {
            Candidate::User(_) | Candidate::Member { .. } => "user",
            Candidate::Group(_) => "group",
        }
    }

    /// The group of which the person must be a member.
    pub fn member_of(&self) -> Option<&str> {
        match self {
            Candidate::Member { group, .. } => Some(group),
            Candidate::User(_) | Candidate::Group(_) => None,
        }
    }
}

/// How the owner got the task: by claim, allocation, assignment, substitution or delegation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ownership {
    /// By an assignment or an operator, so the owner need not be a candidate.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub assigned: bool,
    /// By the host, which chose the owner among the candidates.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub allocated: bool,
    /// The absent candidate for whom the owner claimed it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on_behalf_of: Option<String>,
    /// Who delegated it to whom, oldest first; the last delegate is the owner.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub delegations: Vec<Delegation>,
}

/// One delegation of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delegation {
    pub from: String,
    pub to: String,
    pub reason: String,
    pub at: Timestamp,
}

impl Ownership {
    /// Whether the owner claimed it as a candidate, for themselves.
    pub fn is_plain(&self) -> bool {
        *self == Ownership::default()
    }

    /// The people on whose behalf the owner has it: the absent person, then the delegators in their order. The work belongs to the
    /// first of them.
    pub fn represented(&self) -> impl Iterator<Item = &str> {
        let delegators = self.delegations.iter().map(|link| link.from.as_str());
        self.on_behalf_of.as_deref().into_iter().chain(delegators)
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

record! {
    /// The final answer on a task. It never changes.
    #[derive(Eq)]
    pub struct Decision {
        columns {
            /// The trigger that the decider chose.
            pub outcome: String,
            /// The decider.
            pub actor: String,
            /// The person for whom the decider acted.
            pub on_behalf_of: Option<String>,
            /// The decider's comment.
            pub comment: Option<String>,
            /// The decider's input, valid for the schema of the transition.
            pub input: Json,
            /// When it was made.
            pub decided_at: Timestamp,
        }
        besides {}
    }
}

impl Decision {
    /// Whether the person made it, or it was made on their behalf.
    pub fn is_of(&self, person: &str) -> bool {
        self.actor == person || self.on_behalf_of.as_deref() == Some(person)
    }
}

impl Task {
    /// The deadlines that count: none while it is suspended.
    pub fn counting(&self) -> &[OpenDeadline] {
        match &self.suspended {
            Some(_) => &[],
            None => &self.deadlines,
        }
    }

    /// The id of the deadline at which the host resumes it, and when that is.
    pub fn resumption(&self) -> Option<(DeadlineId, Timestamp)> {
        let until = self.suspended.as_ref()?.until?;
        Some((DeadlineId(self.id.0), until))
    }

    /// Who owns or owned the task.
    pub fn owner(&self) -> Option<&str> {
        match &self.status {
            TaskStatus::Pending => None,
            TaskStatus::Claimed { owner, .. } | TaskStatus::Completed { owner, .. } => Some(owner),
            TaskStatus::Cancelled { owner, .. } => owner.as_deref(),
        }
    }

    /// Whether its owner decides it on behalf of somebody who delegated it.
    pub fn is_delegated(&self) -> bool {
        match &self.status {
            TaskStatus::Claimed { ownership, .. } => !ownership.delegations.is_empty(),
            TaskStatus::Pending | TaskStatus::Completed { .. } | TaskStatus::Cancelled { .. } => {
                false
            }
        }
    }

    /// To whom the host gave it by choice among its candidates, if they own it still.
    pub(crate) fn allocated_to(&self) -> Option<&str> {
        match &self.status {
            TaskStatus::Claimed {
                owner, ownership, ..
            } if ownership.allocated && ownership.delegations.is_empty() => Some(owner),
            _ => None,
        }
    }

    /// The decision, once there is one.
    pub fn decision(&self) -> Option<&Decision> {
        match &self.status {
            TaskStatus::Completed { decision, .. } => Some(decision),
            TaskStatus::Pending | TaskStatus::Claimed { .. } | TaskStatus::Cancelled { .. } => None,
        }
    }

    /// The people whom its decision excludes from other decisions in the state instance: its actor, its owner and the person on
    /// whose behalf it was made.
    pub fn deciders(&self) -> impl Iterator<Item = &str> {
        let named = self.decision().map(|decision| {
            let principal = decision.on_behalf_of.as_deref();
            // An absent owner may have had the task on behalf of another person.
            let owner = self.owner().filter(|owner| *owner != decision.actor);
            let others = principal.into_iter().chain(owner);
            std::iter::once(decision.actor.as_str()).chain(others)
        });
        named.into_iter().flatten()
    }

    /// The people on whose behalf its owner has it, while it is open.
    pub fn represented(&self) -> impl Iterator<Item = &str> {
        let ownership = match &self.status {
            TaskStatus::Claimed { ownership, .. } => Some(ownership),
            TaskStatus::Pending | TaskStatus::Completed { .. } | TaskStatus::Cancelled { .. } => {
                None
            }
        };
        ownership.into_iter().flat_map(Ownership::represented)
    }
}
