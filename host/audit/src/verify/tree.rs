//! Verifies leaves and checkpoints: the leaves give the signed roots, the checkpoints follow each other, and checkpoints that
//! were kept elsewhere still fit.

use uuid::Uuid;

use super::{Problem, out_of_step};
use crate::keys::{CheckpointKeys, SignatureVerdict};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::ids::hex;
use wrkflw_core::merkle::{self, Range};

/// The stream of findings about checkpoints.
pub(super) const CHECKPOINT: &str = "checkpoint";
/// The stream of findings about leaves.
pub(super) const LEAF: &str = "leaf";

/// A finding with the kind and id of its stream.
pub(super) type LocatedProblem = (String, Uuid, Problem);

/// A tenant's tree, rebuilt leaf by leaf.
pub(super) struct Tree<'a> {
    /// If empty, signatures are not checked.
    keys: &'a CheckpointKeys,
    /// Checkpoints that were kept elsewhere, by size.
    kept: Vec<&'a Checkpoint>,
    /// How many of `kept` have been passed: the log has more leaves than they cover.
    passed: usize,
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
            passed: 0,
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
    pub(super) fn leaf(&mut self, leaf: u64, digest: &[u8], found: &mut Vec<LocatedProblem>) {
        if let Some(detail) = out_of_step(("leaf", "leaves"), self.next, leaf) {
            found.push(of(
                LEAF,
                Problem::new(Some(leaf.min(self.next)), "leaf_gap", detail),
            ));
            self.torn = true;
        }
        self.next = self.next.max(leaf.saturating_add(1));
        if self.torn {
            return;
        }
        self.range.push(merkle::leaf(digest));
        self.compare_kept(found);
    }

    /// Compares the checkpoints that were kept for just this many leaves. The root is computed only for them.
    fn compare_kept(&mut self, found: &mut Vec<LocatedProblem>) {
        let size = self.range.size();
        while let Some(kept) = self.kept.get(self.passed).filter(|kept| kept.size <= size) {
            self.passed += 1;
            if kept.size < size {
                continue;
            }
            let root = self.range.root();
            if kept.root != root {
                let detail = format!(
                    "the log's first {size} leaves have the root {}, but the kept checkpoint has {}",
                    hex(&root),
                    hex(&kept.root)
                );
                found.push(of_checkpoint(kept, "kept", detail));
            }
        }
    }

    /// Verifies the next stored checkpoint, after all leaves up to its size were added.
    pub(super) fn checkpoint(
        &mut self,
        row: &Checkpoint,
        frontier: Option<&[u8]>,
        found: &mut Vec<LocatedProblem>,
    ) {
        let mut finding = |code, detail: String| {
            found.push(of(CHECKPOINT, Problem::new(Some(row.number), code, detail)));
        };
        let before = self.before.as_ref();
        let expected = before.map_or(1, |before| before.number.saturating_add(1));
        if let Some(detail) = out_of_step(("checkpoint", "checkpoints"), expected, row.number) {
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
                "it must cover more leaves than the checkpoint before, and does not".into(),
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
        if row.number >= expected {
            self.before = Some(row.clone());
        }
    }

    /// Compares the last checkpoint with the last leaf, and the checkpoints that were kept with both.
    pub(super) fn end(&self, found: &mut Vec<LocatedProblem>) {
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
            let mut finding = |code, detail: String| found.push(of_checkpoint(kept, code, detail));
            if let Some((code, detail)) = signature(self.keys, kept) {
                finding(code, format!("the kept checkpoint: {detail}"));
            }
            if kept.size > self.next {
                let detail = format!(
                    "the kept checkpoint covers {} leaves, but the log has only {}: the last ones were removed",
                    kept.size, self.next
                );
                finding("rewound", detail);
            } else if self.torn && kept.size > self.range.size() {
                let detail =
                    "the kept checkpoint cannot be compared, because an earlier leaf is missing";
                finding("kept", detail.into());
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
            let detail = format!("the signature with key {} does not match it", row.key_id);
            Some(("signature", detail))
        }
        SignatureVerdict::UnknownKey => {
            let detail = format!(
                "it is signed with key {}, which is not among the given keys",
                row.key_id
            );
            Some(("signature_key", detail))
        }
    }
}

/// The findings about a kept checkpoint of a missing tenant.
pub(super) fn of_absent(keys: &CheckpointKeys, kept: &Checkpoint) -> Vec<LocatedProblem> {
    let detail = format!(
        "the kept checkpoint covers {} leaves, but the tenant is not there",
        kept.size
    );
    let mut found = vec![of_checkpoint(kept, "rewound", detail)];
    if let Some((code, detail)) = signature(keys, kept) {
        let detail = format!("the kept checkpoint: {detail}");
        found.push(of_checkpoint(kept, code, detail));
    }
    found
}

/// A finding about a checkpoint.
pub(super) fn of_checkpoint(
    row: &Checkpoint,
    code: &'static str,
    detail: String,
) -> LocatedProblem {
    of(CHECKPOINT, Problem::new(Some(row.number), code, detail))
}

fn of(stream: &str, problem: Problem) -> LocatedProblem {
    (stream.to_owned(), Uuid::nil(), problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn checkpoint(number: u64, size: u64, root: Vec<u8>) -> Checkpoint {
        Checkpoint {
            tenant: "acme".into(),
            number,
            size,
            root,
            previous_root: Vec::new(),
            signed_at: Timestamp::UNIX_EPOCH,
            key_id: "k".into(),
            signature: Vec::new(),
        }
    }

    fn details(found: &[LocatedProblem], code: &str) -> Vec<String> {
        let found = found.iter().filter(|(_, _, problem)| problem.code == code);
        found
            .map(|(_, _, problem)| problem.detail.clone())
            .collect()
    }

    #[test]
    fn leaves_that_come_again_are_not_taken_for_missing_ones() {
        let (keys, mut found) = (CheckpointKeys::default(), Vec::new());
        let mut tree = Tree::new(&keys, [].iter());
        for leaf in [0, 1, 1, 0, 2, 5, u64::MAX, u64::MAX] {
            tree.leaf(leaf, &[], &mut found);
        }
        let last = u64::MAX - 1;
        assert_eq!(
            details(&found, "leaf_gap"),
            [
                "leaf 1 comes again or out of order".to_owned(),
                "leaf 0 comes again or out of order".into(),
                "leaves 3 to 4 are missing".into(),
                format!("leaves 6 to {last} are missing"),
            ]
        );
    }

    #[test]
    fn checkpoints_have_any_number_in_any_order() {
        let (keys, mut found) = (CheckpointKeys::default(), Vec::new());
        let mut tree = Tree::new(&keys, [].iter());
        for number in [1, 3, 2, 4, u64::MAX, 5, u64::MAX] {
            tree.checkpoint(&checkpoint(number, number, Vec::new()), None, &mut found);
        }
        let last = u64::MAX - 1;
        assert_eq!(
            details(&found, "checkpoint_gap"),
            [
                "checkpoint 2 is missing".to_owned(),
                "checkpoint 2 comes again or out of order".into(),
                format!("checkpoints 5 to {last} are missing"),
                "checkpoint 5 comes again or out of order".into(),
            ]
        );
    }

    /// Also several of the same size, and one without leaves.
    #[test]
    fn each_kept_checkpoint_is_compared() {
        let mut range = Range::default();
        range.push(merkle::leaf(&[1]));
        let right = checkpoint(1, 1, range.root().to_vec());
        let wrong = checkpoint(2, 1, vec![0; 32]);
        let later = checkpoint(3, 3, vec![0; 32]);
        let (keys, mut found) = (CheckpointKeys::default(), Vec::new());
        let kept = [later, wrong, right, checkpoint(4, 0, Vec::new())];
        let mut tree = Tree::new(&keys, kept.iter());
        for leaf in 0..4 {
            tree.leaf(leaf, &[1], &mut found);
        }
        let numbers: Vec<_> = found.iter().map(|(_, _, problem)| problem.seq).collect();
        assert_eq!(numbers, [Some(2), Some(3)], "{found:?}");
    }
}
