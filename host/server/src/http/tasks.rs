//! Tasks: list and show. `task_commands` has the commands on them.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::commands::READS;
use super::conditional::conditional;
use super::extract::{Caller, Path, Query};
use super::inbox;
use super::include::{commas, words};
use super::instance_detail::{InstanceDetail, named};
use super::large::rendered;
use super::layers::without_query;
use super::outcomes::OutcomeView;
use super::page::{Page, decode, limit};
use super::problem::Problem;
use super::shapes::TaskStatus;
use super::value_error::{self, of_parameter};
use super::view::view;
use super::views::{CandidateView, SuspensionView, TaskView};
use wrkflw_core::actor::Actor;
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::TaskId;
use wrkflw_core::instance::{Candidate, StateInstance, Suspension};
use wrkflw_core::moment;
use wrkflw_engine::Error;
use wrkflw_store::starts;
use wrkflw_store::tasks::{self, TaskFilter, View};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(show));
    OpenApiRouter::new()
        .routes(routes!(list))
        .merge(without_query(conditional(single)))
}

view! {
    of tasks::TaskSummary;
    /// A task, with facts of its instance.
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
        /// The state instance.
        pub state_id: Uuid,
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
        /// When it ended. None for an open task.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, format = DateTime)]
        pub ended_at: Option<Timestamp>,
        /// The outcome of its decision.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub outcome: Option<String>,
    }
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum WhichTasks {
    Mine,
    Available,
    Groups,
    All,
}

impl From<WhichTasks> for View {
    fn from(which: WhichTasks) -> View {
        match which {
            WhichTasks::Mine => View::Mine,
            WhichTasks::Available => View::Available,
            WhichTasks::Groups => View::Groups,
            WhichTasks::All => View::All,
        }
    }
}

/// The order of a list of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
pub(super) enum TaskSort {
    #[serde(rename = "createdAt")]
    Created,
    #[serde(rename = "dueAt")]
    Due,
    #[serde(rename = "-endedAt")]
    Ended,
}

/// Optional parts of a task in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum TaskPart {
    Outcomes,
    Actions,
    People,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TaskQuery {
    /// `mine` (default): those that the caller owns, or somebody for whom the caller stands in. `available`: those that the caller may
    /// claim, now or once they are resumed. `groups`: those of them that are offered to a group of the caller. `all`.
    #[param(inline)]
    pub view: Option<WhichTasks>,
    /// `COMPLETED` or `CANCELLED`: tasks that ended, of their last `owner`. Without it, all open tasks.
    #[param(inline)]
    pub status: Option<TaskStatus>,
    /// Key of a definition.
    #[serde(rename = "definitionKey")]
    pub definition: Option<String>,
    /// Name of a state.
    pub state: Option<String>,
    /// The owner, in the view `all`. Of tasks that ended, the last one.
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
    /// The type of the entity.
    pub entity_type: Option<String>,
    /// The id of the entity. It needs `entityType`.
    pub entity_id: Option<String>,
    /// Words in the title, summary and entity id of the instance, or in one of its text attributes. The last one may be the beginning of a
    /// word.
    #[param(min_length = 1, max_length = 200)]
    pub q: Option<String>,
    /// The outcome by which the task was decided.
    pub outcome: Option<String>,
    /// Of tasks that ended: at or after.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub ended_from: Option<Timestamp>,
    /// Of tasks that ended: before.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub ended_until: Option<Timestamp>,
    /// `createdAt` (default of open tasks). `dueAt`: only those with a deadline of their own or of their state, the earliest first.
    /// `-endedAt` (of tasks that ended): the last one first.
    #[param(inline)]
    pub sort: Option<TaskSort>,
    /// The members that each task of the answer has, separated by commas. Without it, all.
    #[serde(default, deserialize_with = "commas")]
    #[param(value_type = Vec<String>, inline, required = false, style = Form, explode = false)]
    pub fields: Vec<String>,
    /// Whether the answer has the count of all tasks that match, at most 1000.
    #[serde(default)]
    #[param(default = false)]
    pub count: bool,
    /// Further members of each task, separated by commas. `outcomes`: descriptions, and JSON Schemas of the input. `actions`: what the caller may
    /// do with it now. `people`: the answer has the display names of people and groups.
    #[serde(default, deserialize_with = "commas")]
    #[param(value_type = Vec<TaskPart>, inline, required = false, style = Form, explode = false)]
    pub include: Vec<TaskPart>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
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
    pub outcomes: Vec<OutcomeView>,
    /// The state that it belongs to.
    pub state: TaskState,
    pub instance: InstanceDetail,
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

/// Lists tasks: open ones, oldest first, or those that somebody ended.
///
/// If few tasks match, a page may not be full. There may be more as long as `page.next` is present.
#[utoipa::path(get, path = "/v1/tasks", tag = "tasks", operation_id = "listTasks", params(TaskQuery),
    responses((status = 200, body = Page<inbox::TaskSummary>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<TaskQuery>,
) -> Result<Response, Problem> {
    let viewer = app.engine.viewing(&who, "task:read").await?;
    let options = inbox::TaskListOptions {
        include: query.include.clone(),
        fields: inbox::fields(query.fields.clone())?,
        count: query.count,
        limit: limit(query.limit)?,
    };
    let filter = query.filter(app.engine.actor(&who).await?)?;
    inbox::page(&app, (&who, &viewer), &options, filter).await
}

impl TaskQuery {
    pub(super) fn filter(self, actor: Actor) -> Result<TaskFilter, Problem> {
        let status = self.status.map(TaskStatus::filter);
        let filter = TaskFilter {
            definition: self.definition,
            state: self.state,
            owner: self.owner,
            label: self.label,
            min_priority: self.min_priority,
            due_before: self.due_before,
            suspended: self.suspended,
            entity_type: self.entity_type,
            entity_id: self.entity_id,
            words: words(self.q)?,
            status,
            outcome: self.outcome,
            ended_from: self.ended_from,
            ended_until: self.ended_until,
            by_due: self.sort == Some(TaskSort::Due),
            after: decode(self.after.as_deref())?,
            ..TaskFilter::of(self.view.map_or(View::Mine, View::from), actor, 0)
        };
        check(&filter, self.sort)?;
        Ok(filter)
    }
}

/// Refuses parameters that do not go together.
fn check(filter: &TaskFilter, sort: Option<TaskSort>) -> Result<(), Problem> {
    let ended = filter.status.is_some_and(tasks::Status::is_ended);
    let of_ended = [
        ("outcome", filter.outcome.is_some()),
        ("endedFrom", filter.ended_from.is_some()),
        ("endedUntil", filter.ended_until.is_some()),
        ("sort", sort == Some(TaskSort::Ended)),
    ];
    let by_open = [TaskSort::Created, TaskSort::Due].map(Some).contains(&sort);
    let is_of_owner = filter.view == View::All && filter.owner.is_some();
    let by_time = ended || filter.by_due;
    let (name, wrong) = match of_ended.iter().find(|(_, is_set)| *is_set) {
        Some((name @ "sort", _)) if !ended => (
            *name,
            "sort=-endedAt needs status=COMPLETED or CANCELLED".to_owned(),
        ),
        Some((name, _)) if !ended => (*name, format!("{name} needs status=COMPLETED or CANCELLED")),
        _ if ended && by_open => (
            "sort",
            "tasks that ended are in the order -endedAt".to_owned(),
        ),
        _ if ended && filter.view == View::Mine && filter.owner.is_some() => {
            ("owner", "owner needs view=all".to_owned())
        }
        _ if ended && filter.view != View::Mine && !is_of_owner => (
            "view",
            "tasks that ended are of one owner: view=mine, or view=all and owner".to_owned(),
        ),
        _ if filter.entity_id.is_some() && filter.entity_type.is_none() => {
            ("entityId", "entityId needs entityType".to_owned())
        }
        _ if filter
            .after
            .is_some_and(|place| place.at.is_some() != by_time) =>
        {
            let detail = "the cursor is of a list in another order";
            return Err(value_error::wrong(
                "invalid_cursor",
                "/after",
                "malformed",
                detail.to_owned(),
            ));
        }
        _ => return Ok(()),
    };
    Err(of_parameter(name, wrong))
}

/// A task, open or ended, with its instance.
///
/// It needs `task:read` and `instance:read`.
#[utoipa::path(get, path = "/v1/tasks/{id}", tag = "tasks", operation_id = "getTask", params(("id" = Uuid, Path)),
    responses((status = 200, body = TaskDetail)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<Response, Problem> {
    app.engine.permit_all(&who, &["task:read", READS]).await?;
    let missing = || Error::NotFound {
        what: "task",
        id: id.to_string(),
    };
    let instance = starts::instance_of(app.engine.reader(), who.tenant, TaskId(id))
        .await?
        .ok_or_else(missing)?;
    let stored = app.engine.read(&who, instance).await;
    // An instance that the caller does not see has no tasks either.
    let stored = stored.map_err(|error| match error {
        Error::NotFound { .. } => missing(),
        error => error,
    })?;
    let version = app
        .engine
        .versions()
        .get(who.tenant, &stored.instance.definition)
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
    let names = named(&stored.instance, &who.subject)
        .names(&app, who.tenant)
        .await?;
    let bytes = stored.instance.weight() + version.graph.bytes() + names.bytes();
    let viewer = who.subject.clone();
    let detail = move || {
        let (instance, graph) = (&stored.instance, &version.graph);
        let open = instance.open_task(TaskId(id));
        let open = open.filter(|(_, task)| task.status.is_open());
        let outcomes = open.map_or(Vec::new(), |(state_instance, _)| {
            OutcomeView::of_state(graph, &state_instance.name)
        });
        TaskDetail {
            task,
            outcomes,
            state,
            instance: InstanceDetail::of(instance, graph, &viewer, names),
        }
    };
    let answer = rendered(&app, who.tenant, bytes, detail).await?;
    Ok((etag, answer).into_response())
}
