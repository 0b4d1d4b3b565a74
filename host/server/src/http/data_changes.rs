//! The changes of each step of an instance to its data.

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Caller, Path, Query};
use super::instances::PageQuery;
use super::large::rendered;
use super::page::{Page, decode, limit, page_to};
use super::problem::Problem;
use super::view::{each, view};
use wrkflw_core::data_history::DataChange;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::json::Json;
use wrkflw_engine::DataStepAt;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A value that differs after a step. A side without a value is absent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DataChangeView {
    /// JSON Pointer; empty for the whole data.
    pub pointer: String,
    /// The value before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub before: Option<Json>,
    /// The value after.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub after: Option<Json>,
}

impl From<DataChange> for DataChangeView {
    fn from(change: DataChange) -> DataChangeView {
        let DataChange {
            pointer,
            before,
            after,
        } = change;
        DataChangeView {
            pointer,
            before,
            after,
        }
    }
}

view! {
    of DataStepAt;
    /// A step that changed the data.
    pub(super) struct DataStepView {
        /// The number of its entry in the instance's audit.
        pub entry: u64,
        #[schema(value_type = String, format = DateTime)]
        pub at: Timestamp,
        /// None for the host itself, and for a decision that is hidden because its blind state is active.
        pub actor: Option<String>,
        /// None for the start, and for a decision that is hidden.
        pub trigger: Option<String>,
        /// The name of the state in which it happened; none for the start.
        pub state: Option<String>,
        /// At most 100. More changes are told by the members that contain them.
        pub changes: Vec<DataChangeView> => each,
    }
}

/// Lists the steps that changed the data of an instance, oldest first, with the values before and after.
///
/// A page may have fewer steps than asked for, as it ends behind a mebibyte of values. There are more as long as `page.next` is present.
/// Each page reads the instance from its start. A page beyond the first 20000 audit entries, or 64 MiB of them, is refused;
/// comments do not count.
#[utoipa::path(get, path = "/v1/instances/{id}/changes", tag = "instances", operation_id = "listDataChanges",
    params(("id" = Uuid, Path), PageQuery), responses((status = 200, body = Page<DataStepView>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<PageQuery>,
) -> Result<Response, Problem> {
    let limit = limit(query.limit)? as usize;
    // No history has more entries.
    let after: Option<u32> = decode(query.after.as_deref())?;
    let after = u64::from(after.unwrap_or(0));
    let changes = wrkflw_engine::data_changes(&app.engine, &who, InstanceId(id), after, limit);
    let found = changes.await?;
    let bytes = found.bytes();
    let page = move || -> Page<DataStepView> {
        let next = found.next.map(|entry| entry.to_string());
        page_to(found.steps, next)
    };
    rendered(&app, who.tenant, bytes, page).await
}
