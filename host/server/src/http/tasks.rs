//! Tasks: list, show, claim, release, decide.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::App;
use super::commands::{CommandAnswer, run};
use super::extract::{Body, Caller, DryRun, Options, Path, Query};
use super::large::rendered;
use super::outcomes::{OutcomeDetail, OutcomeView};
use super::page::{Page, decode, limit, page_or_reached};
use super::problem::Problem;
use super::shapes::TaskStatus;
use super::view::view;
use super::views::{CandidateView, InstanceView, SuspensionView, TaskView};
use wrkflw_core::command::Command;
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::{TaskId, VersionRef};
use wrkflw_core::instance::{Candidate, StateInstance, Suspension};
use wrkflw_core::json::Json;
use wrkflw_core::moment;
use wrkflw_core::shown::COMMENT_BYTES_MAX;
use wrkflw_core::version::Version;
use wrkflw_engine::Error;
use wrkflw_engine::validation::check_document;
use wrkflw_store::tasks::{self, Inbox, TaskFilter, View};

/// An open task, with facts of its instance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskSummary {
    #[serde(flatten)]
    task: TaskRow,
    /// The outcomes by which it may be decided.
    outcomes: Vec<OutcomeView>,
}

view! {
    of tasks::TaskSummary;
    /// An open task, with facts of its instance.
    pub(super) struct TaskRow {
        pub id: Uuid,
        pub label: String,
        #[schema(value_type = TaskStatus)]
        pub status: String,
        pub owner: Option<String>,
        /// The person on whose behalf the owner has the task, or the caller would have it.
        pub on_behalf_of: Option<String>,
        #[schema(value_type = Vec<CandidateView>)]
        pub candidates: Vec<Candidate>,
        #[schema(value_type = String, format = DateTime)]
        pub created_at: Timestamp,
        #[schema(value_type = Option<String>, format = DateTime)]
        pub claimed_at: Option<Timestamp>,
        /// Who suspended it, when, and until when. None if it is not suspended.
        #[schema(value_type = Option<SuspensionView>)]
        pub suspended: Option<Suspension>,
        pub state: String,
        pub priority: i16,
        /// As the definition names it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub priority_name: Option<String>,
        #[schema(value_type = Option<String>, format = DateTime)]
        pub due_at: Option<Timestamp>,
        pub instance_id: Uuid,
        pub definition_key: String,
        pub definition_version: u32,
        pub entity_type: String,
        pub entity_id: String,
        pub initiator: String,
        /// The title of the instance, by the template of its definition.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub instance_title: Option<String>,
        /// Its summary.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub instance_summary: Option<String>,
    }
}

impl From<(tasks::TaskSummary, Arc<Version>)> for TaskSummary {
    fn from((row, version): (tasks::TaskSummary, Arc<Version>)) -> TaskSummary {
        TaskSummary {
            outcomes: OutcomeView::of_state(&version.graph, &row.state),
            task: row.into(),
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum WhichTasks {
    Mine,
    Available,
    All,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TaskQuery {
    /// `mine` (default), `available` or `all`.
    #[param(inline)]
    pub view: Option<WhichTasks>,
    #[serde(rename = "definitionKey")]
    pub definition: Option<String>,
    /// Name of a state.
    pub state: Option<String>,
    /// The owner, in the view `all`.
    pub owner: Option<String>,
    /// The label of the task.
    pub label: Option<String>,
    /// At least this priority.
    #[param(minimum = -32_768, maximum = 32_767)]
    pub min_priority: Option<i16>,
    /// The task is due before this moment, or, if it has no deadline, its state.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub due_before: Option<Timestamp>,
    /// `true` for suspended tasks only, `false` for all others.
    pub suspended: Option<bool>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// A decision.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecideBody {
    /// One of the outcomes that the state takes.
    pub outcome: String,
    #[schema(max_length = 4096)]
    pub comment: Option<String>,
    /// Must satisfy the input schema of the outcome.
    #[serde(default = "Json::empty")]
    #[schema(value_type = Object)]
    pub input: Json,
}

/// No fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Empty {}

/// A task with the instance that it belongs to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskDetail {
    pub task: TaskView,
    /// The outcomes by which it may be decided; empty for an ended task.
    pub outcomes: Vec<OutcomeDetail>,
    /// The state that it belongs to.
    pub state: TaskState,
    pub instance: InstanceView,
}

/// The state of a task, for people.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskState {
    /// The state instance.
    pub id: Uuid,
    pub name: String,
    pub title: String,
    /// What is done in it; may be empty.
    pub description: String,
    pub priority: u8,
    /// As the definition names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_name: Option<String>,
}

impl TaskState {
    fn of(state_instance: &StateInstance, graph: &Graph) -> TaskState {
        let name = &state_instance.name;
        let declared = graph.state(name);
        TaskState {
            id: state_instance.id.0,
            name: name.clone(),
            title: declared.map_or(name, |state| &state.title).clone(),
            description: declared.map_or_else(String::new, |state| state.description.clone()),
            priority: state_instance.priority,
            priority_name: state_instance.priority_name.clone(),
        }
    }
}

/// Lists open tasks, oldest first.
///
/// If few tasks match, a page may not be full. There may be more as long as `page.next` is present.
#[utoipa::path(get, path = "/v1/tasks", tag = "tasks", operation_id = "listTasks", params(TaskQuery),
    responses((status = 200, body = Page<TaskSummary>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<TaskQuery>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "task:read").await?;
    let limit = limit(query.limit)?;
    let actor = app.engine.actor(&who).await?;
    let filter = TaskFilter {
        view: match query.view {
            None | Some(WhichTasks::Mine) => View::Mine,
            Some(WhichTasks::Available) => View::Available,
            Some(WhichTasks::All) => View::All,
        },
        actor,
        definition: query.definition,
        state: query.state,
        owner: query.owner,
        label: query.label,
        min_priority: query.min_priority,
        due_before: query.due_before,
        suspended: query.suspended,
        after: decode(query.after.as_deref())?,
        limit: i64::from(limit) + 1,
    };
    let Inbox { found, reached } = app.engine.reader().tasks(who.tenant, &filter).await?;
    let reached = reached.map(|task| task.to_string());
    let mut bytes = 0;
    let mut listed = Vec::with_capacity(found.len());
    for task in found {
        let version = VersionRef {
            key: task.definition_key.clone(),
            version: task.definition_version,
        };
        let version = app.engine.version(who.tenant, &version).await?;
        bytes += task.bytes() + OutcomeView::bytes_of_state(&version.graph, &task.state);
        listed.push((task, version));
    }
    let position = |(task, _): &(tasks::TaskSummary, _)| task.id.to_string();
    let page: Page<TaskSummary> = page_or_reached(listed, limit, reached, position);
    rendered(&app, who.tenant, bytes, || page).await
}

/// A task, open or ended.
#[utoipa::path(get, path = "/v1/tasks/{id}", tag = "tasks", operation_id = "getTask", params(("id" = Uuid, Path)),
    responses((status = 200, body = TaskDetail)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "task:read").await?;
    let missing = || Error::NotFound {
        what: "task",
        id: id.to_string(),
    };
    let instance = app
        .engine
        .reader()
        .instance_of(who.tenant, TaskId(id))
        .await?
        .ok_or_else(missing)?;
    let stored = app.engine.read(&who, instance).await?;
    let version = app
        .engine
        .version(who.tenant, &stored.instance.definition)
        .await?;
    let mut state_instances = stored.instance.state_instances();
    let found = state_instances.find_map(|state_instance| {
        let mut tasks = state_instance.tasks.iter();
        let task = tasks.find(|task| task.id == TaskId(id))?;
        let state = TaskState::of(state_instance, &version.graph);
        let task = TaskView::in_instance(&stored.instance, task, &who.subject);
        Some((task, state))
    });
    let (task, state) = found.ok_or_else(missing)?;
    drop(state_instances);
    let etag = [(header::ETAG, format!("\"{}\"", stored.instance.revision))];
    let bytes = stored.instance.weight() + version.graph.bytes();
    let viewer = who.subject.clone();
    let detail = move || {
        let (instance, graph) = (&stored.instance, &version.graph);
        let open = instance.open_task(TaskId(id));
        let open = open.filter(|(_, task)| task.status.is_open());
        let outcomes = open.map_or(Vec::new(), |(state_instance, _)| {
            OutcomeDetail::of_state(graph, &state_instance.name)
        });
        TaskDetail {
            task,
            outcomes,
            state,
            instance: InstanceView::of(instance, graph, &viewer),
        }
    };
    let answer = rendered(&app, who.tenant, bytes, detail).await?;
    Ok((etag, answer).into_response())
}

/// Claims a task: from now on, only the caller may decide it.
#[utoipa::path(post, path = "/v1/tasks/{id}/claim", tag = "tasks", operation_id = "claimTask", params(("id" = Uuid, Path), DryRun),
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn claim(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { canonical, .. }: Body<Empty>,
) -> Result<Response, Problem> {
    run(
        &app,
        &who,
        Command::Claim { task: TaskId(id) },
        options,
        &canonical,
    )
    .await
}

/// Gives a task back to its candidates.
#[utoipa::path(post, path = "/v1/tasks/{id}/release", tag = "tasks", operation_id = "releaseTask", params(("id" = Uuid, Path), DryRun),
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn release(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { canonical, .. }: Body<Empty>,
) -> Result<Response, Problem> {
    run(
        &app,
        &who,
        Command::Release { task: TaskId(id) },
        options,
        &canonical,
    )
    .await
}

/// Decides a task that the caller owns. A task without an owner is also claimed, if the caller may claim it.
#[utoipa::path(post, path = "/v1/tasks/{id}/decide", tag = "tasks", operation_id = "decideTask", params(("id" = Uuid, Path), DryRun),
    request_body = DecideBody,
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn decide(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { value, canonical }: Body<DecideBody>,
) -> Result<Response, Problem> {
    if value
        .comment
        .as_ref()
        .is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX)
    {
        let detail = format!("a comment has at most {COMMENT_BYTES_MAX} bytes");
        return Err(Problem::new("invalid_request", &*detail).at("/comment", "too_long", detail));
    }
    check_document("/input", &value.input)?;
    let DecideBody {
        outcome,
        comment,
        input,
    } = value;
    let command = Command::Decide {
        task: TaskId(id),
        outcome,
        comment,
        input,
    };
    run(&app, &who, command, options, &canonical).await
}
