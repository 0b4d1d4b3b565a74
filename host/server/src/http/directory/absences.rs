//! Absences and substitutes. People manage their own absences; those of others need the permission to change the directory.

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{DirectoryAnswer, DirectoryResult};
use crate::http::App;
use crate::http::conditional::conditional;
use crate::http::extract::{Body, Caller, DryRun, Options, Path, Query};
use crate::http::problem::Problem;
use crate::http::view::{each, view};
use wrkflw_core::absence::Absence;
use wrkflw_core::moment;
use wrkflw_engine::Changed;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(list, create));
    OpenApiRouter::new()
        .routes(routes!(delete))
        .merge(conditional(single))
}

view! {
    of wrkflw_store::directory::absences::KeptAbsence;
    /// A stored absence.
    pub(in crate::http) struct KeptAbsence {
        pub id: Uuid,
        pub person: String,
        pub substitute: String,
        /// Only for work of this definition. None: for all work.
        #[serde(rename = "definitionKey")]
        pub definition: Option<String>,
        #[serde(rename = "from")]
        #[schema(value_type = String, format = DateTime)]
        pub active_from: Timestamp,
        /// The end. The absence is not active at this moment.
        #[serde(rename = "until")]
        #[schema(value_type = String, format = DateTime)]
        pub active_until: Timestamp,
        #[schema(value_type = String, format = DateTime)]
        pub created_at: Timestamp,
        pub created_by: String,
        /// When it was ended early.
        #[schema(value_type = Option<String>, format = DateTime)]
        pub ended_at: Option<Timestamp>,
    }
}

/// The substitute, and the period.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct AbsenceBody {
    /// Who may act in this period, besides the person.
    #[schema(format = "name")]
    pub substitute: String,
    #[schema(value_type = String, format = DateTime)]
    #[serde(deserialize_with = "moment::read")]
    pub from: Timestamp,
    /// The end, at most 366 days after `from`. The absence is not active at this moment.
    #[schema(value_type = String, format = DateTime)]
    #[serde(deserialize_with = "moment::read")]
    pub until: Timestamp,
    /// Only for the work of this definition. Default: for all work.
    #[serde(rename = "definitionKey")]
    #[schema(format = "key")]
    pub definition: Option<String>,
}

/// No parameters: any parameter is refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct NoParameters {}

/// Absences, the next ones first.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Absences {
    pub data: Vec<KeptAbsence>,
}

/// A person's current and future absences, and those in which they are the substitute.
#[utoipa::path(get, path = "/v1/people/{id}/absences", tag = "directory", operation_id = "listAbsences", params(("id" = String, Path, format = "name")),
    responses((status = 200, body = Absences)))]
pub(in crate::http) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Query(NoParameters {}): Query<NoParameters>,
) -> Result<axum::Json<Absences>, Problem> {
    let data = each(app.engine.absences().list(&who, &id).await?);
    Ok(axum::Json(Absences { data }))
}

/// Names a substitute for a period.
#[utoipa::path(post, path = "/v1/people/{id}/absences", tag = "directory", operation_id = "createAbsence",
    params(("id" = String, Path, format = "name"), DryRun), request_body = AbsenceBody,
    responses((status = 201, body = DirectoryAnswer), (status = 200, body = DirectoryAnswer, description = "dry run")))]
pub(in crate::http) async fn create(
    State(app): State<App>,
    Caller(who): Caller,
    Path(person): Path<String>,
    options: Options,
    Body { value, .. }: Body<AbsenceBody>,
) -> Result<(StatusCode, axum::Json<DirectoryAnswer>), Problem> {
    let absence = Absence {
        person,
        substitute: value.substitute,
        definition: value.definition,
        from: value.from,
        until: value.until,
    };
    let key = options.idempotency_key.as_deref();
    let changed = app
        .engine
        .absences()
        .add(&who, absence, key, options.dry_run)
        .await?;
    let status = match changed {
        Changed::Done(_) => StatusCode::CREATED,
        Changed::Dry(_) => StatusCode::OK,
    };
    let answer = DirectoryAnswer::of::<_, KeptAbsence>(changed, DirectoryResult::Created);
    Ok((status, axum::Json(answer)))
}

/// Ends an absence early. An absence that is over is not changed.
#[utoipa::path(delete, path = "/v1/people/{id}/absences/{absence}", tag = "directory", operation_id = "deleteAbsence",
    params(("id" = String, Path, format = "name"), ("absence" = Uuid, Path), DryRun), responses((status = 200, body = DirectoryAnswer)))]
pub(in crate::http) async fn delete(
    State(app): State<App>,
    Caller(who): Caller,
    Path((person, absence)): Path<(String, Uuid)>,
    Query(dry): Query<DryRun>,
) -> Result<axum::Json<DirectoryAnswer>, Problem> {
    let changed = app
        .engine
        .absences()
        .end(&who, &person, absence, dry.dry_run)
        .await?;
    let answer = DirectoryAnswer::of::<_, KeptAbsence>(changed, DirectoryResult::Ended);
    Ok(axum::Json(answer))
}
