//! The subject of an event: the state and the task that its payload names.

use uuid::Uuid;

use super::CUSTOM;
use crate::json::{Member, members};

/// The state instance and the task that an event is about, as its payload names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    pub state: Option<Uuid>,
    pub state_name: Option<String>,
    pub task: Option<Uuid>,
    pub task_title: Option<String>,
    /// The trigger whose input the event has.
    pub trigger: Option<String>,
}

impl About {
    /// Reads them from a stored payload. A damaged payload names none.
    pub fn of(kind: &str, payload: &str) -> About {
        members(payload).map_or_else(|_| About::default(), |all| About::among(kind, &all))
    }

    pub(super) fn among(kind: &str, all: &[Member<'_>]) -> About {
        if kind == CUSTOM {
            return About::default();
        }
        let state = value(all, "state").unwrap_or_default();
        let task = value(all, "task").unwrap_or_default();
        let (state_parts, task_parts) = (parts(state), parts(task));
        let own_name = match kind {
            "STATE_TRANSITIONED" => text(all, "from"),
            _ if kind.starts_with("STATE_") => text(all, "name"),
            _ => text(all, "stateName"),
        };
        About {
            state: id(state).or_else(|| id(value(&state_parts, "id")?)),
            state_name: own_name.or_else(|| text(&state_parts, "name")),
            task: id(task).or_else(|| id(value(&task_parts, "id")?)),
            task_title: text(&task_parts, "label"),
            trigger: match kind {
                "DECISION_RECORDED" => text(all, "outcome"),
                _ => text(all, "trigger"),
            },
        }
    }
}

fn value<'a>(all: &'a [Member<'_>], name: &str) -> Option<&'a str> {
    let found = all.iter().find(|(held, _)| held == name);
    found.map(|(_, value)| &**value)
}

fn text(all: &[Member<'_>], name: &str) -> Option<String> {
    serde_json::from_str(value(all, name)?).ok()
}

fn id(value: &str) -> Option<Uuid> {
    serde_json::from_str(value).ok()
}

fn parts(value: &str) -> Vec<Member<'_>> {
    if value.starts_with('{') {
        members(value).unwrap_or_default()
    } else {
        Vec::new()
    }
}
