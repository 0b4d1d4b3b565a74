//! Tokens whose signature was found good: a caller sends the same one with each request, and it need not be checked
//! again while the key that signed it is still in use.
//!
//! Nothing lasts because it is remembered: the key is asked for with each use, and so are times. A set of keys that
//! was fetched anew has new keys, so that all its tokens are verified again. What is remembered is found by a digest;
//! tokens themselves are not kept.

use std::sync::Arc;

use jsonwebtoken::Algorithm;
use moka::future::Cache;
use sha2::{Digest as _, Sha256};

use super::claims::{Claims, Validity};
use super::keys::Key;

/// Tokens remembered, each of a few hundred bytes.
const TOKENS_MAX: u64 = 10_000;

/// The name of a token.
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

/// The tokens accepted lately.
pub(super) struct Memory(Cache<Name, Arc<Accepted>>);

impl Memory {
    pub(super) fn new() -> Memory {
        Memory(Cache::new(TOKENS_MAX))
    }

    pub(super) fn name(token: &str) -> Name {
        Sha256::digest(token.as_bytes()).into()
    }

    pub(super) async fn find(&self, name: &Name) -> Option<Arc<Accepted>> {
        self.0.get(name).await
    }

    pub(super) async fn keep(&self, name: Name, accepted: Accepted) {
        self.0.insert(name, Arc::new(accepted)).await;
    }
}
