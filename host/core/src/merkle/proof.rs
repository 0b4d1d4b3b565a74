//! Inclusion proofs: the hashes of the siblings on the path from a leaf to the root.
//!
//! A [`Prover`] is created for certain leaves and then passes over the tree. It keeps only the hashes that their proofs
//! need, so proofs from a tree of any size take one pass and little memory.

use std::collections::HashMap;

use super::{Hash, Range, fold, node};

/// The hashes of the siblings on the path from a leaf to the root, starting at the leaf.
pub type Proof = Vec<Hash>;

/// A range of leaves: from the first, inclusive, to the last, exclusive.
type Span = (u64, u64);

/// Creates proofs for some leaves of a tree of known size.
pub struct Prover {
    size: u64,
    range: Range,
    /// Subtree roots by level and index; zero until the pass has reached them.
    kept: HashMap<(u32, u64), Hash>,
}

impl Prover {
    /// A prover for these leaves, each below `size`.
    pub fn new(size: u64, leaves: impl IntoIterator<Item = u64>) -> Prover {
        let mut kept = HashMap::new();
        for leaf in leaves {
            let nodes = beside(leaf, size).into_iter().flat_map(perfect);
            kept.extend(nodes.map(|place| (place, [0; 32])));
        }
        Prover {
            size,
            range: Range::default(),
            kept,
        }
    }

    /// Takes the hash of the next leaf of the tree.
    pub fn push(&mut self, leaf: Hash) {
        let kept = &mut self.kept;
        self.range.push_with(leaf, |level, place, hash| {
            if let Some(wanted) = kept.get_mut(&(level, place)) {
                *wanted = *hash;
            }
        });
    }

    /// The tree's root and the proofs; none before all leaves were pushed.
    pub fn end(self) -> Option<(Hash, Proofs)> {
        let Prover { size, range, kept } = self;
        (range.size() == size).then(|| (range.root(), Proofs { size, kept }))
    }
}

/// The hashes from which the proofs are assembled.
pub struct Proofs {
    size: u64,
    kept: HashMap<(u32, u64), Hash>,
}

impl Proofs {
    /// The proof of a leaf. None if the leaf was not asked for.
    pub fn of(&self, leaf: u64) -> Option<Proof> {
        let hash = |span: Span| {
            let roots: Option<Vec<Hash>> = perfect(span)
                .map(|place| self.kept.get(&place).copied())
                .collect();
            fold(&roots?)
        };
        beside(leaf, self.size).into_iter().map(hash).collect()
    }
}

/// The spans of the siblings on the path from a leaf to the root, starting at the leaf.
fn beside(leaf: u64, size: u64) -> Vec<Span> {
    let (mut from, mut to) = (0, size);
    let mut spans = Vec::new();
    while to - from > 1 {
        // The largest power of two below the width.
        let middle = from + (1 << (to - from - 1).ilog2());
        if leaf < middle {
            spans.push((middle, to));
            to = middle;
        } else {
            spans.push((from, middle));
            from = middle;
        }
    }
    spans.reverse();
    spans
}

/// The perfect subtrees of a span by level and index, the largest first.
fn perfect((mut from, to): Span) -> impl Iterator<Item = (u32, u64)> {
    std::iter::from_fn(move || {
        (from < to).then(|| {
            let level = (to - from).ilog2();
            let place = from >> level;
            from += 1 << level;
            (level, place)
        })
    })
}

/// The root that this proof gives for the leaf in a tree of `size` leaves; none if no proof has this length.
pub fn root(leaf: u64, size: u64, hash: Hash, proof: &[Hash]) -> Option<Hash> {
    if leaf >= size {
        return None;
    }
    let spans = beside(leaf, size);
    if spans.len() != proof.len() {
        return None;
    }
    let up = |hash: Hash, (span, other): (Span, &Hash)| {
        if span.0 > leaf {
            node(&hash, other)
        } else {
            node(other, &hash)
        }
    };
    Some(spans.into_iter().zip(proof).fold(hash, up))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merkle::leaf;

    fn hash(number: u64) -> Hash {
        leaf(&number.to_be_bytes())
    }

    #[test]
    fn every_leaf_of_every_tree_is_proven_and_nothing_else() {
        for size in 1..40 {
            let mut prover = Prover::new(size, 0..size);
            (0..size).for_each(|number| prover.push(hash(number)));
            let (whole, proofs) = prover.end().expect("all leaves");
            for number in 0..size {
                let proof = proofs.of(number).expect("it was asked for");
                let gives =
                    |leaf, hash, proof: &[Hash]| root(leaf, size, hash, proof) == Some(whole);
                assert!(gives(number, hash(number), &proof), "{number} of {size}");
                assert!(!gives(number, hash(number + 1), &proof));
                assert!(size == 1 || !gives((number + 1) % size, hash(number), &proof));
                for at in 0..proof.len() {
                    let mut other = proof.clone();
                    other[at][7] ^= 1;
                    assert!(!gives(number, hash(number), &other));
                    assert!(!gives(number, hash(number), &proof[..at]));
                }
            }
            assert_eq!(root(size, size, hash(0), &[]), None);
        }
    }

    #[test]
    fn what_was_not_asked_for_is_not_proven() {
        let mut prover = Prover::new(9, [3]);
        (0..8).for_each(|number| prover.push(hash(number)));
        prover.push(hash(8));
        let (_, proofs) = prover.end().expect("all leaves");
        assert!(proofs.of(3).is_some());
        assert_eq!(proofs.of(7), None);
        assert!(Prover::new(2, [0]).end().is_none(), "leaves are missing");
    }
}
