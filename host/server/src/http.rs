//! The HTTP API: the only folder of this crate that uses `axum`. Handlers read the request, call the engine or the store, and
//! render the result.
//!
//! All routes are in [`routes()`]. [`problem`] turns errors into responses. [`commands`] executes changes of
//! instances. `extract` parses requests, so that handlers get only valid values.

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
mod instances;
mod jobs;
mod large;
mod layers;
mod me;
mod migrations;
mod minimal;
mod misfit;
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
mod verification;
mod versions;
mod view;
pub mod views;

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::admission::Admission;
use self::auth::Authenticator;
use self::edge::Edge;
use self::events::Streams;
use self::pace::Pace;
use self::problem::Problem;
use crate::asyncapi::Topics;
use wrkflw_core::cloudevent::Naming;
use wrkflw_core::ids::TenantId;
use wrkflw_core::subscription::Reach;
use wrkflw_engine::{Engine, Identity, TRUSTED};
use wrkflw_runtime::lru::Lru;

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
    pub reach: Reach,
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
    /// Tracks the task that reads events for streams. A shutdown waits for it besides requests.
    pub tracker: TaskTracker,
    /// The event streams of this host.
    streams: Arc<Streams>,
    /// Numbers of tenants by name. They expire, because another tenant may get the same number after a loss of data.
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
            reach: Reach::default(),
            pace: Pace::default(),
            metrics,
            draining: cancel.clone(),
            cancel,
            admission: Admission::default(),
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
    pub fn reaching(self, reach: Reach) -> App {
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

    /// Sets the token that announces a shutdown before it begins.
    #[must_use]
    pub fn draining(self, draining: CancellationToken) -> App {
        self.with(|app| app.draining = draining)
    }

    /// The caller that the value of an `Authorization` header names, and the moment at which its token expires.
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
            let found = self.engine.reader().tenant(&claims.tenant).await?;
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
    let (document, lists) = openapi::text(document);
    Api {
        routes,
        document: document.into(),
        lists,
    }
});

struct Api {
    routes: Router<App>,
    document: Arc<str>,
    lists: fields::Lists,
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
    } = &*API;
    let cut = middleware::from_fn_with_state((app.clone(), lists.clone()), fields::pick);
    let routes = routes.clone().layer(cut);
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

/// Migrations, bulk operations, jobs and dead letters, and what operators see of hosts.
fn of_many() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(migrations::migrate))
        .routes(routes!(operations::begin))
        .routes(routes!(operations::cancel))
        .routes(routes!(operations::list::list))
        .routes(routes!(jobs::list))
        .routes(routes!(series::show))
        .routes(routes!(refusals::list))
        .routes(routes!(operations::items))
        .routes(routes!(operations::stop))
        .routes(routes!(events::replay::replay))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::show))
        .routes(routes!(bulk::tasks))
}

/// Signals, comments, and notifications.
fn of_messages() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(signals::send))
        .routes(routes!(signals::correlate))
        .routes(routes!(signals::list))
        .routes(routes!(comments::comment))
        .routes(routes!(comments::list))
        .routes(routes!(notifications::list))
}

/// The caller's own sessions, notifications, saved views and drafts, and tokens for pages of products.
fn of_oneself() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(notifications::read))
        .routes(routes!(sessions::end))
        .routes(routes!(saved_views::put, saved_views::delete))
        .routes(routes!(embed_tokens::create))
}

/// What the caller is, has kept and has open.
fn of_the_caller() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(me::me))
        .routes(routes!(sessions::list))
        .routes(routes!(saved_views::list))
        .routes(routes!(drafts::show, drafts::put))
}

/// Lists of people and groups, and what concerns several of them.
fn of_directory() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(directory::lists::people))
        .routes(routes!(directory::lists::groups))
        .routes(routes!(directory::put_member, directory::delete_member))
        .routes(routes!(
            directory::managers::put_manager,
            directory::managers::delete_manager
        ))
        .routes(routes!(directory::absences::delete))
        .routes(routes!(directory::roles::put))
}

/// Reads and changes of a version.
fn of_versions() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(definitions::show))
        .routes(routes!(definitions::retire))
        .routes(routes!(definitions::reinstate))
        .routes(routes!(definitions::stop))
        .routes(routes!(definitions::resume))
        .routes(routes!(definitions::diagram))
        .routes(routes!(definitions::overview::overview))
}

fn of_definitions() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(definitions::activate))
        .routes(routes!(definitions::list::list_all))
        .routes(routes!(definitions::list::list))
}

fn of_the_audit() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(audit::audit))
        .routes(routes!(data_changes::list))
        .routes(routes!(audit::entries))
        .routes(routes!(checkpoints::list))
        .routes(routes!(custody::of_entity))
        .routes(routes!(custody::of_instance))
        .routes(routes!(compliance::self_approvals))
}

fn of_tasks() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(tasks::list))
        .routes(routes!(task_commands::claim))
        .routes(routes!(task_commands::release))
        .routes(routes!(task_commands::decide))
        .routes(routes!(task_commands::delegate))
        .routes(routes!(task_commands::resolve))
        .routes(routes!(task_commands::reassign))
        .routes(routes!(task_commands::reset))
        .routes(routes!(task_commands::suspend))
        .routes(routes!(task_commands::resume))
}

/// Reads with an `ETag` whose paths have commands that take parameters in the query.
fn single_with_query() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(preferences::show, preferences::put))
        .routes(routes!(
            directory::absences::list,
            directory::absences::create
        ))
}

/// Every route of the API, with its documentation.
pub fn routes() -> OpenApiRouter<App> {
    let upload = OpenApiRouter::new()
        .routes(routes!(definitions::publish))
        .layer(DefaultBodyLimit::max(definitions::UPLOAD_BYTES_MAX));
    let single = OpenApiRouter::new()
        .merge(of_versions())
        .routes(routes!(instances::show))
        .routes(routes!(history::history))
        .routes(routes!(instances::diagram))
        .routes(routes!(instances::actions))
        .routes(routes!(tasks::show))
        .routes(routes!(signals::show))
        .routes(routes!(operations::show))
        .merge(of_the_caller())
        .routes(routes!(ids::find))
        .routes(routes!(directory::roles::list))
        .routes(routes!(directory::roles::show))
        .routes(routes!(directory::person, directory::put_person))
        .routes(routes!(directory::group, directory::put_group))
        .routes(routes!(subscriptions::show, subscriptions::delete))
        .routes(routes!(subscriptions::create, subscriptions::list))
        .routes(routes!(calendars::list))
        .routes(routes!(calendars::show, calendars::put, calendars::delete));
    let without_query = OpenApiRouter::new()
        .merge(upload)
        .merge(conditional::conditional(single))
        .routes(routes!(verification::verify))
        .routes(routes!(instances::search))
        .routes(routes!(directory::names::find))
        .routes(routes!(subscriptions::retry))
        .routes(routes!(subscriptions::delivery::test))
        .routes(routes!(subscriptions::delivery::attempts))
        .routes(routes!(subscriptions::delivery::retry))
        .routes(routes!(subscriptions::delivery::discard))
        .routes(routes!(dead_letters::retry))
        .routes(routes!(dead_letters::discard))
        .merge(of_oneself())
        .routes(routes!(hosts::list))
        .layer(middleware::from_fn(layers::without_query));
    OpenApiRouter::new()
        .merge(without_query)
        .merge(of_many())
        .merge(of_messages())
        .merge(of_directory())
        .merge(of_definitions())
        .merge(of_the_audit())
        .routes(routes!(instances::start, instances::list))
        .routes(routes!(instance_commands::cancel))
        .routes(routes!(instance_commands::suspend))
        .routes(routes!(instance_commands::resume))
        .routes(routes!(instance_commands::restart))
        .routes(routes!(entities::history))
        .merge(of_tasks())
        .merge(conditional::conditional(single_with_query()))
        .routes(routes!(eligibility::eligibility))
        .routes(routes!(events::list))
        .routes(routes!(events::stream))
        .routes(routes!(subscriptions::deliveries))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
}

fn json(text: String) -> Response {
    (
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )],
        text,
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
