//! Signing in and out at the identity provider.
//!
//! A cookie with a secret binds a sign-in to the browser that began it. State, nonce and the verifier of PKCE are derived from
//! the secret. So a code or a link from another browser is useless, and hosts store nothing during a sign-in.

use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD as BASE64, Engine as _};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use wrkflw_engine::{Identity, ProviderSession};
use wrkflw_runtime::clock;
use wrkflw_server::http::auth::{AuthError, TOKEN_BYTES_MAX};
use wrkflw_server::http::problem::Problem;

use super::sign_in::{self, SignInQuery};
use crate::language::Words;
use crate::posted::{place, same};
use crate::provider::{Failure, Provider, error_code};
use crate::session::{self, cookie, next_page, set_cookie};
use crate::shell::{Shell, page};
use crate::{Console, api};

/// The cookie of a sign-in that has begun.
const COOKIE: &str = "__Host-wrkflw-sign-in";
/// How long a sign-in may take.
const SIGN_IN_SECONDS: u32 = 600;
const SECRET_BYTES: usize = 32;
/// The longest address to which a sign-in returns. After a longer one it leads to the first page.
const NEXT_BYTES_MAX: usize = 1024;
/// The longest code of a provider.
const CODE_BYTES_MAX: usize = 4096;
/// The largest form with a logout token, and how long it may take to arrive.
const LOGOUT_BYTES_MAX: usize = TOKEN_BYTES_MAX + 1024;
const LOGOUT_TIME_MAX: Duration = Duration::from_secs(10);

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/sign-in/provider", get(begin))
        .route("/console/sign-in/return", get(finish))
        .route("/console/sign-out/provider", post(back_channel_logout))
}

/// A sign-in that has begun in this browser.
struct PendingSignIn {
    secret: [u8; SECRET_BYTES],
    next: String,
}

impl PendingSignIn {
    fn new(next: &str) -> PendingSignIn {
        let next = if next.len() <= NEXT_BYTES_MAX {
            next
        } else {
            ""
        };
        PendingSignIn {
            secret: clock::random(),
            next: next_page(next).to_owned(),
        }
    }

    fn cookie(&self) -> String {
        format!(
            "{}.{}",
            BASE64.encode(self.secret),
            BASE64.encode(&self.next)
        )
    }

    fn parse(value: &str) -> Option<PendingSignIn> {
        let (secret, next) = value.split_once('.')?;
        let next = String::from_utf8(BASE64.decode(next).ok()?).ok()?;
        Some(PendingSignIn {
            secret: BASE64.decode(secret).ok()?.try_into().ok()?,
            next: next_page(&next).to_owned(),
        })
    }

    /// A secret for one purpose: `state`, `nonce` or `verifier`. Only this browser can know it.
    fn derived(&self, what: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(format!("wrkflw sign-in {what}\n"));
        hasher.update(self.secret);
        BASE64.encode(hasher.finalize())
    }
}

/// The challenge that the provider gets for a verifier (PKCE, S256).
fn challenge(verifier: &str) -> String {
    BASE64.encode(Sha256::digest(verifier))
}

/// Redirects the browser to the provider, and sets the cookie of the sign-in.
async fn begin(
    State(console): State<Console>,
    Query(query): Query<SignInQuery>,
    headers: HeaderMap,
) -> Response {
    let w = Words::of(&headers);
    let Some(provider) = &console.provider else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // Another site must not begin a sign-in.
    let site = headers.get("sec-fetch-site");
    if site.is_some_and(|site| site == "cross-site" || site == "same-site") {
        return sign_in::form(&console, w, next_page(&query.next), None);
    }
    let pending = PendingSignIn::new(&query.next);
    let address = provider.metadata().await.and_then(|metadata| {
        let (state, nonce) = (pending.derived("state"), pending.derived("nonce"));
        provider.authorization(
            &metadata,
            &state,
            &nonce,
            &challenge(&pending.derived("verifier")),
        )
    });
    match address {
        Ok(address) => {
            let set = set_cookie(COOKIE, &pending.cookie(), Some(SIGN_IN_SECONDS));
            ([(header::SET_COOKIE, set)], Redirect::to(&address)).into_response()
        }
        Err(failure) => refused(&console, w, &pending.next, &failure_text(w, &failure)),
    }
}

/// The parameters that the provider adds to the address of its redirection.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReturnQuery {
    state: String,
    code: String,
    error: String,
    iss: String,
}

/// Handles the redirection from the provider, and begins a session.
async fn finish(
    State(console): State<Console>,
    Query(query): Query<ReturnQuery>,
    headers: HeaderMap,
) -> Response {
    let w = Words::of(&headers);
    let Some(provider) = &console.provider else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let pending = cookie(&headers, COOKIE).and_then(|value| PendingSignIn::parse(&value));
    let pending = pending.filter(|pending| same(&query.state, &pending.derived("state")));
    let Some(pending) = pending.filter(|_| provider.is_issuer(&query.iss)) else {
        return refused(&console, w, "", &w.t("sign-in-not-begun"));
    };
    let mut response = match signed_in(&console, provider, &pending, &query).await {
        Ok((who, session)) => {
            let (until, session) = (Timestamp::MAX, Some(&session));
            session::begin(&console, &who, until, session, &headers, &pending.next).await
        }
        Err(why) => refused(&console, w, &pending.next, &why.text(w)),
    };
    // A sign-in can be finished once, so its cookie is deleted.
    response
        .headers_mut()
        .append(header::SET_COOKIE, set_cookie(COOKIE, "", Some(0)));
    response
}

/// Why a sign-in ended without a session.
enum SignInFailure {
    Failed(Failure),
    Token(AuthError),
    Unknown(Box<Problem>),
}

impl SignInFailure {
    fn text(&self, w: Words) -> String {
        match self {
            SignInFailure::Failed(failure) => failure_text(w, failure),
            SignInFailure::Token(error) => {
                tracing::warn!(%error, "the ID token of a sign-in was refused");
                match error {
                    AuthError::Expired | AuthError::NotYetValid => {
                        w.t("sign-in-clocks").into_owned()
                    }
                    AuthError::Claim { claim } => w.with("sign-in-claim", "claim", claim),
                    AuthError::Foreign { claim } => w.with("sign-in-foreign", "claim", claim),
                    AuthError::Unavailable => w.with("sign-in-down", "detail", "jwks_url"),
                    _ => w.t("sign-in-untrusted").into_owned(),
                }
            }
            SignInFailure::Unknown(problem) => {
                w.with("sign-in-unknown", "detail", &api::problem_text(w, problem))
            }
        }
    }
}

/// The message for people about a failure of the provider.
fn failure_text(w: Words, failure: &Failure) -> String {
    match failure {
        Failure::Down(detail) => w.with("sign-in-down", "detail", detail),
        Failure::Setting(detail) => w.with("sign-in-setting", "detail", detail),
        Failure::Busy => w.t("sign-in-busy").into_owned(),
        Failure::Refused(code) => match code.as_str() {
            "invalid_client" | "unauthorized_client" => w.with("sign-in-client", "code", code),
            _ => w.with("sign-in-provider-refused", "code", code),
        },
    }
}

/// Exchanges the code for an ID token, and returns the person whom the token names.
async fn signed_in(
    console: &Console,
    provider: &Provider,
    pending: &PendingSignIn,
    query: &ReturnQuery,
) -> Result<(Identity, ProviderSession), SignInFailure> {
    if !query.error.is_empty() {
        let code = error_code(&query.error);
        let code = code.unwrap_or_else(|| "unknown_error".to_owned());
        return Err(SignInFailure::Failed(Failure::Refused(code)));
    }
    if query.code.is_empty() || query.code.len() > CODE_BYTES_MAX {
        let detail = format!("the provider sent no code of at most {CODE_BYTES_MAX} bytes");
        return Err(SignInFailure::Failed(Failure::Setting(detail)));
    }
    let verifier = pending.derived("verifier");
    let exchanged = provider.exchange(&query.code, &verifier);
    let token = exchanged.await.map_err(SignInFailure::Failed)?;
    let (client, nonce) = (&provider.settings.client_id, pending.derived("nonce"));
    let checked = console.app.auth.id_token(&token, client, &nonce).await;
    let checked = checked.map_err(SignInFailure::Token)?;
    let who = console.app.identity(checked.claims).await;
    let who = who.map_err(|problem| SignInFailure::Unknown(Box::new(problem)))?;
    let session = ProviderSession {
        name: checked.session,
        id_token: token,
    };
    Ok((who, session))
}

fn refused(console: &Console, w: Words, next: &str, why: &str) -> Response {
    sign_in::form(console, w, next_page(next), Some(why.to_owned()))
}

#[derive(Template)]
#[template(path = "signed_out.html")]
struct SignedOut {
    shell: Shell,
    address: String,
}

/// The page with a link to sign out at the provider, too. None if the provider does not answer or has no page for that. The
/// person is signed out here in any case.
///
/// It is a link and not a form: a form from another site would not carry the cookies by which most providers recognise the
/// browser. So the address has the ID token, which gives no access here.
pub(crate) async fn signing_out(console: &Console, w: Words, id_token: &str) -> Option<Response> {
    let provider = console.provider.as_ref()?;
    let address = provider.metadata().await.ok()?.end_session_endpoint?;
    let mut address = Url::parse(&address).ok()?;
    address
        .query_pairs_mut()
        .append_pair("id_token_hint", id_token)
        .append_pair("client_id", &provider.settings.client_id)
        .append_pair("post_logout_redirect_uri", &provider.signed_out_url());
    let template = SignedOut {
        shell: Shell::plain(w, w.t("sign-out").into_owned()),
        address: address.into(),
    };
    let forgotten = [(header::SET_COOKIE, session::forgotten())];
    Some((forgotten, page(StatusCode::OK, &template)).into_response())
}

/// Handles the provider's message that somebody signed out there (back-channel logout). No browser sends it.
async fn back_channel_logout(State(console): State<Console>, request: Request) -> Response {
    let Some(provider) = &console.provider else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let place = match place(&console.logouts) {
        Ok(place) => place,
        Err(busy) => return busy.into_response(),
    };
    let body = to_bytes(request.into_body(), LOGOUT_BYTES_MAX);
    let Ok(Ok(body)) = tokio::time::timeout(LOGOUT_TIME_MAX, body).await else {
        return wrong("the form with the logout token is too large or did not arrive");
    };
    drop(place);
    let mut fields = url::form_urlencoded::parse(&body);
    let Some((_, token)) = fields.find(|(name, _)| name == "logout_token") else {
        return wrong("the form has no logout_token");
    };
    let client = &provider.settings.client_id;
    let logout = match console.app.auth.logout_token(&token, client).await {
        Ok(logout) => logout,
        Err(AuthError::Unavailable) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Err(error) => return wrong(&error.to_string()),
    };
    let Some(first_use) = provider.take(&logout.id) else {
        return wrong("the logout token was used before");
    };
    let (person, session) = (logout.person.as_deref(), logout.session.as_deref());
    match console
        .app
        .engine
        .sessions()
        .end_of_provider(person, session)
        .await
    {
        Ok(ended) => {
            first_use.count();
            tracing::info!(ended, "the identity provider signed somebody out");
            StatusCode::OK.into_response()
        }
        Err(error) => {
            tracing::error!(%error, "sessions could not be ended");
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}

fn wrong(detail: &str) -> Response {
    tracing::warn!(detail, "a logout token was refused");
    let body = json!({ "error": "invalid_request", "error_description": detail });
    (StatusCode::BAD_REQUEST, axum::Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_binds_a_sign_in_to_its_browser_differs_by_use_and_by_browser() {
        let (one, other) = (
            PendingSignIn::new("/console/me"),
            PendingSignIn::new("/console/me"),
        );
        let uses = ["state", "nonce", "verifier"];
        let all: std::collections::BTreeSet<_> = [&one, &other]
            .into_iter()
            .flat_map(|pending| uses.map(|what| pending.derived(what)))
            .collect();
        assert_eq!(all.len(), 6);
        assert!(all.iter().all(|value| value.len() == 43));
        let read = PendingSignIn::parse(&one.cookie()).expect("its own cookie");
        assert_eq!(read.derived("state"), one.derived("state"));
        assert_eq!(read.next, "/console/me");
    }

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let expected = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert_eq!(challenge(verifier), expected);
    }

    #[test]
    fn a_cookie_leads_nowhere_but_into_the_console() {
        let secret = BASE64.encode([7; SECRET_BYTES]);
        let planted = |next: &str| format!("{secret}.{}", BASE64.encode(next));
        for outside in [
            "https://evil.example",
            "//evil.example",
            "javascript:alert(1)",
        ] {
            assert_eq!(
                PendingSignIn::parse(&planted(outside))
                    .expect("a cookie")
                    .next,
                "/console"
            );
            assert_eq!(PendingSignIn::new(outside).next, "/console");
        }
        assert_eq!(
            PendingSignIn::new(&format!("/console?{}", "a".repeat(NEXT_BYTES_MAX))).next,
            "/console"
        );
        for broken in ["", "a", "a.b", &format!("{}.", BASE64.encode([7; 31]))] {
            assert!(PendingSignIn::parse(broken).is_none(), "{broken}");
        }
    }
}
