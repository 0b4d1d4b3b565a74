//! Whether this host lives, is ready, and how it is doing.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::App;

/// The process answers.
#[utoipa::path(get, path = "/livez", tag = "operation", responses((status = 200, body = String)))]
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// The database answers and is migrated. Kafka is no condition: without it the outbox fills.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses((status = 200, body = String), (status = 503, body = String)))]
pub(super) async fn ready(State(app): State<App>) -> Response {
    if app.cancel.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response();
    }
    match app.engine.store().ready().await {
        Ok(true) => "database ok\n".into_response(),
        Ok(false) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "database not migrated: run `wrkflw migrate`\n",
        )
            .into_response(),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "database not available\n").into_response()
        }
    }
}

/// Metrics in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operation", responses((status = 200, body = String)))]
pub(super) async fn metrics(State(app): State<App>) -> Response {
    for (role, open, idle) in app.engine.store().usage() {
        let idle = u32::try_from(idle).unwrap_or(u32::MAX);
        metrics::gauge!("wrkflw_pool_connections", "role" => role, "state" => "used")
            .set(open.saturating_sub(idle));
        metrics::gauge!("wrkflw_pool_connections", "role" => role, "state" => "idle").set(idle);
    }
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        (app.metrics)(),
    )
        .into_response()
}
