//! The operations of the API that change people, groups and roles, and the answers of their dry runs.

use axum::http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::{Trouble, segment};
use crate::posted::Fields;
use crate::session::Visitor;

/// The operation of the API that makes a change.
pub(super) struct Change {
    method: Method,
    pub(super) path: String,
    body: Option<Value>,
}

impl Change {
    pub(super) fn put(path: String, body: Option<Value>) -> Change {
        let method = Method::PUT;
        Change { method, path, body }
    }

    pub(super) fn delete(path: String) -> Change {
        Change {
            method: Method::DELETE,
            path,
            body: None,
        }
    }

    /// The content of a preview, for its digest.
    pub(super) fn content(&self) -> Value {
        json!({ "method": self.method.as_str(), "path": self.path, "body": self.body })
    }

    pub(super) async fn make(&self, visitor: &Visitor, key: Option<&str>) -> Result<(), Trouble> {
        // Only a creation takes a key. The other changes can be repeated without one.
        let key = key.filter(|_| self.method == Method::POST);
        let (method, body) = (self.method.clone(), self.body.as_ref());
        let answer = visitor
            .api
            .change::<Value>(method, &self.path, body, key)
            .await;
        answer.map(drop)
    }

    pub(super) async fn dry_run(&self, visitor: &Visitor) -> Result<ChangeDryRun, Trouble> {
        let path = format!("{}?dryRun=true", self.path);
        let body = self.body.as_ref();
        let method = self.method.clone();
        visitor.api.change(method, &path, body, None).await
    }
}

/// The answer to a dry run.
#[derive(Deserialize)]
pub(super) struct ChangeDryRun {
    #[serde(default)]
    pub(super) orphans: Vec<Orphan>,
    #[serde(default)]
    pub(super) more: bool,
    pub(super) before: Option<Permitted>,
    pub(super) role: Option<Permitted>,
}

/// An open task for which nobody would be eligible.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Orphan {
    pub(super) instance_id: Uuid,
    pub(super) definition_key: String,
    pub(super) state: String,
    pub(super) label: String,
    pub(super) why: String,
}

#[derive(Deserialize)]
pub(super) struct Permitted {
    pub(super) permissions: Vec<String>,
}

/// The changes of a person that are not those of a group.
pub(super) fn of_person(id: &str, action: &str, of: &str, filled: &Fields) -> Change {
    let person = format!("/v1/people/{}", segment(id));
    let text = |name: &str| filled.get(name).trim();
    match action {
        "manager" => {
            let body = json!({ "manager": text("manager") });
            Change::put(format!("{person}/manager"), Some(body))
        }
        "no-manager" => Change::delete(format!("{person}/manager")),
        "return" => Change::delete(format!("{person}/absences/{}", segment(of))),
        _ => {
            let mut body = json!({
                "substitute": text("substitute"),
                "from": moment(text("from")),
                "until": moment(text("until")),
            });
            if !text("definitionKey").is_empty() {
                body["definitionKey"] = json!(text("definitionKey"));
            }
            Change {
                method: Method::POST,
                path: format!("{person}/absences"),
                body: Some(body),
            }
        }
    }
}

/// A moment in UTC from the text of a field. A text that is not a moment is sent unchanged, so that the API refuses it by name.
fn moment(text: &str) -> String {
    let whole = format!("{text}Z");
    let parsed = [format!("{text}:00Z"), whole]
        .into_iter()
        .find(|text| text.parse::<Timestamp>().is_ok());
    parsed.unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_of_a_field_is_one_in_utc() {
        for (given, expected) in [
            ("2026-03-01T12:00", "2026-03-01T12:00:00Z"),
            ("2026-03-01T12:00:05", "2026-03-01T12:00:05Z"),
            ("soon", "soon"),
            ("", ""),
        ] {
            assert_eq!(moment(given), expected);
        }
    }
}
