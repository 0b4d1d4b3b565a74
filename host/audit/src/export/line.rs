//! The lines of an export, in their order.
//!
//! First comes the header. Each tenant has its line, its versions, components, leaves with checkpoints between them,
//! instances with their tasks and entries, other streams with their entries, and refused attempts. The end line shows that
//! the file is complete. Later releases only add members. A member with another meaning needs another [`VERSION`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::record::rows::{
    EntryRow, HeadRow, InstanceRow, RecordedVersion, TaskRow, UnhashedColumns,
};
use wrkflw_core::audit::{Draft, Entry, Stream};
use wrkflw_core::checkpoint::{Checkpoint, digits};
use wrkflw_core::ids::{CommandId, TaskId, TenantId};
use wrkflw_core::json::Json;
use wrkflw_core::merkle::Hash;

/// The name of the format in the first line.
pub const FORMAT: &str = "wrkflw audit export";
/// The version of the format.
pub const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExportLine {
    Header {
        format: String,
        version: u32,
        #[serde(rename = "exportedAt")]
        exported_at: Timestamp,
    },
    Tenant(TenantLine),
    Version(Box<RecordedVersion>),
    /// Bytes in base64.
    Component {
        bytes: String,
    },
    Leaf(LeafLine),
    Checkpoint(Checkpoint),
    Instance(Box<InstanceRow>),
    Task(Box<TaskRow>),
    Stream {
        kind: String,
        id: Uuid,
        /// None if the stream has no stored head.
        head: Option<HeadRow>,
    },
    Entry(Box<EntryLine>),
    Refused(RefusedLine),
    End {
        /// Lines before this one.
        lines: u64,
    },
}

/// A tenant, and how much of it follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantLine {
    pub id: TenantId,
    pub name: String,
    /// Whether the whole tenant follows, with all leaves. Otherwise entries have their own proofs.
    pub whole: bool,
    /// Entries up to this position are leaves.
    pub taken_in: i64,
}

/// A leaf of the tenant's tree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeafLine {
    pub leaf: u64,
    pub kind: String,
    pub id: Uuid,
    pub seq: u64,
    #[serde(with = "digits")]
    pub digest: Vec<u8>,
}

/// A refused attempt: the columns that its leaf covers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RefusedLine {
    pub id: Uuid,
    pub pos: i64,
    pub columns: Vec<Option<String>>,
}

/// An entry with all its columns. The line of its instance or stream comes before it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryLine {
    seq: u64,
    id: Uuid,
    r#type: String,
    revision: u32,
    command_id: Uuid,
    actor: Option<String>,
    task_id: Option<Uuid>,
    /// The text as it is stored: the chain covers its bytes.
    payload: String,
    evidence: Option<String>,
    #[serde(with = "digits")]
    salt: Vec<u8>,
    occurred_at: Timestamp,
    #[serde(with = "digits")]
    hash: Vec<u8>,
    event_seq: Option<u64>,
    #[serde(flatten)]
    place: UnhashedColumns,
    /// Only if the file does not have all leaves.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proof: Option<ProofLine>,
}

/// The proof that an entry is in the tree of the tenant's checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProofLine {
    pub leaf: u64,
    /// Hashes from the leaf upwards, in hexadecimal digits.
    pub path: Vec<String>,
}

impl EntryLine {
    /// The line of an entry, or why its row cannot be read.
    pub fn of(row: EntryRow, proof: Option<ProofLine>) -> Result<EntryLine, &'static str> {
        let Entry {
            seq,
            event_seq,
            draft,
            hash,
            ..
        } = row.entry?;
        Ok(EntryLine {
            seq,
            id: draft.id,
            r#type: draft.kind,
            revision: draft.revision,
            command_id: draft.command.0,
            actor: draft.actor,
            task_id: draft.task.map(|task| task.0),
            payload: draft.payload.as_str().to_owned(),
            evidence: draft.evidence.map(|text| text.as_str().to_owned()),
            salt: draft.salt.to_vec(),
            occurred_at: draft.at,
            hash: hash.to_vec(),
            event_seq,
            place: row.place,
            proof,
        })
    }

    /// The entry as a row of this stream.
    pub fn row(self, stream: Stream) -> EntryRow {
        let entry = || {
            Ok(Entry {
                stream,
                seq: self.seq,
                event_seq: self.event_seq,
                draft: Draft {
                    id: self.id,
                    kind: self.r#type,
                    revision: self.revision,
                    command: CommandId(self.command_id),
                    actor: self.actor,
                    task: self.task_id.map(TaskId),
                    payload: Json::from_canonical(self.payload),
                    evidence: self.evidence.map(Json::from_canonical),
                    salt: self
                        .salt
                        .try_into()
                        .map_err(|_| "its salt does not have 16 bytes")?,
                    at: self.occurred_at,
                    public: self.event_seq.is_some(),
                    traceparent: None,
                },
                hash: self
                    .hash
                    .try_into()
                    .map_err(|_| "its hash does not have 32 bytes")?,
            })
        };
        EntryRow {
            stream: stream.id,
            seq: self.seq,
            place: self.place,
            entry: entry(),
        }
    }

    /// Its number in its stream.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The digest that its leaf covers, and its position in the log. Every entry up to the position `taken_in` is a leaf.
    pub fn leaf(&self) -> (Hash, i64) {
        (self.place.digest(&self.hash), self.place.pos)
    }
}
