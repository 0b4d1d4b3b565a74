//! The filter and the order of a list of tasks.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use uuid::Uuid;

use super::TaskSummary;
use wrkflw_core::actor::Actor;
use wrkflw_core::moment;

/// The view of a list: whose tasks it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Tasks that the actor owns, or an absent person for whom the actor stands in.
    Mine,
    /// Tasks that the actor may claim, also on behalf of such a person.
    Available,
    /// Tasks that a group of the actor may claim, with the actor as one of its members.
    Groups,
    /// All open tasks.
    All,
}

/// The status of a task, for filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Pending,
    Claimed,
    Completed,
    Cancelled,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Status::Pending => "PENDING",
            Status::Claimed => "CLAIMED",
            Status::Completed => "COMPLETED",
            Status::Cancelled => "CANCELLED",
        }
    }

    /// Whether tasks of this status have ended.
    pub fn is_ended(self) -> bool {
        matches!(self, Status::Completed | Status::Cancelled)
    }
}

/// A task's place in a list: its time, if the list is in the order of a time, and its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskCursor {
    pub at: Option<Timestamp>,
    pub id: Uuid,
}

impl TaskCursor {
    pub(crate) fn at(at: Timestamp, id: Uuid) -> TaskCursor {
        TaskCursor { at: Some(at), id }
    }

    pub(super) fn of(id: Uuid) -> TaskCursor {
        TaskCursor { at: None, id }
    }
}

impl fmt::Display for TaskCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "{at} {}", self.id),
            None => self.id.fmt(f),
        }
    }
}

impl FromStr for TaskCursor {
    type Err = String;

    fn from_str(text: &str) -> Result<TaskCursor, String> {
        let (at, id) = text
            .split_once(' ')
            .map_or((None, text), |(at, id)| (Some(at), id));
        let at = at.map(|at| moment::parse(at).ok_or_else(moment::expected));
        Ok(TaskCursor {
            at: at.transpose()?,
            id: id.parse().map_err(|error: uuid::Error| error.to_string())?,
        })
    }
}

/// The filter of a list.
#[derive(Debug, Clone)]
pub struct TaskFilter {
    pub view: View,
    /// With the current groups, permissions and absences.
    pub actor: Actor,
    pub definition: Option<String>,
    pub state: Option<String>,
    pub owner: Option<String>,
    pub label: Option<String>,
    pub min_priority: Option<i16>,
    /// Only tasks that are due before this moment.
    pub due_before: Option<Timestamp>,
    /// Only suspended tasks, or only others.
    pub suspended: Option<bool>,
    pub entity_type: Option<String>,
    pub entity_id: Option<String>,
    /// Words of the title, summary or entity of its instance, or of a text attribute.
    pub words: Option<String>,
    /// None for all open tasks. A list of ended tasks has those whose last owner is `owner`, or else the actor, the last one first.
    pub status: Option<Status>,
    /// Of ended tasks: the outcome of the decision, and the period.
    pub outcome: Option<String>,
    pub ended_from: Option<Timestamp>,
    pub ended_until: Option<Timestamp>,
    /// Open tasks with a deadline, the earliest first, instead of all in the order of creation.
    pub by_due: bool,
    pub after: Option<TaskCursor>,
    pub limit: i64,
}

impl TaskFilter {
    /// All open tasks of a view.
    pub fn of(view: View, actor: Actor, limit: i64) -> TaskFilter {
        TaskFilter {
            view,
            actor,
            definition: None,
            state: None,
            owner: None,
            label: None,
            min_priority: None,
            due_before: None,
            suspended: None,
            entity_type: None,
            entity_id: None,
            words: None,
            status: None,
            outcome: None,
            ended_from: None,
            ended_until: None,
            by_due: false,
            after: None,
            limit,
        }
    }

    /// The place of a task in the list.
    pub fn place(&self, task: &TaskSummary) -> TaskCursor {
        let at = if self.ended() {
            task.ended_at
        } else {
            task.due_at.filter(|_| self.by_due)
        };
        TaskCursor { at, id: task.id }
    }

    pub(super) fn ended(&self) -> bool {
        self.status.is_some_and(Status::is_ended)
    }
}
