//! The rows of a record, as they are stored. They may include rows that no host would have written.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use wrkflw_core::audit::Entry;
use wrkflw_core::checkpoint::{Checkpoint, EntryColumns, digits, refused_digest};
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::{InstanceId, StateId, TaskId, TenantId, VersionRef};
use wrkflw_core::instance::{Decision, Entity};
use wrkflw_core::json::Json;
use wrkflw_core::merkle::Hash;

/// Which instances are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    All,
    One(InstanceId),
    About(Entity),
}

/// A row of an instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceRow {
    pub id: InstanceId,
    pub definition: VersionRef,
    pub revision: u32,
    pub status: String,
    pub outcome: Option<String>,
    pub end_reason: Option<String>,
    pub ended_by: Option<String>,
    pub suspend_reason: Option<String>,
    pub suspended_by: Option<String>,
    pub entity: Entity,
    pub initiator: String,
    pub requesters: Vec<String>,
    pub predecessor: Option<InstanceId>,
    pub parent: Option<InstanceId>,
    pub data: String,
    pub head: HeadRow,
    /// The seals of its delegations and their returns, in the order of their entries.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub delegation_seals: Vec<DelegationSealRow>,
}

/// The seal of a delegation or of its return.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DelegationSealRow {
    /// The number of the entry.
    pub seq: u64,
    pub key_id: String,
    pub mac_version: i16,
    #[serde(with = "digits")]
    pub mac: Vec<u8>,
}

/// A task, with its decision if there is one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRow {
    pub id: TaskId,
    pub instance: InstanceId,
    pub state: StateId,
    pub status: String,
    pub owner: Option<String>,
    pub decision: Option<DecisionRow>,
}

/// A decision with its seal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRow {
    pub instance: InstanceId,
    pub decision: Decision,
    pub key_id: String,
    pub mac_version: i16,
    #[serde(with = "digits")]
    pub mac: Vec<u8>,
}

/// The stored head of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadRow {
    pub seq: u64,
    #[serde(with = "digits")]
    pub hash: Vec<u8>,
    /// None if public entries are not counted.
    pub event_seq: Option<u64>,
}

/// An entry as it is stored.
#[derive(Debug)]
pub struct EntryRow {
    pub stream: Uuid,
    pub seq: u64,
    /// Its columns that the hash does not cover.
    pub place: UnhashedColumns,
    /// The entry, or why the row cannot be read.
    pub entry: Result<Entry, &'static str>,
}

/// A stream by its kind and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRow {
    pub kind: String,
    pub id: Uuid,
    /// Whether it has a stored head.
    pub has_head: bool,
}

/// The columns of an entry that its leaf covers and its hash does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnhashedColumns {
    pub xid: i64,
    pub pos: i64,
    pub traceparent: Option<String>,
}

impl UnhashedColumns {
    /// The digest that the leaf of the entry with this hash covers.
    pub fn digest(&self, hash: &[u8]) -> Hash {
        let columns = EntryColumns {
            hash,
            xid: self.xid,
            pos: self.pos,
            traceparent: self.traceparent.as_deref(),
        };
        columns.digest()
    }
}

/// A checkpoint as it is stored.
#[derive(Debug, Clone)]
pub struct CheckpointRow {
    pub checkpoint: Checkpoint,
    pub frontier: Vec<u8>,
}

/// The first leaf of a row, which has a run of consecutive leaves: its number, and the number of its entry.
#[derive(Debug, Clone, Copy)]
pub struct RunStart {
    pub leaf: i64,
    pub seq: i64,
}

/// A leaf as it is stored.
#[derive(Debug, Clone)]
pub struct LeafRow {
    pub run: RunStart,
    pub leaf: u64,
    pub kind: String,
    pub id: Uuid,
    pub seq: u64,
    pub digest: Vec<u8>,
    /// The current digest of the entry; none if it is missing.
    pub now: Option<Hash>,
    /// The position of the entry; none if it is missing.
    pub pos: Option<i64>,
}

/// An entry by its stream and number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryOf {
    pub kind: String,
    pub id: Uuid,
    pub seq: u64,
}

/// The columns of a row, by name.
pub type Columns = serde_json::Map<String, Value>;

/// Tables of a tenant's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryTable {
    Absence,
    Calendar,
    Group,
    Manager,
    Membership,
    Person,
    RolePermission,
    Tenant,
}

/// Tables that are compared with entries, besides those of directories and instances. Long texts and components are replaced
/// by their SHA-256 in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableRows<'a> {
    /// All subscriptions, without their secrets and the state of their deliveries.
    Subscriptions,
    /// A bulk operation, with the digest of its instances' sorted ids. The digest is null if items are missing and the
    /// operation is so old that they may have been purged.
    Operation {
        id: Uuid,
        kept: Duration,
    },
    /// The definition whose stream has this id.
    Definition(Uuid),
    /// The versions of this definition key.
    Versions(&'a str),
    /// The attributes that this definition key declares.
    Declarations(&'a str),
    /// The components with these digests.
    Components(&'a [String]),
    EngineProfiles(&'a [String]),
}

/// The rows of an instance in tables other than that of decisions.
#[derive(Debug, Default)]
pub struct PartRows {
    /// The columns of its own row that [`InstanceRow`] does not have.
    pub own: Vec<Columns>,
    pub state_instances: Vec<Columns>,
    pub subscriptions: Vec<Columns>,
    pub tasks: Vec<Columns>,
    pub candidates: Vec<Columns>,
    pub attributes: Vec<Columns>,
}

/// A stored reply with its key.
#[derive(Debug)]
pub struct ReplyRow {
    pub principal: String,
    pub key: String,
    pub command: Uuid,
    pub fingerprint: Vec<u8>,
    pub status: u16,
    /// SHA-256 of the body.
    pub body: Vec<u8>,
    /// The headers with the seal.
    pub headers: String,
}

/// A row of a definition version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedVersion {
    pub reference: VersionRef,
    /// The component's digest, in hexadecimal digits.
    pub component: String,
    pub config: Json,
    pub graph: Graph,
    /// The version of the contract that the component was built for.
    pub wit: String,
}

/// A refused attempt with all its columns.
#[derive(Debug, Clone)]
pub struct RefusedAttemptColumns {
    pub tenant: TenantId,
    pub id: Uuid,
    pub pos: i64,
    pub occurred_at: Timestamp,
    /// The other columns, in the order in which a leaf covers them.
    pub columns: [Option<String>; 8],
}

impl RefusedAttemptColumns {
    /// The digest that its leaf covers.
    pub fn digest(&self) -> Hash {
        refused_digest(&self.hashed())
    }

    /// All columns, in the order in which the leaf covers them.
    pub fn hashed(&self) -> [Option<String>; 12] {
        let [actor, action, instance, task, code, detail, request, xid] = self.columns.clone();
        [
            Some(self.tenant.to_string()),
            Some(self.id.to_string()),
            Some(self.occurred_at.as_microsecond().to_string()),
            actor,
            action,
            instance,
            task,
            code,
            detail,
            request,
            xid,
            Some(self.pos.to_string()),
        ]
    }
}
