//! A form that shows its effects before the confirmation, and the errors to correct after a refusal. Its template is `templates/form.html`.

use std::fmt::Display;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use wrkflw_core::json::Node;
use wrkflw_runtime::clock;

use crate::api::{FieldTrouble, Trouble, segment};
use crate::data::Done;
use crate::fields::{self, Field};
use crate::language::Words;
use crate::list::Link;
use crate::moment::Moment;
use crate::names::{Names, divided};
use crate::posted::Fields;
use crate::session::Visitor;

/// People that a form proposes.
const PEOPLE: &str = "/v1/people?limit=100";

/// The form of one action.
pub(crate) struct Form {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The address to which it is sent, and the page to which a reader returns without sending it.
    pub(crate) address: String,
    pub(crate) back: String,
    /// Its hidden fields.
    pub(crate) hidden: Vec<(&'static str, String)>,
    /// `required`, `optional` or `none`.
    pub(crate) comment: &'static str,
    pub(crate) comment_value: String,
    pub(crate) comment_error: String,
    /// The draft that keeps the comment until the form is sent.
    pub(crate) draft: Option<Draft>,
    /// The people whom the comment mentions, each with its error; empty ones are still to be filled in.
    pub(crate) mentions: Vec<(String, String)>,
    pub(crate) fields: Vec<Field>,
    pub(crate) people: Vec<Person>,
    /// Makes a repetition of the confirmed form harmless.
    pub(crate) key: String,
    /// The digests of the preview by [`preview_digests`], to find out whether the form was changed since.
    pub(crate) seen: String,
    pub(crate) preview: Option<Preview>,
    pub(crate) refusal: Option<Refusal>,
    /// Whether nothing is left to send.
    pub(crate) is_over: bool,
}

/// The place of a comment before it is sent.
pub(crate) struct Draft {
    /// Where it is sent to.
    pub(crate) address: String,
    /// The page of the form, to come back to.
    pub(crate) form: String,
}

/// A person whom a form proposes.
#[derive(Deserialize)]
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) name: String,
}

impl Person {
    pub(crate) fn address(&self) -> String {
        format!("/console/people/{}", segment(&self.id))
    }
}

#[derive(Deserialize)]
struct People {
    data: Vec<Person>,
}

/// What will happen.
#[derive(Default)]
pub(crate) struct Preview {
    /// Effects in words, some with a page about them. For changes that are not about one instance.
    pub(crate) effects: Vec<Link>,
    /// How the instance ends, if it does.
    pub(crate) end: Option<String>,
    /// The states afterwards: the title, the people that it waits for, and whether it begins with this change.
    pub(crate) states: Vec<(String, String, bool)>,
    pub(crate) is_unchanged: bool,
}

/// Why an action was refused.
pub(crate) struct Refusal {
    pub(crate) detail: String,
    /// Who acted first or stopped it, if anybody, and when.
    pub(crate) first: Option<String>,
    pub(crate) when: Option<Moment>,
}

/// The people to choose from, at most a hundred. The API refuses an unknown id.
pub(crate) async fn people(visitor: &Visitor) -> Vec<Person> {
    let people = visitor.api.get::<People>(PEOPLE).await;
    people.map_or_else(|_| Vec::new(), |people| people.data)
}

impl Form {
    /// A form without fields.
    pub(crate) fn new(name: String, address: String, back: String) -> Form {
        Form {
            name,
            description: String::new(),
            address,
            back,
            hidden: Vec::new(),
            comment: "none",
            comment_value: String::new(),
            comment_error: String::new(),
            draft: None,
            mentions: Vec::new(),
            fields: Vec::new(),
            people: Vec::new(),
            key: clock::new_id().to_string(),
            seen: String::new(),
            preview: None,
            refusal: None,
            is_over: false,
        }
    }

    /// The form with the key of its last submission, if there was one. A confirmed action may have been done although its answer was lost.
    /// Then a repetition with this key does nothing again.
    pub(crate) fn with_key_of(self, filled: &Fields) -> Form {
        match key(filled) {
            Some(key) => Form {
                key: key.to_owned(),
                ..self
            },
            None => self,
        }
    }

    /// Shows why it was refused, at the fields with errors.
    pub(crate) async fn refuse(&mut self, trouble: &Trouble, names: Names, visitor: &Visitor) {
        // A refused action has no effects to show.
        self.preview = None;
        // The key belongs to another submission. With it, every further attempt would be refused.
        if trouble.code == "idempotency_key_reused" {
            self.key = clock::new_id().to_string();
        }
        let rest = self.attach_errors(trouble);
        let refusal = Refusal::of(trouble, names, visitor).await;
        self.refusal = Some(if rest.len() < trouble.errors.len() {
            let detail = to_mend(&rest, visitor.w);
            Refusal { detail, ..refusal }
        } else {
            refusal
        });
    }

    /// Attaches the API's errors about single members to their fields. Returns the other errors.
    fn attach_errors<'a>(&mut self, trouble: &'a Trouble) -> Vec<&'a FieldTrouble> {
        let mut rest = fields::attach_errors(&mut self.fields, trouble);
        rest.retain(|error| {
            let messages = if error.pointer == "/comment" && self.comment != "none" {
                Some(&mut self.comment_error)
            } else {
                let place = error.pointer.strip_prefix("/mentions/");
                let place = place.and_then(|place| place.parse::<usize>().ok());
                let mention = place.and_then(|place| self.mentions.get_mut(place));
                mention.map(|(_, messages)| messages)
            };
            let Some(messages) = messages else {
                return true;
            };
            fields::add(messages, &error.detail);
            false
        });
        rest
    }

    /// Shows the effects of a request with this body.
    pub(crate) fn show(&mut self, effects: Vec<Link>, body: &impl Display) {
        let preview = Preview {
            effects,
            ..Preview::default()
        };
        self.seen = preview_digests(body, &preview.content());
        self.preview = Some(preview);
    }

    /// Shows what will happen with this body.
    pub(crate) fn foresee(&mut self, done: &Done, preview: Preview, body: &impl Display) {
        let preview = Preview {
            is_unchanged: done.result == "unchanged",
            ..preview
        };
        self.seen = preview_digests(body, &preview.content());
        self.preview = Some(preview);
    }
}

/// The message above a form with errors in some fields, together with the errors of no field.
fn to_mend(rest: &[&FieldTrouble], w: Words) -> String {
    let rest = rest.iter().map(|error| error.named(w));
    let messages = std::iter::once(w.t("form-mend").into_owned()).chain(rest);
    messages.collect::<Vec<_>>().join(" ")
}

impl Refusal {
    /// The person who acted first may no longer have a part in the instance, so the name may not be among these.
    pub(crate) async fn of(trouble: &Trouble, mut names: Names, visitor: &Visitor) -> Refusal {
        let conflict = trouble.conflict.as_ref();
        let text = |member: &str| conflict.and_then(|one| one[member].as_str());
        let w = visitor.w;
        let who = text("by").or_else(|| text("owner"));
        names.look_up(visitor, who.as_slice(), &[]).await;
        let first = who.map(|id| first(trouble, &names.person(id), id == visitor.id(), w));
        let when = text("at").and_then(|at| at.parse::<Timestamp>().ok());
        Refusal {
            when: when.filter(|_| first.is_some()).map(|at| Moment::of(at, w)),
            // Names are clearer than the ids in the API's sentence.
            detail: if first.is_some() && trouble.is_race() {
                String::new()
            } else {
                trouble.detail.clone()
            },
            first,
        }
    }
}

/// Who acted first or stopped it, and how. `is_own`: it was the visitor.
fn first(trouble: &Trouble, who: &str, is_own: bool, w: Words) -> String {
    let conflict = trouble.conflict.as_ref();
    let text = |member: &str| conflict.and_then(|one| one[member].as_str());
    match trouble.code.as_str() {
        // A task may be suspended without a reason.
        "task_suspended" | "instance_suspended" => match text("reason") {
            Some(reason) => w.say("stopped-by", &[("who", who), ("reason", reason)]),
            None => w.with("first-suspended", "who", who),
        },
        // An end names only who cancelled.
        "instance_ended" => w.with("first-cancelled", "who", who),
        _ => match text("outcome") {
            Some(outcome) if is_own => w.with("first-you", "outcome", outcome),
            Some(outcome) => w.say("first-decided", &[("who", who), ("outcome", outcome)]),
            // Somebody has claimed or owns it, or has started an instance.
            None => w.with("first-acted", "who", who),
        },
    }
}

impl Preview {
    /// `known` are the states that are active now. Looks up the names that `names` lacks.
    pub(crate) async fn of(
        done: &Done,
        known: &[Uuid],
        mut names: Names,
        visitor: &Visitor,
    ) -> Preview {
        let w = visitor.w;
        complete(&mut names, done, visitor).await;
        let names = &names;
        let states = done.instance.states.iter().map(|state| {
            let people = state.waits_for(names).join(", ");
            // A short answer has only the name.
            let title = if state.title.is_empty() {
                &state.name
            } else {
                &state.title
            };
            (title.clone(), people, !known.contains(&state.id))
        });
        let end = match done.instance.status.as_str() {
            "COMPLETED" => {
                let outcome = done.instance.outcome.as_deref().unwrap_or_default();
                Some(w.with("ends-with", "outcome", outcome))
            }
            "CANCELLED" => Some(w.t("ends-cancelled").into_owned()),
            _ => None,
        };
        Preview {
            end,
            states: states.collect(),
            ..Preview::default()
        }
    }

    /// All that it shows.
    fn content(&self) -> Value {
        let effects = self.effects.iter();
        let effects: Vec<_> = effects.map(|one| (&one.address, &one.name)).collect();
        json!([effects, self.end, self.states, self.is_unchanged])
    }
}

/// Adds the names of groups and people that will get work, as far as the visitor may read them.
async fn complete(names: &mut Names, done: &Done, visitor: &Visitor) {
    let tasks = done.instance.states.iter().flat_map(|state| &state.tasks);
    let (people, groups) = divided(tasks.flat_map(|task| &task.candidates));
    names.look_up(visitor, &people, &groups).await;
}

/// The digests of a preview, which its form carries: of the body, and of the effects with the body but for its comment.
pub(crate) fn preview_digests(body: &impl Display, effects: &Value) -> String {
    let mut rest = body.to_string();
    if let Ok(Node::Object(mut members)) = Node::parse(&rest) {
        members.remove("comment");
        rest = Node::Object(members).to_string();
    }
    format!("{}.{}", digest(body), digest(&json!([rest, effects])))
}

/// Whether the form was confirmed as it was previewed.
pub(crate) fn is_confirmed(fields: &Fields, body: &impl Display) -> bool {
    let (previewed, _) = halves(fields.get("seen"));
    is_to_be_done(fields) && previewed == digest(body)
}

/// Whether the form was confirmed with another comment than its preview had, and a preview with the new comment shows the same
/// effects. Flows read the comment, so another comment may have other effects.
pub(crate) fn has_same_effects(fields: &Fields, seen: &str) -> bool {
    let (_, previewed) = halves(fields.get("seen"));
    is_to_be_done(fields) && !previewed.is_empty() && previewed == halves(seen).1
}

fn halves(seen: &str) -> (&str, &str) {
    seen.split_once('.').unwrap_or_default()
}

fn digest(of: &impl Display) -> String {
    let digest = Sha256::digest(of.to_string());
    BASE64_URL_SAFE_NO_PAD.encode(&digest[..8])
}

/// Whether the form was sent to be done, and not to be previewed.
pub(crate) fn is_to_be_done(fields: &Fields) -> bool {
    fields.get("step") == "confirm"
}

/// The key of a form that was sent.
pub(crate) fn key(fields: &Fields) -> Option<&str> {
    Some(fields.get("key")).filter(|key| Uuid::parse_str(key).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_previewed_is_confirmed_and_another_comment_only_with_the_same_effects() {
        let sent = |step: &str, seen: String| {
            let pair = |name: &str, value: String| (name.to_owned(), value);
            Fields(vec![pair("step", step.to_owned()), pair("seen", seen)])
        };
        let body = json!({ "outcome": "YES", "comment": "Fine" });
        let other = json!({ "outcome": "YES", "comment": "Never" });
        let (ends, goes_on) = (json!(["ends"]), json!(["goes on"]));
        let form = sent("confirm", preview_digests(&body, &ends));
        assert!(is_confirmed(&form, &body));
        assert!(!is_confirmed(&form, &other));
        assert!(has_same_effects(&form, &preview_digests(&other, &ends)));
        assert!(!has_same_effects(&form, &preview_digests(&other, &goes_on)));
        let no = json!({ "outcome": "NO", "comment": "Fine" });
        assert!(!is_confirmed(&form, &no));
        assert!(!has_same_effects(&form, &preview_digests(&no, &ends)));
        for unseen in [
            sent("confirm", String::new()),
            sent("preview", preview_digests(&body, &ends)),
        ] {
            assert!(!is_confirmed(&unseen, &body));
            assert!(!has_same_effects(&unseen, &preview_digests(&body, &ends)));
        }
        assert!(!has_same_effects(&sent("confirm", String::new()), ""));
    }

    #[test]
    fn a_refusal_says_who_was_first_or_who_stopped_it() {
        let w = Words::named("en").expect("English");
        for (code, conflict, expected) in [
            (
                "task_suspended",
                json!({ "reason": null }),
                "Suspended by Ann",
            ),
            ("task_suspended", json!({ "reason": "Ill" }), "Ann: Ill"),
            ("instance_suspended", json!({ "reason": "Ill" }), "Ann: Ill"),
            ("instance_ended", json!({}), "Cancelled by Ann"),
            (
                "task_taken",
                json!({ "outcome": "YES" }),
                "Ann was first: YES",
            ),
            ("task_taken", json!({}), "Ann was first"),
            ("already_running", json!({}), "Ann was first"),
        ] {
            let trouble = Trouble {
                code: code.to_owned(),
                conflict: Some(Box::new(conflict)),
                ..Trouble::default()
            };
            assert_eq!(first(&trouble, "Ann", false, w), expected, "{code}");
        }
    }

    #[test]
    fn every_error_is_shown_at_its_field_or_above_the_form() {
        let schema = json!({ "properties": { "sum": {}, "day": {} } });
        let mut form = Form {
            comment: "optional",
            mentions: vec![("ann".to_owned(), String::new())],
            fields: fields::of(&schema, &Fields::default(), "/input"),
            ..Form::new(String::new(), String::new(), String::new())
        };
        let error = |pointer: &str, detail: &str| FieldTrouble {
            pointer: pointer.to_owned(),
            code: String::new(),
            detail: detail.to_owned(),
            expected: None,
        };
        let trouble = Trouble {
            errors: vec![
                error("/input/sum", "too small"),
                error("/input/sum", "odd"),
                error("/comment", "too long"),
                error("/mentions/0", "unknown"),
                error("/mentions/1", "unknown"),
                error("/data/year", "over"),
                error("", "contradictory"),
            ],
            ..Trouble::default()
        };
        let rest = form.attach_errors(&trouble);
        let w = Words::named("en").expect("English");
        assert_eq!(
            to_mend(&rest, w),
            "Some fields need another value. /mentions/1: unknown /data/year: over contradictory"
        );
        let sum = form.fields.iter().find(|field| field.label == "sum");
        assert_eq!(sum.expect("a field").error, "too small · odd");
        assert_eq!(form.comment_error, "too long");
        assert_eq!(form.mentions[0].1, "unknown");
        let mut without = Form::new(String::new(), String::new(), String::new());
        assert_eq!(without.attach_errors(&trouble).len(), trouble.errors.len());
    }
}
