//! The comment that somebody has begun to write for a decision. The API keeps it, and the next visit shows it again.

use askama::Template;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::Trouble;
use crate::posted::Posted;
use crate::session::{Answer, Visitor, next_page};
use crate::shell::page;

#[derive(Deserialize)]
struct Draft {
    comment: Option<String>,
}

/// The result of keeping a draft.
#[derive(Template)]
#[template(path = "draft.html")]
struct SaveResult {
    text: String,
}

fn path(task: Uuid) -> String {
    format!("/v1/tasks/{task}/draft")
}

/// The draft of the visitor; empty if there is none.
pub(super) async fn of(visitor: &Visitor, task: Uuid) -> String {
    let draft = visitor.api.get::<Draft>(&path(task)).await;
    let comment = draft.ok().and_then(|draft| draft.comment);
    comment.unwrap_or_default()
}

/// Keeps the text written so far.
pub(super) async fn keep(visitor: &Visitor, task: Uuid, comment: &str) -> Result<(), Trouble> {
    let body = json!({ "comment": comment });
    let kept = visitor.api.put::<Value>(&path(task), &body).await;
    kept.map(drop)
}

/// Keeps the draft of a form. A script gets a short message, and a browser the page of the form again.
pub(super) async fn save(
    Path(task): Path<Uuid>,
    headers: HeaderMap,
    Posted { visitor, fields }: Posted,
) -> Answer {
    let kept = keep(&visitor, task, fields.get("comment")).await;
    if headers.contains_key("hx-request") {
        let text = match kept {
            Ok(()) => visitor.w.t("draft-saved").into_owned(),
            Err(trouble) => visitor.w.with("draft-refused", "reason", &trouble.detail),
        };
        return Ok(page(StatusCode::OK, &SaveResult { text }));
    }
    match kept {
        Ok(()) => Ok(Redirect::to(next_page(fields.get("form"))).into_response()),
        Err(trouble) => Err(visitor.halt(&trouble)),
    }
}
