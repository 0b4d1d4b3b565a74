//! What instances are about: everything that was ever started about a document, a purchase order.

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::App;
use super::extract::{Caller, Path, Query, check_id};
use super::page::{Page, decode, limit, page};
use super::problem::Problem;
use crate::domain::instance::Entity;
use crate::store::entities::EntityInstance;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    /// Only instances of this definition.
    pub definition: Option<String>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// All instances about an entity, oldest first: across definitions, and through restarts.
#[utoipa::path(get, path = "/v1/entities/{type}/{id}/history", tag = "entities",
    params(("type" = String, Path), ("id" = String, Path), HistoryQuery), responses((status = 200, body = Page<EntityInstance>)))]
pub(super) async fn history(
    State(app): State<App>,
    Caller(who): Caller,
    Path((kind, id)): Path<(String, String)>,
    Query(query): Query<HistoryQuery>,
) -> Result<axum::Json<Page<EntityInstance>>, Problem> {
    app.engine.permit(&who, "instance:read").await?;
    check_id("/type", &kind)?;
    check_id("/id", &id)?;
    let limit = limit(query.limit)?;
    let after = decode(query.after.as_deref())?;
    let found = app
        .engine
        .store()
        .entity_history(
            who.tenant,
            &Entity { kind, id },
            query.definition.as_deref(),
            after,
            i64::from(limit) + 1,
        )
        .await?;
    Ok(axum::Json(page(found, limit, |last| last.id.to_string())))
}
