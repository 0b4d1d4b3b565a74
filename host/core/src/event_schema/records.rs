//! The schemas of the types of event members. Those of structs follow from their declarations by
//! [`record!`](crate::declare).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::Presence::{Always, OrNull, Sometimes};
use super::Shape::{Anything, Count, Flattened, Id, List, Record, Text, Time};
use super::{Member, Presence, Shape, member};
use crate::actor::Actor;
use crate::answer::{AttributeValue, OverdueAction};
use crate::command::Lineage;
use crate::ids::{DeadlineId, ForkId, InstanceId, StateId, TaskId, VersionRef};
use crate::instance::{Candidate, Entity, OpenCall, OpenDeadline, TaskStatus};
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

/// The members that every event's data has besides its own.
pub(super) const CONTEXT: &[Member] = &[
    member("instance", Id, Always, "The instance."),
    member(
        "revision",
        Count,
        Always,
        "The instance's revision after the change.",
    ),
    member(
        "definition",
        VersionRef::SHAPE,
        Always,
        "The definition version that the instance runs.",
    ),
    member(
        "entity",
        Entity::SHAPE,
        Always,
        "The entity that the instance is about.",
    ),
    member(
        "actor",
        Text,
        Sometimes,
        "Who acted; absent when the host acted by itself, and for a blind decision.",
    ),
];
const CANDIDATE: &[Option<Member>] = &[
    Some(member("type", Text, Always, "`user`, `group` or `member`.")),
    Some(member("id", Text, Always, "The person or group.")),
    Some(member(
        "group",
        Text,
        Sometimes,
        "For a `member`, the group of which the person must be a member.",
    )),
];
const TASK_STATUS: &[Member] = &[
    member(
        "status",
        Text,
        Always,
        "`PENDING`, or `CLAIMED` when it is owned from the start.",
    ),
    member("owner", Text, Sometimes, "The owner from the start."),
    member("claimedAt", Time, Sometimes, "When the owner got it."),
    member("ownership", Anything, Sometimes, "How the owner got it."),
];
const VALUE: &[Option<Member>] = &[
    Some(member("type", Text, Always, "The value's type.")),
    Some(member("value", Anything, Always, "The value.")),
];
