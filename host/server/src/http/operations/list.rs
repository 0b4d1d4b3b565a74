//! The operations of a tenant.

use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::OperationView;
use crate::http::App;
use crate::http::extract::{Caller, Query};
use crate::http::instances::PageQuery;
use crate::http::page::{AtTime, Page, decode, limit, page};
use crate::http::problem::Problem;
use wrkflw_store::bulk;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Lists operations with their progress, newest first. A caller who may not see every instance is shown their own.
#[utoipa::path(get, path = "/v1/operations", tag = "operations", operation_id = "listOperations", params(PageQuery),
    responses((status = 200, body = Page<OperationView>)))]
pub(in crate::http) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<Page<OperationView>>, Problem> {
    let viewer = app.engine.viewing(&who, "instance:read").await?;
    let limit = limit(query.limit)?;
    let after: Option<AtTime> = decode(query.after.as_deref())?;
    let after = after.map(|AtTime(at, id)| (at, id));
    // Totals count instances.
    let by = viewer.is_restricted().then_some(who.subject.as_str());
    let reader = app.engine.reader();
    let found = bulk::list(reader, who.tenant, None, after, (by, i64::from(limit) + 1)).await?;
    Ok(axum::Json(page(found, limit, |last| {
        AtTime(last.created_at, last.id).to_string()
    })))
}
