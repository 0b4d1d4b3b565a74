//! Signing keys, new for each test, and tokens that forgers make of the public halves.

use std::sync::LazyLock;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use p256::elliptic_curve::sec1::ToEncodedPoint as _;
use rsa::pkcs1::{EncodeRsaPrivateKey as _, EncodeRsaPublicKey as _};
use rsa::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
use rsa::traits::PublicKeyParts as _;
use serde_json::{Value, json};
use wrkflw_runtime::clock::{Clock, random};

pub(super) const ISSUER: &str = "https://id.example";
pub(super) const AUDIENCE: &str = "wrkflw";

/// Generating an RSA key is slow, so all tests of a process share one.
static RSA: LazyLock<rsa::RsaPrivateKey> =
    LazyLock::new(|| rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).expect("a key"));

/// A signing key with its public half.
pub(super) struct Signer {
    pub(super) id: String,
    pub(super) algorithm: Algorithm,
    key: EncodingKey,
    pub(super) jwk: Value,
    /// The public key in the forms that a forger could use as a secret.
    pub(super) public_forms: Vec<Vec<u8>>,
}

pub(super) fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    pub(super) fn rsa(id: &str) -> Signer {
        let public = RSA.to_public_key();
        let (n, e) = (public.n().to_bytes_be(), public.e().to_bytes_be());
        let pem = public.to_public_key_pem(LineEnding::LF).expect("a key");
        let pkcs1 = public.to_pkcs1_pem(LineEnding::LF).expect("a key");
        let der = public.to_public_key_der().expect("a key");
        Signer {
            id: id.to_owned(),
            algorithm: Algorithm::RS256,
            key: EncodingKey::from_rsa_der(RSA.to_pkcs1_der().expect("a key").as_bytes()),
            jwk: json!({ "kty": "RSA", "kid": id, "n": encoded(&n), "e": encoded(&e) }),
            public_forms: vec![
                pem.into_bytes(),
                pkcs1.into_bytes(),
                der.as_bytes().to_vec(),
                n,
            ],
        }
    }

    pub(super) fn es256(id: &str) -> Signer {
        let secret = p256::SecretKey::from_slice(&random::<32>()).expect("a key");
        let point = secret.public_key().to_encoded_point(false);
        let (x, y) = (point.x().expect("a point"), point.y().expect("a point"));
        Signer {
            id: id.to_owned(),
            algorithm: Algorithm::ES256,
            key: EncodingKey::from_ec_der(secret.to_pkcs8_der().expect("a key").as_bytes()),
            jwk: json!({ "kty": "EC", "crv": "P-256", "kid": id, "x": encoded(x), "y": encoded(y) }),
            public_forms: vec![point.as_bytes().to_vec()],
        }
    }

    pub(super) fn ed25519(id: &str) -> Signer {
        let secret = ed25519_dalek::SigningKey::from_bytes(&random());
        let public = secret.verifying_key().to_bytes();
        Signer {
            id: id.to_owned(),
            algorithm: Algorithm::EdDSA,
            key: EncodingKey::from_ed_der(secret.to_pkcs8_der().expect("a key").as_bytes()),
            jwk: json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": encoded(&public) }),
            public_forms: vec![public.to_vec()],
        }
    }

    /// The value of an `Authorization` header.
    pub(super) fn token(&self, claims: &Value) -> String {
        self.token_naming(&self.id, claims)
    }

    /// The same, but the header names another key.
    pub(super) fn token_naming(&self, id: &str, claims: &Value) -> String {
        let header = Header {
            kid: Some(id.to_owned()),
            ..Header::new(self.algorithm)
        };
        bearer(&header, claims, &self.key)
    }
}

pub(super) fn bearer(header: &Header, claims: &Value, key: &EncodingKey) -> String {
    let token = jsonwebtoken::encode(header, claims, key).expect("a token");
    format!("Bearer {token}")
}

/// The Unix time that is this far from now.
pub(super) fn seconds(from_now: i64) -> i64 {
    Clock::System.now().as_second() + from_now
}

/// The claims of a person with these roles, valid for an hour.
pub(super) fn claims(subject: &str, tenant: &str, roles: &[&str]) -> Value {
    json!({
        "sub": subject, "tenant": tenant, "roles": roles, "iss": ISSUER, "aud": AUDIENCE, "exp": seconds(3600),
    })
}

/// The claims with one replaced. Null removes it.
pub(super) fn with(claims: &Value, name: &str, value: Value) -> Value {
    let mut claims = claims.clone();
    claims[name] = value;
    let members = claims.as_object_mut().expect("an object");
    members.retain(|_, value| !value.is_null());
    claims
}
