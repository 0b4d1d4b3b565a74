//! How tasks are stored: in the audit as JSON, and in the database as rows.
//!
//! The JSON of a task is flat: the members of the status are members of the task. [`crate::stored`] explains why serde cannot
//! read it. A row of a task has columns for its status. A decision has a row of its own.

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::{Decision, OpenDeadline, Ownership, Suspension, Task, TaskStatus};
use crate::column::{Column, ColumnType as _, Row};
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
    /// Only for a member.
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

impl TaskStatus {
    /// The columns of a task's row that hold its status.
    pub const COLUMNS: &[&str] = &[
        "status",
        "owner",
        "claimed_at",
        "ended_at",
        "ownership",
        "cancel_reason",
    ];

    /// The values of [`COLUMNS`](Self::COLUMNS), in the same order.
    pub fn columns(&self) -> Vec<Column<'_>> {
        let (mut who, mut since, mut end) = (None, None, None);
        let (mut how, mut why) = (Column::Json(None), None);
        match self {
            TaskStatus::Pending => {}
            TaskStatus::Claimed {
                owner,
                claimed_at,
                ownership,
            } => {
                (who, since) = (Some(owner.as_str()), Some(*claimed_at));
                how = ownership.column();
            }
            TaskStatus::Completed {
                owner,
                claimed_at,
                decision,
            } => {
                (who, since) = (Some(owner.as_str()), Some(*claimed_at));
                end = Some(decision.decided_at);
            }
            TaskStatus::Cancelled {
                owner,
                cancelled_at,
                reason,
            } => {
                (who, end) = (owner.as_deref(), Some(*cancelled_at));
                why = reason.as_deref();
            }
        }
        vec![
            Column::Text(Some(self.name())),
            Column::Text(who),
            Column::Time(since),
            Column::Time(end),
            how,
            Column::Text(why),
        ]
    }

    /// The status of a row. `decision` is that of the task, if it has one.
    pub fn of_row(
        row: &Row<'_>,
        decision: Option<Decision>,
    ) -> Result<TaskStatus, serde_json::Error> {
        let name: String = row.value("status")?;
        let owner = || row.value::<Option<String>>("owner");
        let time = |column| row.value::<Option<Timestamp>>(column);
        let needed = |what: &str| serde_json::Error::custom(format!("{name} without {what}"));
        Ok(match name.as_str() {
            "PENDING" => TaskStatus::Pending,
            "CLAIMED" => TaskStatus::Claimed {
                owner: owner()?.ok_or_else(|| needed("owner"))?,
                claimed_at: time("claimed_at")?.ok_or_else(|| needed("claimed_at"))?,
                ownership: row.member::<Ownership>("ownership")?,
            },
            "COMPLETED" => TaskStatus::Completed {
                owner: owner()?.ok_or_else(|| needed("owner"))?,
                claimed_at: time("claimed_at")?.ok_or_else(|| needed("claimed_at"))?,
                decision: decision.ok_or_else(|| needed("a decision"))?,
            },
            "CANCELLED" => TaskStatus::Cancelled {
                owner: owner()?,
                cancelled_at: time("ended_at")?.ok_or_else(|| needed("ended_at"))?,
                reason: row.value("cancel_reason")?,
            },
            other => return Err(serde_json::Error::custom(format!("status {other}"))),
        })
    }
}
