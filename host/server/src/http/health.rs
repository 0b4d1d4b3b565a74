//! Probes and metrics, for operators and load balancers.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::admission::Admission;
use super::layers;
use super::problem::Problem;
use wrkflw_store::Reader;
use wrkflw_store::error::Outage;
use wrkflw_store::pools::Readiness;

/// The timeout of the database in a probe.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(live))
        .routes(routes!(ready))
        .routes(routes!(metrics))
}

/// The state that probes and metrics read.
#[derive(Clone)]
pub struct Operation {
    pub reader: Reader,
    /// Renders the metrics.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Cancelled when the host is asked to stop.
    pub draining: CancellationToken,
    pub admission: Admission,
}

impl FromRef<App> for Operation {
    fn from_ref(app: &App) -> Operation {
        Operation {
            reader: app.engine.reader().clone(),
            metrics: app.metrics.clone(),
            draining: app.draining.clone(),
            admission: app.admission.clone(),
        }
    }
}

/// The service of a host that serves no API.
pub fn operational(operation: Operation) -> Router {
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .fallback(|| async { Problem::new("not_found", "this host serves no API: see its roles") })
        .layer(middleware::from_fn(|request, next: Next| {
            layers::surround(request, |request| next.run(request))
        }))
        .with_state(operation)
}

/// The process answers.
#[utoipa::path(get, path = "/livez", tag = "operation", operation_id = "getLiveness", responses((status = 200, body = String)))]
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// The database answers, is migrated and accepts writes, and the host is not stopping. Kafka is not checked: without it,
/// events wait in the outbox.
#[utoipa::path(get, path = "/readyz", tag = "operation", operation_id = "getReadiness",
    responses((status = 200, body = String), (status = 503, body = String)))]
pub(super) async fn ready(State(operation): State<Operation>) -> Response {
    match unready(&operation).await {
        None => "database ok\n".into_response(),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

async fn unready(operation: &Operation) -> Option<&'static str> {
    if operation.draining.is_cancelled() {
        return Some("shutting down");
    }
    match tokio::time::timeout(READY_WITHIN, operation.reader.ready()).await {
        Ok(Ok(Readiness::Ready)) => operation.admission.outage().map(Outage::words),
        Ok(Ok(Readiness::NotMigrated)) => Some("database not migrated: run `wrkflw migrate`"),
        Ok(Ok(Readiness::ReadOnly)) => Some("the database is read-only"),
        Ok(Err(error)) => {
            tracing::warn!(%error, "not ready");
            Some("database not available")
        }
        Err(_) => Some("the database does not answer in time"),
    }
}

/// Metrics in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operation", operation_id = "getMetrics", responses((status = 200, body = String)))]
pub(super) async fn metrics(State(operation): State<Operation>) -> Response {
    for (role, open, idle) in operation.reader.usage() {
        let idle = u32::try_from(idle).unwrap_or(u32::MAX);
        metrics::gauge!("wrkflw_pool_connections", "role" => role, "state" => "used")
            .set(open.saturating_sub(idle));
        metrics::gauge!("wrkflw_pool_connections", "role" => role, "state" => "idle").set(idle);
    }
    operation.admission.measure();
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        (operation.metrics)(),
    )
        .into_response()
}
