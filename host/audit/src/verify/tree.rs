//! Verifies leaves and checkpoints: the leaves give the signed roots, the checkpoints follow each other, and checkpoints that
//! were kept elsewhere still fit.

use uuid::Uuid;

use super::Problem;
use crate::keys::{CheckpointKeys, SignatureVerdict};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::ids::hex;
use wrkflw_core::merkle::{self, Range};

/// The stream of findings about checkpoints.
pub(super) const CHECKPOINT: &str = "checkpoint";
/// The stream of findings about leaves.
pub(super) const LEAF: &str = "leaf";

/// A finding with the kind and id of its stream.
pub(super) type Found = (String, Uuid, Problem);

/// A tenant's tree, rebuilt leaf by leaf.
pub(super) struct Tree<'a> {
    /// If empty, signatures are not checked.
    keys: &'a CheckpointKeys,
    /// Checkpoints that were kept elsewhere, by size.
    kept: Vec<&'a Checkpoint>,
    range: Range,
    /// The number of the next leaf.
    next: u64,
    /// Leaves are missing, so no later root can be computed.
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

    /// The number of the next leaf.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Adds the next stored leaf.
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
                    "the log's first {size} leaves have the root {}, but the checkpoint that was kept has {}",
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

    /// Verifies the next stored checkpoint, after all leaves up to its size were added.
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
                "it follows the root {}, but the checkpoint before has {}",
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
                    "it has the root {} over {} leaves, but the log gives {} over {size}",
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

    /// Compares the last checkpoint with the last leaf, and the checkpoints that were kept with both.
    pub(super) fn end(&self, found: &mut Vec<Found>) {
        let covered = self.before.as_ref().map_or(0, |last| last.size);
        if covered != self.next {
            let (last, leaves) = (
                self.before.as_ref().map_or(0, |last| last.number),
                self.next,
            );
            let detail =
                format!("the last checkpoint covers {covered} leaves, but the log has {leaves}");
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

/// The problem of a checkpoint's signature. None if no keys are known.
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
