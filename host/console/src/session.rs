//! The signed-in person: the cookie of a session, and the visitor of a page.
//!
//! The cookie has the number of the tenant and a secret. `__Host-` binds it to this host and to a secure origin. For browsers,
//! a page on this machine has a secure origin. Scripts cannot read the cookie, and requests from other sites do not carry it.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD as BASE64, Engine as _};
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;
use url::{Position, Url};
use uuid::Uuid;

use wrkflw_core::ids::TenantId;
use wrkflw_engine::{Identity, Preference, ProviderSession, Session};
use wrkflw_server::http::extract::Vouched;

use crate::api::{Api, Trouble, with_query};
use crate::language::Words;
use crate::list::{Paged, page_with_rows};
use crate::{Console, ROOT, pages};

const COOKIE: &str = "__Host-wrkflw-session";
/// Secrets have this many bytes.
const SECRET_BYTES: usize = 32;

/// An answer that ends a handler early, such as a redirection or a page about a refusal.
pub(crate) struct Halt(Box<Response>);

impl From<Response> for Halt {
    fn from(response: Response) -> Halt {
        Halt(Box::new(response))
    }
}

impl axum::response::IntoResponse for Halt {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// The result of a handler.
pub(crate) type Answer = Result<Response, Halt>;

/// A signed-in person, with the texts of their language and their access to the API.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) session: Session,
    /// The token in the forms of this session.
    pub(crate) token: String,
    pub(crate) w: Words,
    pub(crate) api: Api,
    /// Path and query of this page, to return to. For a sent form, those of the page with the form.
    pub(crate) here: String,
    /// Whether they see an instance inside of a page of a product, and not the console.
    pub(crate) is_embedded: bool,
    /// Read from the API once for a page.
    myself: Arc<OnceCell<Myself>>,
}

/// The facts about the visitor that every page may need.
#[derive(Deserialize)]
pub(crate) struct Myself {
    pub(crate) name: Option<String>,
    /// The permissions of their roles.
    pub(crate) permissions: Vec<String>,
}

impl Visitor {
    fn new(
        console: &Console,
        session: Session,
        secret: &[u8],
        headers: &HeaderMap,
        here: String,
    ) -> Visitor {
        let w = Words::of(headers).preferring(&session.preference);
        Visitor {
            token: form_token(secret),
            w,
            api: Api {
                w,
                router: console.api.clone(),
                caller: Vouched {
                    who: session.who.clone(),
                    until: session.until,
                },
            },
            session,
            here,
            is_embedded: false,
            myself: Arc::default(),
        }
    }

    /// A person who sees an instance inside of a page of a product, until their embed token ends. The page determines the language.
    pub(crate) fn embedded(
        console: &Console,
        who: Identity,
        until: jiff::Timestamp,
        headers: &HeaderMap,
    ) -> Visitor {
        let session = Session {
            id: Uuid::nil(),
            who,
            until,
            preference: Preference::default(),
        };
        Visitor {
            is_embedded: true,
            ..Visitor::new(console, session, &[], headers, String::new())
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.session.who.subject
    }

    /// Reads from the API. If that fails, the answer is a page that says why.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Halt> {
        self.api
            .get(path)
            .await
            .map_err(|trouble| self.halt(&trouble))
    }

    /// As [`page_with_rows`]. If that fails, the answer is a page that says why.
    pub(crate) async fn page_with_rows<T: DeserializeOwned>(
        &self,
        after: &str,
        path: impl Fn(&str) -> String,
    ) -> Result<Paged<T>, Halt> {
        let found = page_with_rows(self, after, path).await;
        found.map_err(|trouble| self.halt(&trouble))
    }

    /// Sends a change to the API. If that fails, the answer is a page that says why.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        key: Option<&str>,
    ) -> Result<T, Halt> {
        let answer = self.api.post(path, body, key).await;
        answer.map_err(|trouble| self.halt(&trouble))
    }

    /// Whether the visitor's roles permit this.
    pub(crate) async fn may(&self, permission: &str) -> Result<bool, Halt> {
        let myself = self.myself().await;
        let myself = myself.map_err(|trouble| self.halt(&trouble))?;
        Ok(myself.permissions.iter().any(|one| one == permission))
    }

    /// The API's answer about the visitor.
    pub(crate) async fn myself(&self) -> Result<&Myself, Trouble> {
        let read = || self.api.get("/v1/me");
        self.myself.get_or_try_init(read).await
    }

    /// Ends with a page that says which permission is missing, if one is.
    pub(crate) async fn require(&self, permission: &str) -> Result<(), Halt> {
        if self.may(permission).await? {
            return Ok(());
        }
        Err(self.halt(&Trouble {
            status: StatusCode::FORBIDDEN.as_u16(),
            detail: self
                .w
                .with("problem-permission_missing", "reason", permission),
            ..Trouble::default()
        }))
    }

    pub(crate) fn halt(&self, trouble: &Trouble) -> Halt {
        pages::trouble::page(self, trouble).into()
    }
}

/// The value of a cookie.
pub(crate) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let mut pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split("; "));
    pairs.find_map(|pair| {
        let value = pair.strip_prefix(name)?.strip_prefix('=')?;
        Some(value.to_owned())
    })
}

/// Sets a cookie that lasts until the browser ends, or for `seconds`.
pub(crate) fn set_cookie(name: &str, value: &str, seconds: Option<u32>) -> HeaderValue {
    let age = seconds.map_or_else(String::new, |seconds| format!("; Max-Age={seconds}"));
    let text = format!("{name}={value}; Path=/; Secure; HttpOnly; SameSite=Lax{age}");
    HeaderValue::try_from(text).expect("names and values of cookies are plain")
}

/// The token in the forms of the session with this secret. It cannot be guessed without the cookie, and does not reveal the secret.
fn form_token(secret: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"wrkflw form\n");
    hasher.update(secret);
    BASE64.encode(hasher.finalize())
}

fn parse(value: &str) -> Option<(i32, Vec<u8>)> {
    let (tenant, secret) = value.split_once('.')?;
    let secret = BASE64.decode(secret).ok()?;
    let fits = secret.len() == SECRET_BYTES;
    Some((tenant.parse().ok()?, secret)).filter(|_| fits)
}

/// The session of a request and its secret.
async fn find(console: &Console, headers: &HeaderMap) -> Result<Option<(Session, Vec<u8>)>, Halt> {
    let Some((tenant, secret)) = cookie(headers, COOKIE).as_deref().and_then(parse) else {
        return Ok(None);
    };
    let found = console
        .app
        .engine
        .sessions()
        .get(TenantId(tenant), &secret)
        .await;
    let found = found.map_err(|error| {
        tracing::error!(%error, "a session could not be read");
        Halt::from(StatusCode::SERVICE_UNAVAILABLE.into_response())
    })?;
    Ok(found.map(|session| (session, secret)))
}

impl FromRequestParts<Console> for Visitor {
    type Rejection = Halt;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Visitor, Halt> {
        let here = return_page(parts);
        let partial = parts.headers.contains_key("hx-request");
        let Some((session, secret)) = find(console, &parts.headers).await? else {
            return Err(sign_in(parts, &here, partial).into());
        };
        let headers = &parts.headers;
        Ok(Visitor::new(console, session, &secret, headers, here))
    }
}

/// The page to return to. The addresses of most forms have no GET, so it is the page that sent the form.
fn return_page(parts: &Parts) -> String {
    if parts.method == Method::GET {
        let here = parts.uri.path_and_query();
        return here.map_or(ROOT, |here| here.as_str()).to_owned();
    }
    let sender = parts.headers.get(header::REFERER);
    let sender = sender.and_then(|value| Url::parse(value.to_str().ok()?).ok());
    sender.map_or_else(
        || ROOT.to_owned(),
        |sender| next_page(&sender[Position::BeforePath..Position::AfterQuery]).to_owned(),
    )
}

/// The signed-in person, on a page that needs no sign-in.
pub(crate) async fn visitor(console: &Console, headers: &HeaderMap) -> Option<Visitor> {
    let (session, secret) = find(console, headers).await.ok()??;
    let here = ROOT.to_owned();
    Some(Visitor::new(console, session, &secret, headers, here))
}

/// Redirects to the page for signing in, which leads back. For a request of a script, the script loads the whole page there.
fn sign_in(parts: &Parts, here: &str, partial: bool) -> Response {
    let back = if parts.method == Method::GET && !partial {
        here
    } else {
        ""
    };
    let to = with_query(&format!("{ROOT}/sign-in"), &[("next", back)]);
    if partial {
        let to = HeaderValue::try_from(to).expect("paths are plain");
        return (StatusCode::UNAUTHORIZED, [("hx-redirect", to)]).into_response();
    }
    Redirect::to(&to).into_response()
}

/// Begins a session and leads to `next`.
pub(crate) async fn begin(
    console: &Console,
    who: &Identity,
    until: jiff::Timestamp,
    provider: Option<&ProviderSession>,
    headers: &HeaderMap,
    next: &str,
) -> Response {
    let client = headers.get(header::USER_AGENT);
    let client = client
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    // Ends an earlier session of the browser, so that nobody can plant one.
    end(console, headers).await;
    let begun = console
        .app
        .engine
        .sessions()
        .begin(who, client, until, provider);
    match begun.await {
        Ok(secret) => {
            let value = format!("{}.{}", who.tenant.0, BASE64.encode(secret));
            let cookie = set_cookie(COOKIE, &value, None);
            ([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "a session could not begin");
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}

/// Ends the session of a request, if it has one. Returns the ID token by which it began at the identity provider.
pub(crate) async fn end(console: &Console, headers: &HeaderMap) -> Option<String> {
    let (session, _) = find(console, headers).await.ok()??;
    let ended = console.app.engine.sessions().end(&session.who, session.id);
    ended.await.unwrap_or_else(|error| {
        tracing::warn!(%error, "a session could not be ended");
        None
    })
}

/// Whether a session still runs. If the host cannot read that, the session counts as ended.
pub(crate) async fn goes_on(console: &Console, session: &Session) -> bool {
    let known = console.app.engine.sessions().list(&session.who).await;
    known.is_ok_and(|all| all.iter().any(|one| one.id == session.id))
}

/// A file that is aborted once the session has ended. The session is looked up before each part, because a client may read slowly.
pub(crate) fn while_signed_in(console: Console, session: Session, file: Body) -> Body {
    let parts = file.into_data_stream().then(move |part| {
        let (console, session) = (console.clone(), session.clone());
        async move {
            if goes_on(&console, &session).await {
                part
            } else {
                Err(axum::Error::new(io::Error::from(
                    io::ErrorKind::ConnectionAborted,
                )))
            }
        }
    });
    Body::from_stream(parts)
}

/// Removes the cookie.
pub(crate) fn forgotten() -> HeaderValue {
    set_cookie(COOKIE, "", Some(0))
}

/// A path of the console that a query or form names; the first page if it names anything else.
pub(crate) fn next_page(next: &str) -> &str {
    let inside = next
        .strip_prefix(ROOT)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    let plain = next
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if inside && plain { next } else { ROOT }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Visitor {
        /// Somebody for whom these routes are the API.
        pub(crate) fn of_routes(router: axum::Router) -> Visitor {
            let w = Words::named("en").expect("English");
            let until = jiff::Timestamp::MAX;
            let who = Identity {
                tenant: TenantId(1),
                tenant_name: "acme".to_owned(),
                subject: "ann".to_owned(),
                roles: Vec::new(),
                embedded_by: None,
            };
            Visitor {
                token: String::new(),
                w,
                api: Api {
                    w,
                    router,
                    caller: Vouched {
                        who: who.clone(),
                        until,
                    },
                },
                session: Session {
                    id: Uuid::nil(),
                    who,
                    until,
                    preference: Preference::default(),
                },
                here: ROOT.to_owned(),
                is_embedded: false,
                myself: Arc::default(),
            }
        }
    }

    #[test]
    fn a_page_leads_nowhere_but_into_the_console() {
        for inside in ["/console", "/console?view=all", "/console/me"] {
            assert_eq!(next_page(inside), inside);
        }
        for outside in [
            "",
            "//example.org",
            "https://example.org/console",
            "/consolex",
            "/console/\\example.org",
            "/console/\r\nset-cookie: a=b",
            "javascript:alert(1)",
        ] {
            assert_eq!(next_page(outside), ROOT, "{outside}");
        }
    }

    #[test]
    fn one_comes_back_to_the_page_that_has_the_form() {
        let page = "/console/instances/7?action=claim";
        let came = |method: &str, referer: &str| {
            let request = axum::http::Request::builder().method(method).uri(page);
            let request = request.header(header::REFERER, referer).body(());
            return_page(&request.expect("a request").into_parts().0)
        };
        assert_eq!(came("GET", "https://flows.example/console/me"), page);
        for (referer, back) in [
            (
                "https://flows.example/console/me?month=1#a",
                "/console/me?month=1",
            ),
            ("https://flows.example/samples/plan", ROOT),
            ("/console/me", ROOT),
        ] {
            assert_eq!(came("POST", referer), back);
        }
    }

    #[test]
    fn a_cookie_has_a_tenant_and_a_whole_secret() {
        let secret = BASE64.encode([7; SECRET_BYTES]);
        assert_eq!(
            parse(&format!("3.{secret}")),
            Some((3, vec![7; SECRET_BYTES]))
        );
        for bad in [
            String::new(),
            secret.clone(),
            format!("x.{secret}"),
            format!("3.{}", BASE64.encode([7; 31])),
            "3.?".to_owned(),
        ] {
            assert_eq!(parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn the_token_of_forms_is_not_the_secret() {
        let secret = [7; SECRET_BYTES];
        assert_ne!(form_token(&secret), BASE64.encode(secret));
        assert_ne!(form_token(&secret), form_token(&[8; SECRET_BYTES]));
    }

    #[test]
    fn cookies_are_for_this_host_alone_and_not_for_scripts() {
        let set = set_cookie(COOKIE, "1.x", None);
        let set = set.to_str().expect("plain");
        for part in [
            "__Host-",
            "; Path=/",
            "; Secure",
            "; HttpOnly",
            "; SameSite=Lax",
        ] {
            assert!(set.contains(part), "{set} lacks {part}");
        }
        assert!(!set.contains("Domain"), "{set}");
    }
}
