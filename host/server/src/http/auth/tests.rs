//! Tokens as honest callers and as forgers send them.

mod doubled;
mod provider;
mod provider_tokens;
mod rotation;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::*;
use crate::http::token::mint;
use provider::{Provider, Signer};

const NOW_SECONDS: i64 = 1_800_000_000;
const SECRET: [u8; 32] = *b"thirty-two bytes that are secret";

/// A clock that stands still until it is moved.
struct TestTime(Arc<AtomicI64>);

impl TestTime {
    fn new() -> TestTime {
        TestTime(Arc::new(AtomicI64::new(NOW_SECONDS * 1000)))
    }

    fn clock(&self) -> Clock {
        Clock::Manual(Arc::clone(&self.0))
    }

    fn advance(&self, by: Duration) {
        self.0
            .fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

fn settings() -> AuthSettings {
    AuthSettings {
        hs256_secret: Some(Secret::new(SECRET)),
        issuer: Some("https://id.example".to_owned()),
        audience: Some("wrkflw".to_owned()),
        ..AuthSettings::default()
    }
}

/// What a good token says, with one claim replaced; null takes it away.
fn content(claim: &str, value: Value) -> Value {
    let mut content = json!({
        "sub": "alice",
        "tenant": "acme",
        "roles": ["publisher", "operator"],
        "iss": "https://id.example",
        "aud": ["other", "wrkflw"],
        "exp": NOW_SECONDS + 60,
    });
    content[claim] = value;
    content
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    content
}

fn good() -> Value {
    content("sub", json!("alice"))
}

fn signed(content: &Value, header: &Header, key: &EncodingKey) -> String {
    format!(
        "Bearer {}",
        jsonwebtoken::encode(header, content, key).unwrap()
    )
}

fn hs256(content: &Value) -> String {
    signed(
        content,
        &Header::default(),
        &EncodingKey::from_secret(&SECRET),
    )
}

async fn check(authorization: &str) -> Result<Claims, AuthError> {
    let authenticator = Authenticator::new(settings(), TestTime::new().clock()).unwrap();
    authenticator.authenticate(Some(authorization)).await
}

#[tokio::test]
async fn a_token_without_a_tenant_is_of_the_default_one_if_there_is_one() {
    let mut null = good();
    null["tenant"] = Value::Null;
    for token in [hs256(&content("tenant", Value::Null)), hs256(&null)] {
        let refused = check(&token).await.unwrap_err();
        assert_eq!(refused.code(), "token_claim_invalid");
        assert!(
            refused.to_string().contains("the claim tenant"),
            "{refused}"
        );
        let single = AuthSettings {
            default_tenant: Some("acme".to_owned()),
            ..settings()
        };
        let authenticator = Authenticator::new(single, TestTime::new().clock()).unwrap();
        let claims = authenticator.authenticate(Some(&token)).await.unwrap();
        assert_eq!(claims.tenant, "acme");
        // Who names a tenant means that one.
        let other = hs256(&content("tenant", json!("other")));
        let claims = authenticator.authenticate(Some(&other)).await.unwrap();
        assert_eq!(claims.tenant, "other");
        let wrong = hs256(&content("tenant", json!("")));
        let refused = authenticator.authenticate(Some(&wrong)).await.unwrap_err();
        assert_eq!(refused.code(), "token_claim_invalid");
    }
}

#[tokio::test]
async fn a_good_token_says_who_acts() {
    let claims = check(&hs256(&good())).await.unwrap();
    assert_eq!(
        (claims.subject.as_str(), claims.tenant.as_str()),
        ("alice", "acme")
    );
    assert_eq!(claims.roles, ["publisher", "operator"]);

    assert_eq!(
        check(&hs256(&content("roles", json!("one"))))
            .await
            .unwrap()
            .roles,
        ["one"]
    );
    assert!(
        check(&hs256(&content("roles", Value::Null)))
            .await
            .unwrap()
            .roles
            .is_empty()
    );
}

#[tokio::test]
async fn what_is_minted_is_accepted_until_it_expires() {
    let time = TestTime::new();
    let authenticator = Authenticator::new(settings(), time.clock()).unwrap();
    let claims = Claims {
        subject: "bob".to_owned(),
        tenant: "acme".to_owned(),
        roles: vec!["operator".to_owned()],
    };
    let token = mint(
        &settings(),
        &claims,
        Duration::from_secs(100),
        time.clock().now(),
    )
    .unwrap();
    let authorization = format!("bearer {token}");

    assert_eq!(
        authenticator.authenticate(Some(&authorization)).await,
        Ok(claims)
    );
    time.advance(Duration::from_secs(129));
    assert!(
        authenticator
            .authenticate(Some(&authorization))
            .await
            .is_ok()
    );
    time.advance(Duration::from_secs(1));
    assert_eq!(
        authenticator.authenticate(Some(&authorization)).await,
        Err(AuthError::Expired)
    );
}

#[test]
fn nothing_is_minted_that_would_be_refused() {
    let now = TestTime::new().clock().now();
    let minted = |subject: &str, lifetime: u64, settings: &AuthSettings| {
        let claims = Claims {
            subject: subject.to_owned(),
            tenant: "acme".to_owned(),
            roles: Vec::new(),
        };
        mint(settings, &claims, Duration::from_secs(lifetime), now)
    };
    assert!(
        minted("a\nb", 60, &settings())
            .unwrap_err()
            .contains("claim sub")
    );
    assert!(
        minted("a", 367 * 24 * 3600, &settings())
            .unwrap_err()
            .contains("366 days")
    );
    assert!(
        minted("a", 60, &AuthSettings::default())
            .unwrap_err()
            .contains("identity provider")
    );
    let short = AuthSettings {
        hs256_secret: Some(Secret::new(*b"short")),
        ..settings()
    };
    assert!(minted("a", 60, &short).unwrap_err().contains("at least 32"));
}

#[tokio::test]
async fn only_bearer_tokens_count() {
    let authenticator = Authenticator::new(settings(), TestTime::new().clock()).unwrap();
    for missing in [None, Some(""), Some("Basic YTpi"), Some("Bearer")] {
        assert_eq!(
            authenticator.authenticate(missing).await,
            Err(AuthError::Missing),
            "{missing:?}"
        );
    }
    for malformed in [
        "Bearer ",
        "Bearer x",
        "Bearer a.b",
        "Bearer a.b.c",
        "Bearer ..",
        "Bearer a b.c.d",
    ] {
        assert_eq!(
            authenticator.authenticate(Some(malformed)).await,
            Err(AuthError::Malformed),
            "{malformed}"
        );
    }
}

#[tokio::test]
async fn an_oversized_token_is_not_looked_at() {
    let largest = content("padding", json!("x".repeat(5_700)));
    assert!(check(&hs256(&largest)).await.is_ok());
    let too_large = content("padding", json!("x".repeat(6_000)));
    assert!(hs256(&too_large).len() > TOKEN_BYTES_MAX);
    assert_eq!(check(&hs256(&too_large)).await, Err(AuthError::Malformed));
}

#[tokio::test]
async fn time_is_kept() {
    let cases = [
        ("exp", json!(NOW_SECONDS - 29), Ok(())),
        ("exp", json!(NOW_SECONDS - 30), Err(AuthError::Expired)),
        ("exp", json!(-1), Err(AuthError::Expired)),
        (
            "exp",
            json!(f64::MAX),
            Err(AuthError::Claim {
                claim: "exp".to_owned(),
            }),
        ),
        (
            "exp",
            Value::Null,
            Err(AuthError::Claim {
                claim: "exp".to_owned(),
            }),
        ),
        (
            "exp",
            json!("tomorrow"),
            Err(AuthError::Claim {
                claim: "exp".to_owned(),
            }),
        ),
        ("nbf", json!(NOW_SECONDS + 30), Ok(())),
        ("nbf", json!(NOW_SECONDS + 31), Err(AuthError::NotYetValid)),
        ("nbf", json!(1_800_000_030.5), Err(AuthError::NotYetValid)),
        (
            "nbf",
            json!("soon"),
            Err(AuthError::Claim {
                claim: "nbf".to_owned(),
            }),
        ),
    ];
    for (claim, value, expected) in cases {
        let found = check(&hs256(&content(claim, value.clone())))
            .await
            .map(|_| ());
        assert_eq!(found, expected, "{claim} = {value}");
    }
}

#[tokio::test]
async fn issuer_and_audience_must_be_ours() {
    let cases = [
        ("iss", json!("https://evil.example"), "iss"),
        ("iss", json!(["https://id.example"]), "iss"),
        ("iss", Value::Null, "iss"),
        ("aud", json!("other"), "aud"),
        ("aud", json!([]), "aud"),
        ("aud", Value::Null, "aud"),
    ];
    for (claim, value, at_fault) in cases {
        let found = check(&hs256(&content(claim, value.clone()))).await;
        assert_eq!(
            found,
            Err(AuthError::Foreign { claim: at_fault }),
            "{claim} = {value}"
        );
    }
    assert!(
        check(&hs256(&content("aud", json!("wrkflw"))))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn names_that_could_do_harm_are_refused() {
    let cases = [
        ("sub", json!("")),
        ("sub", json!("  ")),
        ("sub", Value::Null),
        ("sub", json!(7)),
        ("sub", json!("alice\u{0}")),
        ("sub", json!("alice\nadmin")),
        ("sub", json!("Rene\u{301}")),
        ("sub", json!("alice\u{1b}[2J")),
        ("sub", json!("alice\u{85}")),
        ("sub", json!("a".repeat(SUBJECT_CHARS_MAX + 1))),
        ("tenant", json!("")),
        ("tenant", json!("t".repeat(TENANT_CHARS_MAX + 1))),
        ("tenant", json!("Rene\u{301}")),
        ("roles", json!(["Rene\u{301}"])),
        ("tenant", json!(["acme"])),
        ("roles", json!([""])),
        ("roles", json!(["a\tb"])),
        ("roles", json!([1])),
        ("roles", json!({"a": 1})),
        ("roles", json!(vec!["r"; CALLER_ROLES_MAX + 1])),
    ];
    for (claim, value) in cases {
        let found = check(&hs256(&content(claim, value.clone()))).await;
        assert_eq!(
            found,
            Err(AuthError::Claim {
                claim: claim.to_owned()
            }),
            "{claim} = {value}"
        );
    }
    assert!(
        check(&hs256(&content(
            "sub",
            json!("ä".repeat(SUBJECT_CHARS_MAX))
        )))
        .await
        .is_ok()
    );
}

#[tokio::test]
async fn a_token_nobody_signed_is_refused() {
    let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    for algorithm in ["none", "None", "NONE", ""] {
        let head = encode(&json!({"alg": algorithm, "typ": "JWT"}));
        for signature in ["", "AAAA"] {
            let found = check(&format!("Bearer {head}.{}.{signature}", encode(&good()))).await;
            assert_eq!(found, Err(AuthError::Malformed), "{algorithm} {signature}");
        }
    }
    let unsigned = hs256(&good());
    let (signed_part, _) = unsigned.rsplit_once('.').unwrap();
    assert_eq!(
        check(&format!("{signed_part}.")).await,
        Err(AuthError::Untrusted)
    );
}

#[tokio::test]
async fn a_changed_or_foreign_signature_is_refused() {
    let stolen = hs256(&good());
    let (_, signature) = stolen.rsplit_once('.').unwrap();
    let other = hs256(&content("sub", json!("admin")));
    let (admin, _) = other.rsplit_once('.').unwrap();
    assert_eq!(
        check(&format!("{admin}.{signature}")).await,
        Err(AuthError::Untrusted)
    );

    let foreign = signed(
        &good(),
        &Header::default(),
        &EncodingKey::from_secret(&[1; 32]),
    );
    assert_eq!(check(&foreign).await, Err(AuthError::Untrusted));
    let stronger = signed(
        &good(),
        &Header::new(Algorithm::HS512),
        &EncodingKey::from_secret(&SECRET),
    );
    assert_eq!(check(&stronger).await, Err(AuthError::Untrusted));
    let critical = jsonwebtoken::Header {
        crit: Some(vec!["b64".to_owned()]),
        ..Header::default()
    };
    let critical = signed(&good(), &critical, &EncodingKey::from_secret(&SECRET));
    assert_eq!(check(&critical).await, Err(AuthError::Malformed));
}

#[tokio::test]
async fn each_kind_of_public_key_verifies_its_own_tokens() {
    let signers = [
        Signer::rsa("r"),
        Signer::es256("e"),
        Signer::ed25519("d"),
        Signer::ed25519_beginning_with_zero("0d"),
    ];
    let provider = Provider::start(&signers).await;
    let authenticator = provider.authenticator(&TestTime::new());
    for signer in &signers {
        for algorithm in signer.algorithms {
            let token = signer.token(&good(), *algorithm);
            let claims = authenticator.authenticate(Some(&token)).await;
            assert_eq!(
                claims.map(|claims| claims.subject),
                Ok("alice".to_owned()),
                "{} with {algorithm:?}",
                signer.id
            );
        }
        let tampered = signer
            .token(&good(), signer.algorithms[0])
            .replace(".eyJ", ".eyK");
        assert_eq!(
            authenticator.authenticate(Some(&tampered)).await,
            Err(AuthError::Untrusted)
        );
    }
    assert_eq!(provider.hits(), 1);
}

#[tokio::test]
async fn a_public_key_is_no_shared_secret() {
    let signer = Signer::rsa("r");
    let provider = Provider::start(std::slice::from_ref(&signer)).await;
    let authenticator = provider.authenticator(&TestTime::new());
    assert!(
        authenticator
            .authenticate(Some(&signer.token(&good(), Algorithm::RS256)))
            .await
            .is_ok()
    );
    for public in &signer.public_forms {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            for kid in [Some("r".to_owned()), None] {
                let header = Header {
                    kid,
                    ..Header::new(algorithm)
                };
                let forged = signed(&good(), &header, &EncodingKey::from_secret(public));
                assert_eq!(
                    authenticator.authenticate(Some(&forged)).await,
                    Err(AuthError::Untrusted)
                );
            }
        }
    }
}

#[test]
fn refusals_have_stable_codes() {
    let cases = [
        (
            AuthError::Missing,
            401,
            "token_missing",
            Some("Bearer realm=\"wrkflw\""),
        ),
        (
            AuthError::Expired,
            401,
            "token_expired",
            Some(
                "Bearer realm=\"wrkflw\", error=\"invalid_token\", error_description=\"token_expired\"",
            ),
        ),
        (AuthError::Unavailable, 503, "token_keys_unavailable", None),
    ];
    for (error, status, code, challenge) in cases {
        assert_eq!((error.status().as_u16(), error.code()), (status, code));
        assert_eq!(error.www_authenticate().as_deref(), challenge);
    }
}

#[tokio::test]
async fn a_token_that_was_accepted_ends_with_its_time_all_the_same() {
    let time = TestTime::new();
    let authenticator = Authenticator::new(settings(), time.clock()).unwrap();
    let token = hs256(&content("nbf", json!(NOW_SECONDS)));
    let leeway = settings().leeway;
    for _ in 0..2 {
        let claims = authenticator.authenticate(Some(&token)).await.unwrap();
        assert_eq!(claims.subject, "alice");
    }
    time.advance(Duration::from_secs(59) + leeway);
    authenticator.authenticate(Some(&token)).await.unwrap();
    time.advance(Duration::from_secs(1));
    let refused = authenticator.authenticate(Some(&token)).await.unwrap_err();
    assert_eq!(refused.code(), "token_expired");
    // A clock that was wrong and is set back to before the token began.
    let before = NOW_SECONDS * 1000 - i64::try_from(leeway.as_millis()).unwrap() - 1;
    time.0.store(before, Ordering::SeqCst);
    let refused = authenticator.authenticate(Some(&token)).await.unwrap_err();
    assert_eq!(refused.code(), "token_not_yet_valid");
}

#[tokio::test]
async fn a_token_that_was_accepted_lends_nothing_to_another() {
    let authenticator = Authenticator::new(settings(), TestTime::new().clock()).unwrap();
    let token = hs256(&good());
    authenticator.authenticate(Some(&token)).await.unwrap();
    let (start, signature) = token.rsplit_once('.').unwrap();
    let other = hs256(&content("sub", json!("mallory")));
    let (_, foreign) = other.rsplit_once('.').unwrap();
    for forged in [format!("{start}.{foreign}"), format!("{start}."), {
        let (head, _) = start.rsplit_once('.').unwrap();
        let (body, _) = other.rsplit_once('.').unwrap();
        let (_, body) = body.rsplit_once('.').unwrap();
        format!("{head}.{body}.{signature}")
    }] {
        assert!(authenticator.authenticate(Some(&forged)).await.is_err());
    }
}
