//! Extractors. They turn invalid requests into problems, so that handlers get only valid values.

use axum::body::{Bytes, HttpBody as _};
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path as AxumPath, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use utoipa::IntoParams;

use super::minimal::Preference;
use super::problem::Problem;
use super::{App, pace, value_error};
use wrkflw_core::ids::{NOT_NORMAL, TenantId, is_normal};
use wrkflw_core::json::Json;
use wrkflw_engine::{Idempotency, Identity, Trace};

/// The largest JSON body, in bytes.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Larger bodies are parsed on another thread, so that they do not block one of the runtime.
const INLINE_BYTES_MAX: usize = 32 * 1024;
/// The longest idempotency key.
const KEY_CHARS_MAX: usize = 255;
/// Digits of a revision in `If-Match`.
const REVISION_DIGITS_MAX: usize = 10;

/// The caller of a request that this process makes itself, such as the console for somebody who signed in. No request from
/// a network has this extension.
#[derive(Debug, Clone)]
pub struct Vouched {
    pub who: Identity,
    /// From when on it does not count any more.
    pub until: Timestamp,
}

/// The proof of who the caller is.
enum Credential {
    Header(Option<String>),
    Vouched(Vouched),
}

impl Credential {
    fn of(parts: &Parts) -> Credential {
        match parts.extensions.get::<Vouched>() {
            Some(vouched) => Credential::Vouched(vouched.clone()),
            None => Credential::Header(authorization(&parts.headers).map(str::to_owned)),
        }
    }

    async fn identify(&self, app: &App) -> Result<(Identity, Timestamp), Problem> {
        match self {
            Credential::Header(header) => app.identify(header.as_deref()).await,
            Credential::Vouched(vouched) if app.auth.is_over(vouched.until) => {
                Err(Problem::new("token_expired", "the session has ended"))
            }
            Credential::Vouched(vouched) => Ok((vouched.who.clone(), vouched.until)),
        }
    }
}

/// The caller, from the bearer token.
pub struct Caller(pub Identity);

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Caller, Problem> {
        let (who, _) = Credential::of(parts).identify(app).await?;
        parts.extensions.insert(who.tenant);
        Ok(Caller(who))
    }
}

fn authorization(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?;
    Some(value.to_str().unwrap_or("\u{fffd}"))
}

/// The caller of a long response, their token, and the moment at which it expires.
pub struct Listener {
    pub who: Identity,
    credential: Credential,
    pub until: Timestamp,
}

impl Listener {
    /// Fails if the token is not valid any more, or the caller has lost this permission.
    pub(crate) async fn may_still(
        &mut self,
        app: &App,
        permission: &'static str,
    ) -> Result<(), Problem> {
        self.is_still_known(app).await?;
        Ok(app.engine.permit(&self.who, permission).await?)
    }

    /// Fails if the token is not valid any more: it has expired, or its key was withdrawn.
    pub(crate) async fn is_still_known(&mut self, app: &App) -> Result<(), Problem> {
        (_, self.until) = self.credential.identify(app).await?;
        Ok(())
    }
}

impl FromRequestParts<App> for Listener {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Listener, Problem> {
        let credential = Credential::of(parts);
        let (who, until) = credential.identify(app).await?;
        Ok(Listener {
            who,
            credential,
            until,
        })
    }
}

/// A JSON body: its typed value and its canonical text.
pub struct Body<T> {
    pub value: T,
    pub canonical: Json,
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Body<T>, Problem> {
        let is_json = request
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.to_str().is_ok_and(is_json));
        // The tenant is known here, because all routes extract the caller before the body.
        let tenant = request.extensions().get::<TenantId>().copied();
        let tenant = tenant.unwrap_or(TenantId(0));
        // If the body's size is known, the host refuses it without receiving it.
        if request.body().size_hint().lower() > BODY_BYTES_MAX as u64 {
            return Err(too_large());
        }
        let bytes = Bytes::from_request(request, app).await.map_err(unread)?;
        if bytes.is_empty() {
            return parse("{}");
        }
        if !is_json {
            return Err(Problem::new(
                "unsupported_media_type",
                "send the body as application/json",
            ));
        }
        parse_body(app, tenant, bytes, read).await
    }
}

/// Parses a body. A large one is parsed on another thread.
pub(super) async fn parse_body<T: Send + 'static>(
    app: &App,
    tenant: TenantId,
    bytes: Bytes,
    read: impl FnOnce(&[u8]) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if bytes.len() <= INLINE_BYTES_MAX {
        return read(&bytes);
    }
    app.engine
        .offload()
        .run(tenant, move || read(&bytes))
        .await?
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<Body<T>, Problem> {
    let text = str::from_utf8(bytes);
    parse(text.map_err(|_| Problem::new("malformed_json", "the body is not UTF-8"))?)
}

/// Why a body could not be read to its end.
fn unread(error: BytesRejection) -> Problem {
    if let Some(problem) = pace::problem(&error) {
        return problem;
    }
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return too_large();
    }
    Problem::new("malformed_request", "the body broke off")
}

fn too_large() -> Problem {
    let detail = format!("a body has at most {BODY_BYTES_MAX} bytes");
    Problem::new("too_large", detail)
}

/// `application/json` or a type built on it, whatever its parameters.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    match essence.strip_prefix("application/") {
        // A list of types is not JSON.
        Some(subtype) if subtype.contains([',', ' ']) => false,
        Some(subtype) => subtype == "json" || subtype.ends_with("+json"),
        None => false,
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<Body<T>, Problem> {
    let canonical = Json::parse(text).map_err(|error| {
        let detail = error.located();
        Problem::new("malformed_json", format!("the body has {detail}")).at(
            &error.pointer,
            "malformed",
            detail,
        )
    })?;
    // Serde would read a struct from an array, too.
    if !canonical.is_object() {
        let detail = "the body is a JSON object";
        return Err(Problem::new("invalid_request", detail).at("", "malformed", detail));
    }
    let deserializer = &mut serde_json::Deserializer::from_str(canonical.as_str());
    match serde_path_to_error::deserialize(deserializer) {
        Ok(value) => Ok(Body { value, canonical }),
        Err(error) => Err(value_error::of_body(&error)),
    }
}

/// Whether it is a dry run.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DryRun {
    /// The complete answer, but nothing is written.
    #[serde(default)]
    #[param(default = false)]
    pub dry_run: bool,
}

/// The headers that any command may have, and whether it is a dry run.
pub struct Options {
    pub if_match: Option<u32>,
    pub idempotency_key: Option<String>,
    pub dry_run: bool,
    /// The form of the response that the caller prefers, if any.
    pub prefer: Option<Preference>,
    pub trace: Trace,
    /// Method and path, part of a request's fingerprint.
    pub line: String,
}

impl FromRequestParts<App> for Options {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Options, Problem> {
        // Unknown parameters are refused: a command with a misspelt `dryRun` must not be executed.
        let Query(DryRun { dry_run }) = Query::from_request_parts(parts, app).await?;
        Ok(Options {
            if_match: if_match(&parts.headers)?,
            idempotency_key: idempotency_key(&parts.headers)?,
            dry_run,
            prefer: Preference::of(&parts.headers),
            trace: parts.extensions.get::<Trace>().cloned().unwrap_or_default(),
            line: format!("{} {}", parts.method, parts.uri.path()),
        })
    }
}

impl Options {
    /// The idempotency key with the fingerprint of this request.
    pub fn idempotency(&self, body: &Json) -> Option<Idempotency> {
        let key = self.idempotency_key.clone()?;
        let mut hasher = Sha256::new();
        for part in [
            self.line.as_str(),
            &format!("{:?}", self.if_match),
            body.as_str(),
        ] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        Some(Idempotency {
            key,
            fingerprint: hasher.finalize().into(),
        })
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let value = headers.get(name).map(|value| value.to_str());
    value.transpose().map_err(|_| {
        value_error::of_parameter(name, format!("the header {name} is not plain text"))
    })
}

fn if_match(headers: &HeaderMap) -> Result<Option<u32>, Problem> {
    let Some(value) = text(headers, "if-match")? else {
        return Ok(None);
    };
    if value.trim() == "*" {
        return Ok(None);
    }
    let quoted = value
        .trim()
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    let digits = quoted.filter(|value| {
        (1..=REVISION_DIGITS_MAX).contains(&value.len())
            && value.bytes().all(|c| c.is_ascii_digit())
    });
    let revision = digits.and_then(|digits| digits.parse::<u64>().ok());
    // A number larger than all revisions is well-formed, and matches none.
    let revision = revision.map(|revision| u32::try_from(revision).unwrap_or(u32::MAX));
    revision.map(Some).ok_or_else(|| {
        value_error::of_parameter(
            "If-Match",
            "If-Match takes the ETag of an instance, a revision in quotes such as \"3\"",
        )
    })
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = text(headers, "idempotency-key")? else {
        return Ok(None);
    };
    let value = value.trim();
    let quoted = value
        .strip_prefix('"')
        .and_then(|key| key.strip_suffix('"'));
    let key = quoted.unwrap_or(value);
    let is_plain = |c: u8| (b' '..=b'~').contains(&c) && c != b'"';
    if !(1..=KEY_CHARS_MAX).contains(&key.len()) || !key.bytes().all(is_plain) {
        let detail =
            format!("an Idempotency-Key has 1 to {KEY_CHARS_MAX} characters, none of them a quote");
        return Err(value_error::of_parameter("Idempotency-Key", detail));
    }
    // A proxy may have joined two headers in this way.
    if quoted.is_none() && key.contains(',') {
        let detail = "an Idempotency-Key with a comma in it must be in quotes";
        return Err(value_error::of_parameter("Idempotency-Key", detail));
    }
    Ok(Some(key.to_owned()))
}

/// Path parameters. A value that does not parse gets 404. A text in a path is an id, so it must be in normal form.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Path<T>, Problem> {
        let raw = RawPathParams::from_request_parts(parts, app).await;
        for (name, text) in raw.iter().flatten() {
            if text.contains('\0') {
                let (at, detail) = (format!("/{name}"), "no name has a NUL in it".to_owned());
                return Err(value_error::wrong("not_found", &at, "malformed", detail));
            }
            if !is_normal(text) {
                return Err(malformed(&format!("/{name}"), NOT_NORMAL));
            }
        }
        let path = AxumPath::<T>::from_request_parts(parts, app).await;
        path.map(|AxumPath(value)| Path(value)).map_err(|error| {
            let names = raw.iter().flatten().map(|(name, _)| name.to_owned());
            let names: Vec<_> = names.collect();
            value_error::of_path(&error, &names)
        })
    }
}

/// Query parameters. Unknown ones are refused, because a misspelt filter would return everything.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Query<T>, Problem> {
        refuse_nul(parts.uri.query().unwrap_or_default())?;
        let query = match joined(parts.uri.query().unwrap_or_default()) {
            None => axum::extract::Query::<T>::from_request_parts(parts, app).await,
            Some(query) => {
                let uri = Uri::builder().path_and_query(format!("/?{query}")).build();
                let uri = uri.map_err(|_| malformed("/", "the query is malformed"))?;
                axum::extract::Query::<T>::try_from_uri(&uri)
            }
        };
        query
            .map(|axum::extract::Query(value)| Query(value))
            .map_err(|error| value_error::of_query(&error))
    }
}

/// The parameters that take several values.
pub const SEVERAL: [&str; 2] = ["fields", "include"];

/// The query with all values of a repeated parameter joined to one. Many generated clients repeat a parameter that has several values,
/// although the document says that commas separate them.
fn joined(query: &str) -> Option<String> {
    let mut lists = SEVERAL.map(|name| (name, Vec::new()));
    let mut pairs = Vec::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match lists.iter_mut().find(|(list, _)| *list == name) {
            Some((_, values)) => values.push(value),
            None => pairs.push(pair.to_owned()),
        }
    }
    if lists.iter().all(|(_, values)| values.len() < 2) {
        return None;
    }
    let lists = lists.iter().filter(|(_, values)| !values.is_empty());
    pairs.extend(lists.map(|(name, values)| format!("{name}={}", values.join(","))));
    Some(pairs.join("&"))
}

/// Refuses a query with a NUL character.
pub(crate) fn refuse_nul(query: &str) -> Result<(), Problem> {
    let Some(pair) = query.split('&').find(|pair| has_nul(pair)) else {
        return Ok(());
    };
    let (name, _) = pair.split_once('=').unwrap_or((pair, ""));
    let detail = "a query parameter has a NUL in it";
    Err(value_error::of_parameter(name, detail))
}

/// PostgreSQL stores no text with a NUL. In a URI, it is always encoded.
fn has_nul(encoded: &str) -> bool {
    encoded.contains("%00")
}

/// The problem for a value that violates the rule in `detail`.
pub fn malformed(pointer: &str, detail: &str) -> Problem {
    value_error::wrong("invalid_request", pointer, "malformed", detail.to_owned())
}
