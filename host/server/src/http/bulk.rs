//! One action on many tasks. Each task gets an ordinary command, with its own result.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Body, Caller, DryRun, Options};
use super::problem::{FieldError, Problem};
use super::tasks::{TaskQuery, WhichTasks};
use wrkflw_core::command::Command;
use wrkflw_core::ids::TaskId;
use wrkflw_core::json::Json;
use wrkflw_core::moment;
use wrkflw_engine::bulk::{revision_alone, revision_of};
use wrkflw_engine::validation::{check_comment, check_document, check_id, check_key, check_reason};
use wrkflw_engine::{Idempotency, Identity, Request};
use wrkflw_runtime::worker::apart;
use wrkflw_store::tasks::{self, Inbox, TaskFilter};

/// Maximum number of tasks of one request.
const TASKS_MAX: usize = 100;
/// Maximum number of concurrent commands.
const AT_ONCE: usize = 8;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(tasks))
}

/// An action on many tasks, given by their ids or by a filter.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BulkBody {
    #[schema(inline)]
    pub action: BulkAction,
    /// At most 100.
    #[serde(rename = "taskIds")]
    pub tasks: Option<Vec<Uuid>>,
    /// Instead of ids: the first 100 that it finds, oldest first.
    pub filter: Option<BulkFilter>,
    /// Of `reassign`: to whom.
    #[schema(format = "name")]
    pub to: Option<String>,
    /// Of `reassign`: why.
    #[schema(format = "reason")]
    pub reason: Option<String>,
    /// Of `decide`.
    pub outcome: Option<String>,
    /// Of `decide`.
    pub comment: Option<String>,
    /// Of `decide`.
    #[schema(value_type = Option<Object>)]
    pub input: Option<Json>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum BulkAction {
    Claim,
    Release,
    Reassign,
    Decide,
}

/// The filters of the list of open tasks.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BulkFilter {
    #[schema(inline)]
    pub view: Option<WhichTasks>,
    #[serde(rename = "definitionKey")]
    #[schema(format = "key")]
    pub definition: Option<String>,
    /// Name of a state.
    #[schema(format = "key")]
    pub state: Option<String>,
    /// The owner, in the view `all`.
    #[schema(format = "name")]
    pub owner: Option<String>,
    pub label: Option<String>,
    /// At least this priority.
    pub min_priority: Option<i16>,
    /// The task is due before this moment, or, if it has no deadline, its state.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub due_before: Option<Timestamp>,
    /// `true` for suspended tasks only, `false` for all others.
    pub suspended: Option<bool>,
    #[schema(format = "name")]
    pub entity_type: Option<String>,
    /// It needs `entityType`.
    #[schema(format = "name")]
    pub entity_id: Option<String>,
    /// Words in the title, summary and entity id of the instance, or in one of its text attributes.
    #[schema(min_length = 1, max_length = 200)]
    pub q: Option<String>,
}

impl From<BulkFilter> for TaskQuery {
    fn from(filter: BulkFilter) -> TaskQuery {
        TaskQuery {
            view: filter.view,
            definition: filter.definition,
            state: filter.state,
            owner: filter.owner,
            label: filter.label,
            min_priority: filter.min_priority,
            due_before: filter.due_before,
            suspended: filter.suspended,
            entity_type: filter.entity_type,
            entity_id: filter.entity_id,
            q: filter.q,
            ..TaskQuery::default()
        }
    }
}

/// The result of each task, in the order given.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BulkResults {
    pub results: Vec<BulkResult>,
    pub done: usize,
    pub refused: usize,
    /// Whether the filter may find more tasks than one request takes.
    pub more: bool,
    /// Nothing was written.
    pub dry_run: bool,
}

/// The result of one task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BulkResult {
    #[serde(rename = "taskId")]
    pub task: Uuid,
    /// The HTTP status that a request for this task alone would get.
    pub status: u16,
    /// The instance's revision afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// Whether this is the reply to an earlier request with the same key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// The code of the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The host's or the flow's own reason for a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// Claims, releases, reassigns or decides many tasks. None of them fails because of another.
#[utoipa::path(post, path = "/v1/tasks/bulk", tag = "tasks", operation_id = "bulkTasks", params(DryRun), request_body = BulkBody,
    responses((status = 200, body = BulkResults)))]
pub(super) async fn tasks(
    State(app): State<App>,
    Caller(who): Caller,
    options: Options,
    Body { value, canonical }: Body<BulkBody>,
) -> Result<axum::Json<BulkResults>, Problem> {
    check(&value)?;
    // A caller without the permission gets one problem, not a problem for each task.
    let permission = command(&value, TaskId(Uuid::nil())).permission();
    app.engine.permit(&who, permission).await?;
    let (tasks, more) = chosen(&app, &who, &options, &value).await?;
    let idempotency = options.idempotency(&canonical);
    // The keys of the tasks' commands cannot show that the key belongs to another request about other tasks.
    if let Some(whole) = idempotency.as_ref().filter(|_| !options.dry_run) {
        wrkflw_engine::keep_key(&app.engine, &who, whole).await?;
    }
    let dry_run = options.dry_run;
    let given = Arc::new((app, who, options, value, idempotency));
    let one = |task: Uuid| {
        let given = Arc::clone(&given);
        apart(async move {
            let (app, who, options, value, whole) = &*given;
            let command = command(value, TaskId(task));
            act(app, who, options, command, whole.as_ref()).await
        })
    };
    let results: Vec<_> = futures_util::stream::iter(tasks)
        .map(one)
        .buffered(AT_ONCE)
        .collect()
        .await;
    let done = results.iter().filter(|one| one.code.is_none()).count();
    Ok(axum::Json(BulkResults {
        refused: results.len() - done,
        results,
        done,
        more,
        dry_run,
    }))
}

/// The tasks to act on, and whether there are more.
async fn chosen(
    app: &App,
    who: &Identity,
    options: &Options,
    body: &BulkBody,
) -> Result<(Vec<Uuid>, bool), Problem> {
    match (&body.tasks, &body.filter) {
        (Some(tasks), None) => {
            let distinct: BTreeSet<_> = tasks.iter().collect();
            if tasks.is_empty() || tasks.len() > TASKS_MAX || distinct.len() < tasks.len() {
                let detail = format!("1 to {TASKS_MAX} ids, each once");
                return Err(wrong("/taskIds", "malformed", detail));
            }
            Ok((tasks.clone(), false))
        }
        (None, Some(filter)) => {
            if options.idempotency_key.is_some() && !options.dry_run {
                let detail = "a repeated request may find other tasks: with an Idempotency-Key, send `taskIds` instead";
                return Err(wrong("/filter", "not_repeatable", detail));
            }
            let viewer = app.engine.viewing(who, "task:read").await?;
            let limit = i64::try_from(TASKS_MAX + 1).expect("a small number");
            let actor = app.engine.actor(who).await?;
            let query = TaskQuery::from(filter.clone());
            let filter = TaskFilter {
                limit,
                ..query.filter(actor).map_err(of_filter)?
            };
            let Inbox { found, reached } =
                tasks::list(app.engine.reader(), &viewer, &filter).await?;
            let more = found.len() > TASKS_MAX || reached.is_some();
            let ids = found.into_iter().take(TASKS_MAX).map(|task| task.id);
            Ok((ids.collect(), more))
        }
        _ => Err(wrong(
            "/taskIds",
            "required",
            "say which tasks: by `taskIds` or by `filter`, not both",
        )),
    }
}

/// Refuses a body that is not valid for any task.
fn check(body: &BulkBody) -> Result<(), Problem> {
    let deciding = [
        ("/outcome", body.outcome.is_some()),
        ("/comment", body.comment.is_some()),
        ("/input", body.input.is_some()),
    ];
    let giving = [
        ("/to", body.to.is_some()),
        ("/reason", body.reason.is_some()),
    ];
    let (mut astray, mut needed) = (Vec::new(), Vec::new());
    if body.action == BulkAction::Decide {
        needed.push(deciding[0]);
    } else {
        astray.extend(deciding);
    }
    if body.action == BulkAction::Reassign {
        needed.extend(giving);
    } else {
        astray.extend(giving);
    }
    if let Some((pointer, _)) = astray.into_iter().find(|(_, given)| *given) {
        return Err(wrong(
            pointer,
            "unknown_field",
            "the action does not take it",
        ));
    }
    if let Some((pointer, _)) = needed.into_iter().find(|(_, given)| !given) {
        return Err(wrong(pointer, "required", "the action needs it"));
    }
    if let Some(to) = &body.to {
        check_id("/to", to)?;
    }
    if let Some(filter) = &body.filter {
        for (pointer, name) in [
            ("/filter/definitionKey", &filter.definition),
            ("/filter/state", &filter.state),
        ] {
            name.as_deref()
                .map_or(Ok(()), |name| check_key(pointer, name))?;
        }
    }
    if let Some(input) = &body.input {
        check_document("/input", input)?;
    }
    body.comment.as_deref().map_or(Ok(()), check_comment)?;
    body.reason.as_deref().map_or(Ok(()), check_reason)?;
    Ok(())
}

/// Converts the problem of a parameter of the list to that of the member of the filter with its name.
fn of_filter(problem: Problem) -> Problem {
    match problem.errors.first() {
        Some(FieldError {
            pointer,
            code,
            detail,
            ..
        }) => wrong(&format!("/filter{pointer}"), code, detail.clone()),
        None => problem,
    }
}

fn wrong(pointer: &str, code: &str, detail: impl Into<String>) -> Problem {
    let detail = detail.into();
    Problem::new("invalid_request", &*detail).at(pointer, code, detail)
}

fn command(body: &BulkBody, task: TaskId) -> Command {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    match body.action {
        BulkAction::Claim => Command::Claim { task },
        BulkAction::Release => Command::Release { task },
        BulkAction::Reassign => Command::Reassign {
            task,
            to: text(&body.to),
            reason: text(&body.reason),
        },
        BulkAction::Decide => Command::Decide {
            task,
            outcome: text(&body.outcome),
            comment: body.comment.clone(),
            input: body.input.clone().unwrap_or_else(Json::empty),
        },
    }
}

/// Executes one of the commands.
async fn act(
    app: &App,
    who: &Identity,
    options: &Options,
    command: Command,
    whole: Option<&Idempotency>,
) -> BulkResult {
    let task = command.task().expect("a command on a task");
    let request = Request {
        who,
        idempotency: whole.map(|whole| key_of(whole, task)),
        command,
        if_match: None,
        dry_run: options.dry_run,
        trace: options.trace.clone(),
        job: None,
        render: &revision_alone,
    };
    match app.engine.execute(request).await {
        Ok(reply) => BulkResult {
            task: task.0,
            status: reply.rendered.status,
            revision: Some(revision_of(&reply.rendered.body)),
            replayed: reply.replayed,
            code: None,
            reason: None,
            detail: None,
            errors: Vec::new(),
        },
        Err(error) => {
            let problem = Problem::from(error);
            BulkResult {
                task: task.0,
                status: problem.status,
                revision: None,
                replayed: false,
                code: Some(problem.code),
                reason: problem.reason,
                detail: Some(problem.detail),
                errors: problem.errors,
            }
        }
    }
}

/// The idempotency key of one task's command, derived from that of the request.
fn key_of(whole: &Idempotency, task: TaskId) -> Idempotency {
    let mut hasher = Sha256::new();
    hasher.update((whole.key.len() as u64).to_be_bytes());
    hasher.update(whole.key.as_bytes());
    hasher.update(task.0.as_bytes());
    let digest: [u8; 32] = hasher.finalize().into();
    Idempotency {
        key: format!("bulk {}", wrkflw_core::ids::hex(&digest)),
        fingerprint: whole.fingerprint,
    }
}
