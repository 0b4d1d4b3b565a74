//! What the host knows of the caller.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::conditional::conditional;
use super::directory::absences::KeptAbsence;
use super::extract::Caller;
use super::layers::without_query;
use super::problem::Problem;
use super::view::each;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(me));
    without_query(conditional(single))
}

/// The caller: what the token says, what the directory says, and what both permit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Me {
    pub id: String,
    /// None if the directory does not know the caller.
    pub name: Option<String>,
    pub tenant: String,
    /// From the token.
    pub roles: Vec<String>,
    /// What the roles permit.
    pub permissions: Vec<String>,
    pub groups: Vec<String>,
    pub manager: Option<String>,
    /// The caller's own absences, present and future; the next ones first.
    pub absences: Vec<KeptAbsence>,
    /// Absences that have begun, in which the caller is the substitute.
    pub stands_in_for: Vec<KeptAbsence>,
}

/// Who the caller is. It needs no permission.
#[utoipa::path(get, path = "/v1/me", tag = "directory", operation_id = "getMe", responses((status = 200, body = Me)))]
pub(super) async fn me(
    State(app): State<App>,
    Caller(who): Caller,
) -> Result<axum::Json<Me>, Problem> {
    let me = app.engine.directory().me(&who).await?;
    let (name, groups, manager) = match me.person {
        Some(person) => (Some(person.name), person.groups, person.manager),
        None => (None, Vec::new(), None),
    };
    Ok(axum::Json(Me {
        id: who.subject,
        name,
        tenant: who.tenant_name,
        roles: who.roles,
        permissions: me.permissions,
        groups,
        manager,
        absences: each(me.absences),
        stands_in_for: each(me.stands_in_for),
    }))
}
