//! The history of an entity, such as a document: the instances about it that the caller may see.

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Caller, Path, Query};
use super::large::rendered;
use super::page::{Page, decode, limit, page_or_reached};
use super::problem::Problem;
use super::shapes::InstanceStatus;
use super::view::view;
use wrkflw_core::instance::Entity;
use wrkflw_engine::validation::check_id;
use wrkflw_store::entities::{self, EntityHistory};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(history))
}

view! {
    of wrkflw_store::entities::EntityInstance;
    /// An instance about an entity, and the instances that it is related to.
    pub(super) struct EntityInstance {
        pub id: Uuid,
        pub definition_key: String,
        pub definition_version: u32,
        #[schema(value_type = InstanceStatus)]
        pub status: String,
        pub outcome: Option<String>,
        /// Why it was cancelled.
        pub end_reason: Option<String>,
        pub revision: u32,
        /// Who started it.
        pub initiator: String,
        /// The requesters: the initiator, and the requesters of its predecessor and parent.
        pub requesters: Vec<String>,
        #[schema(value_type = String, format = DateTime)]
        pub started_at: Timestamp,
        #[schema(value_type = Option<String>, format = DateTime)]
        pub ended_at: Option<Timestamp>,
        /// Who cancelled it.
        pub ended_by: Option<String>,
        /// The ended instance that it restarts.
        #[serde(rename = "predecessorId")]
        pub predecessor: Option<Uuid>,
        /// The instances that restarted it, oldest first.
        #[serde(rename = "successorIds")]
        pub successors: Vec<Uuid>,
        /// The instance whose child it is.
        #[serde(rename = "parentId")]
        pub parent: Option<Uuid>,
        /// By the template of the definition.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub title: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub summary: Option<String>,
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    /// Only instances of this definition.
    #[serde(rename = "definitionKey")]
    pub definition: Option<String>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// The instances about an entity that the caller may see, oldest first: across definitions, and through restarts.
#[utoipa::path(get, path = "/v1/entities/{type}/{id}/history", tag = "entities", operation_id = "getEntityHistory",
    params(("type" = String, Path, format = "name"), ("id" = String, Path, format = "name"), HistoryQuery), responses((status = 200, body = Page<EntityInstance>)))]
pub(super) async fn history(
    State(app): State<App>,
    Caller(who): Caller,
    Path((kind, id)): Path<(String, String)>,
    Query(query): Query<HistoryQuery>,
) -> Result<Response, Problem> {
    let viewer = app.engine.viewing(&who, "instance:read").await?;
    check_id("/type", &kind)?;
    check_id("/id", &id)?;
    let limit = limit(query.limit)?;
    let after = decode(query.after.as_deref())?;
    let history = entities::history(
        app.engine.reader(),
        &viewer,
        &Entity { kind, id },
        query.definition.as_deref(),
        after,
        i64::from(limit) + 1,
    )
    .await?;
    let EntityHistory { found, reached } = history;
    let reached = reached.map(|last| last.to_string());
    let bytes = found.iter().map(entities::EntityInstance::bytes).sum();
    let page: Page<EntityInstance> =
        page_or_reached(found, limit, reached, |last| last.id.to_string());
    rendered(&app, who.tenant, bytes, || page).await
}
