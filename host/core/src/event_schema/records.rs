//! The schemas of the types of event members. Those of structs follow from their declarations by
//! [`record!`](crate::declare).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::Presence::{Always, OrNull, Sometimes};
use super::Shape::{Anything, Count, Flattened, Id, List, OneOf, Record, Text, Time};
use super::{Member, Presence, Shape};
use crate::actor::Actor;
use crate::answer::{AttributeValue, OverdueAction};
use crate::command::Lineage;
use crate::ids::{DeadlineId, ForkId, InstanceId, StateId, TaskId};
use crate::instance::{Candidate, OpenCall, OpenDeadline, TaskStatus};
use crate::json::Json;

/// A type of members of events and commands.
pub(crate) trait MemberType: DeserializeOwned {
    /// Its schema.
    const SHAPE: Shape;
    /// Whether null is one of its values.
    const PRESENCE: Presence = Always;
}

macro_rules! shapes {
    ($($shape:expr => $($type:ty),+;)*) => {
        $($(impl MemberType for $type {
            const SHAPE: Shape = $shape;
        })+)*
    };
}

shapes! {
    Id => TaskId, StateId, InstanceId, DeadlineId, ForkId;
    Text => String;
    Time => Timestamp;
    Count => u8, u32, u64;
    Anything => bool, Json, Actor, OverdueAction, OpenCall, OpenDeadline, BTreeMap<String, String>, Box<Lineage>;
    Record(CANDIDATE) => Candidate;
    Record(VALUE) => AttributeValue;
    Flattened(TASK_STATUS) => TaskStatus;
}

impl<T: MemberType> MemberType for Option<T> {
    const SHAPE: Shape = T::SHAPE;
    const PRESENCE: Presence = OrNull;
}

impl<T: MemberType> MemberType for Vec<T> {
    const SHAPE: Shape = List(&T::SHAPE);
}

/// A member that is published under the name under which it is stored.
const fn member(
    name: &'static str,
    shape: Shape,
    presence: Presence,
    about: &'static str,
) -> Member {
    Member::new((name, name), shape, presence, about)
}

/// The members that every event's data has besides its own.
#[rustfmt::skip]
pub(super) const CONTEXT: &[Member] = &[
    member("instanceId", Id, Always, "The instance."),
    member("instanceTitle", Text, Sometimes, "The instance's title at the time of the event, if it had one."),
    member("instanceSummary", Text, Sometimes, "The instance's summary at the time of the event, if it had one."),
    member("revision", Count, Always, "The instance's revision after the change."),
    member("definitionKey", Text, Always, "The key of the definition that the instance runs."),
    member("definitionVersion", Count, Always, "The version that the instance runs."),
    member("definitionTitle", Text, Sometimes, "The definition's title, if it has one."),
    member("entityType", Text, Always, "The type of the entity that the instance is about."),
    member("entityId", Text, Always, "The id of that entity in its own system."),
    member("actor", Text, Sometimes, "Who acted; absent when the host acted by itself, and where a blind decision is hidden."),
];
/// The members that an event about a state has besides.
#[rustfmt::skip]
pub(super) const STATE: &[Member] = &[
    member("stateId", Id, Always, "The state instance."),
    member("stateName", Text, Sometimes, "The state's name; absent if the instance was purged."),
    member("stateTitle", Text, Sometimes, "The state's title, if it has one."),
];
/// The members that an event about a task has besides.
#[rustfmt::skip]
pub(super) const TASK: &[Member] = &[
    member("taskId", Id, Always, "The task."),
    member("taskTitle", Text, Sometimes, "The task's title; absent if the instance was purged."),
];
/// The kinds of a [`Candidate`].
pub(super) const CANDIDATES: &[&str] = &["user", "group", "member"];
/// The statuses of a task that was created.
const FIRST_STATUSES: &[&str] = &["PENDING", "CLAIMED"];
/// The types of an [`AttributeValue`].
pub(super) const VALUES: &[&str] = &["text", "boolean", "decimal", "float", "timestamp", "bytes"];
#[rustfmt::skip]
const CANDIDATE: &[Option<Member>] = &[
    Some(member("type", OneOf(CANDIDATES), Always, "`user`, `group` or `member`.")),
    Some(member("id", Text, Always, "The person or group.")),
    Some(member("group", Text, Sometimes, "For a `member`, the group of which the person must be a member.")),
];
#[rustfmt::skip]
const TASK_STATUS: &[Member] = &[
    member("status", OneOf(FIRST_STATUSES), Always, "`PENDING`, or `CLAIMED` when it is owned from the start."),
    member("owner", Text, Sometimes, "The owner from the start."),
    member("claimedAt", Time, Sometimes, "When the owner got it."),
];
const VALUE: &[Option<Member>] = &[
    Some(member("type", OneOf(VALUES), Always, "The value's type.")),
    Some(member("value", Anything, Always, "The value.")),
];
