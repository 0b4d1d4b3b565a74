//! The streams to which the leaves of an export belong.

use uuid::Uuid;

use super::LEAF;
use crate::export::line::LeafLine;

/// The stream of each leaf, in runs: neighbours often belong to one stream.
#[derive(Default)]
pub(super) struct Owners(Vec<(u64, String, Uuid, u64)>);

impl Owners {
    pub(super) fn push(&mut self, line: LeafLine) {
        let follows = |(first, kind, id, seq): &(u64, String, Uuid, u64)| {
            *kind == line.kind
                && *id == line.id
                && line.leaf.checked_sub(*first) == line.seq.checked_sub(*seq)
        };
        if !self.0.last().is_some_and(follows) {
            self.0.push((line.leaf, line.kind, line.id, line.seq));
        }
    }

    pub(super) fn of(&self, leaf: u64) -> (String, Uuid, u64) {
        let run = self.0.partition_point(|(first, ..)| *first <= leaf);
        match run.checked_sub(1).and_then(|run| self.0.get(run)) {
            // The leaves of a tampered log may be out of order.
            Some((first, kind, id, seq)) => (kind.clone(), *id, seq.saturating_add(leaf - first)),
            None => (LEAF.to_owned(), Uuid::nil(), leaf),
        }
    }
}
