//! Creates bearer tokens with the shared secret, for development and for scripts.
//!
//! The settings that create a token also accept it. A host with an identity provider creates no tokens.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Map, Value, json};

use super::auth::{AuthSettings, Claims, checked_secret};

/// The longest lifetime of a token.
pub(crate) const LIFETIME_MAX: Duration = Duration::from_hours(366 * 24);

/// A token of `claims`, valid from `now` for `lifetime`, signed with HS256.
pub fn mint(
    settings: &AuthSettings,
    claims: &Claims,
    lifetime: Duration,
    now: Timestamp,
) -> Result<String, String> {
    let secret = settings
        .hs256_secret
        .as_ref()
        .ok_or("no HS256 secret is set: ask your identity provider for a token")?;
    let secret = checked_secret(secret)?;
    claims.check(settings).map_err(|error| error.to_string())?;
    if lifetime > LIFETIME_MAX {
        return Err(format!(
            "a token may live for {} days at most",
            LIFETIME_MAX.as_secs() / (24 * 60 * 60)
        ));
    }
    let lifetime = SignedDuration::try_from(lifetime).map_err(|error| error.to_string())?;
    let expires = now
        .checked_add(lifetime)
        .map_err(|error| error.to_string())?;

    let mut content = Map::new();
    content.insert("sub".to_owned(), json!(claims.subject));
    content.insert(settings.tenant_claim.clone(), json!(claims.tenant));
    content.insert(settings.roles_claim.clone(), json!(claims.roles));
    content.insert("iat".to_owned(), json!(now.as_second()));
    content.insert("exp".to_owned(), json!(expires.as_second()));
    for (claim, value) in [("iss", &settings.issuer), ("aud", &settings.audience)] {
        if let Some(value) = value {
            content.insert(claim.to_owned(), json!(value));
        }
    }
    let key = EncodingKey::from_secret(secret.bytes());
    jsonwebtoken::encode(&Header::default(), &Value::Object(content), &key)
        .map_err(|error| error.to_string())
}
