//! The HTTP API: the only folder of this crate that uses `axum`. Handlers read the request, call the engine or the store, and
//! render the result.
//!
//! Each file has the `routes()` of its handlers; [`routes()`] joins them. [`problem`] turns errors into responses. [`commands`]
//! executes changes of instances. `extract` parses requests, so that handlers get only valid values.

mod actions;
pub mod admission;
mod answered;
mod audit;
pub mod auth;
mod bulk;
mod calendars;
mod checkpoints;
pub mod commands;
mod comments;
mod compliance;
mod conditional;
mod csv;
mod custody;
mod data_changes;
mod dead_letters;
mod definitions;
mod directory;
mod docs;
mod drafts;
mod edge;
mod eligibility;
mod embed_tokens;
mod entities;
mod events;
pub mod extract;
mod fields;
pub mod front;
pub mod health;
mod history;
mod hosts;
mod ids;
mod inbox;
mod include;
mod instance_commands;
mod instance_detail;
mod instance_diagram;
mod instances;
mod jobs;
mod large;
mod layers;
mod me;
mod migrations;
mod minimal;
mod newline;
mod notifications;
mod observe;
pub mod openapi;
mod operations;
mod outcomes;
pub mod pace;
pub mod page;
mod preferences;
pub mod problem;
mod refusals;
mod saved_views;
mod schemas;
mod search;
mod series;
pub mod server;
mod sessions;
mod shapes;
mod signals;
mod started;
mod subscriptions;
mod task_commands;
mod tasks;
pub mod token;
pub mod uploads;
mod value_error;
mod verification;
mod versions;
mod view;
pub mod views;

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use utoipa_axum::router::OpenApiRouter;

use self::admission::Admission;
use self::auth::Authenticator;
use self::edge::Edge;
pub use self::edge::beside;
use self::events::Streams;
use self::pace::Pace;
use self::problem::Problem;
use self::uploads::Uploads;
use crate::asyncapi::Topics;
use wrkflw_core::cloudevent::Naming;
use wrkflw_core::ids::TenantId;
use wrkflw_core::subscription::AllowedAddresses;
use wrkflw_engine::{Engine, Identity, TRUSTED};
use wrkflw_runtime::lru::Lru;
use wrkflw_store::directory::tenants;

/// Maximum number of tenants whose numbers are cached.
const TENANTS_MAX: usize = 10_000;

/// The state that handlers share. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Shared>);

/// The parts of an [`App`].
#[derive(Clone)]
pub struct Shared {
    pub engine: Engine,
    pub auth: Arc<Authenticator>,
    /// Names of events, as on Kafka.
    pub naming: Naming,
    /// The topics that `/asyncapi.json` names.
    pub topics: Topics,
    /// The addresses that webhooks may have.
    pub reach: AllowedAddresses,
    /// The minimum rate of request bodies.
    pub pace: Pace,
    /// Renders the metrics.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Cancelled when the host is asked to stop: `/readyz` reports that it is not ready, and it still serves requests.
    pub draining: CancellationToken,
    /// Cancelled when the host shuts down: no new work is begun.
    pub cancel: CancellationToken,
    /// Limits the requests in flight.
    pub admission: Admission,
    /// Limits the uploads.
    pub uploads: Uploads,
    /// Tracks the task that reads events for streams. A shutdown waits for it besides requests.
    pub tracker: TaskTracker,
    /// The event streams of this host.
    streams: Arc<Streams>,
    /// Numbers of tenants by name. They expire, because after a loss of data another tenant may get the same number.
    tenants: Arc<Lru<String, TenantId>>,
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    pub fn new(
        engine: Engine,
        auth: Arc<Authenticator>,
        naming: Naming,
        topics: Topics,
        metrics: Arc<dyn Fn() -> String + Send + Sync>,
        cancel: CancellationToken,
    ) -> App {
        let tracker = TaskTracker::new();
        let tenants = Arc::new(Lru::new(TENANTS_MAX).expiring(TRUSTED));
        App(Arc::new(Shared {
            engine,
            auth,
            naming,
            topics,
            reach: AllowedAddresses::default(),
            pace: Pace::default(),
            metrics,
            draining: cancel.clone(),
            cancel,
            admission: Admission::default(),
            uploads: Uploads::default(),
            tracker,
            streams: Arc::default(),
            tenants,
        }))
    }

    fn with(mut self, change: impl FnOnce(&mut Shared)) -> App {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Sets the addresses that webhooks may have. By default, only public ones.
    #[must_use]
    pub fn reaching(self, reach: AllowedAddresses) -> App {
        self.with(|app| app.reach = reach)
    }

    /// Sets the minimum rate of request bodies.
    #[must_use]
    pub fn paced(self, pace: Pace) -> App {
        self.with(|app| app.pace = pace)
    }

    /// Sets the limits of requests.
    #[must_use]
    pub fn admitting(self, admission: Admission) -> App {
        self.with(|app| app.admission = admission)
    }

    /// The same for routes that make requests to the API themselves, with places of their own.
    #[must_use]
    pub fn beside(&self) -> App {
        let admission = self.admission.beside();
        self.clone().admitting(admission)
    }

    /// Sets the token that announces a shutdown before it begins.
    #[must_use]
    pub fn draining(self, draining: CancellationToken) -> App {
        self.with(|app| app.draining = draining)
    }

    /// The caller in the value of an `Authorization` header, and the moment at which the token expires.
    pub async fn identify(
        &self,
        authorization: Option<&str>,
    ) -> Result<(Identity, Timestamp), Problem> {
        let (claims, until) = self
            .auth
            .admit(authorization)
            .await
            .map_err(|error| Problem {
                challenge: error.www_authenticate(),
                retry_after: error.retry_after(),
                ..Problem::new(error.code(), error.to_string())
            })?;
        Ok((self.identity(claims).await?, until))
    }

    /// The caller with these claims, which were verified.
    pub async fn identity(&self, claims: auth::Claims) -> Result<Identity, Problem> {
        let tenant = if let Some(tenant) = self.tenants.get(&claims.tenant) {
            tenant
        } else {
            let found = tenants::find(self.engine.reader(), &claims.tenant).await?;
            let unknown = || {
                Problem::new(
                    "unknown_tenant",
                    format!("there is no tenant {}", claims.tenant),
                )
            };
            let tenant = found.ok_or_else(unknown)?;
            self.tenants.insert(claims.tenant.clone(), tenant);
            tenant
        };
        Ok(Identity {
            tenant,
            tenant_name: claims.tenant,
            subject: claims.subject,
            roles: claims.roles,
            embedded_by: None,
        })
    }
}

/// The routes of the API with their document. Both are the same for every host of a process, such as those of tests.
static API: LazyLock<Api> = LazyLock::new(|| {
    let (routes, document) = routes().split_for_parts();
    let (document, lists, taken) = openapi::text(document);
    Api {
        routes,
        document: document.into(),
        lists,
        taken,
    }
});

struct Api {
    routes: Router<App>,
    document: Arc<str>,
    lists: fields::Lists,
    taken: layers::Taken,
}

/// The document of the API, as it is served.
pub fn document() -> &'static str {
    &API.document
}

/// The whole service.
pub fn router(app: App) -> Router {
    let Api {
        routes,
        document,
        lists,
        taken,
    } = &*API;
    let cut = middleware::from_fn_with_state((app.clone(), lists.clone()), fields::pick);
    let refuse = middleware::from_fn_with_state(taken.clone(), layers::refuse_untaken);
    let routes = routes.clone().layer(cut).layer(refuse);
    let routes = routes
        .route("/", get(front::show))
        .merge(front::descriptions(document.clone()))
        .fallback(front::nothing)
        .method_not_allowed_fallback(|| async {
            Problem::new("method_not_allowed", "see /docs for what this path takes")
        })
        .with_state(app.clone());
    Router::new().fallback_service(edge::compressed(Edge::new(routes, app)))
}

/// Every route of the API, with its documentation. Each file has its own.
pub fn routes() -> OpenApiRouter<App> {
    let files: &[fn() -> OpenApiRouter<App>] = &[
        audit::routes,
        bulk::routes,
        calendars::routes,
        checkpoints::routes,
        comments::routes,
        compliance::routes,
        custody::routes,
        data_changes::routes,
        dead_letters::routes,
        definitions::routes,
        directory::routes,
        drafts::routes,
        eligibility::routes,
        embed_tokens::routes,
        entities::routes,
        events::routes,
        health::routes,
        history::routes,
        hosts::routes,
        ids::routes,
        instance_commands::routes,
        instance_diagram::routes,
        instances::routes,
        jobs::routes,
        me::routes,
        migrations::routes,
        notifications::routes,
        operations::routes,
        preferences::routes,
        refusals::routes,
        saved_views::routes,
        series::routes,
        sessions::routes,
        signals::routes,
        subscriptions::routes,
        task_commands::routes,
        tasks::routes,
        verification::routes,
    ];
    let merged = files.iter().map(|routes| routes());
    merged.fold(OpenApiRouter::new(), OpenApiRouter::merge)
}

fn json(text: impl Into<axum::body::Body>) -> Response {
    (
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )],
        text.into(),
    )
        .into_response()
}

fn svg(text: String) -> Response {
    // A diagram may be opened as a page of its own. Texts of a flow in it must not run as scripts.
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        ),
    ];
    (headers, text).into_response()
}
