//! A cache of tokens with a valid signature. A client sends the same token with each request, and its signature need
//! not be verified again while its key is in use.
//!
//! The cache does not extend the validity of a token: the key and the times are checked at each use. A key set that
//! was fetched again has new keys, so that all tokens are verified again. The cache has digests of tokens, not the
//! tokens themselves.

use std::sync::Arc;

use jsonwebtoken::Algorithm;
use sha2::{Digest as _, Sha256};

use super::claims::{Claims, Validity};
use super::keys::Key;
use wrkflw_runtime::lru::Lru;

/// Maximum number of cached tokens, each of a few hundred bytes.
const TOKENS_MAX: usize = 10_000;

/// The digest of a token.
pub(super) type Name = [u8; 32];

/// A token that was accepted once.
pub(super) struct Accepted {
    pub(super) key_id: Option<String>,
    pub(super) algorithm: Algorithm,
    /// The key that verified it.
    pub(super) key: Arc<Key>,
    pub(super) validity: Validity,
    pub(super) claims: Claims,
}

/// The tokens that were accepted recently.
pub(super) struct Memory(Lru<Name, Arc<Accepted>>);

impl Memory {
    pub(super) fn new() -> Memory {
        Memory(Lru::new(TOKENS_MAX))
    }

    pub(super) fn name(token: &str) -> Name {
        Sha256::digest(token.as_bytes()).into()
    }

    pub(super) fn find(&self, name: &Name) -> Option<Arc<Accepted>> {
        self.0.get(name)
    }

    pub(super) fn keep(&self, name: Name, accepted: Accepted) {
        self.0.insert(name, Arc::new(accepted));
    }
}
