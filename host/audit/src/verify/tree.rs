//! Leaves and checkpoints: the log of leaves gives the roots that were signed, the checkpoints follow each other, and what
//! somebody kept of them elsewhere is still true.

use uuid::Uuid;

use super::Problem;
use crate::keys::{CheckpointKeys, SignatureVerdict};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::ids::hex;
use wrkflw_core::merkle::{self, Range};

/// What findings about checkpoints name as their stream.
pub(super) const CHECKPOINT: &str = "checkpoint";
/// The same for the log of leaves.
pub(super) const LEAF: &str = "leaf";

/// A finding with the kind and id of its stream.
pub(super) type Found = (String, Uuid, Problem);

/// A tenant's tree, made again leaf by leaf.
pub(super) struct Tree<'a> {
    /// Without any, signatures are left unchecked.
    keys: &'a CheckpointKeys,
    /// What was kept elsewhere, by size.
    kept: Vec<&'a Checkpoint>,
    range: Range,
    /// The leaf that comes next.
    next: u64,
    /// Leaves are missing: no root after them can be made.
    torn: bool,
    before: Option<Checkpoint>,
    pub(super) signatures: u64,
}

impl<'a> Tree<'a> {
    pub(super) fn new(
        keys: &'a CheckpointKeys,
        kept: impl Iterator<Item = &'a Checkpoint>,
    ) -> Tree<'a> {
        let mut kept: Vec<_> = kept.collect();
        kept.sort_by_key(|kept| kept.size);
        Tree {
            keys,
            kept,
            range: Range::default(),
            next: 0,
            torn: false,
            before: None,
            signatures: 0,
        }
    }

    /// The leaf that comes next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Takes the next leaf that there is.
    pub(super) fn leaf(&mut self, leaf: u64, digest: &[u8], found: &mut Vec<Found>) {
        if leaf != self.next {
            let detail = format!(
                "leaves {} to {} are missing",
                self.next,
                leaf.saturating_sub(1)
            );
            found.push(of(LEAF, Problem::new(Some(self.next), "leaf_gap", detail)));
            self.torn = true;
        }
        self.next = leaf.saturating_add(1);
        if self.torn {
            return;
        }
        self.range.push(merkle::leaf(digest));
        let (size, root) = (self.range.size(), self.range.root());
        for kept in self.kept.iter().filter(|kept| kept.size == size) {
            if kept.root != root {
                let detail = format!(
                    "the log's first {size} leaves have the root {}, and the checkpoint that was kept {}",
                    hex(&root),
                    hex(&kept.root)
                );
                found.push(of(
                    CHECKPOINT,
                    Problem::new(Some(kept.number), "kept", detail),
                ));
            }
        }
    }

    /// Takes the next checkpoint that there is, once all leaves up to its size are in.
    pub(super) fn checkpoint(
        &mut self,
        row: &Checkpoint,
        frontier: Option<&[u8]>,
        found: &mut Vec<Found>,
    ) {
        let mut finding = |code, detail: String| {
            found.push(of(CHECKPOINT, Problem::new(Some(row.number), code, detail)));
        };
        let before = self.before.as_ref();
        let expected = before.map_or(0, |before| before.number) + 1;
        if row.number != expected {
            let last = row.number.saturating_sub(1);
            let detail = format!("checkpoints {expected} to {last} are missing before it");
            finding("checkpoint_gap", detail);
        }
        let previous =
            before.map_or_else(|| merkle::empty().to_vec(), |before| before.root.clone());
        if row.previous_root != previous && row.number == expected {
            let detail = format!(
                "it follows the root {}, and the checkpoint before has {}",
                hex(&row.previous_root),
                hex(&previous)
            );
            finding("checkpoint_order", detail);
        }
        if before.is_some_and(|before| before.size >= row.size) {
            finding(
                "checkpoint_order",
                "it has no more leaves than the one before".into(),
            );
        }
        if let Some((code, detail)) = signature(self.keys, row) {
            finding(code, detail);
        } else if !self.keys.is_empty() {
            self.signatures += 1;
        }
        if !self.torn {
            let (size, root) = (self.range.size(), self.range.root());
            if size != row.size || row.root != root {
                let detail = format!(
                    "it has the root {} over {} leaves, and the log gives {} over {size}",
                    hex(&row.root),
                    row.size,
                    hex(&root)
                );
                finding("root", detail);
            } else if frontier.is_some_and(|frontier| frontier != self.range.bytes()) {
                finding("frontier", "its frontier is not that of the log".into());
            }
        }
        self.before = Some(row.clone());
    }

    /// Holds the ends against each other, and what was kept against them.
    pub(super) fn end(&self, found: &mut Vec<Found>) {
        let covered = self.before.as_ref().map_or(0, |last| last.size);
        if covered != self.next {
            let (last, leaves) = (
                self.before.as_ref().map_or(0, |last| last.number),
                self.next,
            );
            let detail =
                format!("the last checkpoint covers {covered} leaves, and the log has {leaves}");
            found.push(of(
                CHECKPOINT,
                Problem::new(Some(last), "checkpoint_end", detail),
            ));
        }
        for kept in &self.kept {
            let mut finding = |code, detail: String| {
                found.push(of(
                    CHECKPOINT,
                    Problem::new(Some(kept.number), code, detail),
                ));
            };
            if let Some((code, detail)) = signature(self.keys, kept) {
                finding(code, format!("the checkpoint that was kept: {detail}"));
            }
            if kept.size > self.next {
                let detail = format!(
                    "the checkpoint that was kept covers {} leaves, and the log has {}: it was taken back",
                    kept.size, self.next
                );
                finding("rewound", detail);
            } else if self.torn && kept.size > self.range.size() {
                finding(
                    "kept",
                    "leaves before it are missing, so its root cannot be made".into(),
                );
            }
        }
    }
}

/// What is wrong with the signature of a checkpoint, where keys are known.
pub(super) fn signature(keys: &CheckpointKeys, row: &Checkpoint) -> Option<(&'static str, String)> {
    if keys.is_empty() {
        return None;
    }
    match keys.verdict(row) {
        SignatureVerdict::Valid => None,
        SignatureVerdict::Invalid => {
            let detail = format!("it is not as it was signed with key {}", row.key_id);
            Some(("signature", detail))
        }
        SignatureVerdict::UnknownKey => {
            let detail = format!("no checkpoint key named {}, which signed it", row.key_id);
            Some(("signature_key", detail))
        }
    }
}

/// A finding about a checkpoint.
pub(super) fn of_checkpoint(row: &Checkpoint, code: &'static str, detail: String) -> Found {
    of(CHECKPOINT, Problem::new(Some(row.number), code, detail))
}

fn of(stream: &str, problem: Problem) -> Found {
    (stream.to_owned(), Uuid::nil(), problem)
}
