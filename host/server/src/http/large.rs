//! Answers that may be large: rendered where that holds up nobody.

use axum::response::Response;
use serde::Serialize;

use super::problem::Problem;
use super::{App, json};
use wrkflw_core::ids::TenantId;

/// An answer of so many bytes is rendered where it was asked for. More takes longer than a thread of all should be kept.
const INLINE_BYTES_MAX: usize = 128 * 1024;

/// Answers with what this makes, as JSON of about so many bytes.
pub(super) async fn rendered<T: Serialize>(
    app: &App,
    tenant: TenantId,
    bytes: usize,
    make: impl FnOnce() -> T + Send + 'static,
) -> Result<Response, Problem> {
    let render = move || serde_json::to_string(&make()).expect("views serialise");
    let text = if bytes <= INLINE_BYTES_MAX {
        render()
    } else {
        app.engine.offload().run(tenant, render).await?
    };
    Ok(json(text))
}
