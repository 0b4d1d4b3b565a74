//! The migration of all instances of a version to another one: its dry run, and its operation.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Version, address, overview};
use crate::api::segment;
use crate::fields::Field;
use crate::form::{self, Form};
use crate::language::Words;
use crate::list::Link;
use crate::names::Names;
use crate::posted::{Fields, Posted};
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};

/// The permission that a migration needs.
pub(super) const PERMISSION: &str = "instance:migrate";
/// The separator of the old and the new name of a state.
const ARROW: &str = "=";

#[derive(Template)]
#[template(path = "migrate.html")]
struct Page {
    shell: Shell,
    trail: Vec<Link>,
    heading: String,
    form: Form,
}

/// The result of a dry run.
#[derive(Deserialize)]
struct Trial {
    total: usize,
    more: bool,
    tried: usize,
    done: usize,
    refused: usize,
    failed: usize,
    sample: Vec<InstanceTrialResult>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InstanceTrialResult {
    instance_id: Uuid,
    result: String,
    detail: Option<String>,
}

#[derive(Deserialize)]
struct StartedMigration {
    id: Uuid,
}

/// The other versions of the definition that are not retired, newest first.
async fn targets(visitor: &Visitor, key: &str, from: u32) -> Result<Vec<Version>, Halt> {
    let mut versions = overview(visitor, key).await?.versions;
    versions.retain(|one| one.version != from && one.retired_at.is_none());
    Ok(versions)
}

fn form_of(visitor: &Visitor, key: &str, from: u32, targets: &[Version], filled: &Fields) -> Form {
    let w = visitor.w;
    let field = |name: &str, kind: &'static str| {
        Field::named(
            name,
            w.t(&format!("migrate-{name}")).into_owned(),
            kind,
            filled,
        )
    };
    let optional = |name: &str, kind: &'static str| Field {
        required: false,
        help: w.t(&format!("migrate-{name}-help")).into_owned(),
        ..field(name, kind)
    };
    let version = Field {
        choices: targets.iter().map(|one| one.version.to_string()).collect(),
        ..field("version", "choice")
    };
    let state = Field {
        pointer: "/filter/state".to_owned(),
        ..optional("state", "text")
    };
    let page = address(key, from);
    Form {
        fields: vec![version, state, optional("states", "long")],
        ..Form::new(
            w.t("migrate").into_owned(),
            format!("{page}/migrate#act"),
            page,
        )
        .with_key_of(filled)
    }
}

fn body(key: &str, from: u32, filled: &Fields) -> Value {
    let text = |name: &str| filled.get(name).trim();
    // A text that is not a number is sent to the API unchanged, and the refusal names it.
    let version = text("version");
    let version = version
        .parse::<u32>()
        .map_or_else(|_| json!(version), |version| json!(version));
    let mut body = json!({
        "definitionKey": key,
        "fromVersion": from,
        "version": version,
        "states": renamed(filled.get("states")),
    });
    if !text("state").is_empty() {
        body["filter"] = json!({ "state": text("state") });
    }
    body
}

/// Old to new names of states, by lines such as `old = new`.
fn renamed(text: &str) -> Map<String, Value> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let pair = |line: &str| {
        let (old, new) = line.split_once(ARROW).unwrap_or((line, ""));
        (old.trim().to_owned(), json!(new.trim()))
    };
    lines.map(pair).collect()
}

async fn render(
    visitor: &Visitor,
    (key, from): (&str, u32),
    form: Form,
    status: StatusCode,
) -> Answer {
    let w = visitor.w;
    let heading = w.say(
        "migrate-from",
        &[("key", key), ("number", &from.to_string())],
    );
    let template = Page {
        shell: Shell::of(visitor, "definitions", heading.clone()).await,
        trail: vec![
            Link::to("/console/definitions", w.t("definitions")),
            Link::to(format!("/console/definitions/{}", segment(key)), key),
        ],
        heading,
        form,
    };
    Ok(page(status, &template))
}

pub(super) async fn show(Path((key, from)): Path<(String, u32)>, visitor: Visitor) -> Answer {
    visitor.require(PERMISSION).await?;
    let targets = targets(&visitor, &key, from).await?;
    let form = form_of(&visitor, &key, from, &targets, &Fields::default());
    render(&visitor, (&key, from), form, StatusCode::OK).await
}

/// Handles a sent form: shows the effects, or begins the operation if they were shown.
pub(super) async fn act(
    Path((key, from)): Path<(String, u32)>,
    Posted { visitor, fields }: Posted,
) -> Answer {
    visitor.require(PERMISSION).await?;
    let targets = targets(&visitor, &key, from).await?;
    let mut form = form_of(&visitor, &key, from, &targets, &fields);
    let body = body(&key, from, &fields);
    let answer = if form::is_confirmed(&fields, &body) {
        let begun = visitor
            .api
            .post::<StartedMigration>("/v1/migrations", &body, form::key(&fields))
            .await;
        match begun {
            Ok(begun) => {
                let to = format!("/console/operations/bulk/{}", begun.id);
                return Ok(Redirect::to(&to).into_response());
            }
            Err(trouble) => Err(trouble),
        }
    } else {
        let path = "/v1/migrations?dryRun=true";
        visitor.api.post::<Trial>(path, &body, None).await
    };
    let status = match answer {
        Ok(trial) => {
            form.show(effects(visitor.w, &trial), &body);
            StatusCode::OK
        }
        Err(trouble) => {
            form.refuse(&trouble, Names::default(), &visitor).await;
            trouble.status()
        }
    };
    render(&visitor, (&key, from), form, status).await
}

/// The result of a trial. Each instance that would not be migrated has the reason.
fn effects(w: Words, trial: &Trial) -> Vec<Link> {
    let line = |text: String| Link::to(String::new(), text);
    let total = if trial.more {
        w.n("migrate-total-more", trial.total)
    } else {
        w.n("migrate-total", trial.total)
    };
    let counts = [
        ("tried", w.number(trial.tried)),
        ("done", w.number(trial.done)),
        ("refused", w.number(trial.refused)),
        ("failed", w.number(trial.failed)),
    ];
    let mut effects = vec![line(total), line(w.say("migrate-tried", &counts))];
    let others = trial.sample.iter().filter(|one| one.result != "done");
    effects.extend(others.map(|one| {
        let id = one.instance_id.to_string();
        let why = one.detail.clone().unwrap_or_else(|| one.result.clone());
        let address = format!("/console/instances/{id}");
        Link::to(address, w.say("migrate-not", &[("id", &id), ("why", &why)]))
    }));
    effects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_renames_a_state() {
        let expected = json!({ "draft": "plan", "check": "review", "odd": "" });
        let given = renamed("draft = plan\n\ncheck=review\nodd\n");
        assert_eq!(Value::Object(given), expected);
    }
}
