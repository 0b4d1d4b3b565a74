//! The visitor: groups, roles, absences as a calendar, notifications, settings of pages, and the browsers in which they are signed in.

mod absence;
mod browser;
mod month;

use std::borrow::Cow;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use absence::Days;
use month::Month;
use wrkflw_core::notification::{KINDS, Kind};
use wrkflw_runtime::clock::Clock;

use crate::api::Trouble;
use crate::form::Form;
use crate::language::{self, Language};
use crate::moment::Moment;
use crate::posted::Posted;
use crate::session::{Answer, Visitor, set_cookie};
use crate::shell::{Shell, page};
use crate::{Console, zone};

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/me", get(show))
        .route("/console/me/absences", post(absence::act))
        .route("/console/me/absences/{id}/end", post(absence::end))
        .route("/console/me/preferences", post(change))
        .route("/console/me/notified", post(notify))
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

impl Me {
    fn may(&self, permission: &str) -> bool {
        self.permissions.iter().any(|one| one == permission)
    }
}

#[derive(Deserialize)]
struct Absence {
    id: Uuid,
    person: String,
    substitute: String,
    from: Timestamp,
    until: Timestamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Preferences {
    muted_notifications: Vec<String>,
    language: Option<String>,
    time_zone: Option<String>,
    theme: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MeQuery {
    /// `2026-11`; empty for the present one.
    month: String,
    /// The days of an absence that is entered; empty if none is.
    from: String,
    until: String,
    /// The action that was just done.
    done: String,
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
    /// The absence, if the visitor may end it: one of their own.
    ends: Option<Uuid>,
    sentence: String,
    from: Moment,
    until: Moment,
}

struct SignIn {
    id: Uuid,
    /// The browser in words.
    browser: String,
    /// The description of the browser by itself.
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
    month: Month,
    /// The form of an absence, if days are chosen.
    form: Option<Form>,
    done: Option<String>,
    is_notified_changed: bool,
    prefers: Preferences,
    sign_ins: Vec<SignIn>,
}

impl Page {
    #[expect(
        clippy::unused_self,
        reason = "the template reaches it through the page"
    )]
    fn languages(&self) -> &'static [Language] {
        language::all()
    }

    /// The kinds of notifications: each with its name, and whether the visitor gets it.
    fn kinds(&self) -> impl Iterator<Item = (&'static str, Cow<'static, str>, bool)> {
        KINDS.into_iter().map(|kind| {
            let mut muted = self.prefers.muted_notifications.iter();
            let is_muted = muted.any(|one| one == kind.name());
            let text = self.shell.w.t_of("notification", kind.name());
            (kind.name(), text, !is_muted)
        })
    }

    #[expect(
        clippy::unused_self,
        reason = "the template reaches it through the page"
    )]
    fn zones(&self) -> impl Iterator<Item = &'static str> {
        zone::names()
    }
}

async fn show(Query(query): Query<MeQuery>, visitor: Visitor) -> Answer {
    let form = absence::chosen_form(&visitor, Days::of(&query.from, &query.until)).await;
    render(&visitor, &query, form, StatusCode::OK).await
}

async fn render(
    visitor: &Visitor,
    query: &MeQuery,
    form: Option<Form>,
    status: StatusCode,
) -> Answer {
    let w = visitor.w;
    let me: Me = visitor.get("/v1/me").await?;
    let sessions: Sessions = visitor.get("/v1/me/sessions").await?;
    let prefers: Preferences = visitor.get("/v1/me/preferences").await?;
    let days = Days::of(&query.from, &query.until);
    let month = Month::of((&query.month, days), &me, Clock::System.now(), w);
    let may_end = me.may(absence::PERMISSION);
    let away = |id: &str, absence: &Absence| Away {
        ends: Some(absence.id).filter(|_| may_end && absence.person == me.id),
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
        browser: browser::named(&one.client),
        client: one.client,
        created: Moment::of(one.created_at, w),
        used: Moment::of(one.used_at, w),
        expires: Moment::of(one.expires_at, w),
    });
    let template = Page {
        away: own.chain(others).collect(),
        month,
        form,
        done: match query.done.as_str() {
            done @ ("absent" | "return") => Some(w.t(&format!("people-done-{done}")).into_owned()),
            _ => None,
        },
        is_notified_changed: query.done == "notified",
        prefers,
        sign_ins: sign_ins.collect(),
        shell: Shell::of(visitor, "me", w.t("me").into_owned()).await,
        me,
    };
    Ok(page(status, &template))
}

/// Changes some of the visitor's preferences. An empty text resets a choice.
pub(crate) async fn prefer<T: Into<Value>>(
    visitor: &Visitor,
    changes: impl IntoIterator<Item = (&str, T)>,
) -> Result<(), Trouble> {
    const PATH: &str = "/v1/me/preferences";
    let mut preferences: Value = visitor.api.get(PATH).await?;
    for (name, value) in changes {
        let value = value.into();
        preferences[name] = Some(value).filter(|value| value != "").into();
    }
    visitor.api.put::<Value>(PATH, &preferences).await.map(drop)
}

/// The kinds of notifications that the form does not name are switched off.
async fn notify(Posted { visitor, fields }: Posted) -> Answer {
    let kinds = KINDS.into_iter().map(Kind::name);
    let is_named = |kind: &&str| fields.all("kind").any(|one| one == *kind);
    let muted: Vec<_> = kinds.filter(|kind| !is_named(kind)).collect();
    let stored = prefer(&visitor, [("mutedNotifications", muted)]).await;
    stored.map_err(|trouble| visitor.halt(&trouble))?;
    Ok(Redirect::to("/console/me?done=notified#notified").into_response())
}

/// Handles the form with the preferences. The choice replaces the cookie with the language of this browser.
async fn change(Posted { visitor, fields }: Posted) -> Answer {
    let names = ["language", "timeZone", "theme"];
    let changes = names.map(|name| (name, fields.get(name)));
    let stored = prefer(&visitor, changes).await;
    stored.map_err(|trouble| visitor.halt(&trouble))?;
    let forgotten = set_cookie(language::COOKIE, "", Some(0));
    let to = Redirect::to("/console/me");
    Ok(([(header::SET_COOKIE, forgotten)], to).into_response())
}

async fn end(Path(id): Path<Uuid>, Posted { visitor, .. }: Posted) -> Answer {
    let path = format!("/v1/me/sessions/{id}");
    let ended = visitor.api.delete(&path).await;
    ended.map_err(|trouble| visitor.halt(&trouble))?;
    Ok(Redirect::to("/console/me").into_response())
}
