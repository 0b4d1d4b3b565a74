//! Working calendars: the working hours that deadlines may count.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::conditional::conditional;
use super::extract::{Body, Caller, Path, Query};
use super::large::rendered;
use super::layers::without_query;
use super::page::{Page, page_to};
use super::problem::Problem;
use super::view::view;
use wrkflw_core::calendar::Calendar;
use wrkflw_engine::{Error, Identity};
use wrkflw_store::StoreError;
use wrkflw_store::calendars;

/// The cost of rendering a byte of a calendar, in bytes of ordinary text. Dates and times cost more than text.
const RENDERED: usize = 4;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show, put));
    OpenApiRouter::new()
        .routes(routes!(delete))
        .merge(without_query(conditional(single)))
}

view! {
    of wrkflw_store::calendars::CalendarSummary;
    /// A calendar in a list.
    pub(super) struct CalendarSummary {
        pub name: String,
        pub time_zone: String,
        #[schema(value_type = String, format = DateTime)]
        pub updated_at: Timestamp,
    }
}

/// A part of a day in which people work.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents what `Calendar` reads and writes")]
struct CalendarInterval {
    /// As `HH:MM`.
    #[schema(example = "09:00")]
    from: String,
    /// As `HH:MM`, up to `24:00`, and later than `from`.
    #[schema(example = "17:00")]
    until: String,
}

/// When people work.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "documents what `Calendar` reads and writes")]
pub(super) struct CalendarSettings {
    /// By its name in the IANA database.
    #[schema(example = "Europe/Berlin")]
    time_zone: String,
    /// The intervals of each weekday, `monday` to `sunday`, in order and without overlap.
    hours: BTreeMap<String, Vec<CalendarInterval>>,
    /// Days without working time, as `YYYY-MM-DD`; at most 1000.
    #[schema(required = false)]
    holidays: Vec<String>,
    /// Days with hours of their own, as `YYYY-MM-DD`; at most 1000.
    #[schema(required = false)]
    exceptions: BTreeMap<String, Vec<CalendarInterval>>,
}

/// A calendar under its name.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CalendarView {
    name: String,
    #[serde(flatten)]
    #[schema(value_type = CalendarSettings)]
    settings: Calendar,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

/// All calendars, by name. There are at most 100, on one page.
#[utoipa::path(get, path = "/v1/calendars", tag = "directory", operation_id = "listCalendars",
    responses((status = 200, body = Page<CalendarSummary>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
) -> Result<axum::Json<Page<CalendarSummary>>, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    let data = calendars::list(app.engine.reader(), who.tenant).await?;
    Ok(axum::Json(page_to(data, None)))
}

/// A working calendar.
#[utoipa::path(get, path = "/v1/calendars/{name}", tag = "directory", operation_id = "getCalendar", params(("name" = String, Path, format = "key")),
    responses((status = 200, body = CalendarView)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    read(&app, &who, &name).await
}

async fn read(app: &App, who: &Identity, name: &str) -> Result<Response, Problem> {
    let found = calendars::get(app.engine.reader(), who.tenant, name).await?;
    let found = found.ok_or_else(|| missing(name))?;
    let settings = app
        .engine
        .calendars()
        .parse(who.tenant, &found.settings)
        .await?;
    let settings = settings.map_err(|violations| {
        let first = violations
            .first()
            .map(|one| format!("{}: {}", one.field, one.message));
        StoreError::inconsistent("calendar", name, first.unwrap_or_default())
    })?;
    let view = CalendarView {
        name: found.name,
        settings,
        updated_at: found.updated_at,
    };
    let bytes = RENDERED * found.settings.as_str().len();
    rendered(app, who.tenant, bytes, || view).await
}

/// Adds a working calendar, or replaces it. Deadlines that were computed stay as they are.
#[utoipa::path(put, path = "/v1/calendars/{name}", tag = "directory", operation_id = "putCalendar", params(("name" = String, Path, format = "key")),
    request_body = CalendarSettings, responses((status = 200, body = CalendarView)))]
pub(super) async fn put(
    State(app): State<App>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Body { canonical, .. }: Body<IgnoredAny>,
) -> Result<Response, Problem> {
    app.engine.calendars().put(&who, &name, &canonical).await?;
    read(&app, &who, &name).await
}

/// How a calendar is deleted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DeleteQuery {
    /// Delete it although versions use it that are active or have running instances.
    #[serde(default)]
    #[param(default = false)]
    force: bool,
}

/// Deletes a working calendar. Deadlines that were computed by it stay as they are. Refused while versions use it that are active or
/// have running instances, unless it is forced: entries into their states would fail.
#[utoipa::path(delete, path = "/v1/calendars/{name}", tag = "directory", operation_id = "deleteCalendar",
    params(("name" = String, Path, format = "key"), DeleteQuery), responses((status = 204, description = "is deleted")))]
pub(super) async fn delete(
    State(app): State<App>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Query(query): Query<DeleteQuery>,
) -> Result<StatusCode, Problem> {
    let deleted = app.engine.calendars().delete(&who, &name, query.force);
    deleted.await?;
    Ok(StatusCode::NO_CONTENT)
}

fn missing(name: &str) -> Problem {
    Problem::from(Error::NotFound {
        what: "calendar",
        id: name.to_owned(),
    })
}
