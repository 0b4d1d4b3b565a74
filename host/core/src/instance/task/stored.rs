//! The parser for tasks in the audit. Their JSON is flat: the members of the status are members of the task.
//! [`crate::stored`] explains why serde cannot read it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Decision, OpenDeadline, Ownership, Suspension, Task, TaskStatus};
use crate::ids::TaskId;
use crate::instance::Candidate;

/// The members of a task, whatever its status.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredTask {
    id: TaskId,
    label: String,
    candidates: Vec<Candidate>,
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
    suspended: Option<Suspension>,
    #[serde(default)]
    ownership: Ownership,
}

impl TryFrom<StoredTask> for Task {
    type Error = String;

    fn try_from(stored: StoredTask) -> Result<Task, String> {
        let StoredTask {
            id,
            label,
            candidates,
            created_at,
            owner,
            due_at,
            deadlines,
            suspended,
            ..
        } = stored;
        let status = match stored.status.as_str() {
            "PENDING" => TaskStatus::Pending,
            "CLAIMED" => TaskStatus::Claimed {
                owner: need("owner", owner)?,
                claimed_at: need("claimedAt", stored.claimed_at)?,
                ownership: stored.ownership,
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
            created_at,
            due_at,
            deadlines,
            suspended,
            status,
        })
    }
}

/// A candidate in the audit: `{"type": "member", "id": "anna", "group": "finance"}`.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredCandidate {
    r#type: CandidateType,
    id: String,
    /// Of a member only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    group: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum CandidateType {
    User,
    Group,
    Member,
}

impl From<Candidate> for StoredCandidate {
    fn from(candidate: Candidate) -> StoredCandidate {
        let (r#type, id, group) = match candidate {
            Candidate::User(id) => (CandidateType::User, id, None),
            Candidate::Group(id) => (CandidateType::Group, id, None),
            Candidate::Member { person, group } => (CandidateType::Member, person, Some(group)),
        };
        StoredCandidate { r#type, id, group }
    }
}

impl TryFrom<StoredCandidate> for Candidate {
    type Error = String;

    fn try_from(stored: StoredCandidate) -> Result<Candidate, String> {
        let StoredCandidate { r#type, id, group } = stored;
        Ok(match r#type {
            CandidateType::User => Candidate::User(id),
            CandidateType::Group => Candidate::Group(id),
            CandidateType::Member => Candidate::Member {
                person: id,
                group: need("group", group)?,
            },
        })
    }
}

fn need<T>(name: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("the member {name} is missing"))
}
