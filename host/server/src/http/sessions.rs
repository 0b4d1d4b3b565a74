//! The sign-ins of the caller in browsers.

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::conditional::conditional;
use super::extract::{Caller, Path};
use super::layers::without_query;
use super::problem::Problem;
use super::view::{each, view};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(list));
    OpenApiRouter::new()
        .merge(without_query(conditional(single)))
        .merge(without_query(OpenApiRouter::new().routes(routes!(end))))
}

view! {
    of wrkflw_engine::SessionRow;
    /// A sign-in of the caller in a browser.
    pub(super) struct SessionView {
        pub id: Uuid,
        /// What the browser calls itself.
        pub client: String,
        /// The roles that the identity provider named.
        pub roles: Vec<String>,
        #[schema(value_type = String, format = DateTime)]
        pub created_at: Timestamp,
        /// When it was last used, to the minute.
        #[schema(value_type = String, format = DateTime)]
        pub used_at: Timestamp,
        /// When it ends at the latest.
        #[schema(value_type = String, format = DateTime)]
        pub expires_at: Timestamp,
    }
}

/// The sessions of the caller that have not ended.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Sessions {
    data: Vec<SessionView>,
}

/// Lists the browsers in which the caller is signed in, the newest sign-in first, at most 100. It needs no permission.
#[utoipa::path(get, path = "/v1/me/sessions", tag = "directory", operation_id = "listSessions", responses((status = 200, body = Sessions)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
) -> Result<axum::Json<Sessions>, Problem> {
    let data = each(app.engine.sessions().list(&who).await?);
    Ok(axum::Json(Sessions { data }))
}

/// Ends a session of the caller: its browser has to sign in again. It needs no permission.
#[utoipa::path(delete, path = "/v1/me/sessions/{id}", tag = "directory", operation_id = "deleteSession", params(("id" = Uuid, Path)),
    responses((status = 204)))]
pub(super) async fn end(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, Problem> {
    app.engine.sessions().end(&who, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
