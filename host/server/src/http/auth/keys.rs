//! Sets of public keys that verify tokens, each key with its permitted algorithms.
//!
//! A token chooses only among the algorithms of its key, so a public key can never be used as a shared secret. Unusable
//! keys of a set are left out, one by one.

use std::sync::Arc;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};

use super::Key;

/// Maximum number of keys of a set. Larger sets are refused.
const KEYS_MAX: usize = 64;
/// Shorter RSA keys are not secure. The verifier does not accept longer ones.
const RSA_MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=512;
/// An Ed25519 public key has exactly this length.
const ED25519_BYTES: usize = 32;

const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

impl Key {
    fn from_jwk(jwk: &Jwk) -> Option<Key> {
        let family = permitted(&jwk.algorithm)?;
        let algorithms = match jwk.common.key_algorithm {
            Some(declared) => family
                .iter()
                .copied()
                .filter(|algorithm| KeyAlgorithm::from(*algorithm) == declared)
                .collect(),
            None => family.to_vec(),
        };
        if algorithms.is_empty() || !verifies(jwk) {
            return None;
        }
        let decoding = DecodingKey::from_jwk(jwk).ok()?;
        Some(Key {
            id: jwk.common.key_id.clone(),
            algorithms,
            decoding,
        })
    }
}

/// The algorithms that the type of this key allows. None for a symmetric key, which must not be in a public set.
fn permitted(parameters: &AlgorithmParameters) -> Option<&'static [Algorithm]> {
    match parameters {
        AlgorithmParameters::RSA(rsa) => RSA_MODULUS_BYTES
            .contains(&length_of_number(&rsa.n)?)
            .then_some(RSA),
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => Some(&[Algorithm::ES256]),
            EllipticCurve::P384 => Some(&[Algorithm::ES384]),
            _ => None,
        },
        AlgorithmParameters::OctetKeyPair(pair) => {
            // The verifier does not check the length. A zero octet at the beginning belongs to the key (RFC 8037, section
            // 2), because the key is a string of octets and not a number.
            let fits =
                pair.curve == EllipticCurve::Ed25519 && octets(&pair.x)?.len() == ED25519_BYTES;
            fits.then_some(&[Algorithm::EdDSA])
        }
        _ => None,
    }
}

/// Whether the key's metadata allow it to verify signatures.
fn verifies(jwk: &Jwk) -> bool {
    let for_signatures = jwk
        .common
        .public_key_use
        .as_ref()
        .is_none_or(|purpose| *purpose == PublicKeyUse::Signature);
    let may_verify = jwk
        .common
        .key_operations
        .as_ref()
        .is_none_or(|permitted| permitted.contains(&KeyOperations::Verify));
    for_signatures && may_verify
}

/// The length of a number in octets, without the leading zeros that some providers write.
fn length_of_number(text: &str) -> Option<usize> {
    let octets = octets(text)?;
    Some(octets.len() - octets.iter().take_while(|octet| **octet == 0).count())
}

fn octets(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

/// The usable keys of a published set.
pub(super) struct KeySet(Vec<Arc<Key>>);

impl KeySet {
    /// Reads a JWK set. Fails if no key is usable, so that the last good set stays in use.
    pub(super) fn parse(text: &[u8]) -> Result<KeySet, String> {
        #[derive(serde::Deserialize)]
        struct Published {
            keys: Vec<serde_json::Value>,
        }
        let published: Published = serde_json::from_slice(text)
            .map_err(|error| format!("it is not a JWK set: {error}"))?;
        let count = published.keys.len();
        if count > KEYS_MAX {
            return Err(format!("it has {count} keys; at most {KEYS_MAX} are read"));
        }
        let jwks = published
            .keys
            .into_iter()
            .filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let keys: Vec<_> = jwks
            .filter_map(|jwk| Key::from_jwk(&jwk))
            .map(Arc::new)
            .collect();
        if keys.is_empty() {
            return Err(format!("none of its {count} keys can verify a token"));
        }
        Ok(KeySet(keys))
    }

    /// The key with this id for this algorithm. Without an id, the only key for the algorithm, if there is exactly one.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&Arc<Key>> {
        let mut fitting = self
            .0
            .iter()
            .filter(|key| key.permits(algorithm) && (id.is_none() || key.id.as_deref() == id));
        let first = fitting.next()?;
        (id.is_some() || fitting.next().is_none()).then_some(first)
    }
}

#[cfg(test)]
mod tests;
