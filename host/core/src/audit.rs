//! Audit entries and their hash chain.
//!
//! Each entry's hash covers the hash of the entry before it, so a changed, removed or inserted entry is detected.
//! The hash covers salted digests of the payload and of the evidence, not their texts, so that a later release can keep
//! the digest of an erased payload.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::ids::{CommandId, TaskId, TenantId};
use super::json::Json;

/// The domain separator. Change it whenever the hashed content changes; verifiers depend on this constant.
const DOMAIN: &[u8] = b"wrkflw audit entry 1";

/// The subject of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamKind {
    Instance,
    Definition,
    Directory,
    Operation,
}

impl StreamKind {
    pub fn name(self) -> &'static str {
        match self {
            StreamKind::Instance => "instance",
            StreamKind::Definition => "definition",
            StreamKind::Directory => "directory",
            StreamKind::Operation => "operation",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<StreamKind> {
        let all = [
            StreamKind::Instance,
            StreamKind::Definition,
            StreamKind::Directory,
            StreamKind::Operation,
        ];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

/// A sequence of entries with its own hash chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream {
    pub tenant: TenantId,
    pub kind: StreamKind,
    pub id: Uuid,
}

/// The last entry of a stream, which the hash of the next one covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The number of the last entry; 0 before the first.
    pub seq: u64,
    pub hash: [u8; 32],
    /// The number of the last public entry; 0 before the first.
    pub event_seq: u64,
}

impl Head {
    /// The head before the first entry. It depends on the stream, so that entries cannot be moved to another one.
    pub fn genesis(stream: Stream) -> Head {
        let mut hasher = Sha256::new();
        hasher.update(b"wrkflw audit stream 1");
        hasher.update(stream.tenant.0.to_be_bytes());
        field(&mut hasher, stream.kind.name().as_bytes());
        field(&mut hasher, stream.id.as_bytes());
        Head {
            seq: 0,
            hash: hasher.finalize().into(),
            event_seq: 0,
        }
    }

    /// Numbers the draft and adds it to the chain.
    pub fn append(&mut self, stream: Stream, draft: Draft) -> Entry {
        self.seq += 1;
        let event_seq = draft.public.then(|| {
            self.event_seq += 1;
            self.event_seq
        });
        let mut entry = Entry {
            stream,
            seq: self.seq,
            event_seq,
            draft,
            hash: [0; 32],
        };
        entry.hash = entry.digest(&self.hash);
        self.hash = entry.hash;
        entry
    }
}

/// An entry without its number and hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Also the id of the public event.
    pub id: Uuid,
    pub kind: String,
    /// The stream's revision after the command.
    pub revision: u32,
    pub command: CommandId,
    /// None for the host itself.
    pub actor: Option<String>,
    pub task: Option<TaskId>,
    pub payload: Json,
    /// Everything that is needed to evaluate the command again; only on the command's first entry.
    pub evidence: Option<Json>,
    pub salt: [u8; 16],
    /// To the millisecond.
    pub at: Timestamp,
    pub public: bool,
    /// W3C trace context. The hash does not cover it.
    pub traceparent: Option<String>,
}

/// An entry of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub stream: Stream,
    pub seq: u64,
    pub event_seq: Option<u64>,
    pub draft: Draft,
    pub hash: [u8; 32],
}

impl Entry {
    /// The hash that this entry must have after `previous`.
    pub fn digest(&self, previous: &[u8; 32]) -> [u8; 32] {
        let draft = &self.draft;
        let mut hasher = Sha256::new();
        hasher.update(DOMAIN);
        hasher.update(self.stream.tenant.0.to_be_bytes());
        field(&mut hasher, self.stream.kind.name().as_bytes());
        field(&mut hasher, self.stream.id.as_bytes());
        hasher.update(self.seq.to_be_bytes());
        hasher.update(self.event_seq.unwrap_or(0).to_be_bytes());
        field(&mut hasher, draft.id.as_bytes());
        field(&mut hasher, draft.kind.as_bytes());
        hasher.update(draft.revision.to_be_bytes());
        field(&mut hasher, draft.command.0.as_bytes());
        optional(&mut hasher, draft.actor.as_deref().map(str::as_bytes));
        optional(
            &mut hasher,
            draft.task.as_ref().map(|task| task.0.as_bytes().as_slice()),
        );
        hasher.update(draft.at.as_millisecond().to_be_bytes());
        field(&mut hasher, &salted(&draft.salt, &draft.payload));
        let evidence = draft
            .evidence
            .as_ref()
            .map(|evidence| salted(&draft.salt, evidence));
        optional(&mut hasher, evidence.as_ref().map(<[u8; 32]>::as_slice));
        field(&mut hasher, previous);
        hasher.finalize().into()
    }
}

fn salted(salt: &[u8; 16], text: &Json) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(salt);
    hasher.update(text.as_str().as_bytes());
    hasher.finalize().into()
}

/// Hashes a field after its length, so that the boundary between two fields is part of the hash.
fn field(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_be_bytes());
    hasher.update(bytes);
}

fn optional(hasher: &mut Sha256, bytes: Option<&[u8]>) {
    hasher.update([u8::from(bytes.is_some())]);
    field(hasher, bytes.unwrap_or_default());
}

/// The SHA-256 of these bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests;
