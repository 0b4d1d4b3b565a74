//! An absence that the visitor enters in the calendar: the chosen days, and the form with the substitute.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use jiff::ToSpan as _;
use jiff::civil::Date;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{MeQuery, render};
use crate::api::{Trouble, segment};
use crate::fields::Field;
use crate::form::{self, Form};
use crate::list::Link;
use crate::names::Names;
use crate::posted::{Fields, Posted};
use crate::session::{Answer, Visitor};
use crate::zone;

/// The permission for one's own absences.
pub(super) const PERMISSION: &str = "absence:self";
const ADDRESS: &str = "/console/me/absences";

/// The days of an absence, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Days {
    pub(super) first: Date,
    pub(super) last: Date,
}

impl Days {
    /// The days that the address names, in either order. None if it names none.
    pub(super) fn of(from: &str, until: &str) -> Option<Days> {
        let from: Date = from.parse().ok()?;
        let until: Date = until.parse().unwrap_or(from);
        Some(Days {
            first: from.min(until),
            last: from.max(until),
        })
    }

    pub(super) fn has(self, day: Date) -> bool {
        (self.first..=self.last).contains(&day)
    }

    fn filled(self) -> Fields {
        let pair = |name: &str, day: Date| (name.to_owned(), day.to_string());
        Fields(vec![pair("from", self.first), pair("until", self.last)])
    }
}

/// The form for these days. None if no day was chosen.
pub(super) async fn chosen_form(visitor: &Visitor, days: Option<Days>) -> Option<Form> {
    let days = days?;
    Some(form(visitor, &days.filled()).await)
}

async fn form(visitor: &Visitor, filled: &Fields) -> Form {
    let w = visitor.w;
    let field = |name: &str, label: &str, kind: &'static str| {
        Field::named(name, w.t(label).into_owned(), kind, filled)
    };
    Form {
        fields: vec![
            field("substitute", "people-field-substitute", "person"),
            field("from", "absence-first", "date"),
            field("until", "absence-last", "date"),
            Field {
                required: false,
                ..field("definitionKey", "people-field-definitionKey", "text")
            },
        ],
        people: form::people(visitor).await,
        ..Form::new(
            w.t("people-do-absent").into_owned(),
            format!("{ADDRESS}#act"),
            "/console/me#absences".to_owned(),
        )
        .with_key_of(filled)
    }
}

/// The body for the API: from the beginning of the first day to the end of the last one, in the zone of the visitor.
fn body(filled: &Fields, visitor: &Visitor) -> Value {
    let text = |name: &str| filled.get(name).trim();
    let begin = |day: &str| zone::day(day, visitor.w.zone());
    let last = text("until").parse::<Date>().ok();
    let next = last.and_then(|last| last.checked_add(1.day()).ok());
    let until = next.map_or_else(|| text("until").to_owned(), |next| next.to_string());
    let mut body = json!({
        "substitute": text("substitute"),
        "from": begin(text("from")),
        "until": begin(&until),
    });
    if !text("definitionKey").is_empty() {
        body["definitionKey"] = json!(text("definitionKey"));
    }
    body
}

/// The answer to a dry run.
#[derive(Deserialize)]
struct AbsenceDryRun {
    #[serde(default)]
    orphans: Vec<IgnoredAny>,
}

async fn effects(visitor: &Visitor, path: &str, body: &Value) -> Result<Vec<Link>, Trouble> {
    let w = visitor.w;
    let path = format!("{path}?dryRun=true");
    let dry_run: AbsenceDryRun = visitor.api.post(&path, body, None).await?;
    let mut effects = vec![Link::to("", w.t("absence-effect"))];
    if !dry_run.orphans.is_empty() {
        effects.push(Link::to("", w.n("people-orphans", dry_run.orphans.len())));
    }
    Ok(effects)
}

/// Handles a sent form: shows the effects, or adds the absence if they were shown.
pub(super) async fn act(Posted { visitor, fields }: Posted) -> Answer {
    let body = body(&fields, &visitor);
    let path = format!("/v1/people/{}/absences", segment(visitor.id()));
    let mut form = form(&visitor, &fields).await;
    let answer = if form::is_confirmed(&fields, &body) {
        let key = form::key(&fields);
        let done = visitor.api.post::<Value>(&path, &body, key).await;
        if done.is_ok() {
            let to = Redirect::to("/console/me?done=absent#absences");
            return Ok(to.into_response());
        }
        done.map(drop)
    } else {
        let effects = effects(&visitor, &path, &body).await;
        effects.map(|effects| form.show(effects, &body))
    };
    let status = match answer {
        Ok(()) => StatusCode::OK,
        Err(trouble) => {
            form.refuse(&trouble, Names::default(), &visitor).await;
            trouble.status()
        }
    };
    let query = MeQuery {
        month: fields.get("from").get(..7).unwrap_or_default().to_owned(),
        from: fields.get("from").to_owned(),
        until: fields.get("until").to_owned(),
        done: String::new(),
    };
    render(&visitor, &query, Some(form), status).await
}

/// Ends an absence of the visitor now, or takes it back if it is ahead.
pub(super) async fn end(Path(id): Path<Uuid>, Posted { visitor, .. }: Posted) -> Answer {
    let path = format!("/v1/people/{}/absences/{id}", segment(visitor.id()));
    let ended = visitor.api.delete(&path).await;
    ended.map_err(|trouble| visitor.halt(&trouble))?;
    Ok(Redirect::to("/console/me?done=return#absences").into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_two_days_in_either_order() {
        let day = |text: &str| text.parse::<Date>().expect("a day");
        let days = Days::of("2026-03-05", "2026-03-02").expect("days");
        assert_eq!(
            (days.first, days.last),
            (day("2026-03-02"), day("2026-03-05"))
        );
        assert!(days.has(day("2026-03-05")) && !days.has(day("2026-03-06")));
        let one = Days::of("2026-03-05", "").expect("a day");
        assert_eq!(one.first, one.last);
        assert_eq!(Days::of("", "2026-03-05"), None);
    }
}
