//! Key sets of identity providers: refused with words, or keys that verify and never let in by a shared secret.

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::runtime::{Builder, Runtime};
use wrkflw_runtime::clock::Clock;
use wrkflw_server::http::auth::{AuthError, AuthSettings, Authenticator};

/// The only time there is here.
const NOW: i64 = 1_800_000_000;
const CLAIMS: &str = r#"{"sub":"ann","tenant":"acme","roles":["user"],"exp":1900000000}"#;
const HMAC: [&str; 3] = ["HS256", "HS384", "HS512"];
const PUBLIC: [&str; 9] = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
];

/// The document; behind a NUL the id of the key that tokens name, and behind another their signature.
pub(crate) fn run(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let document = parts.next().unwrap_or_default();
    let named = parts.next().and_then(|id| str::from_utf8(id).ok());
    let signature = parts.next().unwrap_or_default();
    let clock = Clock::Manual(Arc::new(AtomicI64::new(NOW * 1000)));
    match Authenticator::with_key_set(document, AuthSettings::default(), clock) {
        Ok(authenticator) => {
            for id in [None, named] {
                tries(&authenticator, id, signature);
            }
        }
        Err(why) => assert!(!why.is_empty()),
    }
}

fn tries(authenticator: &Authenticator, id: Option<&str>, signature: &[u8]) {
    for algorithm in HMAC {
        let answer = ask(authenticator, algorithm, id, signature);
        assert!(
            matches!(answer, Err(AuthError::Untrusted)),
            "{algorithm} was tried with a public key"
        );
    }
    // A key that is no key of its kind is left out or verifies nothing; it stops nobody.
    for algorithm in PUBLIC {
        let first = ask(authenticator, algorithm, id, signature);
        let again = ask(authenticator, algorithm, id, signature);
        assert_eq!(first.is_ok(), again.is_ok(), "{algorithm}");
    }
}

fn ask(
    authenticator: &Authenticator,
    algorithm: &str,
    id: Option<&str>,
    signature: &[u8],
) -> Result<(), AuthError> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let header = match id {
        Some(id) => serde_json::json!({ "alg": algorithm, "kid": id }),
        None => serde_json::json!({ "alg": algorithm }),
    };
    let token = [header.to_string().as_bytes(), CLAIMS.as_bytes(), signature]
        .map(|part| URL_SAFE_NO_PAD.encode(part))
        .join(".");
    let runtime = RUNTIME.get_or_init(|| Builder::new_current_thread().build().expect("a runtime"));
    let bearer = format!("Bearer {token}");
    let asked = authenticator.authenticate(Some(&bearer));
    runtime.block_on(asked).map(drop)
}
