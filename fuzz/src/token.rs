//! Bearer tokens: whoever gets in was let in by a signature, and by claims that hold.

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use tokio::runtime::{Builder, Runtime};
use wrkflw_runtime::clock::Clock;
use wrkflw_server::http::auth::{
    AuthError, AuthSettings, Authenticator, CALLER_ROLES_MAX, Claims, SUBJECT_CHARS_MAX, Secret,
    TENANT_CHARS_MAX,
};

const SECRET: &[u8] = &[7; 32];
/// The only time there is here.
const NOW: i64 = 1_800_000_000;
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
const CLAIMS: &str = r#"{"sub":"ann","tenant":"acme","roles":["user"],"exp":1900000000}"#;

struct Door {
    authenticator: Authenticator,
    runtime: Runtime,
}

/// The first byte says what the rest is: the value of a header, the claims of a token that is signed, or its header.
pub(crate) fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    match kind {
        b'c' => claims(rest),
        b'h' => header(rest),
        _ => value(rest),
    }
}

fn ask(authorization: &str) -> Result<Claims, AuthError> {
    static DOOR: OnceLock<Door> = OnceLock::new();
    let door = DOOR.get_or_init(|| {
        let settings = AuthSettings {
            hs256_secret: Some(Secret::new(SECRET.to_vec())),
            ..AuthSettings::default()
        };
        let authenticator = Authenticator::new(
            settings,
            Clock::Manual(Arc::new(AtomicI64::new(NOW * 1000))),
        );
        Door {
            authenticator: authenticator.expect("settings"),
            runtime: Builder::new_current_thread().build().expect("a runtime"),
        }
    });
    door.runtime
        .block_on(door.authenticator.authenticate(Some(authorization)))
}

fn value(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    if ask(text).is_ok() {
        let (_, token) = text.split_once(' ').expect("a scheme");
        let token = token.trim_matches(' ');
        let (signed, signature) = token.rsplit_once('.').expect("three parts");
        assert_eq!(
            URL_SAFE_NO_PAD.decode(signature).as_deref(),
            Ok(&mac(signed)[..]),
            "let in by a signature that is not ours"
        );
    }
}

fn claims(bytes: &[u8]) {
    let Ok(found) = ask(&signed(HEADER.as_bytes(), bytes)) else {
        return;
    };
    let content: Value = serde_json::from_slice(bytes).expect("claims are JSON");
    let expires = content["exp"].as_f64().expect("a token ends");
    #[expect(clippy::cast_precision_loss, reason = "seconds of this age fit")]
    let now = NOW as f64;
    assert!(expires + 300.0 > now, "let in after its end");
    for (name, chars_max) in [
        (&found.subject, SUBJECT_CHARS_MAX),
        (&found.tenant, TENANT_CHARS_MAX),
    ] {
        assert!((1..=chars_max).contains(&name.chars().count()));
        assert!(!name.chars().any(char::is_control));
    }
    assert!(!found.subject.starts_with("wrkflw:"));
    assert!(found.roles.len() <= CALLER_ROLES_MAX);
}

fn header(bytes: &[u8]) {
    if ask(&signed(bytes, CLAIMS.as_bytes())).is_err() {
        return;
    }
    let header: Value = serde_json::from_slice(bytes).expect("a header is JSON");
    assert_eq!(
        header["alg"], "HS256",
        "let in by an algorithm that the key is not for"
    );
    assert!(
        header.get("crit").is_none_or(Value::is_null),
        "passed over what is critical"
    );
}

fn signed(header: &[u8], claims: &[u8]) -> String {
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(claims)
    );
    let signature = URL_SAFE_NO_PAD.encode(mac(&signed));
    format!("Bearer {signed}.{signature}")
}

fn mac(text: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).expect("any length will do");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}
