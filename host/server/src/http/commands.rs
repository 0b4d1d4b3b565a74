//! Executes commands and renders their responses, for all routes that change an instance.

use axum::body::Body as ResponseBody;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::answered::events_of;
use super::extract::Options;
use super::minimal::{MinimalInstance, MinimalTask, Preference};
use super::problem::Problem;
use super::shapes::CloudEventShape;
use super::views::{InstanceView, TaskView};
use wrkflw_core::command::Command;
use wrkflw_core::instance::{BufferedSignal, Task};
use wrkflw_core::json::Json;
use wrkflw_engine::{Done, Error, Identity, Rendered, Reply, Request};

/// The permission to read instances.
pub(super) const READS: &str = "instance:read";
/// The header of an answer that has the preferred form.
const APPLIED: &str = "preference-applied: return=";

/// The answer to a command on an instance or a task: what happened, and the instance and the task afterwards.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandAnswer {
    pub result: CommandResult,
    pub instance: ShownInstance,
    /// The task that the command was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<ShownTask>,
    /// The events of the command, as CloudEvents. Only with `return=representation`, and for who may read instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<CloudEventShape>>)]
    pub events: Option<Vec<Json>>,
    /// Nothing was written.
    pub dry_run: bool,
}

/// What a command did, or would do if it is a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CommandResult {
    /// An instance began.
    Started,
    /// The instance changed.
    Changed,
    /// The instance has another version.
    Migrated,
    /// The signal is buffered for a later state, or is being delivered to all.
    Accepted,
    /// It was so before; nothing was recorded.
    Unchanged,
}

/// An instance after a command: in short, or whole with `return=representation`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ShownInstance {
    Minimal(Box<MinimalInstance>),
    Representation(Box<InstanceView>),
}

/// A task after a command: in short, or whole with `return=representation`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ShownTask {
    Minimal(MinimalTask),
    Representation(Box<TaskView>),
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
            // The caller may have lost the permission since the first request.
            if reply.replayed {
                app.engine.permit(who, permission).await?;
            }
            whole_again(app, who, &reply).await?;
            Ok(respond(reply))
        }
        Err(error) => Err(permission_first(app, who, permission, error).await.into()),
    }
}

/// Refuses a stored reply that shows the instance whole to a caller who may not read instances any more. It has the form of the first
/// request, whatever this one prefers. A new reply shows no more than the caller may see.
pub(super) async fn whole_again(app: &App, who: &Identity, reply: &Reply) -> Result<(), Error> {
    let whole = Some(Preference::Representation.name());
    let mut headers = reply.rendered.headers.lines();
    if reply.replayed && headers.any(|line| line.strip_prefix(APPLIED) == whole) {
        app.engine.permit(who, READS).await?;
    }
    Ok(())
}

/// The error for the caller. A caller without the permission must not learn which instances exist. The engine checks the
/// permission after it has loaded the instance. So this function checks it if the instance cannot be loaded.
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

/// The reply to a command, in the form that the caller prefers. A caller who may not read instances gets the minimal form, also for
/// a dry run: a command must not show data that a `GET` would refuse.
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
    let form = if done.actor.may(READS) {
        prefer.unwrap_or(unasked)
    } else {
        Preference::Minimal
    };
    let starts = matches!(done.command, Command::Start { .. });
    let body = serde_json::to_string(&answer(app, who, form, done)).expect("views serialise");
    let etag = format!("etag: \"{}\"", done.instance.revision);
    let applied = prefer.filter(|prefer| *prefer == form);
    let applied = applied.map(|form| format!("{APPLIED}{}", form.name()));
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

fn answer(app: &App, who: &Identity, form: Preference, done: &Done<'_>) -> CommandAnswer {
    let (instance, task, viewer) = (done.instance, task(done), &*who.subject);
    let (shown, shown_task, events) = match form {
        Preference::Minimal => (
            ShownInstance::Minimal(Box::new(MinimalInstance::of(instance))),
            task.map(|task| ShownTask::Minimal(MinimalTask::of(task))),
            None,
        ),
        Preference::Representation => {
            let view = InstanceView::of(instance, &done.version.graph, viewer);
            let of = |task| Box::new(TaskView::in_instance(instance, task, viewer));
            (
                ShownInstance::Representation(Box::new(view)),
                task.map(|task| ShownTask::Representation(of(task))),
                Some(events_of(
                    app,
                    who,
                    &done.version.graph,
                    instance,
                    done.entries,
                )),
            )
        }
    };
    CommandAnswer {
        result: result(done),
        instance: shown,
        task: shown_task,
        events,
        dry_run: done.dry_run,
    }
}

fn result(done: &Done<'_>) -> CommandResult {
    match done.command {
        _ if is_buffered(done) => CommandResult::Accepted,
        _ if done.entries.is_empty() => CommandResult::Unchanged,
        Command::Start { .. } => CommandResult::Started,
        Command::Migrate { .. } => CommandResult::Migrated,
        _ => CommandResult::Changed,
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
