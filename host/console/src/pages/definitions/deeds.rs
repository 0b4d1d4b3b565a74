//! What may be done with a version, what it affects, and how it is undone.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use serde_json::{Value, json};

use super::version::{Asked, Read, after, read, render};
use super::{Version, address};
use crate::api::segment;
use crate::confirm::Confirm;
use crate::list::Link;
use crate::posted::{Fields, Posted};
use crate::session::{Answer, Visitor};

/// The deeds, by their names in the API and in the address.
const DEEDS: [&str; 5] = ["activate", "retire", "reinstate", "stop", "resume"];

/// A way to a deed: a link to its form, or the reason why not.
pub(super) struct Button {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) is_first: bool,
    /// Empty if it is allowed.
    pub(super) refusal: String,
}

/// The permission that a deed needs.
fn permission(deed: &str) -> &'static str {
    match deed {
        "activate" => "definition:activate",
        _ => "definition:retire",
    }
}

/// Whether a version is so that the deed changes something.
fn applies(deed: &str, version: &Version) -> bool {
    let (is_retired, is_stopped) = (version.retired_at.is_some(), version.stopped_at.is_some());
    match deed {
        "activate" => !version.active && !is_retired,
        "retire" => !is_retired,
        "reinstate" => is_retired,
        "stop" => !is_stopped,
        _ => is_stopped,
    }
}

fn name(deed: &str, visitor: &Visitor) -> String {
    visitor.w.t(&format!("deed-{deed}")).into_owned()
}

fn form(version: &Version, deed: &str) -> String {
    format!("{}?do={deed}#act", version.address())
}

pub(super) fn buttons(visitor: &Visitor, read: &Read) -> Vec<Button> {
    let deeds = DEEDS
        .into_iter()
        .filter(|deed| applies(deed, &read.version));
    let button = |deed: &str| {
        let needed = permission(deed);
        let may = read.permissions.iter().any(|one| one == needed);
        Button {
            name: name(deed, visitor),
            address: form(&read.version, deed),
            is_first: deed == "activate",
            refusal: if may {
                String::new()
            } else {
                visitor.w.with("needs-permission", "permission", needed)
            },
        }
    };
    deeds.map(button).collect()
}

/// The active version of the definition, with its running instances if it is among the newest.
fn active(read: &Read) -> Option<&Version> {
    let mut newest = read.overview.versions.iter();
    let active = newest.find(|one| one.active);
    active.or(read.overview.active.as_ref())
}

/// What a deed affects.
fn effects(visitor: &Visitor, read: &Read, deed: &str) -> Vec<String> {
    let w = visitor.w;
    let version = &read.version;
    let number = version.version.to_string();
    if !applies(deed, version) {
        return vec![w.t("what-nothing").into_owned()];
    }
    let mut effects = vec![w.with(&format!("deed-effect-{deed}"), "number", &number)];
    let running = |id: &str| version.running.map(|count| w.n(id, count));
    match (deed, active(read)) {
        ("activate", Some(active)) => {
            let number = active.version.to_string();
            effects.extend(active.running.map(|running| {
                let running = running.to_string();
                w.say(
                    "deed-effect-activate-stay",
                    &[("number", &number), ("running", &running)],
                )
            }));
            effects.push(w.with("deed-effect-activate-undo", "number", &number));
        }
        ("activate", None) => effects.push(w.t("deed-effect-activate-first").into_owned()),
        ("retire", _) => {
            effects.extend(running("deed-effect-retire-running"));
            if version.active {
                effects.push(w.t("deed-effect-retire-active").into_owned());
            }
        }
        ("stop", _) => effects.extend(running("deed-effect-stop-running")),
        ("resume", _) => effects.extend(running("deed-effect-resume-running")),
        _ => {}
    }
    effects
}

/// The form of the deed that the address names. None if it names none.
pub(super) fn asked(visitor: &Visitor, read: &Read, deed: &str) -> Option<Confirm> {
    let deed = DEEDS.into_iter().find(|one| *one == deed)?;
    let page = read.version.address();
    Some(Confirm {
        hidden: vec![("do", deed.to_owned())],
        effects: effects(visitor, read, deed),
        reason: (deed == "stop").then(String::new),
        ..Confirm::new(name(deed, visitor), format!("{page}#act"), page)
    })
}

/// A form that was sent: does it, and shows the version after that.
pub(super) async fn act(
    Path((key, version)): Path<(String, u32)>,
    Posted { visitor, fields }: Posted,
) -> Answer {
    let read = read(&visitor, &key, version).await?;
    let deed = fields.get("do").to_owned();
    let Some(confirm) = asked(&visitor, &read, &deed) else {
        return Ok(StatusCode::NOT_FOUND.into_response());
    };
    let path = format!(
        "/v1/definitions/{}/versions/{version}/{deed}",
        segment(&key)
    );
    let body = body(&deed, &fields);
    match visitor.api.post::<Value>(&path, &body, None).await {
        Ok(_) => {
            let before = active(&read).map(|active| active.version);
            Ok(Redirect::to(&after(&read, &deed, before)).into_response())
        }
        Err(trouble) => {
            let confirm = confirm.refuse(&trouble, &fields);
            let asked = Asked {
                deed,
                ..Asked::default()
            };
            render(&visitor, read, &asked, Some(confirm), trouble.status()).await
        }
    }
}

fn body(deed: &str, fields: &Fields) -> Value {
    match deed {
        "activate" => json!({ "force": !fields.get("force").is_empty() }),
        "stop" => json!({ "reason": fields.get("reason").trim() }),
        _ => json!({}),
    }
}

/// The way back from what was just done. `before` is the version that was active then.
pub(super) fn undo(
    visitor: &Visitor,
    read: &Read,
    done: &str,
    before: Option<u32>,
) -> Option<Link> {
    let version = &read.version;
    let opposite = match done {
        "activate" => {
            let before = before.filter(|number| *number != version.version)?;
            let name = visitor
                .w
                .with("undo-activate", "number", &before.to_string());
            let to = format!("{}?do=activate#act", address(&version.key, before));
            return Some(Link::to(to, name));
        }
        "retire" => "reinstate",
        "stop" => "resume",
        _ => return None,
    };
    Some(Link::to(form(version, opposite), name(opposite, visitor)))
}
