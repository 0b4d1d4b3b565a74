//! The answers of flow logic as plain data. They are untrusted until [`super::execution`] has checked them.

mod principal;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::principal::Principal;
use crate::declare::record;
use crate::json::Json;

/// Why flow logic refuses. `start`, `transition` and `enter` may refuse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "refusal", content = "because")]
pub enum Refusal {
    /// The actor is not allowed, regardless of the data and the input.
    Denied(Reason),
    /// The command is not possible at the moment; a later attempt may succeed.
    NotNow(Reason),
    /// The data or the input does not allow it.
    Invalid(Vec<Violation>),
    /// The logic cannot answer, for example because it cannot read its own data.
    Fault(Reason),
}

/// A stable code for programs, and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub code: String,
    pub message: String,
}

/// What is wrong with one field of the data or the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// JSON Pointer (RFC 6901).
    pub field: String,
    pub code: String,
    pub message: String,
    /// What its keyword `code` says in the JSON Schema. True of a required comment or reason. None if that is long, and of a violation
    /// that flow logic found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Json>,
}

/// The answer of `transition`: the effects of an occurrence.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub next: Next,
    /// Other active or waiting states to cancel, by the text of their ids.
    pub cancel: Vec<String>,
    /// JSON Merge Patch (RFC 7396) for the instance's data; not canonical yet.
    pub data: Option<String>,
    pub attributes: Vec<Attribute>,
    pub publish: Vec<PublishedEvent>,
    pub notes: Vec<Note>,
}

record! {
    /// Why flow logic chose a plan.
    pub struct Note {
        /// A stable code for programs, of the flow's own.
        #[public("code")]
        pub code: String,
        /// A sentence for people.
        #[public("message")]
        pub message: String,
        /// What programs may need, such as the row of a decision table that applied.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub detail: Option<Json>,
    }
}

/// What happens next in the state that a plan is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", content = "targets")]
pub enum Next {
    /// The state goes on.
    #[default]
    Stay,
    /// The state goes on, and `enter` is asked for its work again.
    Reoffer,
    /// The state is left for these.
    Enter(Vec<Target>),
    /// The state goes on, and a branch begins beside it for each of these.
    Spawn(Vec<Target>),
    /// The branch ends.
    EndBranch,
}

impl Next {
    /// The states that begin.
    pub fn targets(&self) -> &[Target] {
        match self {
            Next::Enter(targets) | Next::Spawn(targets) => targets,
            Next::Stay | Next::Reoffer | Next::EndBranch => &[],
        }
    }

    /// Whether the state that the plan is about stays active.
    pub fn goes_on(&self) -> bool {
        matches!(self, Next::Stay | Next::Reoffer | Next::Spawn(_))
    }
}

/// A state that a plan lets begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    pub name: String,
    /// Which item the state instance is for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub key: Option<String>,
    /// What the state instance is told of its item; not canonical yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub data: Option<String>,
}

impl Target {
    /// The state of this name, for no item.
    pub fn new(name: impl Into<String>) -> Target {
        Target {
            name: name.into(),
            key: None,
            data: None,
        }
    }
}

record! {
    /// A change of an attribute.
    pub struct Attribute {
        /// The attribute's name.
        #[public("name")]
        pub name: String,
        /// Its value; none removes it.
        #[public("value")]
        pub value: Option<AttributeValue>,
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type", content = "value")]
pub enum AttributeValue {
    Text(String),
    Boolean(bool),
    /// Exact, in decimal notation.
    Decimal(String),
    /// Finite.
    Float(f64),
    Timestamp(Timestamp),
    /// As JSON: base64 with padding (RFC 4648).
    Bytes(#[serde(with = "base64_text")] Vec<u8>),
}

impl AttributeValue {
    /// The length of a value of variable length; 0 for the others.
    pub fn bytes(&self) -> usize {
        match self {
            AttributeValue::Text(text) | AttributeValue::Decimal(text) => text.len(),
            AttributeValue::Bytes(bytes) => bytes.len(),
            AttributeValue::Boolean(_)
            | AttributeValue::Float(_)
            | AttributeValue::Timestamp(_) => 0,
        }
    }
}

mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(de::Error::custom)
    }
}

/// An event that the flow defines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedEvent {
    pub name: String,
    /// Not canonical yet.
    pub data: String,
}

/// The answer of `enter` for one state: the work to do in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "work", content = "is")]
pub enum Work {
    Task(Assignment),
    Service(ServiceCall),
    Wait(Waiting),
}

/// The work in a task state, and who does it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    pub offers: Vec<Offer>,
    /// How many decisions with the same outcome the state needs.
    pub needed: u32,
    /// The part of its tasks that it needs, in place of a number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub share: Option<Share>,
    /// People who must not decide.
    pub exclude: Vec<String>,
    /// The group that becomes a candidate when nobody else is eligible.
    pub fallback: Option<String>,
    pub priority: u8,
    pub deadlines: Vec<Deadline>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub subscriptions: Vec<SignalSubscription>,
    /// Whether decisions are hidden from other people until the state ends.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub blind: bool,
}

impl Assignment {
    /// How many decisions a state instance with this many tasks needs.
    pub(crate) fn needed_of(&self, tasks: usize) -> u32 {
        let share = self.share;
        share.map_or(self.needed, |share| share.of(tasks)).max(1)
    }
}

record! {
    /// A part of the tasks of a state instance, as an exact fraction.
    #[derive(Eq, Copy)]
    pub struct Share {
        /// Above the line.
        #[public("numerator")]
        pub numerator: u32,
        /// Below the line.
        #[public("denominator")]
        pub denominator: u32,
        /// Whether it takes more than this part, and not just as much.
        #[public("exceeded")]
        pub exceeded: bool,
    }
}

impl Share {
    /// The number of tasks that are this part of `tasks`, rounded up, and at least one.
    pub fn of(self, tasks: usize) -> u32 {
        let (tasks, denominator) = (tasks as u64, u64::from(self.denominator.max(1)));
        let part = tasks.saturating_mul(u64::from(self.numerator));
        let count = if self.exceeded {
            part / denominator + 1
        } else {
            part.div_ceil(denominator)
        };
        u32::try_from(count).unwrap_or(u32::MAX).max(1)
    }

    /// Whether some tasks are enough for it: it lies between 0 and 1, and 1 itself can be reached but not exceeded.
    pub(crate) fn is_possible(self) -> bool {
        let reaches = self.numerator < self.denominator || !self.exceeded;
        self.numerator > 0 && self.numerator <= self.denominator && reaches
    }
}

/// One task to create.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    pub label: String,
    pub candidates: Vec<Principal>,
    /// The owner from the start.
    pub owner: Option<String>,
    /// A task for each member of this group instead, offered to that member alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub each_member: Option<String>,
    /// Whether a candidate who is familiar with the instance owns it from the start.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub retain: bool,
    #[serde(skip_serializing_if = "Allocation::is_offered", default)]
    pub allocation: Allocation,
    pub deadlines: Vec<Deadline>,
}

/// Whether the host gives a new task to one of its candidates, and to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Allocation {
    /// To nobody: a candidate claims it.
    #[default]
    Offered,
    /// To whoever was given such a task longest ago.
    RoundRobin,
    /// To whoever owns the fewest open tasks.
    LeastLoaded,
}

impl Allocation {
    /// Whether it is given to nobody.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    pub(crate) fn is_offered(&self) -> bool {
        *self == Allocation::Offered
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deadline {
    pub when: Due,
    pub since: Since,
    /// Seconds between repetitions.
    pub repeat: Option<u32>,
    pub action: OverdueAction,
}

/// From when a deadline counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Since {
    /// From the creation of its work.
    Created,
    /// From each claim of its task.
    Claimed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Due {
    /// Seconds from when it begins to count.
    After(u32),
    /// Seconds of working time by one of the tenant's calendars.
    Working {
        seconds: u32,
        calendar: String,
    },
    /// The end of so many working days by one of the tenant's calendars.
    WorkingDays {
        days: u32,
        calendar: String,
    },
    At(Timestamp),
}

impl Due {
    /// The calendar that it counts by.
    pub fn calendar(&self) -> Option<&String> {
        match self {
            Due::Working { calendar, .. } | Due::WorkingDays { calendar, .. } => Some(calendar),
            Due::After(_) | Due::At(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OverdueAction {
    Remind,
    /// Ask `enter` for a new assignment.
    Escalate,
    /// Take the task back from its owner.
    Release,
    Fire(String),
    /// Cancel the instance for this reason.
    Cancel(String),
}

impl OverdueAction {
    /// Whether it ends the work or may move the state on.
    pub fn moves(&self) -> bool {
        matches!(self, OverdueAction::Fire(_) | OverdueAction::Cancel(_))
    }
}

/// What a service state asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceCall {
    pub service: String,
    /// Not canonical yet.
    pub request: String,
    /// Seconds for each attempt.
    pub timeout: u32,
    /// Seconds before each further attempt.
    pub retries: Vec<u32>,
    pub on_reply: String,
    pub on_failure: String,
    pub deadlines: Vec<Deadline>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub subscriptions: Vec<SignalSubscription>,
}

/// What a wait state waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub deadlines: Vec<Deadline>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub subscriptions: Vec<SignalSubscription>,
    pub children: Vec<Child>,
}

record! {
    /// How a signal reaches a state instance besides being sent to its instance.
    #[derive(Eq, Hash, PartialOrd, Ord)]
    pub struct SignalSubscription {
        /// The trigger that the signal fires.
        #[public("trigger")]
        pub trigger: String,
        /// The correlation key by which signals find the state instance.
        #[public("correlation")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub correlation: Option<String>,
        /// Whether signals count that came before it was entered.
        #[public("buffered")]
        pub buffered: bool,
    }
}

/// An instance to start as a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    pub key: String,
    pub entity_type: String,
    pub entity_id: String,
    /// Not canonical yet.
    pub data: String,
    pub on_end: Option<String>,
    /// Whether it goes on when its state instance ends before it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub detached: bool,
}
