//! Signing in and out, and the choice of the language.
//!
//! With an identity provider, people sign in there (`provider`). On a host for development, anybody may sign in as one of its demo people
//! by one click. On every host, a bearer token of the API begins a session that ends with the token at the latest.

use askama::Template;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::Deserialize;

use crate::api::{self, with_query};
use crate::language::{self, Words};
use crate::pages::me;
use crate::posted::{Anonymous, Posted};
use crate::session::{self, next_page, set_cookie};
use crate::shell::{Shell, page};
use crate::{Console, DemoPerson, ROOT};

/// The longest token that a form may carry; the API takes no longer ones.
const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// How long a browser remembers the language.
const LANGUAGE_SECONDS: u32 = 366 * 24 * 60 * 60;

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/sign-in", get(show).post(with_token))
        .route("/console/sign-in/demo", post(as_demo))
        .route("/console/sign-out", post(sign_out))
        .route("/console/language", post(choose))
}

/// The parameters in the address of a sign-in, here or at the identity provider.
#[derive(Deserialize)]
pub(super) struct SignInQuery {
    /// The page to which it leads.
    #[serde(default)]
    pub(super) next: String,
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn<'a> {
    shell: Shell,
    next: &'a str,
    demo: &'a [DemoPerson],
    /// The address of the sign-in at the identity provider; empty if there is none.
    provider: String,
    /// Why the last attempt failed.
    refusal: Option<String>,
}

/// The page for signing in, with the reason why the last attempt failed.
pub(crate) fn form(console: &Console, w: Words, next: &str, refusal: Option<String>) -> Response {
    let status = if refusal.is_some() {
        StatusCode::UNAUTHORIZED
    } else {
        StatusCode::OK
    };
    let template = SignIn {
        shell: Shell {
            here: with_query("/console/sign-in", &[("next", next)]),
            ..Shell::plain(w, w.t("sign-in").into_owned())
        },
        next,
        demo: &console.demo,
        provider: match console.provider {
            Some(_) => with_query("/console/sign-in/provider", &[("next", next)]),
            None => String::new(),
        },
        refusal,
    };
    page(status, &template)
}

async fn show(
    State(console): State<Console>,
    Query(query): Query<SignInQuery>,
    headers: HeaderMap,
) -> Response {
    form(&console, Words::of(&headers), next_page(&query.next), None)
}

/// Signs in with a bearer token.
async fn with_token(
    State(console): State<Console>,
    Anonymous { fields, headers }: Anonymous,
) -> Response {
    let (w, next) = (Words::of(&headers), next_page(fields.get("next")));
    let token = fields.get("bearer").trim();
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
        let refusal = w.t("sign-in-no-token").into_owned();
        return form(&console, w, next, Some(refusal));
    }
    match console.app.identify(Some(&format!("Bearer {token}"))).await {
        Ok((who, until)) => session::begin(&console, &who, until, None, &headers, next).await,
        Err(problem) => {
            let refusal = w.with("sign-in-refused", "detail", &api::problem_text(w, &problem));
            form(&console, w, next, Some(refusal))
        }
    }
}

/// Signs in as one of the people of a host for development.
async fn as_demo(
    State(console): State<Console>,
    Anonymous { fields, headers }: Anonymous,
) -> Response {
    let next = next_page(fields.get("next"));
    let person = fields.get("person");
    let Some(person) = console.demo.iter().find(|one| one.id == person) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let Ok(who) = console.app.identity(person.claims()).await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    session::begin(&console, &who, Timestamp::MAX, None, &headers, next).await
}

async fn sign_out(State(console): State<Console>, headers: HeaderMap, _: Posted) -> Response {
    if let Some(id_token) = session::end(&console, &headers).await
        && let Some(page) =
            super::provider::signing_out(&console, Words::of(&headers), &id_token).await
    {
        return page;
    }
    let forgotten = [(header::SET_COOKIE, session::forgotten())];
    (forgotten, Redirect::to(&format!("{ROOT}/sign-in"))).into_response()
}

/// Stores the language in a cookie, and for a signed-in person in their preferences.
async fn choose(
    State(console): State<Console>,
    Anonymous { fields, headers }: Anonymous,
) -> Response {
    let next = next_page(fields.get("next"));
    let Some(w) = Words::named(fields.get("to")) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if let Some(visitor) = session::visitor(&console, &headers).await
        && let Err(trouble) = me::prefer(&visitor, [("language", w.code())]).await
    {
        return visitor.halt(&trouble).into_response();
    }
    let cookie = set_cookie(language::COOKIE, w.code(), Some(LANGUAGE_SECONDS));
    ([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response()
}
