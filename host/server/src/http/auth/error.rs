//! Why the caller of a request is unknown.
//!
//! A client learns enough to fix a mistake: no token, an expired token, a token of another issuer. It does not learn why a
//! signature is not valid.

use axum::http::StatusCode;

/// About the time after which the provider is asked again.
const RETRY_AFTER_SECONDS: u32 = 10;

/// Why a token was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    #[error("a bearer token is needed")]
    Missing,
    #[error("the bearer token is not a JWT signed by an accepted algorithm")]
    Malformed,
    #[error("the bearer token has expired")]
    Expired,
    #[error("the bearer token is not valid yet")]
    NotYetValid,
    #[error("the bearer token is not trusted here")]
    Untrusted,
    /// The signature is valid, so the error may name the wrong claim.
    #[error("the bearer token is not meant for this service: see its claim {claim}")]
    Foreign { claim: &'static str },
    #[error("the claim {claim} of the bearer token is missing or not usable")]
    Claim { claim: String },
    #[error("the keys that verify bearer tokens are not available at present")]
    Unavailable,
}

impl AuthError {
    /// The stable code of the problem.
    pub fn code(&self) -> &'static str {
        match self {
            AuthError::Missing => "token_missing",
            AuthError::Malformed => "token_malformed",
            AuthError::Expired => "token_expired",
            AuthError::NotYetValid => "token_not_yet_valid",
            AuthError::Untrusted | AuthError::Foreign { .. } => "token_untrusted",
            AuthError::Claim { .. } => "token_claim_invalid",
            AuthError::Unavailable => "token_keys_unavailable",
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            AuthError::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            AuthError::Missing
            | AuthError::Malformed
            | AuthError::Expired
            | AuthError::NotYetValid
            | AuthError::Untrusted
            | AuthError::Foreign { .. }
            | AuthError::Claim { .. } => StatusCode::UNAUTHORIZED,
        }
    }

    /// Seconds after which the same token may be accepted.
    pub fn retry_after(&self) -> Option<u32> {
        (*self == AuthError::Unavailable).then_some(RETRY_AFTER_SECONDS)
    }

    /// The `WWW-Authenticate` header of the response. None if another token would not help.
    pub(crate) fn www_authenticate(&self) -> Option<String> {
        match self {
            AuthError::Unavailable => None,
            AuthError::Missing => Some("Bearer realm=\"wrkflw\"".to_owned()),
            AuthError::Malformed
            | AuthError::Expired
            | AuthError::NotYetValid
            | AuthError::Untrusted
            | AuthError::Foreign { .. }
            | AuthError::Claim { .. } => {
                let code = self.code();
                Some(format!(
                    "Bearer realm=\"wrkflw\", error=\"invalid_token\", error_description=\"{code}\""
                ))
            }
        }
    }
}
