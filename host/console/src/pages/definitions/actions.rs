//! The actions on a version, their effects, and how they are undone.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use serde::Deserialize;
use serde_json::{Value, json};

use super::version::{LoadedVersion, VersionQuery, after, load, render};
use super::{Version, address};
use crate::api::segment;
use crate::confirm::Confirm;
use crate::language::Words;
use crate::list::Link;
use crate::posted::{Fields, Posted};
use crate::session::{Answer, Visitor};

/// The actions, by their names in the API and in the address.
const ACTIONS: [&str; 5] = ["activate", "retire", "reinstate", "stop", "resume"];

/// A button of an action: a link to its form, or the reason why it is refused.
pub(super) struct Button {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) is_first: bool,
    /// Empty if it is allowed.
    pub(super) refusal: String,
}

/// The permission that an action needs.
fn permission(action: &str) -> &'static str {
    match action {
        "activate" => "definition:activate",
        _ => "definition:retire",
    }
}

/// Whether the action would change the version in its current state.
fn applies(action: &str, version: &Version) -> bool {
    let (is_retired, is_stopped) = (version.retired_at.is_some(), version.stopped_at.is_some());
    match action {
        "activate" => !version.active && !is_retired,
        "retire" => !is_retired,
        "reinstate" => is_retired,
        "stop" => !is_stopped,
        _ => is_stopped,
    }
}

fn name(action: &str, visitor: &Visitor) -> String {
    visitor.w.t(&format!("action-{action}")).into_owned()
}

fn form(version: &Version, action: &str) -> String {
    format!("{}?do={action}#act", version.address())
}

pub(super) fn buttons(visitor: &Visitor, loaded: &LoadedVersion) -> Vec<Button> {
    let actions = ACTIONS
        .into_iter()
        .filter(|action| applies(action, &loaded.version));
    let button = |action: &str| {
        let needed = permission(action);
        let may = loaded.permissions.iter().any(|one| one == needed);
        Button {
            name: name(action, visitor),
            address: form(&loaded.version, action),
            is_first: action == "activate",
            refusal: if may {
                String::new()
            } else {
                visitor
                    .w
                    .with("problem-permission_missing", "reason", needed)
            },
        }
    };
    actions.map(button).collect()
}

/// The answer of a dry run of an activation.
#[derive(Deserialize)]
struct ActivationDryRun {
    changed: bool,
    effects: Effects,
}

#[derive(Deserialize)]
struct Effects {
    before: Option<u32>,
    running: Running,
    unknown: Vec<Unknown>,
}

#[derive(Deserialize)]
struct Running {
    versions: Vec<Counted>,
    more: bool,
}

#[derive(Deserialize)]
struct Counted {
    version: u32,
    running: i64,
}

#[derive(Deserialize)]
struct Unknown {
    message: String,
}

impl Effects {
    /// The effects of the activation of this version, in words.
    fn in_words(&self, version: &Version, w: Words) -> Vec<String> {
        let number = version.version.to_string();
        let mut lines = vec![w.with("action-effect-activate", "number", &number)];
        lines.extend(self.running.versions.iter().map(|counted| {
            let (number, running) = (counted.version.to_string(), w.number(counted.running));
            let variables = [("number", number.as_str()), ("running", running.as_str())];
            w.say("action-effect-activate-stay", &variables)
        }));
        if self.running.more {
            lines.push(w.t("action-effect-activate-more").into_owned());
        }
        lines.extend(self.unknown.iter().map(|name| name.message.clone()));
        lines.push(match self.before {
            Some(before) => w.with("action-effect-activate-undo", "number", &before.to_string()),
            None => w.t("action-effect-activate-first").into_owned(),
        });
        lines
    }
}

/// The form of an activation, with the dry run of the API. If the API refuses the activation, the form shows the reason.
async fn activation(visitor: &Visitor, loaded: &LoadedVersion, form: Confirm) -> Confirm {
    let version = &loaded.version;
    let path = path(version, "activate?dryRun=true");
    match visitor
        .api
        .post::<ActivationDryRun>(&path, &json!({}), None)
        .await
    {
        Ok(dry_run) if dry_run.changed => Confirm {
            effects: dry_run.effects.in_words(version, visitor.w),
            may_force: !dry_run.effects.unknown.is_empty(),
            ..form
        },
        Ok(_) => Confirm {
            effects: vec![visitor.w.t("what-nothing").into_owned()],
            ..form
        },
        Err(trouble) => form.refuse(&trouble, &Fields::default()),
    }
}

/// The path of an action in the API.
fn path(version: &Version, action: &str) -> String {
    let key = segment(&version.key);
    format!(
        "/v1/definitions/{key}/versions/{}/{action}",
        version.version
    )
}

/// The effects of an action other than activation.
fn effects(visitor: &Visitor, loaded: &LoadedVersion, action: &str) -> Vec<String> {
    let w = visitor.w;
    let version = &loaded.version;
    let number = version.version.to_string();
    if !applies(action, version) {
        return vec![w.t("what-nothing").into_owned()];
    }
    let mut effects = vec![w.with(&format!("action-effect-{action}"), "number", &number)];
    let running = |id: &str| version.running.map(|count| w.n(id, count));
    match action {
        "retire" => {
            effects.extend(running("action-effect-retire-running"));
            if version.active {
                effects.push(w.t("action-effect-retire-active").into_owned());
            }
        }
        "stop" => effects.extend(running("action-effect-stop-running")),
        "resume" => effects.extend(running("action-effect-resume-running")),
        _ => {}
    }
    effects
}

/// The form of the action with this name. None if there is none.
pub(super) async fn chosen_form(
    visitor: &Visitor,
    loaded: &LoadedVersion,
    action: &str,
) -> Option<Confirm> {
    let action = ACTIONS.into_iter().find(|one| *one == action)?;
    let page = loaded.version.address();
    let form = Confirm {
        hidden: vec![("do", action.to_owned())],
        reason: (action == "stop").then(String::new),
        ..Confirm::new(name(action, visitor), format!("{page}#act"), page)
    };
    Some(match action {
        "activate" => activation(visitor, loaded, form).await,
        action => Confirm {
            effects: effects(visitor, loaded, action),
            ..form
        },
    })
}

/// Performs the action of a submitted form, and redirects to the page of the version.
pub(super) async fn act(
    Path((key, version)): Path<(String, u32)>,
    Posted { visitor, fields }: Posted,
) -> Answer {
    let loaded = load(&visitor, &key, version).await?;
    let action = fields.get("do").to_owned();
    let Some(confirm) = chosen_form(&visitor, &loaded, &action).await else {
        return Ok(StatusCode::NOT_FOUND.into_response());
    };
    let path = path(&loaded.version, &action);
    let body = body(&action, &fields);
    match visitor.api.post::<Value>(&path, &body, None).await {
        Ok(_) => {
            let before = loaded.overview.active.as_ref().map(|active| active.version);
            Ok(Redirect::to(&after(&loaded, &action, before)).into_response())
        }
        Err(trouble) => {
            let confirm = confirm.refuse(&trouble, &fields);
            let query = VersionQuery {
                action,
                ..VersionQuery::default()
            };
            render(&visitor, loaded, &query, Some(confirm), trouble.status()).await
        }
    }
}

fn body(action: &str, fields: &Fields) -> Value {
    match action {
        "activate" => json!({ "force": !fields.get("force").is_empty() }),
        "stop" => json!({ "reason": fields.get("reason").trim() }),
        _ => json!({}),
    }
}

/// The link that undoes the action. `before` is the version that was active before it.
pub(super) fn undo(
    visitor: &Visitor,
    loaded: &LoadedVersion,
    done: &str,
    before: Option<u32>,
) -> Option<Link> {
    let version = &loaded.version;
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
