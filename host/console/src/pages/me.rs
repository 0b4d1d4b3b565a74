//! The visitor: groups, roles, absences, and the browsers in which they are signed in.

use askama::Template;
use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use crate::Console;
use crate::moment::Moment;
use crate::posted::Posted;
use crate::session::{Answer, Visitor};
use crate::shell::{Shell, page};

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/me", get(show))
        .route("/console/me/sessions/{id}/end", post(end))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Me {
    id: String,
    name: Option<String>,
    tenant: String,
    roles: Vec<String>,
    permissions: Vec<String>,
    groups: Vec<String>,
    manager: Option<String>,
    absences: Vec<Absence>,
    stands_in_for: Vec<Absence>,
}

#[derive(Deserialize)]
struct Absence {
    person: String,
    substitute: String,
    from: Timestamp,
    until: Timestamp,
}

#[derive(Deserialize)]
struct Sessions {
    data: Vec<Session>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    id: Uuid,
    client: String,
    created_at: Timestamp,
    used_at: Timestamp,
    expires_at: Timestamp,
}

struct Away {
    sentence: String,
    from: Moment,
    until: Moment,
}

struct SignIn {
    id: Uuid,
    client: String,
    created: Moment,
    used: Moment,
    expires: Moment,
    is_this: bool,
}

#[derive(Template)]
#[template(path = "me.html")]
struct Page {
    shell: Shell,
    me: Me,
    away: Vec<Away>,
    sign_ins: Vec<SignIn>,
}

async fn show(visitor: Visitor) -> Answer {
    let w = visitor.w;
    let me: Me = visitor.get("/v1/me").await?;
    let sessions: Sessions = visitor.get("/v1/me/sessions").await?;
    let away = |id: &str, absence: &Absence| Away {
        sentence: w.say(
            id,
            &[
                ("person", absence.person.as_str()),
                ("substitute", &absence.substitute),
            ],
        ),
        from: Moment::of(absence.from, w),
        until: Moment::of(absence.until, w),
    };
    let own = me.absences.iter().map(|one| away("me-absent", one));
    let others = me.stands_in_for.iter();
    let others = others.map(|one| away("me-stands-in", one));
    let sign_ins = sessions.data.into_iter().map(|one| SignIn {
        is_this: one.id == visitor.session.id,
        id: one.id,
        client: one.client,
        created: Moment::of(one.created_at, w),
        used: Moment::of(one.used_at, w),
        expires: Moment::of(one.expires_at, w),
    });
    let template = Page {
        away: own.chain(others).collect(),
        sign_ins: sign_ins.collect(),
        shell: Shell::of(&visitor, "me", w.t("me").into_owned()).await,
        me,
    };
    Ok(page(StatusCode::OK, &template))
}

async fn end(Path(id): Path<Uuid>, Posted { visitor, .. }: Posted) -> Answer {
    let path = format!("/v1/me/sessions/{id}");
    let ended = visitor.api.delete(&path).await;
    ended.map_err(|trouble| visitor.halt(&trouble))?;
    Ok(Redirect::to("/console/me").into_response())
}
