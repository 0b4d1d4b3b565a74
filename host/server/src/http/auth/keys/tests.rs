//! Sets of keys: which keys are used, for which algorithms, and how many.

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
