//! The macro that declares the events. One list generates each event's type, its stored form and the parser for it, and the
//! schema for consumers, and the task that it is about. A property of only some events follows: who delegated a task to whom.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::value::RawValue;

use super::Event;
use crate::ids::TaskId;
use crate::instance::Task;

/// Declares the events. Each is `public` or `internal`. Consumers see the public events, and of these only the members with
/// `#[public("name")]`, under that name and with their documentation. `#[public("name", Shape)]` publishes another shape than that
/// of the member's type. An empty member with a `#[serde(...)]` rule is left out. Any other empty member of type `Option` is null.
macro_rules! events {
    (
        $(#[$meta:meta])*
        pub enum Event {
            $(
                $(#[doc = $summary:literal])+
                $reach:ident $variant:ident = $kind:literal {
                    $(
                        $(#[doc = $about:literal])+
                        $(#[public($name:literal $(, $shape:ident)?)])?
                        $(#[serde($($rule:tt)+)])?
                        $field:ident: $type:ty,
                    )*
                }
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize)]
        #[serde(tag = "type", rename_all_fields = "camelCase")]
        pub enum Event {
            $(
                $(#[doc = $summary])+
                #[serde(rename = $kind)]
                $variant {
                    $(
                        $(#[doc = $about])+
                        $(#[serde($($rule)+)])?
                        $field: $type,
                    )*
                },
            )*
        }

        impl Event {
            /// The audit type, such as `TASK_CLAIMED`.
            pub fn kind(&self) -> &'static str {
                match self { $(Event::$variant { .. } => $kind,)* }
            }

            /// Whether consumers see it.
            pub fn is_public(&self) -> bool {
                match self { $(Event::$variant { .. } => events!(@reach $reach),)* }
            }

            /// The task that it is about: its member of that name.
            pub fn task(&self) -> Option<$crate::ids::TaskId> {
                match self {
                    $(Event::$variant { $($field,)* } => {
                        let of_members: &[Option<$crate::ids::TaskId>] = &[$(events!(@task $field $field),)*];
                        of_members.iter().find_map(|task| *task)
                    })*
                }
            }

            fn stored(text: &str) -> Result<Event, String> {
                let mut members = $crate::stored::Members::of(text)?;
                let kind: String = members.take("type")?;
                match kind.as_str() {
                    $($kind => Ok(Event::$variant {
                        $($field: $crate::declare::take!(members, $field, [$($($rule)+)?]),)*
                    }),)*
                    _ => Err(format!("{kind} is no event of this host")),
                }
            }
        }

        /// The schema of each event.
        pub(crate) const DECLARED: &[$crate::event_schema::EventType] = {
            use $crate::event_schema::EventType;
            &[$(EventType {
                kind: $kind,
                is_public: events!(@reach $reach),
                summary: concat!($($summary),+),
                members: &[$($crate::declare::member!(
                    [$($name $(, $shape)?)?] $field: $type, [$($($rule)+)?], concat!($($about),+)
                ),)*],
                fields: &[$((
                    stringify!($field),
                    <$type as $crate::event_schema::MemberType>::PRESENCE,
                ),)*],
            },)*]
        };
    };
    (@reach public) => { true };
    (@reach internal) => { false };
    (@task task $value:ident) => { $crate::event::declare::OfTask::task_id($value) };
    (@task $other:ident $value:ident) => {{ let _ = $value; None }};
}

pub(super) use events;

/// The type of a member `task`.
pub(super) trait OfTask {
    fn task_id(&self) -> Option<TaskId>;
}

impl OfTask for TaskId {
    fn task_id(&self) -> Option<TaskId> {
        Some(*self)
    }
}

impl OfTask for Option<TaskId> {
    fn task_id(&self) -> Option<TaskId> {
        *self
    }
}

impl OfTask for Task {
    fn task_id(&self) -> Option<TaskId> {
        Some(self.id)
    }
}

impl Event {
    /// Of a delegation, or its return by the delegate: the task, its former and its new owner, and the reason of a delegation.
    pub fn delegation(&self) -> Option<(TaskId, &str, &str, Option<&str>)> {
        match self {
            Event::TaskDelegated {
                task,
                from,
                to,
                reason,
                ..
            } => Some((*task, from, to, Some(reason))),
            Event::TaskResolved { task, from, to, .. } => Some((*task, from, to, None)),
            _ => None,
        }
    }

    /// The state and the owner of a new task whose owner the host chose among its candidates.
    pub fn allocation(&self) -> Option<(&str, &str)> {
        match self {
            Event::TaskCreated {
                state_name, task, ..
            } => Some((state_name, task.allocated_to()?)),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Event, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Event::stored(text.get()).map_err(D::Error::custom)
    }
}
