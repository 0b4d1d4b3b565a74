//! The tokens that an identity provider sends to the client of this host's sign-in: the ID token of a sign-in (`OpenID`
//! Connect Core), and the logout token of a sign-out elsewhere (Back-Channel Logout).
//!
//! Both are signed like bearer tokens, but only for this client. A bearer token is never accepted as one of them,
//! because it has another audience.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Map, Value};

use super::claims::{check_place, is_name, moment, text, unfit};
use super::{AuthError, AuthSettings, Authenticator, Claims, SUBJECT_CHARS_MAX, TOKEN_BYTES_MAX};

/// The longest name of a session at the provider, and of a logout token.
const NAME_CHARS_MAX: usize = 255;
/// Older logout tokens are refused, so a stolen copy is soon useless.
const LOGOUT_AGE_MAX: Duration = Duration::from_mins(5);
/// The member of `events` that marks a logout token.
const LOGOUT_EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// The content of an ID token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdToken {
    pub claims: Claims,
    /// The name of the session at the provider (`sid`).
    pub session: Option<String>,
}

/// The content of a logout token. It names a person, a session at the provider, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoutToken {
    /// The unique id of this token (`jti`).
    pub id: String,
    pub person: Option<String>,
    pub session: Option<String>,
}

impl Authenticator {
    /// Checks an ID token for the client `client_id` that answers a request with this nonce.
    pub async fn id_token(
        &self,
        token: &str,
        client_id: &str,
        nonce: &str,
    ) -> Result<IdToken, AuthError> {
        let content = self.content(token).await?;
        let settings = self.for_client(client_id);
        let (claims, _) = Claims::read(&content, &settings, self.clock.now())?;
        self.check_issue(&content, None)?;
        // This claim names the client that requested the token, if that is not the audience (Core, section 3.1.3.7).
        let several = content
            .get("aud")
            .and_then(Value::as_array)
            .is_some_and(|all| all.len() > 1);
        match content.get("azp").map(Value::as_str) {
            Some(Some(party)) if party == client_id => {}
            None if !several => {}
            _ => return Err(AuthError::Foreign { claim: "azp" }),
        }
        if text(content.get("nonce"), "nonce")? != nonce {
            return Err(AuthError::Foreign { claim: "nonce" });
        }
        Ok(IdToken {
            claims,
            session: name(&content, "sid")?,
        })
    }

    /// Checks a logout token for the client `client_id`.
    pub async fn logout_token(
        &self,
        token: &str,
        client_id: &str,
    ) -> Result<LogoutToken, AuthError> {
        let content = self.content(token).await?;
        check_place(&content, &self.for_client(client_id))?;
        self.check_issue(&content, Some(LOGOUT_AGE_MAX))?;
        let is_logout = content
            .get("events")
            .is_some_and(|events| events[LOGOUT_EVENT].is_object());
        if !is_logout {
            return Err(unfit("events"));
        }
        // Only ID tokens have this claim (Back-Channel Logout, section 2.4).
        if content.contains_key("nonce") {
            return Err(unfit("nonce"));
        }
        let logout = LogoutToken {
            id: name(&content, "jti")?.ok_or_else(|| unfit("jti"))?,
            person: name(&content, "sub")?,
            session: name(&content, "sid")?,
        };
        if logout.person.is_none() && logout.session.is_none() {
            return Err(unfit("sid"));
        }
        Ok(logout)
    }

    async fn content(&self, token: &str) -> Result<Map<String, Value>, AuthError> {
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
            return Err(AuthError::Malformed);
        }
        let (_, _, content) = self.verify(token).await?;
        Ok(content)
    }

    /// The settings with this client as audience.
    fn for_client(&self, client_id: &str) -> AuthSettings {
        AuthSettings {
            audience: Some(client_id.to_owned()),
            ..self.settings.clone()
        }
    }

    /// Checks when a token was issued, and its expiry if it has one. With `age_max`, it also expires at that age.
    fn check_issue(
        &self,
        content: &Map<String, Value>,
        age_max: Option<Duration>,
    ) -> Result<(), AuthError> {
        let leeway = SignedDuration::try_from(self.settings.leeway).unwrap_or(SignedDuration::MAX);
        let now = self.clock.now().as_duration();
        let issued = moment(content, "iat")?.ok_or_else(|| unfit("iat"))?;
        if issued > now.saturating_add(leeway) {
            return Err(AuthError::NotYetValid);
        }
        let age_max = age_max.and_then(|age| SignedDuration::try_from(age).ok());
        let ends = age_max.map(|age| issued.saturating_add(age));
        let ends = [ends, moment(content, "exp")?].into_iter().flatten().min();
        match ends {
            Some(ends) if now >= ends.saturating_add(leeway) => Err(AuthError::Expired),
            _ => Ok(()),
        }
    }
}

/// The value of a claim that is a name or id. None if the token lacks the claim.
fn name(content: &Map<String, Value>, claim: &'static str) -> Result<Option<String>, AuthError> {
    let chars_max = if claim == "sub" {
        SUBJECT_CHARS_MAX
    } else {
        NAME_CHARS_MAX
    };
    match content.get(claim) {
        None | Some(Value::Null) => Ok(None),
        named => {
            let name = text(named, claim)?;
            let fits = is_name(name, chars_max);
            fits.then(|| Some(name.to_owned()))
                .ok_or_else(|| unfit(claim))
        }
    }
}
