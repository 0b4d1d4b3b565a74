//! The lines of an export: what each says, in the order in which they come.
//!
//! First the header; then for each tenant its line, its versions, components, leaves with checkpoints between them, instances
//! with their tasks and entries, other streams with their entries, refused attempts; at last the end, so that a file
//! that was cut off shows. Members are only ever added; another meaning is another [`VERSION`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::record::rows::{EntryRow, HeadRow, InstanceRow, Place, RecordedVersion, TaskRow};
use wrkflw_core::audit::{Draft, Entry, Stream};
use wrkflw_core::checkpoint::{Checkpoint, digits};
use wrkflw_core::ids::{CommandId, TaskId, TenantId};
use wrkflw_core::json::Json;
use wrkflw_core::merkle::Hash;

/// What the first line says that the file is.
pub const FORMAT: &str = "wrkflw audit export";
/// Of the format.
pub const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Line {
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
        /// None where nothing says where it ends.
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
    /// All of it, with all leaves; else each entry has a proof of its own.
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

/// An entry with all its columns; of which stream says the line of its instance or stream.
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
    /// The texts as they are stored: the chain covers their bytes.
    payload: String,
    evidence: Option<String>,
    #[serde(with = "digits")]
    salt: Vec<u8>,
    occurred_at: Timestamp,
    #[serde(with = "digits")]
    hash: Vec<u8>,
    event_seq: Option<u64>,
    #[serde(flatten)]
    place: Place,
    /// Where not all leaves are in the file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proof: Option<ProofLine>,
}

/// That an entry is in the tree of the tenant's checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProofLine {
    pub leaf: u64,
    /// From the leaf on, in hexadecimal digits.
    pub path: Vec<String>,
}

impl EntryLine {
    /// The line of an entry; the reason where its row is none.
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
                        .map_err(|_| "its salt has not 16 bytes")?,
                    at: self.occurred_at,
                    public: self.event_seq.is_some(),
                    traceparent: None,
                },
                hash: self
                    .hash
                    .try_into()
                    .map_err(|_| "its hash has not 32 bytes")?,
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

    /// The content of its leaf, and the position that tells whether it is one.
    pub fn leaf(&self) -> (Hash, i64) {
        (self.place.digest(&self.hash), self.place.pos)
    }
}
