//! Verifies bearer tokens and reads the caller from them.
//!
//! Tokens are JWTs, signed with a shared secret or a key of an identity provider. The algorithms that may verify a token
//! depend on the key, not on the token. The engine reads groups and permissions from the directory; this module does not.
//! Start at [`Authenticator::authenticate`].

mod claims;
mod error;
mod jwks;
mod keys;
mod provider_tokens;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

pub use claims::{CALLER_ROLES_MAX, Claims, SUBJECT_CHARS_MAX, TENANT_CHARS_MAX};
pub use error::AuthError;
pub use provider_tokens::{IdToken, LogoutToken};
pub(in crate::http) use settings::checked_secret;
pub use settings::{AuthSettings, KeyAges, Secret};

use claims::Validity;
use jwks::Jwks;
use keys::KeySet;
use settings::KeySource;
use wrkflw_core::json::Json;
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::lru::Lru;

/// Longer tokens are refused without a check.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Maximum number of cached tokens, each of a few hundred bytes.
const TOKENS_MAX: usize = 10_000;

/// Determines the caller of a request.
pub struct Authenticator {
    settings: AuthSettings,
    keys: Keys,
    clock: Clock,
    accepted: Lru<TokenDigest, Arc<Accepted>>,
}

enum Keys {
    Secret(Arc<Key>),
    Url(Arc<Jwks>),
    /// Given once, and never fetched.
    Set(KeySet),
}

/// A key, and the algorithms that it may verify.
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    decoding: DecodingKey,
}

impl Key {
    /// A shared secret, only for HS256.
    fn from_secret(secret: &[u8]) -> Key {
        Key {
            id: None,
            algorithms: vec![Algorithm::HS256],
            decoding: DecodingKey::from_secret(secret),
        }
    }

    fn permits(&self, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm)
    }
}

/// Tokens are cached by their digest, so that the cache does not have the tokens themselves.
type TokenDigest = [u8; 32];

/// A token whose signature was valid. A client sends the same token with each request. Its signature need not be verified again
/// while its key is in use.
///
/// This does not extend the validity of the token: the key and the times are checked at each use. After a new fetch, a key set has
/// new keys, so that all tokens are verified again.
struct Accepted {
    key_id: Option<String>,
    algorithm: Algorithm,
    /// The key that verified it.
    key: Arc<Key>,
    validity: Validity,
    claims: Claims,
}

impl Authenticator {
    /// Fails if tokens cannot be checked safely with these settings.
    pub fn new(settings: AuthSettings, clock: Clock) -> Result<Authenticator, String> {
        let keys = match settings.check()? {
            KeySource::Secret(secret) => Keys::Secret(Arc::new(Key::from_secret(secret.bytes()))),
            KeySource::Url(url) => Keys::Url(Jwks::new(url, settings.key_ages, clock.clone())),
        };
        Ok(Authenticator {
            settings,
            keys,
            clock,
            accepted: Lru::new(TOKENS_MAX),
        })
    }

    /// Uses the keys of this JWK set. The settings are not checked, and their sources of keys are ignored.
    pub fn with_key_set(
        document: &[u8],
        settings: AuthSettings,
        clock: Clock,
    ) -> Result<Authenticator, String> {
        Ok(Authenticator {
            settings,
            keys: Keys::Set(KeySet::parse(document)?),
            clock,
            accepted: Lru::new(TOKENS_MAX),
        })
    }

    /// Checks the value of an `Authorization` header.
    pub async fn authenticate(&self, authorization: Option<&str>) -> Result<Claims, AuthError> {
        let (claims, _) = self.admit(authorization).await?;
        Ok(claims)
    }

    /// Like [`Self::authenticate`]. Also returns the moment from which the token is refused.
    pub async fn admit(
        &self,
        authorization: Option<&str>,
    ) -> Result<(Claims, Timestamp), AuthError> {
        let token = bearer(authorization)?;
        let digest: TokenDigest = Sha256::digest(token.as_bytes()).into();
        if let Some(known) = self.accepted.get(&digest) {
            let key = self.key(known.key_id.as_deref(), known.algorithm).await?;
            if Arc::ptr_eq(&key, &known.key) {
                let now = self.clock.now();
                known.validity.check(self.settings.leeway, now)?;
                return Ok((
                    known.claims.clone(),
                    known.validity.ends(self.settings.leeway),
                ));
            }
        }
        let (header, key, content) = self.verify(token).await?;
        let (claims, validity) = Claims::read(&content, &self.settings, self.clock.now())?;
        let accepted = Accepted {
            key_id: header.kid,
            algorithm: header.alg,
            key,
            validity,
            claims: claims.clone(),
        };
        self.accepted.insert(digest, Arc::new(accepted));
        Ok((claims, validity.ends(self.settings.leeway)))
    }

    /// The header of a token with a valid signature, its key, and its unchecked content.
    async fn verify(
        &self,
        token: &str,
    ) -> Result<(Header, Arc<Key>, Map<String, Value>), AuthError> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| AuthError::Malformed)?;
        // Critical extensions must not be ignored (RFC 7515, section 4.1.11), and this host knows none.
        if header.crit.is_some() {
            return Err(AuthError::Malformed);
        }
        let key = self.key(header.kid.as_deref(), header.alg).await?;
        let content = verified(token, &header, &key)?;
        Ok((header, key, content))
    }

    /// Whether a token that is valid until `until` has expired, by this host's clock.
    pub fn is_over(&self, until: Timestamp) -> bool {
        self.clock.now() >= until
    }

    async fn key(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Arc<Key>, AuthError> {
        match &self.keys {
            Keys::Secret(key) if key.permits(algorithm) => Ok(Arc::clone(key)),
            Keys::Secret(_) => Err(AuthError::Untrusted),
            Keys::Set(set) => {
                let key = set.find(id, algorithm);
                key.map(Arc::clone).ok_or(AuthError::Untrusted)
            }
            Keys::Url(jwks) => jwks.key(id, algorithm).await,
        }
    }
}

fn bearer(authorization: Option<&str>) -> Result<&str, AuthError> {
    let (scheme, token) = authorization
        .and_then(|value| value.split_once(' '))
        .ok_or(AuthError::Missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::Missing);
    }
    let token = token.trim_matches(' ');
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
        return Err(AuthError::Malformed);
    }
    Ok(token)
}

/// The content of a token that `key` has signed. [`Claims::read`] checks times, issuer and audience.
fn verified(token: &str, header: &Header, key: &Key) -> Result<Map<String, Value>, AuthError> {
    let mut signature_alone = Validation::new(header.alg);
    signature_alone.required_spec_claims.clear();
    signature_alone.validate_exp = false;
    signature_alone.validate_aud = false;
    let content: Box<RawValue> = jsonwebtoken::decode(token, &key.decoding, &signature_alone)
        .map(|token| token.claims)
        .map_err(|_| AuthError::Untrusted)?;
    // Duplicate claims are refused: some programs read the first one and some the last.
    let content = Json::parse(content.get()).map_err(|error| match error.pointer.get(1..) {
        Some(claim) if !claim.is_empty() => AuthError::Claim {
            claim: claim.to_owned(),
        },
        _ => AuthError::Malformed,
    })?;
    serde_json::from_str(content.as_str()).map_err(|_| AuthError::Malformed)
}
