//! Lists of people and groups.

use std::str::FromStr;

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::App;
use crate::http::extract::{Caller, Query};
use crate::http::page::{Page, decode, foreign, limit, page_to};
use crate::http::problem::Problem;
use crate::http::view::view;
use wrkflw_engine::validation::check_name;
use wrkflw_store::directory::lists::{self, DirectoryCursor, Kind};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(people))
        .routes(routes!(groups))
}

view! {
    of wrkflw_store::directory::lists::DirectoryRow;
    /// A person or a group in a list.
    pub(in crate::http) struct DirectoryEntry {
        pub id: String,
        pub name: String,
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct DirectoryQuery {
    /// The beginning of an id, or of a name in upper or lower case.
    pub q: Option<String>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct PeopleQuery {
    /// The beginning of an id, or of a name in upper or lower case.
    pub q: Option<String>,
    /// The members of this group, by id. Not together with `q`.
    #[param(format = "name")]
    pub group: Option<String>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// A [`DirectoryCursor`] as text.
struct Position(DirectoryCursor);

impl FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Position, ()> {
        // NUL is in no name and no id, and PostgreSQL takes none.
        let parts: Vec<&str> = text.split('\0').collect();
        let place = match parts[..] {
            [id] if !id.is_empty() => DirectoryCursor::Id(id.to_owned()),
            [name, id] => DirectoryCursor::Name(name.to_owned(), id.to_owned()),
            _ => return Err(()),
        };
        Ok(Position(place))
    }
}

fn position(place: DirectoryCursor) -> String {
    match place {
        DirectoryCursor::Id(id) => id,
        DirectoryCursor::Name(name, id) => format!("{name}\0{id}"),
    }
}

/// Lists people by id.
///
/// With `q`, people whose id begins with it come first, then those whose name does. Such a page may not be full. There may be
/// more as long as `page.next` is present. With `group`, only its members.
#[utoipa::path(get, path = "/v1/people", tag = "directory", operation_id = "listPeople", params(PeopleQuery),
    responses((status = 200, body = Page<DirectoryEntry>)))]
pub(in crate::http) async fn people(
    state: State<App>,
    caller: Caller,
    Query(query): Query<PeopleQuery>,
) -> Result<axum::Json<Page<DirectoryEntry>>, Problem> {
    let Some(group) = query.group else {
        let PeopleQuery {
            q, after, limit, ..
        } = query;
        let query = DirectoryQuery { q, after, limit };
        return named(state, caller, Query(query), Kind::Person).await;
    };
    if query.q.is_some() {
        let detail = "group: not together with q, which searches all people";
        return Err(Problem::new("malformed_request", detail));
    }
    if check_name("/group", &group).is_err() {
        return Err(no_name("group"));
    }
    let (State(app), Caller(who)) = (state, caller);
    app.engine.permit(&who, "directory:read").await?;
    let limit = limit(query.limit)?;
    let after: Option<Position> = decode(query.after.as_deref())?;
    let after = match after.map_or_else(DirectoryCursor::start, |Position(place)| place) {
        DirectoryCursor::Id(id) => id,
        DirectoryCursor::Name(..) => return Err(foreign()),
    };
    let reader = app.engine.reader();
    let part = lists::members(reader, who.tenant, &group, &after, limit as usize);
    let part = part.await?;
    Ok(axum::Json(page_to(part.rows, part.next.map(position))))
}

/// Lists groups by id.
///
/// With `q`, groups whose id begins with it come first, then those whose name does. Such a page may not be full. There may be
/// more as long as `page.next` is present.
#[utoipa::path(get, path = "/v1/groups", tag = "directory", operation_id = "listGroups", params(DirectoryQuery),
    responses((status = 200, body = Page<DirectoryEntry>)))]
pub(in crate::http) async fn groups(
    state: State<App>,
    caller: Caller,
    query: Query<DirectoryQuery>,
) -> Result<axum::Json<Page<DirectoryEntry>>, Problem> {
    named(state, caller, query, Kind::Group).await
}

/// The problem for a parameter that cannot be a name or the beginning of a name.
fn no_name(parameter: &str) -> Problem {
    let detail = "1 to 200 characters, none of them a control character";
    let problem = Problem::new("malformed_request", format!("{parameter}: {detail}"));
    problem.at(&format!("/{parameter}"), "malformed", detail)
}

async fn named(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<DirectoryQuery>,
    kind: Kind,
) -> Result<axum::Json<Page<DirectoryEntry>>, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    let limit = limit(query.limit)?;
    let prefix = query.q.unwrap_or_default();
    if !prefix.is_empty() && check_name("/q", &prefix).is_err() {
        return Err(no_name("q"));
    }
    let after: Option<Position> = decode(query.after.as_deref())?;
    let after = after.map_or_else(DirectoryCursor::start, |Position(place)| place);
    let reader = app.engine.reader();
    let part = lists::named(reader, who.tenant, kind, &prefix, after, limit as usize);
    let part = part.await?;
    Ok(axum::Json(page_to(part.rows, part.next.map(position))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_place() {
        for place in [
            DirectoryCursor::Id("Renée".to_owned()),
            DirectoryCursor::Name("renée".to_owned(), "r-1".to_owned()),
            DirectoryCursor::Name(String::new(), String::new()),
        ] {
            let read = position(place.clone()).parse().map(|Position(place)| place);
            assert_eq!(read, Ok(place));
        }
        // The start is named by leaving the cursor out.
        for text in ["", "a\0b\0c"] {
            assert!(text.parse::<Position>().is_err(), "{text:?}");
        }
    }
}
