//! Reads and checks the claims of a verified token.
//!
//! Other modules verify the signature. Names are written to audit entries, logs and events, so this module limits their
//! lengths and refuses control characters.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::error::AuthError;
use super::settings::AuthSettings;
use wrkflw_core::actor::is_reserved;
use wrkflw_core::ids::check_id;
pub use wrkflw_engine::CALLER_ROLES_MAX;

pub const SUBJECT_CHARS_MAX: usize = 200;
pub const TENANT_CHARS_MAX: usize = 64;
pub(crate) const ROLE_CHARS_MAX: usize = 100;

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    pub subject: String,
    pub tenant: String,
    pub roles: Vec<String>,
}

impl Claims {
    /// Reads the claims of a token with a valid signature, and their validity.
    pub(super) fn read(
        token: &Map<String, Value>,
        settings: &AuthSettings,
        now: Timestamp,
    ) -> Result<(Claims, Validity), AuthError> {
        let validity = Validity::read(token)?;
        validity.check(settings.leeway, now)?;
        check_place(token, settings)?;
        let tenant = match token.get(&settings.tenant_claim) {
            None | Some(Value::Null) => settings
                .default_tenant
                .clone()
                .ok_or_else(|| unfit(&settings.tenant_claim))?,
            named => text(named, &settings.tenant_claim)?.to_owned(),
        };
        let claims = Claims {
            subject: text(token.get("sub"), "sub")?.to_owned(),
            tenant,
            roles: roles(token.get(&settings.roles_claim), &settings.roles_claim)?,
        };
        claims.check(settings)?;
        Ok((claims, validity))
    }

    /// Checks that a token may have these names. The error names the invalid claim.
    pub(in crate::http) fn check(&self, settings: &AuthSettings) -> Result<(), AuthError> {
        let roles_fit = self.roles.len() <= CALLER_ROLES_MAX
            && self.roles.iter().all(|role| is_name(role, ROLE_CHARS_MAX));
        let fits = [
            (
                "sub",
                // Reserved names are those under which the host itself acts.
                is_name(&self.subject, SUBJECT_CHARS_MAX) && !is_reserved(&self.subject),
            ),
            (
                &settings.tenant_claim,
                is_name(&self.tenant, TENANT_CHARS_MAX),
            ),
            (&settings.roles_claim, roles_fit),
        ];
        match fits.into_iter().find(|(_, fits)| !fits) {
            Some((claim, _)) => Err(unfit(claim)),
            None => Ok(()),
        }
    }
}

pub(super) fn is_name(text: &str, chars_max: usize) -> bool {
    !text.trim().is_empty() && check_id(text, chars_max).is_ok()
}

pub(super) fn unfit(claim: &str) -> AuthError {
    AuthError::Claim {
        claim: claim.to_owned(),
    }
}

pub(super) fn text<'a>(value: Option<&'a Value>, claim: &str) -> Result<&'a str, AuthError> {
    value.and_then(Value::as_str).ok_or_else(|| unfit(claim))
}

/// A list of roles, or a single one. Without the claim, there are none.
fn roles(value: Option<&Value>, claim: &str) -> Result<Vec<String>, AuthError> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(role)) => Ok(vec![role.clone()]),
        Some(Value::Array(roles)) => roles
            .iter()
            .map(|role| text(Some(role), claim).map(str::to_owned))
            .collect(),
        Some(_) => Err(unfit(claim)),
    }
}

/// When a token is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    begins: Option<SignedDuration>,
    expires: SignedDuration,
}

impl Validity {
    fn read(token: &Map<String, Value>) -> Result<Validity, AuthError> {
        Ok(Validity {
            expires: moment(token, "exp")?.ok_or_else(|| unfit("exp"))?,
            begins: moment(token, "nbf")?,
        })
    }

    /// The moment from which on the token is refused.
    pub(super) fn ends(self, leeway: Duration) -> Timestamp {
        let leeway = SignedDuration::try_from(leeway).unwrap_or(SignedDuration::MAX);
        // If the sum is out of range, the token never expires.
        Timestamp::from_duration(self.expires.saturating_add(leeway)).unwrap_or(Timestamp::MAX)
    }

    /// Fails if the token is not valid now.
    pub(super) fn check(self, leeway: Duration, now: Timestamp) -> Result<(), AuthError> {
        let leeway = SignedDuration::try_from(leeway).unwrap_or(SignedDuration::MAX);
        let now = now.as_duration();
        if now >= self.expires.saturating_add(leeway) {
            return Err(AuthError::Expired);
        }
        match self.begins {
            Some(begins) if now.saturating_add(leeway) < begins => Err(AuthError::NotYetValid),
            _ => Ok(()),
        }
    }
}

/// Seconds of the Unix epoch, possibly with a fraction.
pub(super) fn moment(
    token: &Map<String, Value>,
    claim: &str,
) -> Result<Option<SignedDuration>, AuthError> {
    let Some(value) = token.get(claim) else {
        return Ok(None);
    };
    let whole = value.as_i64().map(SignedDuration::from_secs);
    let fraction = || SignedDuration::try_from_secs_f64(value.as_f64()?).ok();
    whole
        .or_else(fraction)
        .map(Some)
        .ok_or_else(|| unfit(claim))
}

pub(super) fn check_place(
    token: &Map<String, Value>,
    settings: &AuthSettings,
) -> Result<(), AuthError> {
    let is = |value: &Value, wanted: &str| value.as_str() == Some(wanted);
    if let Some(issuer) = &settings.issuer
        && !token.get("iss").is_some_and(|value| is(value, issuer))
    {
        return Err(AuthError::Foreign { claim: "iss" });
    }
    let Some(audience) = &settings.audience else {
        return Ok(());
    };
    let meant = match token.get("aud") {
        Some(Value::Array(several)) => several.iter().any(|value| is(value, audience)),
        Some(value) => is(value, audience),
        None => false,
    };
    if meant {
        Ok(())
    } else {
        Err(AuthError::Foreign { claim: "aud" })
    }
}
