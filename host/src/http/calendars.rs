//! Working calendars: the hours by which deadlines may count.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::IgnoredAny;
use utoipa::ToSchema;

use super::App;
use super::extract::{Body, Caller, Path, check_document};
use super::page::{Next, Page};
use super::problem::Problem;
use crate::domain::calendar::Calendar;
use crate::domain::check::is_key;
use crate::domain::rejection::Rejection;
use crate::engine::{Error, Identity};
use crate::store::calendars::{CALENDARS_MAX, CalendarPut, CalendarSummary};

/// A part of a day in which people work.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents what `Calendar` reads and writes")]
struct CalendarInterval {
    /// As `HH:MM`.
    #[schema(example = "09:00")]
    from: String,
    /// As `HH:MM`, up to `24:00`, and later than `from`.
    #[schema(example = "17:00")]
    to: String,
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
#[utoipa::path(get, path = "/v1/calendars", tag = "directory", responses((status = 200, body = Page<CalendarSummary>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
) -> Result<axum::Json<Page<CalendarSummary>>, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    let data = app.engine.store().calendars(who.tenant).await?;
    let page = Next { next: None };
    Ok(axum::Json(Page { data, page }))
}

/// A working calendar.
#[utoipa::path(get, path = "/v1/calendars/{name}", tag = "directory", params(("name" = String, Path)),
    responses((status = 200, body = CalendarView)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Result<axum::Json<CalendarView>, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    read(&app, &who, &name).await
}

async fn read(app: &App, who: &Identity, name: &str) -> Result<axum::Json<CalendarView>, Problem> {
    let found = app.engine.store().calendar(who.tenant, name).await?;
    let found = found.ok_or_else(|| missing(name))?;
    Ok(axum::Json(CalendarView {
        name: found.name,
        settings: found.calendar,
        updated_at: found.updated_at,
    }))
}

/// Adds a working calendar, or replaces it. Deadlines that were computed stay as they are.
#[utoipa::path(put, path = "/v1/calendars/{name}", tag = "directory", params(("name" = String, Path)),
    request_body = CalendarSettings, responses((status = 200, body = CalendarView)))]
pub(super) async fn put(
    State(app): State<App>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Body { canonical, .. }: Body<IgnoredAny>,
) -> Result<axum::Json<CalendarView>, Problem> {
    app.engine.permit(&who, "directory:write").await?;
    check_calendar_name(&name)?;
    check_document("", &canonical)?;
    let calendar = Calendar::parse(&canonical).map_err(unfit)?;
    let note = app.engine.note(&who.subject);
    let store = app.engine.store();
    match store
        .put_calendar(who.tenant, &name, &calendar, &note)
        .await?
    {
        CalendarPut::Done => read(&app, &who, &name).await,
        CalendarPut::TooMany => {
            let detail =
                format!("a tenant has at most {CALENDARS_MAX} calendars; delete one first");
            Err(Problem::new("invalid_request", &*detail).at("/name", "too_many", detail))
        }
    }
}

/// Deletes a working calendar. Deadlines that were computed by it stay as they are.
#[utoipa::path(delete, path = "/v1/calendars/{name}", tag = "directory", params(("name" = String, Path)),
    responses((status = 204, description = "is deleted")))]
pub(super) async fn delete(
    State(app): State<App>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    app.engine.permit(&who, "directory:write").await?;
    let note = app.engine.note(&who.subject);
    let deleted = app.engine.store().delete_calendar(who.tenant, &name, &note);
    if deleted.await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(missing(&name))
    }
}

/// The settings' own problems, each by its pointer.
fn unfit(violations: Vec<crate::domain::answer::Violation>) -> Problem {
    let rejected = Problem::from(Error::Rejected(Rejection::Invalid(violations)));
    Problem {
        errors: rejected.errors,
        ..Problem::new(
            "invalid_request",
            "the calendar has settings that need mending",
        )
    }
}

fn check_calendar_name(name: &str) -> Result<(), Problem> {
    if is_key(name) {
        return Ok(());
    }
    let detail = "lower-case letters, digits and hyphens, a letter first, at most 64 characters";
    Err(
        Problem::new("invalid_request", format!("/name: {detail}")).at(
            "/name",
            "malformed",
            detail,
        ),
    )
}

fn missing(name: &str) -> Problem {
    Problem::from(Error::NotFound {
        what: "calendar",
        id: name.to_owned(),
    })
}
