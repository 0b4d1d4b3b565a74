//! Absences: who stands in for whom. People see to their own; for others it takes the right to change the directory.

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Told, missing, run_of, settle};
use crate::clock;
use crate::domain::absence::Absence;
use crate::domain::moment;
use crate::domain::standing::directory::{Change, Substitution};
use crate::engine::{Error, Identity, Preview};
use crate::http::App;
use crate::http::extract::{Body, Caller, DryRun, Options, Path, Query, check_id};
use crate::http::problem::Problem;
use crate::store::directory::absences::KeptAbsence;

/// Who stands in, and when.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct AbsenceBody {
    /// Who may act meanwhile, besides the person.
    pub substitute: String,
    #[schema(value_type = String, format = DateTime)]
    #[serde(deserialize_with = "moment::read")]
    pub active_from: Timestamp,
    /// No longer at this moment; at most 366 days after `activeFrom`.
    #[schema(value_type = String, format = DateTime)]
    #[serde(deserialize_with = "moment::read")]
    pub active_until: Timestamp,
    /// Key of the definition whose work it is about; all work without it.
    pub definition: Option<String>,
}

/// Takes no parameters, and refuses those that are given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct NoParameters {}

/// Absences, the next ones first.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Absences {
    pub data: Vec<KeptAbsence>,
}

/// A person's absences that hold or will hold, and those in which they are the substitute.
#[utoipa::path(get, path = "/v1/people/{id}/absences", tag = "directory", operation_id = "absences", params(("id" = String, Path)),
    responses((status = 200, body = Absences)))]
pub(in crate::http) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Query(NoParameters {}): Query<NoParameters>,
) -> Result<axum::Json<Absences>, Problem> {
    if id == who.subject {
        permit_own(&app, &who, "directory:read").await?;
    } else {
        app.engine.permit(&who, "directory:read").await?;
    }
    let store = app.engine.store();
    let now = app.engine.clock().now();
    let data = store.absences(who.tenant, &id, now).await?;
    if data.is_empty() && store.person(who.tenant, &id).await?.is_none() {
        return Err(missing("person", &id));
    }
    Ok(axum::Json(Absences { data }))
}

/// Names a substitute for a period.
#[utoipa::path(post, path = "/v1/people/{id}/absences", tag = "directory", operation_id = "add_absence",
    params(("id" = String, Path), DryRun), request_body = AbsenceBody,
    responses((status = 201, body = KeptAbsence), (status = 200, body = Preview, description = "dry run")))]
pub(in crate::http) async fn create(
    State(app): State<App>,
    Caller(who): Caller,
    Path(person): Path<String>,
    options: Options,
    Body { value, .. }: Body<AbsenceBody>,
) -> Result<(StatusCode, axum::Json<Told<KeptAbsence>>), Problem> {
    permit(&app, &who, &person).await?;
    check_id("/substitute", &value.substitute)?;
    if let Some(definition) = &value.definition {
        check_id("/definition", definition)?;
    }
    let key = options.idempotency_key.as_deref();
    let id = key.map_or_else(clock::new_id, |key| id_of(&who.subject, key));
    let absence = Absence {
        person,
        substitute: value.substitute,
        definition: value.definition,
        from: kept_moment("/activeFrom", value.active_from)?,
        until: kept_moment("/activeUntil", value.active_until)?,
    };
    let (store, note) = (app.engine.store(), app.engine.note(&who.subject));
    let run = run_of(options.dry_run);
    let put = store
        .add_absence(who.tenant, id, &absence, run, &note)
        .await?;
    settle(put, "person", &absence.person)?;
    if options.dry_run {
        let change = Change::Absent(Substitution {
            absence: id,
            person: absence.person,
            substitute: absence.substitute,
            definition: absence.definition,
        });
        let preview = app.engine.preview(&who, &change).await?;
        return Ok((StatusCode::OK, axum::Json(Told::Dry(preview))));
    }
    let kept = read(&app, &who, &absence.person, id).await?;
    Ok((StatusCode::CREATED, axum::Json(Told::Done(kept))))
}

/// The id of what a caller adds under an idempotency key: a repeat finds what is there.
fn id_of(subject: &str, key: &str) -> Uuid {
    let mut hasher = Sha256::new();
    for part in ["absence", subject, key] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize()[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

/// The moment as it is kept, in microseconds.
fn kept_moment(pointer: &str, moment: Timestamp) -> Result<Timestamp, Problem> {
    Timestamp::from_microsecond(moment.as_microsecond()).map_err(|error| {
        let detail = error.to_string();
        Problem::new("invalid_request", detail.clone()).at(pointer, "malformed", detail)
    })
}

/// Calls an absence off. One that is over stays as it is.
#[utoipa::path(delete, path = "/v1/people/{id}/absences/{absence}", tag = "directory", operation_id = "end_absence",
    params(("id" = String, Path), ("absence" = Uuid, Path), DryRun), responses((status = 200, body = Told<KeptAbsence>)))]
pub(in crate::http) async fn delete(
    State(app): State<App>,
    Caller(who): Caller,
    Path((person, absence)): Path<(String, Uuid)>,
    Query(dry): Query<DryRun>,
) -> Result<axum::Json<Told<KeptAbsence>>, Problem> {
    permit(&app, &who, &person).await?;
    let note = app.engine.note(&who.subject);
    let put = app
        .engine
        .store()
        .end_absence(who.tenant, &person, absence, run_of(dry.dry_run), &note)
        .await?;
    settle(put, "absence", &absence.to_string())?;
    if dry.dry_run {
        let change = Change::Back { absence, person };
        let preview = app.engine.preview(&who, &change).await?;
        return Ok(axum::Json(Told::Dry(preview)));
    }
    let kept = read(&app, &who, &person, absence).await?;
    Ok(axum::Json(Told::Done(kept)))
}

async fn read(app: &App, who: &Identity, person: &str, id: Uuid) -> Result<KeptAbsence, Problem> {
    let store = app.engine.store();
    let kept = store.absence(who.tenant, person, id).await?;
    kept.ok_or_else(|| missing("absence", &id.to_string()))
}

async fn permit(app: &App, who: &Identity, person: &str) -> Result<(), Problem> {
    if person == who.subject {
        permit_own(app, who, "directory:write").await
    } else {
        Ok(app.engine.permit(who, "directory:write").await?)
    }
}

/// What is one's own takes a permission that everybody has, or the one that does for all.
async fn permit_own(app: &App, who: &Identity, for_all: &'static str) -> Result<(), Problem> {
    let own = app.engine.permit(who, "absence:self").await;
    if matches!(own, Err(Error::Permission(_))) && app.engine.permit(who, for_all).await.is_ok() {
        return Ok(());
    }
    Ok(own?)
}
