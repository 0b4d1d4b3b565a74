//! The names of people and groups by their ids, many at once.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::App;
use crate::http::extract::{Body, Caller, malformed};
use crate::http::layers::without_query;
use crate::http::problem::Problem;
use wrkflw_store::names;

/// How many people, and how many groups, one request may name.
const IDS_MAX: usize = 200;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    without_query(OpenApiRouter::new().routes(routes!(find)))
}

/// Whose names are asked for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::http) struct NamesBody {
    /// Ids of people.
    #[schema(max_items = 200)]
    pub people: Vec<String>,
    /// Ids of groups.
    #[schema(max_items = 200)]
    pub groups: Vec<String>,
}

/// Display names by id. An id that the directory does not know is left out.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DirectoryNames {
    pub people: BTreeMap<String, String>,
    pub groups: BTreeMap<String, String>,
}

/// Finds the names of at most 200 people and 200 groups by their ids.
#[utoipa::path(post, path = "/v1/names", tag = "directory", operation_id = "findNames", request_body = Option<NamesBody>,
    responses((status = 200, body = DirectoryNames)))]
pub(in crate::http) async fn find(
    State(app): State<App>,
    Caller(who): Caller,
    Body { value, .. }: Body<NamesBody>,
) -> Result<axum::Json<DirectoryNames>, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    for (pointer, ids) in [("/people", &value.people), ("/groups", &value.groups)] {
        if ids.len() > IDS_MAX {
            return Err(malformed(pointer, &format!("at most {IDS_MAX} ids")));
        }
    }
    let reader = app.engine.reader();
    let names = names::display(reader, who.tenant, &value.people, &value.groups);
    let names = names.await?;
    Ok(axum::Json(DirectoryNames {
        people: names.people,
        groups: names.groups,
    }))
}
