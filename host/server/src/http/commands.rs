//! Executes commands and renders their responses, for all routes that change an instance.

use axum::body::Body as ResponseBody;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::answered::events_of;
use super::extract::Options;
use super::minimal::{MinimalChanged, MinimalInstance, MinimalTask, Preference};
use super::problem::Problem;
use super::shapes::CloudEventShape;
use super::views::{InstanceView, TaskView};
use wrkflw_core::command::Command;
use wrkflw_core::instance::{BufferedSignal, Task};
use wrkflw_core::json::Json;
use wrkflw_engine::{Done, Error, Identity, Rendered, Reply, Request};

/// A started instance. The short form, unless the caller prefers `return=representation`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum StartAnswer {
    Minimal(Box<MinimalInstance>),
    Representation(Box<Started>),
}

/// The result of a command. The short form, unless the caller prefers `return=representation`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum CommandAnswer {
    Minimal(Box<MinimalChanged>),
    Representation(Box<Changed>),
}

/// A started instance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    #[serde(flatten)]
    pub instance: InstanceView,
    /// The events of the start, as CloudEvents.
    #[schema(value_type = Vec<CloudEventShape>)]
    pub events: Vec<Json>,
    /// Nothing was written.
    pub dry_run: bool,
}

/// The result of a command on an instance or a task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The task that the command was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskView>,
    pub instance: InstanceView,
    /// The events of the command, as CloudEvents.
    #[schema(value_type = Vec<CloudEventShape>)]
    pub events: Vec<Json>,
    /// Nothing was written.
    pub dry_run: bool,
}

/// Executes a command and renders the response.
pub async fn run(
    app: &App,
    who: &Identity,
    command: Command,
    options: Options,
    body: &Json,
) -> Result<Response, Problem> {
    let idempotency = options.idempotency(body);
    let permission = command.permission();
    let prefer = options.prefer;
    let render = |done: &Done<'_>| render(app, who, prefer, done);
    let request = Request {
        who,
        command,
        if_match: options.if_match,
        idempotency,
        dry_run: options.dry_run,
        trace: options.trace,
        job: None,
        render: &render,
    };
    match app.engine.execute(request).await {
        Ok(reply) => {
            seen_again(app, who, permission, &reply).await?;
            Ok(respond(reply))
        }
        Err(error) => Err(permission_first(app, who, permission, error).await.into()),
    }
}

/// Checks the permission again for a stored reply: the caller may have lost it since the first request. For a new reply,
/// the engine has checked it.
async fn seen_again(
    app: &App,
    who: &Identity,
    permission: &'static str,
    reply: &Reply,
) -> Result<(), Error> {
    if reply.replayed {
        app.engine.permit(who, permission).await?;
    }
    Ok(())
}

/// The error for the caller. A caller without the permission must not learn what exists. The engine checks the permission
/// after it has loaded the instance, so this checks it if the instance cannot be loaded.
pub(super) async fn permission_first(
    app: &App,
    who: &Identity,
    permission: &'static str,
    error: Error,
) -> Error {
    let tells = matches!(
        error,
        Error::NotFound { .. } | Error::NoActiveVersion(_) | Error::Retired { .. }
    );
    if !tells {
        return error;
    }
    match app.engine.permit(who, permission).await {
        Ok(()) => error,
        Err(refusal) => refusal,
    }
}

/// The reply to a command, in the form that the caller prefers.
pub(super) fn render(
    app: &App,
    who: &Identity,
    prefer: Option<Preference>,
    done: &Done<'_>,
) -> Rendered {
    let unasked = if done.dry_run {
        Preference::Representation
    } else {
        Preference::Minimal
    };
    let starts = matches!(done.command, Command::Start { .. });
    let body = match (prefer.unwrap_or(unasked), starts) {
        (Preference::Minimal, true) => text(&StartAnswer::Minimal(Box::new(MinimalInstance {
            dry_run: Some(done.dry_run),
            ..MinimalInstance::of(done.instance)
        }))),
        (Preference::Minimal, false) => text(&CommandAnswer::Minimal(Box::new(MinimalChanged {
            task: task(done).map(MinimalTask::of),
            instance: MinimalInstance::of(done.instance),
            dry_run: done.dry_run,
        }))),
        (Preference::Representation, true) => {
            text(&StartAnswer::Representation(Box::new(Started {
                instance: InstanceView::of(done.instance, &done.version.graph, &who.subject),
                events: events_of(app, who, &done.version.graph, done.instance, done.entries),
                dry_run: done.dry_run,
            })))
        }
        (Preference::Representation, false) => {
            text(&CommandAnswer::Representation(Box::new(Changed {
                task: task(done)
                    .map(|task| TaskView::in_instance(done.instance, task, &who.subject)),
                instance: InstanceView::of(done.instance, &done.version.graph, &who.subject),
                events: events_of(app, who, &done.version.graph, done.instance, done.entries),
                dry_run: done.dry_run,
            })))
        }
    };
    let etag = format!("etag: \"{}\"", done.instance.revision);
    let applied = prefer.map(|prefer| format!("preference-applied: return={}", prefer.name()));
    let location = starts.then(|| format!("location: /v1/instances/{}", done.instance.id));
    let headers: Vec<_> = [Some(etag), applied, location]
        .into_iter()
        .flatten()
        .collect();
    Rendered {
        status: status(done, starts),
        body,
        headers: headers.join("\n"),
    }
}

fn status(done: &Done<'_>, starts: bool) -> u16 {
    if done.dry_run {
        200
    } else if starts {
        201
    } else if is_buffered(done) {
        // The signal waits for a later state, so it is only accepted.
        202
    } else {
        200
    }
}

/// The task that the command was about.
fn task<'a>(done: &Done<'a>) -> Option<&'a Task> {
    let id = done.command.task()?;
    done.instance.task(id)
}

/// Whether the command is a signal that was buffered for a later state.
fn is_buffered(done: &Done<'_>) -> bool {
    done.command.signal().is_some_and(|key| {
        let mut buffered = done.instance.buffered.iter();
        let is_own = |signal: &BufferedSignal| {
            signal.id == key.id
                && signal.trigger == key.trigger
                && signal.sender.id == done.actor.id
        };
        key.correlation.is_none() && buffered.any(is_own)
    })
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("views serialise")
}

pub(super) fn respond(reply: Reply) -> Response {
    let mut response = Response::new(ResponseBody::from(reply.rendered.body));
    *response.status_mut() = StatusCode::from_u16(reply.rendered.status).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    for line in reply.rendered.headers.lines() {
        let Some((name, value)) = line.split_once(": ") else {
            continue;
        };
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            headers.insert(name, value);
        }
    }
    if reply.replayed {
        headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    response
}
