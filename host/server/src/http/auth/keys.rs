//! Keys that verify tokens, each with its permitted algorithms.
//!
//! A token chooses only among the algorithms of its key, so a public key can never be used as a shared secret. Unusable
//! keys of a set are left out, one by one.

use std::sync::Arc;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};

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

/// A key, and the algorithms that it may verify.
pub(super) struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(super) decoding: DecodingKey,
}

impl Key {
    /// A shared secret, only for HS256.
    pub(super) fn from_secret(secret: &[u8]) -> Key {
        Key {
            id: None,
            algorithms: vec![Algorithm::HS256],
            decoding: DecodingKey::from_secret(secret),
        }
    }

    pub(super) fn permits(&self, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm)
    }

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
            // The verifier does not check the length. A zero octet at the beginning belongs to the key (RFC 8037,
            // section 2): it is a string of octets, not a number.
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

    /// The key of this id for this algorithm. Without an id, the only key for the algorithm, if there is just one.
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
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn number(length: usize) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(vec![0x5a; length])
    }

    fn rsa(id: &str) -> Value {
        json!({"kty": "RSA", "kid": id, "n": number(256), "e": "AQAB"})
    }

    fn ed25519(public: &[u8]) -> Value {
        json!({"kty": "OKP", "kid": "k", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode(public)})
    }

    fn with(mut key: Value, name: &str, value: Value) -> Value {
        key[name] = value;
        key
    }

    fn set(keys: &[Value]) -> Result<KeySet, String> {
        KeySet::parse(&serde_json::to_vec(&json!({ "keys": keys })).unwrap())
    }

    #[test]
    fn unusable_keys_are_left_out() {
        let unusable = [
            json!({"kty": "oct", "kid": "k", "k": number(32)}),
            ed25519(&[0x5a; 31]),
            ed25519(&[0x5a; 33]),
            ed25519(&[&[0][..], &[0x5a; 32]].concat()),
            json!({"kty": "EC", "kid": "k", "crv": "P-521", "x": number(66), "y": number(66)}),
            json!({"kty": "EC", "kid": "k", "crv": "P-256", "alg": "ES384", "x": number(32), "y": number(32)}),
            with(rsa("k"), "n", json!(number(255))),
            with(rsa("k"), "n", json!(number(513))),
            with(rsa("k"), "alg", json!("HS256")),
            with(rsa("k"), "alg", json!("RSA-OAEP")),
            with(rsa("k"), "use", json!("enc")),
            with(rsa("k"), "key_ops", json!(["sign"])),
            json!("not a key"),
        ];
        for key in unusable {
            let why = set(std::slice::from_ref(&key)).err();
            assert_eq!(
                why.as_deref(),
                Some("none of its 1 keys can verify a token"),
                "{key}"
            );
            assert!(
                set(&[key, rsa("good")])
                    .unwrap()
                    .find(Some("good"), Algorithm::RS256)
                    .is_some()
            );
        }
    }

    #[test]
    fn a_key_serves_its_own_algorithms_alone() {
        let keys = set(&[with(rsa("declared"), "alg", json!("RS256")), rsa("open")]).unwrap();
        assert!(keys.find(Some("declared"), Algorithm::RS256).is_some());
        assert!(keys.find(Some("declared"), Algorithm::PS256).is_none());
        assert!(keys.find(Some("open"), Algorithm::PS256).is_some());
        for foreign in [Algorithm::HS256, Algorithm::ES256, Algorithm::EdDSA] {
            assert!(keys.find(Some("open"), foreign).is_none());
        }
    }

    #[test]
    fn a_token_without_key_id_needs_a_single_candidate() {
        assert!(
            set(&[rsa("a")])
                .unwrap()
                .find(None, Algorithm::RS256)
                .is_some()
        );
        assert!(
            set(&[rsa("a"), rsa("b")])
                .unwrap()
                .find(None, Algorithm::RS256)
                .is_none()
        );
    }

    #[test]
    fn sets_are_bounded() {
        assert_eq!(
            set(&vec![rsa("a"); 65]).err().unwrap(),
            "it has 65 keys; at most 64 are read"
        );
        assert!(
            KeySet::parse(b"<html>")
                .err()
                .unwrap()
                .starts_with("it is not a JWK set")
        );
    }
}
