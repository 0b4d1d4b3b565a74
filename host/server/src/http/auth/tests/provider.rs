//! An identity provider on this machine, and the keys that it signs with, made anew for each test.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use p256::elliptic_curve::sec1::ToEncodedPoint;
use rsa::pkcs1::{EncodeRsaPrivateKey, EncodeRsaPublicKey};
use rsa::pkcs8::{EncodePrivateKey, EncodePublicKey, LineEnding};
use rsa::traits::PublicKeyParts;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::*;
use wrkflw_runtime::clock;

/// A signing key with its public half.
pub(super) struct Signer {
    pub(super) id: String,
    key: EncodingKey,
    pub(super) algorithms: &'static [Algorithm],
    jwk: Value,
    /// The public key in the forms that a forger could use as a secret.
    pub(super) public_forms: Vec<Vec<u8>>,
}

/// Primes take their time: one RSA key serves all tests of a process.
static RSA: LazyLock<rsa::RsaPrivateKey> =
    LazyLock::new(|| rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).unwrap());

impl Signer {
    pub(super) fn rsa(id: &str) -> Signer {
        let public = RSA.to_public_key();
        let modulus = public.n().to_bytes_be();
        Signer {
            id: id.to_owned(),
            key: EncodingKey::from_rsa_der(RSA.to_pkcs1_der().unwrap().as_bytes()),
            algorithms: &[
                Algorithm::RS256,
                Algorithm::RS384,
                Algorithm::RS512,
                Algorithm::PS256,
            ],
            jwk: json!({"kty": "RSA", "kid": id, "n": encoded(&modulus), "e": encoded(&public.e().to_bytes_be())}),
            public_forms: vec![
                public
                    .to_public_key_pem(LineEnding::LF)
                    .unwrap()
                    .into_bytes(),
                public.to_pkcs1_pem(LineEnding::LF).unwrap().into_bytes(),
                public.to_public_key_der().unwrap().as_bytes().to_vec(),
                modulus,
            ],
        }
    }

    pub(super) fn es256(id: &str) -> Signer {
        let secret = p256::SecretKey::from_slice(&clock::random::<32>()).unwrap();
        let point = secret.public_key().to_encoded_point(false);
        let (x, y) = (encoded(point.x().unwrap()), encoded(point.y().unwrap()));
        Signer {
            id: id.to_owned(),
            key: EncodingKey::from_ec_der(secret.to_pkcs8_der().unwrap().as_bytes()),
            algorithms: &[Algorithm::ES256],
            jwk: json!({"kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "alg": "ES256", "x": x, "y": y}),
            public_forms: vec![point.as_bytes().to_vec()],
        }
    }

    pub(super) fn ed25519(id: &str) -> Signer {
        let secret = ed25519_dalek::SigningKey::from_bytes(&clock::random());
        let public = secret.verifying_key().to_bytes();
        Signer {
            id: id.to_owned(),
            key: EncodingKey::from_ed_der(secret.to_pkcs8_der().unwrap().as_bytes()),
            algorithms: &[Algorithm::EdDSA],
            jwk: json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": encoded(&public)}),
            public_forms: vec![public.to_vec()],
        }
    }

    /// One key of 256 is like this: the zero belongs to it.
    pub(super) fn ed25519_beginning_with_zero(id: &str) -> Signer {
        let mut signers = std::iter::repeat_with(|| Signer::ed25519(id));
        signers
            .find(|signer| signer.public_forms[0][0] == 0)
            .unwrap()
    }

    /// The value of an `Authorization` header.
    pub(super) fn token(&self, content: &Value, algorithm: Algorithm) -> String {
        let header = Header {
            kid: Some(self.id.clone()),
            ..Header::new(algorithm)
        };
        signed(content, &header, &self.key)
    }
}

fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// What the provider answers at this moment.
#[derive(Clone)]
pub(super) enum Answer {
    Text(String),
    Failure,
    Redirect,
}

struct Shared {
    answer: Mutex<Answer>,
    hits: AtomicUsize,
}

/// Publishes keys on a loopback port until it is dropped.
pub(super) struct Provider {
    shared: Arc<Shared>,
    url: String,
    _stop: DropGuard,
}

impl Provider {
    pub(super) async fn start(signers: &[Signer]) -> Provider {
        let shared = Arc::new(Shared {
            answer: Mutex::new(Answer::Text(set(signers))),
            hits: AtomicUsize::new(0),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let app = Router::new()
            .route("/keys", get(keys))
            .with_state(Arc::clone(&shared));
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        TaskTracker::new().spawn(
            axum::serve(listener, app)
                .with_graceful_shutdown(stopped)
                .into_future(),
        );
        Provider {
            shared,
            url,
            _stop: stop.drop_guard(),
        }
    }

    pub(super) fn authenticator(&self, time: &TestTime) -> Authenticator {
        let settings = AuthSettings {
            hs256_secret: None,
            jwks_url: Some(self.url.clone()),
            ..settings()
        };
        Authenticator::new(settings, time.clock()).unwrap()
    }

    /// Answers in this way from now on.
    pub(super) fn answer(&self, answer: Answer) {
        *self.shared.answer.lock().unwrap() = answer;
    }

    /// How often the keys were asked for.
    pub(super) fn hits(&self) -> usize {
        self.shared.hits.load(Ordering::SeqCst)
    }
}

/// A JWK set.
pub(super) fn set(signers: &[Signer]) -> String {
    json!({"keys": signers.iter().map(|signer| signer.jwk.clone()).collect::<Vec<_>>()}).to_string()
}

async fn keys(
    State(shared): State<Arc<Shared>>,
) -> (StatusCode, [(&'static str, &'static str); 1], String) {
    shared.hits.fetch_add(1, Ordering::SeqCst);
    let answer = shared.answer.lock().unwrap().clone();
    match answer {
        Answer::Text(text) => (StatusCode::OK, [("content-type", "application/json")], text),
        Answer::Failure => (
            StatusCode::BAD_GATEWAY,
            [("content-type", "text/plain")],
            "down".to_owned(),
        ),
        Answer::Redirect => (StatusCode::FOUND, [("location", "/keys")], String::new()),
    }
}
