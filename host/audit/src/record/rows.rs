//! The rows of a record. They are as somebody left them: a row that no host would have written is one, too.

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

/// An instance as its own row has it.
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
}

/// A task, with its decision if there is a row of one.
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

/// Where a stream ends, as it is kept beside the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadRow {
    pub seq: u64,
    #[serde(with = "digits")]
    pub hash: Vec<u8>,
    /// None where public entries are not counted.
    pub event_seq: Option<u64>,
}

/// An entry as it is stored.
#[derive(Debug)]
pub struct EntryRow {
    pub stream: Uuid,
    pub seq: u64,
    /// Its place in the feed, which the hash does not cover.
    pub place: Place,
    /// Or why it is no entry.
    pub entry: Result<Entry, &'static str>,
}

/// A stream by its kind and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRow {
    pub kind: String,
    pub id: Uuid,
    /// Whether anything says where it ends.
    pub has_head: bool,
}

/// What only the leaf of an entry covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub xid: i64,
    pub pos: i64,
    pub traceparent: Option<String>,
}

impl Place {
    /// The content of the leaf of the entry that has this hash.
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

/// A leaf as it is stored.
#[derive(Debug, Clone)]
pub struct LeafRow {
    pub leaf: u64,
    pub kind: String,
    pub id: Uuid,
    pub seq: u64,
    pub digest: Vec<u8>,
    /// What the entry gives now; none where it is gone.
    pub now: Option<Hash>,
    /// The entry's position, which tells how far entries were taken in.
    pub pos: Option<i64>,
}

/// An entry by its stream and number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlogged {
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

/// Rows that are held against entries, beside those of the directory and of instances. Of long texts, and of components, they
/// have the SHA-256 in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableRows<'a> {
    /// All, without their secrets and what deliveries have to say.
    Subscriptions,
    /// An operation on many instances, and of its items the digest of their instances' ids in their order: null where some
    /// are not there, and the operation is so old that they may be forgotten.
    Operation {
        id: Uuid,
        kept: Duration,
    },
    /// The one whose stream has this id.
    Definition(Uuid),
    /// The versions under this key.
    Versions(&'a str),
    /// The attributes that are declared under this key.
    Declarations(&'a str),
    /// What is kept under these digests.
    Components(&'a [String]),
    EngineProfiles(&'a [String]),
}

/// What an instance has in tables besides decisions.
#[derive(Debug, Default)]
pub struct PartRows {
    /// Those columns of its row that [`InstanceRow`] does not have.
    pub own: Vec<Columns>,
    pub state_instances: Vec<Columns>,
    pub tasks: Vec<Columns>,
    pub candidates: Vec<Columns>,
    pub attributes: Vec<Columns>,
}

/// A reply under its key.
#[derive(Debug)]
pub struct ReplyRow {
    pub principal: String,
    pub key: String,
    pub command: Uuid,
    pub fingerprint: Vec<u8>,
    pub status: u16,
    /// SHA-256 of the body.
    pub body: Vec<u8>,
    /// With the seal.
    pub headers: String,
}

/// A version as its row has it.
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
pub struct Refused {
    pub tenant: TenantId,
    pub id: Uuid,
    pub pos: i64,
    pub occurred_at: Timestamp,
    /// The others, in the order in which a leaf covers them.
    pub columns: [Option<String>; 8],
}

impl Refused {
    /// The content of its leaf.
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
