//! Renders responses. Large ones are rendered on another thread.

use axum::response::Response;
use serde::Serialize;

use super::problem::Problem;
use super::{App, json};
use wrkflw_core::ids::TenantId;

/// Larger responses are rendered on another thread, so that they do not block one of the runtime.
const INLINE_BYTES_MAX: usize = 128 * 1024;

/// Marks a response that was rendered on another thread, with its tenant. A layer that changes its body also does so on another thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Large(pub(super) TenantId);

/// Responds with the value of `make`, as JSON. `bytes` is its approximate length.
pub(super) async fn rendered<T: Serialize>(
    app: &App,
    tenant: TenantId,
    bytes: usize,
    make: impl FnOnce() -> T + Send + 'static,
) -> Result<Response, Problem> {
    let render = move || serde_json::to_string(&make()).expect("views serialise");
    written(app, tenant, bytes, render).await
}

/// Responds with the JSON text that `render` writes. `bytes` is its approximate length.
pub(super) async fn written(
    app: &App,
    tenant: TenantId,
    bytes: usize,
    render: impl FnOnce() -> String + Send + 'static,
) -> Result<Response, Problem> {
    if bytes <= INLINE_BYTES_MAX {
        return Ok(json(render()));
    }
    Ok(marked(
        app.engine.offload().run(tenant, render).await?,
        tenant,
    ))
}

/// Responds with this JSON, which was rendered elsewhere, and marks it if it is large.
pub(super) fn marked(text: String, tenant: TenantId) -> Response {
    let is_large = text.len() > INLINE_BYTES_MAX;
    let mut response = json(text);
    if is_large {
        response.extensions_mut().insert(Large(tenant));
    }
    response
}
