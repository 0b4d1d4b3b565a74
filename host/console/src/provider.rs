//! The identity provider at which people sign in: its metadata, and the exchange of a code for an ID token.
//!
//! `OpenID` Connect with the authorization code flow and PKCE. The keys of the provider, its issuer and the names of claims
//! are those of the API's bearer tokens.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, StatusCode, header};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, Semaphore};
use url::Url;

use wrkflw_runtime::clock::{Clock, later};
use wrkflw_runtime::http_client::{HttpClient, Route, is_loopback};
use wrkflw_runtime::lru::Lru;
use wrkflw_server::http::auth::TOKEN_BYTES_MAX;

use crate::ROOT;

/// The timeout of a request to the provider.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 128 * 1024;
/// How long the provider's metadata is cached.
const KNOWN: Duration = Duration::from_hours(1);
/// How long the host does not ask a provider again that failed, because anybody may request a sign-in.
const PAUSE: Duration = Duration::from_secs(5);
/// Codes that are exchanged at a time. Each exchange is a request to the provider that anybody can cause.
const EXCHANGES_MAX: usize = 16;
/// The number of remembered logout tokens, and the time, which is longer than their validity.
const LOGOUTS_MAX: usize = 10_000;
const LOGOUT_KEPT: Duration = Duration::from_mins(15);
/// The longest code of an error that is shown.
const CODE_CHARS_MAX: usize = 64;

/// The registration of the console at the provider.
#[derive(Clone)]
pub struct ProviderSettings {
    /// The issuer of tokens, below which the provider publishes its endpoints.
    pub issuer: String,
    pub client_id: String,
    pub client_secret: Option<String>,
    /// Separated by spaces; `openid` is one of them.
    pub scopes: String,
    /// The address of this host for browsers.
    pub public_url: String,
}

impl ProviderSettings {
    /// The error says what to change.
    pub fn check(&self) -> Result<(), String> {
        if !is_secure(&self.issuer) {
            return Err(format!(
                "jwt_issuer is {}: people sign in there, so it needs https://, or http:// on this machine",
                self.issuer
            ));
        }
        let public = Url::parse(&self.public_url).map_err(|error| error.to_string());
        if !is_secure(&self.public_url) || public.is_ok_and(|url| url.path() != "/") {
            return Err(format!(
                "public_url is {}: the provider leads browsers back there, so it needs https://, or http:// on this machine, and no path",
                self.public_url
            ));
        }
        if !self.scopes.split(' ').any(|scope| scope == "openid") {
            return Err("oidc_scopes lacks openid: without it, there is no ID token".to_owned());
        }
        Ok(())
    }
}

/// The provider's metadata (`OpenID` Connect Discovery). Unknown members are ignored.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    pub(crate) end_session_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Option<Vec<String>>,
}

impl Metadata {
    fn check(self, issuer: &str) -> Result<Metadata, Failure> {
        if self.issuer != issuer {
            return Err(Failure::Setting(format!(
                "it calls itself {}, and jwt_issuer is {issuer}",
                self.issuer
            )));
        }
        let endpoints = [&self.authorization_endpoint, &self.token_endpoint];
        let endpoints = endpoints.into_iter().chain(&self.end_session_endpoint);
        if let Some(open) = endpoints.into_iter().find(|url| !is_secure(url)) {
            return Err(Failure::Setting(format!(
                "its endpoint {open} is not protected by TLS"
            )));
        }
        let methods = self.code_challenge_methods_supported.as_ref();
        if methods.is_some_and(|all| !all.iter().any(|one| one == "S256")) {
            return Err(Failure::Setting("it has no PKCE with S256".to_owned()));
        }
        Ok(self)
    }
}

/// Why somebody could not be signed in at the provider. The texts are for operators and have no tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It gave no answer, or one that cannot be read.
    Down(String),
    /// Its settings and those of this host do not match.
    Setting(String),
    /// It refuses, with one of the codes of OAuth.
    Refused(String),
    /// Too many sign-ins at once.
    Busy,
}

#[derive(Deserialize)]
struct Granted {
    id_token: Option<String>,
}

#[derive(Deserialize)]
struct Refused {
    error: String,
}

struct CachedMetadata {
    metadata: Result<Metadata, Failure>,
    until: Timestamp,
}

pub(crate) struct Provider {
    pub(crate) settings: ProviderSettings,
    client: HttpClient,
    clock: Clock,
    cached: Mutex<Option<CachedMetadata>>,
    exchanges: Semaphore,
    logouts: Lru<String, ()>,
}

impl Provider {
    pub(crate) fn new(settings: ProviderSettings) -> Provider {
        Provider {
            settings,
            client: HttpClient::new(),
            clock: Clock::System,
            cached: Mutex::new(None),
            exchanges: Semaphore::new(EXCHANGES_MAX),
            logouts: Lru::new(LOGOUTS_MAX).expiring(LOGOUT_KEPT),
        }
    }

    /// The address to which the provider redirects browsers after a sign-in.
    pub(crate) fn return_url(&self) -> String {
        self.url_of("/sign-in/return")
    }

    /// The address to which it redirects them after a sign-out.
    pub(crate) fn signed_out_url(&self) -> String {
        self.url_of("/sign-in")
    }

    /// The address of a page of this console.
    fn url_of(&self, path: &str) -> String {
        let base = self.settings.public_url.trim_end_matches('/');
        format!("{base}{ROOT}{path}")
    }

    /// The provider's metadata. Concurrent callers share one request.
    pub(crate) async fn metadata(&self) -> Result<Metadata, Failure> {
        let mut cached = self.cached.lock().await;
        let now = self.clock.now();
        if let Some(cached) = cached.as_ref().filter(|cached| now < cached.until) {
            return cached.metadata.clone();
        }
        let metadata = self.discover().await;
        if let Err(failure) = &metadata {
            tracing::warn!(
                issuer = self.settings.issuer,
                ?failure,
                "nobody can sign in at the identity provider"
            );
        }
        let lifetime = if metadata.is_ok() { KNOWN } else { PAUSE };
        *cached = Some(CachedMetadata {
            metadata: metadata.clone(),
            until: later(self.clock.now(), lifetime),
        });
        metadata
    }

    async fn discover(&self) -> Result<Metadata, Failure> {
        let issuer = self.settings.issuer.as_str();
        let url = format!(
            "{}/.well-known/openid-configuration",
            issuer.trim_end_matches('/')
        );
        let request = Request::get(&url).body(Vec::new());
        let request = request.map_err(|error| Failure::Setting(error.to_string()))?;
        let (status, body) = self.send(request).await?;
        if status != StatusCode::OK {
            return Err(Failure::Setting(format!(
                "{url} answers {status}: check jwt_issuer"
            )));
        }
        parse::<Metadata>(&body)?.check(issuer)
    }

    /// The page of the provider that begins a sign-in.
    pub(crate) fn authorization(
        &self,
        metadata: &Metadata,
        state: &str,
        nonce: &str,
        challenge: &str,
    ) -> Result<String, Failure> {
        let url = Url::parse(&metadata.authorization_endpoint);
        let mut url = url.map_err(|error| Failure::Setting(error.to_string()))?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", &self.return_url())
            .append_pair("scope", &self.settings.scopes)
            .append_pair("state", state)
            .append_pair("nonce", nonce)
            .append_pair("code_challenge", challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url.into())
    }

    /// Whether a response names this provider as its sender, if it names one (RFC 9207).
    pub(crate) fn is_issuer(&self, issuer: &str) -> bool {
        issuer.is_empty() || issuer == self.settings.issuer
    }

    /// Exchanges a code for an ID token, which is not verified yet.
    pub(crate) async fn exchange(&self, code: &str, verifier: &str) -> Result<String, Failure> {
        let _turn = self.exchanges.try_acquire().map_err(|_| Failure::Busy)?;
        let metadata = self.metadata().await?;
        let request = self.token_request(&metadata, code, verifier)?;
        let (status, body) = self.send(request).await?;
        if status == StatusCode::OK {
            let granted: Granted = parse(&body)?;
            let token = granted
                .id_token
                .filter(|token| token.len() <= TOKEN_BYTES_MAX);
            return token.ok_or_else(|| {
                Failure::Setting(format!(
                    "its answer has no ID token of at most {TOKEN_BYTES_MAX} bytes"
                ))
            });
        }
        let code = parse::<Refused>(&body).ok();
        let code = code.and_then(|refused| error_code(&refused.error));
        let failure = match code {
            Some(code) => Failure::Refused(code),
            None => Failure::Down(format!("the token endpoint answers {status}")),
        };
        tracing::warn!(?failure, "the identity provider gave no ID token");
        Err(failure)
    }

    /// The request that exchanges a code.
    fn token_request(
        &self,
        metadata: &Metadata,
        code: &str,
        verifier: &str,
    ) -> Result<Request<Vec<u8>>, Failure> {
        let settings = &self.settings;
        let return_url = self.return_url();
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &return_url)
            .append_pair("code_verifier", verifier);
        let mut request = Request::post(&metadata.token_endpoint)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json");
        let methods = &metadata.token_endpoint_auth_methods_supported;
        let has = |method: &str| methods.iter().any(|one| one == method);
        match &settings.client_secret {
            Some(secret) if has("client_secret_post") && !has("client_secret_basic") => {
                form.append_pair("client_id", &settings.client_id)
                    .append_pair("client_secret", secret);
            }
            Some(secret) => {
                request = request.header(header::AUTHORIZATION, basic(&settings.client_id, secret));
            }
            None => {
                form.append_pair("client_id", &settings.client_id);
            }
        }
        let request = request.body(form.finish().into_bytes());
        request.map_err(|error| Failure::Setting(error.to_string()))
    }

    /// Takes the logout token with this name. None if it was taken here before.
    pub(crate) fn take(&self, logout: &str) -> Option<Logout<'_>> {
        if self.logouts.get(logout).is_some() {
            return None;
        }
        self.logouts.insert(logout.to_owned(), ());
        Some(Logout {
            provider: self,
            name: logout.to_owned(),
            counts: false,
        })
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<(StatusCode, Bytes), Failure> {
        let route = match request.uri().host() {
            Some(host) if is_loopback(host) => Route::Direct,
            _ => Route::Proxied,
        };
        let answer = self
            .client
            .fetch(request, route, TIMEOUT, ANSWER_BYTES_MAX)
            .await;
        let answer = answer.map_err(|error| Failure::Down(error.to_string()))?;
        Ok((answer.status(), answer.into_body()))
    }
}

/// A logout token that was taken. It is given back unless it took effect: the provider may not have waited for the answer, and can send
/// it again.
pub(crate) struct Logout<'a> {
    provider: &'a Provider,
    name: String,
    counts: bool,
}

impl Logout<'_> {
    /// It had its effect, and is not taken again.
    pub(crate) fn count(mut self) {
        self.counts = true;
    }
}

impl Drop for Logout<'_> {
    fn drop(&mut self) {
        if !self.counts {
            self.provider.logouts.remove(self.name.as_str());
        }
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    // The parser's error would quote the body, which may contain a token.
    serde_json::from_slice(body).map_err(|error| {
        Failure::Down(format!(
            "its answer cannot be read, at line {} column {}",
            error.line(),
            error.column()
        ))
    })
}

/// Who the client is, in a header (RFC 6749, section 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let encoded =
        |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

/// The code of an error, if the text is one. Other text of a query or an answer is not shown.
pub(crate) fn error_code(text: &str) -> Option<String> {
    let fits = (1..=CODE_CHARS_MAX).contains(&text.len());
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    (fits && plain).then(|| text.to_owned())
}

/// Whether a URL is protected by TLS, or is on this machine.
fn is_secure(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else {
        return false;
    };
    let named = url.username().is_empty() && url.password().is_none();
    named
        && match (url.scheme(), url.host_str()) {
            ("https", Some(_)) => true,
            ("http", Some(host)) => is_loopback(host),
            _ => false,
        }
}

#[cfg(test)]
mod tests;
