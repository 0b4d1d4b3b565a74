//! Merkle trees by RFC 6962: a root of 32 bytes commits to all leaves and their order.
//!
//! A [`Range`] grows leaf by leaf and has one hash for each perfect subtree, so a tree of a billion leaves needs thirty
//! hashes. `proof` has inclusion proofs, which are verified with the root alone.

pub mod proof;

use sha2::{Digest as _, Sha256};

/// The hash of a leaf, a node or a root.
pub type Hash = [u8; 32];

/// The hash of a leaf with this content.
pub fn leaf(content: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update([0]);
    hasher.update(content);
    hasher.finalize().into()
}

/// The hash of a node over two others.
pub fn node(left: &Hash, right: &Hash) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update([1]);
    hasher.update(left);
    hasher.update(right);
    hasher.finalize().into()
}

/// A compact range: the roots of the perfect subtrees of a growing tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Range {
    size: u64,
    /// The roots of the perfect subtrees, the largest first: one for each bit that is set in the size.
    roots: Vec<Hash>,
}

impl Range {
    /// Restores a range from [`Range::bytes`]; none if the bytes do not fit the size.
    pub fn from_bytes(size: u64, bytes: &[u8]) -> Option<Range> {
        let (roots, rest) = bytes.as_chunks::<32>();
        let fits = rest.is_empty() && roots.len() == size.count_ones() as usize;
        fits.then(|| Range {
            size,
            roots: roots.to_vec(),
        })
    }

    /// The state of the range besides its size.
    pub fn bytes(&self) -> Vec<u8> {
        self.roots.concat()
    }

    /// The number of leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds the hash of a leaf.
    pub fn push(&mut self, leaf: Hash) {
        self.push_with(leaf, |_, _, _| {});
    }

    /// The same. Calls `completed` with the level, the index on that level and the root of each perfect subtree that it
    /// completes.
    pub(crate) fn push_with(&mut self, leaf: Hash, mut completed: impl FnMut(u32, u64, &Hash)) {
        let mut hash = leaf;
        completed(0, self.size, &hash);
        for level in 1..=self.size.trailing_ones() {
            let left = self.roots.pop().expect("each set bit has a root");
            hash = node(&left, &hash);
            completed(level, self.size >> level, &hash);
        }
        self.roots.push(hash);
        self.size += 1;
    }

    /// The root over all leaves.
    pub fn root(&self) -> Hash {
        fold(&self.roots).unwrap_or_else(empty)
    }
}

/// The root of a tree without leaves: the hash of the empty string.
pub fn empty() -> Hash {
    Sha256::digest([]).into()
}

/// The root over adjacent perfect subtrees, the largest first.
fn fold(roots: &[Hash]) -> Option<Hash> {
    roots
        .iter()
        .rev()
        .copied()
        .reduce(|right, left| node(&left, &right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::hex;

    const LEAVES: [&str; 8] = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ];
    /// The roots of the first n leaves, from other implementations of the RFC.
    const ROOTS: [&str; 8] = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    fn content(digits: &str) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex digits");
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    #[test]
    fn roots_are_those_that_others_compute() {
        let mut range = Range::default();
        assert_eq!(
            hex(&range.root()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        for (text, root) in LEAVES.iter().zip(ROOTS) {
            range.push(leaf(&content(text)));
            assert_eq!(hex(&range.root()), root, "{} leaves", range.size());
        }
    }

    #[test]
    fn a_range_goes_on_from_what_was_kept() {
        let mut whole = Range::default();
        for number in 0..100_u32 {
            let kept = Range::from_bytes(whole.size(), &whole.bytes());
            assert_eq!(kept.as_ref(), Some(&whole));
            whole = kept.expect("what was kept");
            whole.push(leaf(&number.to_be_bytes()));
        }
        assert_eq!(whole.size(), 100);
        assert_eq!(Range::from_bytes(100, &[0; 32]), None, "100 has three bits");
        assert_eq!(Range::from_bytes(1, &[0; 31]), None);
    }

    #[test]
    fn order_and_number_of_leaves_are_in_the_root() {
        let of = |leaves: &[u8]| {
            let mut range = Range::default();
            for one in leaves {
                range.push(leaf(&[*one]));
            }
            range.root()
        };
        let roots = [
            of(&[1, 2, 3]),
            of(&[1, 3, 2]),
            of(&[1, 2]),
            of(&[1, 2, 3, 3]),
        ];
        for (number, one) in roots.iter().enumerate() {
            assert!(roots[..number].iter().all(|other| other != one));
        }
    }
}
