//! The columns of a task's row that hold its status. A decision has a row of its own.

use jiff::Timestamp;
use serde::de::Error as _;

use super::{Decision, Ownership, TaskStatus};
use crate::column::{Column, ColumnType as _, Row};

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
