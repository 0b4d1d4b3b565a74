//! The forms of actions and their effects.

use std::collections::BTreeMap;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use serde_json::{Value, json};
use uuid::Uuid;

use wrkflw_core::json::Node;

use super::{InstancePageQuery, LoadedInstance, banner, draft, queue};
use crate::api::{Trouble, segment};
use crate::data::{Action, Done, Outcome, TaskDetail};
use crate::fields;
use crate::form::{self, Draft, Form, Preview, Refusal};
use crate::language::Words;
use crate::posted::{Fields, Posted};
use crate::session::{Answer, Halt, Visitor};

/// The people whom one comment may mention. The API has the same limit.
const MENTIONS_MAX: usize = 20;
/// Empty fields for further people. The preview adds more.
const MENTIONS_EMPTY: usize = 2;

/// The input of an action.
struct Shape {
    action: Action,
    name: String,
    comment: &'static str,
    /// The member of the body that has the input; empty if the input is the body itself.
    member: &'static str,
    schema: Option<Value>,
    description: String,
}

/// The path of the command of an action in the API.
pub(super) fn path(action: &Action, instance: Uuid) -> String {
    let command = segment(&action.action);
    match (action.task_id, &action.trigger) {
        (Some(task), _) => format!("/v1/tasks/{task}/{command}"),
        (None, Some(trigger)) => {
            format!("/v1/instances/{instance}/signals/{}", segment(trigger))
        }
        (None, None) => format!("/v1/instances/{instance}/{command}"),
    }
}

impl Shape {
    /// The path of the command in the API.
    fn path(&self, instance: Uuid) -> String {
        path(&self.action, instance)
    }

    fn pointer(&self) -> String {
        match self.member {
            "" => String::new(),
            member => format!("/{member}"),
        }
    }

    fn body(&self, filled: &Fields, w: Words) -> Node {
        let input = self.schema.as_ref();
        let input = input.map(|schema| fields::input(schema, filled, w));
        let mut body = match (self.member, input) {
            ("", Some(Node::Object(members))) => members,
            ("", _) => BTreeMap::new(),
            (member, input) => {
                let input = input.map(|input| (member.to_owned(), input));
                input.into_iter().collect()
            }
        };
        if let Some(outcome) = &self.action.outcome {
            body.insert("outcome".to_owned(), Node::String(outcome.clone()));
        }
        let comment = filled.get("comment").trim();
        if self.comment != "none" && !comment.is_empty() {
            body.insert("comment".to_owned(), Node::String(comment.to_owned()));
        }
        if self.is_comment() {
            let mentions = mentioned(filled);
            if !mentions.is_empty() {
                let mentions = mentions.into_iter().map(Node::String).collect();
                body.insert("mentions".to_owned(), Node::Array(mentions));
            }
        }
        Node::Object(body)
    }

    /// The task for whose decision a comment may be kept before it is sent.
    fn draft(&self) -> Option<Uuid> {
        let decides = self.action.action == "decide" && self.comment != "none";
        self.action.task_id.filter(|_| decides)
    }

    /// Whether it is a comment on the instance, which may mention people.
    fn is_comment(&self) -> bool {
        self.action.action == "comment"
    }

    /// Whether nothing has to be filled in.
    fn is_ready(&self) -> bool {
        let required = |schema: &Value| {
            let names = schema["required"].as_array();
            names.is_some_and(|names| !names.is_empty())
        };
        self.comment != "required" && !self.schema.as_ref().is_some_and(required)
    }
}

/// The people whom a form mentions, each once. If there are too many, just as many as the API refuses.
fn mentioned(filled: &Fields) -> Vec<String> {
    let mut people: Vec<String> = Vec::new();
    for person in filled.all("mention").map(str::trim) {
        if people.len() > MENTIONS_MAX {
            break;
        }
        if !person.is_empty() && !people.iter().any(|one| one == person) {
            people.push(person.to_owned());
        }
    }
    people
}

/// The input of commands whose bodies are not a flow's.
fn own_schema(action: &str, is_of_task: bool, w: Words) -> Option<Value> {
    let reason = json!({ "type": "string", "maxLength": 4096, "title": w.t("field-reason") });
    match (action, is_of_task) {
        ("delegate" | "reassign", true) => {
            let to = json!({ "type": "string", "title": w.t("field-person"), "format": "person" });
            Some(
                json!({ "required": ["to", "reason"], "properties": { "to": to, "reason": reason } }),
            )
        }
        ("reset", true) | ("cancel" | "suspend", false) => {
            Some(json!({ "required": ["reason"], "properties": { "reason": reason } }))
        }
        ("suspend", true) => Some(json!({ "properties": { "reason": reason } })),
        _ => None,
    }
}

/// The chosen action and its input. None if the instance no longer has the action.
async fn shape(
    visitor: &Visitor,
    loaded: &LoadedInstance,
    query: &InstancePageQuery,
) -> Result<Option<Shape>, Halt> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut actions = loaded.actions.actions.iter();
    let chosen = actions.find(|one| {
        let task = one.task_id.map(|task| task.to_string());
        one.action == query.action
            && text(&task) == query.task
            && text(&one.outcome) == query.outcome
            && text(&one.trigger) == query.trigger
    });
    let Some(action) = chosen.cloned() else {
        return Ok(None);
    };
    let name = banner::name(&action, visitor);
    if action.action == "decide"
        && let Some(task) = action.task_id
    {
        let detail: TaskDetail = visitor.get(&format!("/v1/tasks/{task}")).await?;
        let mut outcomes = detail.outcomes.into_iter();
        let outcome = outcomes.find(|one| Some(&one.outcome) == action.outcome.as_ref());
        return Ok(outcome.map(|outcome| decision(action, name, outcome)));
    }
    Ok(Some(of_command(action, name, visitor.w)))
}

/// The input of a command that is not a decision.
fn of_command(action: Action, name: String, w: Words) -> Shape {
    let is_signal = action.trigger.is_some();
    let is_comment = action.action == "comment";
    Shape {
        schema: if is_signal {
            Some(json!({ "type": "object" }))
        } else {
            own_schema(&action.action, action.task_id.is_some(), w)
        },
        member: if is_signal { "input" } else { "" },
        comment: if is_comment { "required" } else { "none" },
        description: String::new(),
        name,
        action,
    }
}

/// The input of a form for an action that the instance no longer has. The input of an outcome of an ended task is not known.
fn of_form(query: &InstancePageQuery, w: Words) -> Shape {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let action = Action {
        action: query.action.clone(),
        task_id: Uuid::parse_str(&query.task).ok(),
        outcome: text(&query.outcome),
        trigger: text(&query.trigger),
        title: None,
        allowed: true,
        refusal: None,
    };
    let decides = action.outcome.is_some();
    let shape = of_command(action, w.t("form-gone").into_owned(), w);
    Shape {
        comment: if decides { "optional" } else { shape.comment },
        ..shape
    }
}

fn decision(action: Action, name: String, outcome: Outcome) -> Shape {
    let texts = [outcome.description, outcome.condition];
    let texts = texts.into_iter().flatten();
    Shape {
        action,
        name: if outcome.title.is_empty() {
            name
        } else {
            outcome.title
        },
        comment: match outcome.comment.as_str() {
            "required" => "required",
            "none" => "none",
            _ => "optional",
        },
        member: "input",
        schema: outcome.input,
        description: texts.collect::<Vec<_>>().join(" "),
    }
}

/// The form of an action with the values filled in so far.
async fn form(
    visitor: &Visitor,
    shape: &Shape,
    loaded: &LoadedInstance,
    query: &InstancePageQuery,
    filled: &Fields,
) -> Form {
    let id = loaded.instance.id;
    let schema = shape.schema.as_ref();
    let names_people = schema.is_some_and(|schema| schema["properties"]["to"].is_object());
    let mut mentions = Vec::new();
    if shape.is_comment() {
        mentions = mentioned(filled);
        let room = MENTIONS_MAX
            .saturating_sub(mentions.len())
            .min(MENTIONS_EMPTY);
        mentions.extend(std::iter::repeat_n(String::new(), room));
    }
    Form {
        description: shape.description.clone(),
        hidden: vec![
            ("action", query.action.clone()),
            ("task", query.task.clone()),
            ("outcome", query.outcome.clone()),
            ("trigger", query.trigger.clone()),
            ("queue", query.queue.clone()),
        ],
        comment: shape.comment,
        comment_value: filled.get("comment").to_owned(),
        mentions: mentions.into_iter().map(|id| (id, String::new())).collect(),
        draft: shape.draft().map(|task| Draft {
            address: format!("/console/tasks/{task}/draft"),
            form: banner::address(&shape.action, loaded),
        }),
        fields: schema.map_or_else(Vec::new, |schema| {
            fields::of(schema, filled, &shape.pointer())
        }),
        people: if names_people || shape.is_comment() {
            form::people(visitor).await
        } else {
            Vec::new()
        },
        ..empty(shape.name.clone(), id, &query.queue).with_key_of(filled)
    }
}

fn empty(name: String, id: Uuid, queue: &str) -> Form {
    let to = format!("/console/instances/{id}/act#act");
    Form::new(name, to, queue::address(id, queue, &[]))
}

/// Shows the effects in the form.
async fn preview(
    visitor: &Visitor,
    shape: &Shape,
    loaded: &LoadedInstance,
    body: &Node,
    form: &mut Form,
) -> Result<(), Trouble> {
    let path = format!("{}?dryRun=true", shape.path(loaded.instance.id));
    let done: Done = visitor.api.post(&path, body, None).await?;
    let known: Vec<_> = loaded
        .instance
        .states
        .iter()
        .map(|state| state.id)
        .collect();
    let preview = Preview::of(&done, &known, loaded.instance.names(), visitor).await;
    form.foresee(&done, preview, body);
    Ok(())
}

/// The form of the action that the address names. If it has no fields to fill in, it shows the effects at once.
pub(in crate::pages) async fn chosen_form(
    visitor: &Visitor,
    loaded: &LoadedInstance,
    query: &InstancePageQuery,
) -> Result<Option<Form>, Halt> {
    if query.action.is_empty() {
        return Ok(None);
    }
    let Some(shape) = shape(visitor, loaded, query).await? else {
        return Ok(None);
    };
    let filled = match shape.draft() {
        Some(task) => {
            let comment = draft::of(visitor, task).await;
            Fields(vec![("comment".to_owned(), comment)])
        }
        None => Fields::default(),
    };
    let mut form = form(visitor, &shape, loaded, query, &filled).await;
    let body = shape.body(&filled, visitor.w);
    if shape.is_ready()
        && let Err(trouble) = preview(visitor, &shape, loaded, &body, &mut form).await
    {
        form.refuse(&trouble, loaded.instance.names(), visitor)
            .await;
    }
    Ok(Some(form))
}

/// The result of a sent form.
pub(in crate::pages) enum Acted {
    /// It was confirmed, and done.
    Done(Action),
    /// It is shown again, with the effects or the reason of the refusal.
    Shown {
        loaded: Box<LoadedInstance>,
        form: Box<Form>,
        status: StatusCode,
    },
}

/// The action that a form names.
pub(in crate::pages) fn query_of(fields: &Fields) -> InstancePageQuery {
    let text = |name: &str| fields.get(name).to_owned();
    InstancePageQuery {
        action: text("action"),
        task: text("task"),
        outcome: text("outcome"),
        trigger: text("trigger"),
        queue: text("queue"),
        ..InstancePageQuery::default()
    }
}

/// A form of the page that was sent.
pub(super) async fn act(Path(id): Path<Uuid>, Posted { visitor, fields }: Posted) -> Answer {
    let query = query_of(&fields);
    let loaded = super::load(&visitor, id, &query.queue).await?;
    let decides = query.action == "decide" && !query.queue.is_empty();
    let next = if decides && form::is_to_be_done(&fields) {
        queue::following(&visitor, &query.queue, id).await
    } else {
        None
    };
    match run(&visitor, loaded, &query, &fields).await? {
        Acted::Done(action) => {
            let to = match next {
                _ if !decides => address_after(&action, id, &query.queue),
                Some(next) => queue::address(next, &query.queue, &[("done", "queue")]),
                None => queue::inbox(&query.queue, &[("done", "queue")]),
            };
            Ok(Redirect::to(&to).into_response())
        }
        Acted::Shown {
            loaded,
            form,
            status,
        } => super::render(&visitor, *loaded, &query, Some(*form), status).await,
    }
}

/// Shows the effects, or runs the action if they were shown.
pub(in crate::pages) async fn run(
    visitor: &Visitor,
    loaded: LoadedInstance,
    query: &InstancePageQuery,
    fields: &Fields,
) -> Result<Acted, Halt> {
    let id = loaded.instance.id;
    let Some(shape) = shape(visitor, &loaded, query).await? else {
        return Ok(resolve_missing_action(visitor, loaded, query, fields).await);
    };
    let body = shape.body(fields, visitor.w);
    let mut form = form(visitor, &shape, &loaded, query, fields).await;
    let mut is_confirmed = form::is_confirmed(fields, &body);
    let mut answer = Ok(());
    if !is_confirmed {
        answer = preview(visitor, &shape, &loaded, &body, &mut form).await;
        is_confirmed = answer.is_ok() && form::has_same_effects(fields, &form.seen);
    }
    if is_confirmed {
        let (path, key) = (shape.path(id), form::key(fields));
        let done = visitor.api.post::<Value>(&path, &body, key).await;
        answer = done.map(drop);
    } else {
        keep_draft(visitor, &shape, fields).await;
    }
    let (loaded, status) = match answer {
        Ok(()) if is_confirmed => return Ok(Acted::Done(shape.action)),
        Ok(()) => (loaded, StatusCode::OK),
        Err(trouble) => {
            // The present state, and who acted first.
            let loaded = super::load(visitor, id, &query.queue).await?;
            form.refuse(&trouble, loaded.instance.names(), visitor)
                .await;
            (loaded, trouble.status())
        }
    };
    Ok(Acted::Shown {
        loaded: Box::new(loaded),
        form: Box::new(form),
        status,
    })
}

/// Keeps the comment in case the visitor leaves at the preview. A failure must not prevent the decision.
async fn keep_draft(visitor: &Visitor, shape: &Shape, fields: &Fields) {
    // Inside of a page of a product, a token permits only decisions.
    let Some(task) = shape.draft().filter(|_| !visitor.is_embedded) else {
        return;
    };
    let result = draft::keep(visitor, task, fields.get("comment")).await;
    if let Err(trouble) = result {
        tracing::debug!(trouble.detail, "a draft was not kept");
    }
}

/// The address of the page after an action.
fn address_after(action: &Action, id: Uuid, queue: &str) -> String {
    let kind = if action.task_id.is_some() {
        "task"
    } else {
        "instance"
    };
    let done = format!("{kind}-{}", action.action);
    queue::address(id, queue, &[("done", &done)])
}

/// The instance no longer has the action. If this form was confirmed and its action was done, that is the result. Otherwise a dry run
/// gives the reason.
async fn resolve_missing_action(
    visitor: &Visitor,
    loaded: LoadedInstance,
    query: &InstancePageQuery,
    fields: &Fields,
) -> Acted {
    let (id, w) = (loaded.instance.id, visitor.w);
    let shape = of_form(query, w);
    let (path, body) = (shape.path(id), shape.body(fields, w));
    let is_to_be_done = form::is_to_be_done(fields);
    // The API tells only that the key was used, not with which content. For a decision, the shown content is no longer known.
    let is_as_shown = !query.outcome.is_empty() || form::is_confirmed(fields, &body);
    if let Some(key) = form::key(fields).filter(|_| is_to_be_done && is_as_shown)
        && visitor.api.was_done(&path, &body, key).await
    {
        return Acted::Done(shape.action);
    }
    let path = format!("{path}?dryRun=true");
    let refusal = match visitor.api.post::<Done>(&path, &body, None).await {
        // The change was made already, such as a claim on another page.
        Ok(tried) if is_to_be_done && tried.result == "unchanged" => {
            return Acted::Done(shape.action);
        }
        Ok(_) => Refusal {
            detail: w.t("first-see-above").into_owned(),
            first: None,
            when: None,
        },
        Err(trouble) => Refusal::of(&trouble, loaded.instance.names(), visitor).await,
    };
    let form = Form {
        refusal: Some(refusal),
        is_over: true,
        ..empty(shape.name, id, &query.queue)
    };
    Acted::Shown {
        loaded: Box::new(loaded),
        form: Box::new(form),
        status: StatusCode::CONFLICT,
    }
}
