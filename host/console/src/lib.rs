//! The console: pages in which people see their work, decide, and search. All files come from this binary; pages load
//! nothing from other hosts.
//!
//! It calls the API of `wrkflw-server` in this process, like any other client. So each of its actions is a public operation, with
//! the same checks and the same refusals. It uses `wrkflw-engine` only for sessions and the names of permissions, `wrkflw-core` for
//! ids, time zones and JSON, and `wrkflw-runtime` for random bytes. Only the command line uses this crate.
//!
//! - [`router()`] serves the pages in front of the API.
//! - `provider` calls the identity provider at which people sign in, if there is one.
//! - `session` finds the signed-in person. `guard` surrounds every page: headers, the origin of forms, panics. `http::beside`
//!   gives pages the limits of the API.
//! - `api` calls the API, and `data` has its answers about instances. `language` has the texts, `zone` the time zone of a reader. `shell`
//!   is the frame of a page. `assets` serves styles and scripts, and `sitemap` names the pages of the navigation and the search.
//! - `form` is a form with a preview, `fields` its fields by a JSON Schema, `posted` a form that was sent.
//! - `confirm` is a form for definers and operators, `list` a list of the API as a table, `drawing` the drawing of a flow.
//! - `pages` has a module for each page, with its template in `templates/`. Texts are in `locales/`.

mod api;
mod assets;
mod confirm;
mod data;
mod drawing;
mod fields;
mod form;
mod guard;
mod language;
mod list;
mod moment;
mod names;
mod pages;
mod posted;
mod provider;
mod session;
mod shell;
mod sitemap;
#[cfg(test)]
mod tests;
mod zone;

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Router, middleware};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};

use provider::Provider;
pub use provider::ProviderSettings;
use wrkflw_server::http::auth::Claims;
use wrkflw_server::http::front::is_browser;
use wrkflw_server::http::{self, App};

/// The path below which all pages are.
const ROOT: &str = "/console";
/// Limit of the forms without a session that are read at a time, and of the logouts from the provider. Together they get at most half
/// of the places of pages, if there are four or more places.
const ANONYMOUS_MAX: usize = 16;
/// Shorter answers are not compressed: most fit into one packet.
const COMPRESSED_BYTES_MIN: u64 = 1024;

/// A person as whom anybody may sign in by one click. Only a host for development has any.
#[derive(Debug, Clone)]
pub struct DemoPerson {
    pub id: String,
    pub name: String,
    /// Their role in words.
    pub group: Option<String>,
    pub tenant: String,
    pub roles: Vec<String>,
}

impl DemoPerson {
    /// The claims of a token of this person.
    pub(crate) fn claims(&self) -> Claims {
        Claims {
            subject: self.id.clone(),
            tenant: self.tenant.clone(),
            roles: self.roles.clone(),
        }
    }
}

/// A document of the sample product, which shows the instance about it. Only a host for development has any.
#[derive(Debug, Clone, Copy)]
pub struct SampleDocument {
    /// The type of the entity, and the name of its page below `/samples`.
    pub entity_type: &'static str,
    pub entity_id: &'static str,
    pub title: &'static str,
}

/// The ways in besides bearer tokens, which every host takes.
#[derive(Default)]
pub struct Entrance {
    pub demo: Vec<DemoPerson>,
    pub samples: &'static [SampleDocument],
    pub provider: Option<ProviderSettings>,
}

/// The state that pages share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Console(Arc<Shared>);

pub(crate) struct Shared {
    app: App,
    api: Router,
    demo: Vec<DemoPerson>,
    samples: &'static [SampleDocument],
    provider: Option<Provider>,
    /// Places for forms without a session.
    anonymous: Semaphore,
    /// Places for logouts from the provider, so that unfinished forms do not keep them out.
    logouts: Semaphore,
}

impl Deref for Console {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// The console in front of the API. A browser that requests `/` is redirected to the console.
pub fn router(app: App, entrance: Entrance) -> Router {
    let api = http::router(app.clone());
    let beside = app.beside();
    let anonymous = (beside.admission.in_flight_max() / 4).clamp(1, ANONYMOUS_MAX);
    let console = Console(Arc::new(Shared {
        app,
        api: api.clone(),
        demo: entrance.demo,
        samples: entrance.samples,
        provider: entrance.provider.map(Provider::new),
        anonymous: Semaphore::new(anonymous),
        logouts: Semaphore::new(anonymous),
    }));
    let worth =
        SizeAbove::new(COMPRESSED_BYTES_MIN).and(NotForContentType::const_new("text/event-stream"));
    let pages = pages::routes()
        .merge(assets::routes())
        .layer(middleware::from_fn_with_state(beside, http::beside))
        .layer(middleware::from_fn(guard::surround))
        .layer(CompressionLayer::new().compress_when(worth));
    Router::new()
        .route("/", get(front))
        .merge(pages)
        .with_state(console)
        .fallback_service(api)
}

/// Redirects browsers to the console. Programs get the API's answer at its root.
async fn front(
    State(console): State<Console>,
    headers: HeaderMap,
    request: axum::extract::Request,
) -> Response {
    if is_browser(&headers) {
        return Redirect::to(ROOT).into_response();
    }
    match console.api.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
