//! The values of `reason` and `step` of events, each list an enumeration for consumers: why the host did something on its own, and why a
//! task lost its owner.

use super::Event;
use crate::ids::{StateId, TaskId};

/// The work is overdue.
pub const OVERDUE: &str = "overdue";
/// Too few people were eligible.
pub(crate) const TOO_FEW_ELIGIBLE: &str = "too_few_eligible";
/// Nobody is eligible for the task, while the other tasks suffice.
pub(crate) const NOBODY_ELIGIBLE: &str = "nobody_eligible";
/// The work was overdue, and was given to others.
pub(crate) const ESCALATED: &str = "escalated";
/// A person left the group to whose members the work was offered.
pub(crate) const LEFT_GROUP: &str = "left_group";
/// The instance was migrated to another version.
pub(crate) const MIGRATED: &str = "migrated";
/// The owner may no longer decide it.
pub(crate) const LOST_ELIGIBILITY: &str = "lost_eligibility";
/// An operator acted for the owner.
pub(crate) const BY_OPERATOR: &str = "by_operator";
/// A substitute acted for the owner.
pub(crate) const BY_SUBSTITUTE: &str = "by_substitute";
/// A plan offered the work anew.
pub(crate) const REOFFERED: &str = "reoffered";
/// The initiator's manager became a candidate.
pub const MANAGER: &str = "manager";
/// The fallback group became a candidate.
pub(crate) const FALLBACK: &str = "fallback";

/// Why a task was escalated.
pub const ESCALATIONS: &[&str] = &[OVERDUE, TOO_FEW_ELIGIBLE];
/// Why a task was cancelled whose state went on.
pub const CANCELLATIONS: &[&str] = &[ESCALATED, LEFT_GROUP, MIGRATED, NOBODY_ELIGIBLE, REOFFERED];
/// Why a task lost its owner, unless the owner released it.
pub(crate) const RELEASES: &[&str] = &[BY_OPERATOR, BY_SUBSTITUTE, LOST_ELIGIBILITY, OVERDUE];
/// Why a task got other candidates.
pub const STEPS: &[&str] = &[FALLBACK, LEFT_GROUP, MANAGER, MIGRATED, REOFFERED];

/// The reason of a release, for people.
pub(crate) fn of_release(reason: &str) -> Option<&'static str> {
    Some(match reason {
        BY_OPERATOR => "released by an operator",
        BY_SUBSTITUTE => "released by a substitute of its owner",
        LOST_ELIGIBILITY => "its owner may no longer decide it",
        OVERDUE => "it is overdue",
        _ => return None,
    })
}

impl Event {
    /// A task lost its owner, for one of [`RELEASES`] or, without a reason, because the owner released it. `blind`: because of a decision
    /// that is hidden.
    pub fn released(
        task: TaskId,
        state: StateId,
        owner: String,
        reason: Option<&str>,
        blind: bool,
    ) -> Event {
        Event::TaskReleased {
            task,
            state,
            owner,
            reason: reason.map(str::to_owned),
            message: reason.and_then(of_release).map(str::to_owned),
            blind,
        }
    }
}
