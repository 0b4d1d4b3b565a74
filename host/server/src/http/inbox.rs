//! A page of tasks: each with its texts in the definition, and on request with names and actions.

use std::collections::HashMap;
use std::sync::Arc;

use axum::response::Response;
use serde::Serialize;
use utoipa::{PartialSchema as _, ToSchema};

use super::App;
use super::actions::ActionView;
use super::include::{Fields, NamedIds};
use super::large::written;
use super::outcomes::OutcomeView;
use super::page::{COUNT_MAX, Count, Page, page_to};
use super::problem::Problem;
use super::tasks::{TaskPart, TaskRow};
use super::view::each;
use wrkflw_core::ids::VersionRef;
use wrkflw_core::version::Version;
use wrkflw_engine::{Identity, OpenTask};
use wrkflw_store::names::DisplayNames;
use wrkflw_store::tasks::{self, Inbox, TaskFilter};
use wrkflw_store::viewer::Viewer;

/// A task, with facts of its instance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskSummary {
    #[serde(flatten)]
    task: TaskRow,
    /// The title of its state, for people.
    state_title: String,
    /// What is done in the state; may be empty.
    state_description: String,
    /// The outcomes by which it may be decided; empty once it has ended.
    outcomes: Vec<OutcomeView>,
    /// Only with `include=actions`: what the caller may do with it by the rules of the host. Flow logic may still refuse an allowed
    /// action, which a dry run or the actions of the instance tell. Left out if the page has too many (ask for a smaller one), and for
    /// tasks that have ended or just changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    actions: Option<Vec<ActionView>>,
}

/// The texts and outcomes of a state in the definition. Many tasks of a page share them.
struct Declared {
    version: Arc<Version>,
    title: String,
    description: String,
    outcomes: Vec<OutcomeView>,
    bytes: usize,
}

impl Declared {
    fn of(version: Arc<Version>, state: &str, in_full: bool) -> Declared {
        let graph = &version.graph;
        let declared = graph.state(state);
        let title = declared.map_or(state, |state| &state.title).to_owned();
        let description = declared.map_or_else(String::new, |state| state.description.clone());
        let outcomes = OutcomeView::of_state(graph, state).into_iter();
        let outcomes: Vec<_> = if in_full {
            outcomes.collect()
        } else {
            outcomes.map(OutcomeView::brief).collect()
        };
        let bytes = outcomes.iter().map(OutcomeView::bytes).sum::<usize>();
        Declared {
            bytes: bytes + title.len() + description.len(),
            version,
            title,
            description,
            outcomes,
        }
    }
}

/// The declarations of the states of a page, by version and state.
#[derive(Default)]
struct Declarations(HashMap<(VersionRef, String), Arc<Declared>>);

impl Declarations {
    async fn of(
        &mut self,
        app: &App,
        who: &Identity,
        task: &tasks::TaskSummary,
        in_full: bool,
    ) -> Result<Arc<Declared>, Problem> {
        let version = VersionRef {
            key: task.definition_key.clone(),
            version: task.definition_version,
        };
        let key = (version, task.state.clone());
        if let Some(known) = self.0.get(&key) {
            return Ok(known.clone());
        }
        let version = app.engine.versions().get(who.tenant, &key.0).await?;
        let declared = Arc::new(Declared::of(version, &task.state, in_full));
        self.0.insert(key, declared.clone());
        Ok(declared)
    }
}

/// A task with its parts.
struct ListedTask {
    task: tasks::TaskSummary,
    declared: Arc<Declared>,
    actions: Option<Vec<wrkflw_engine::Action>>,
}

impl ListedTask {
    fn bytes(&self) -> usize {
        let actions = self.actions.iter().flatten();
        let actions = actions.map(wrkflw_engine::Action::bytes);
        self.task.bytes() + self.declared.bytes + actions.sum::<usize>()
    }

    fn open(&self) -> OpenTask {
        OpenTask {
            id: self.task.id,
            instance: self.task.instance_id,
            state_id: self.task.state_id,
            state: self.task.state.clone(),
            version: self.declared.version.clone(),
        }
    }
}

impl From<ListedTask> for TaskSummary {
    fn from(line: ListedTask) -> TaskSummary {
        let outcomes = if line.task.ended_at.is_none() {
            line.declared.outcomes.clone()
        } else {
            Vec::new()
        };
        TaskSummary {
            task: line.task.into(),
            state_title: line.declared.title.clone(),
            state_description: line.declared.description.clone(),
            outcomes,
            actions: line.actions.map(each),
        }
    }
}

/// The members that a request asks for, besides the filter of the list.
pub(super) struct TaskListOptions {
    pub include: Vec<TaskPart>,
    pub fields: Fields,
    pub count: bool,
    pub limit: u32,
}

/// The members of tasks that a request names.
pub(super) fn fields(names: Vec<String>) -> Result<Fields, Problem> {
    Fields::of(names, &[TaskSummary::schema(), TaskRow::schema()])
}

/// Answers with a page of tasks.
pub(super) async fn page(
    app: &App,
    (who, viewer): (&Identity, &Viewer),
    options: &TaskListOptions,
    filter: TaskFilter,
) -> Result<Response, Problem> {
    let (limit, reader) = (options.limit, app.engine.reader());
    let count = if options.count {
        let counted = TaskFilter {
            limit: i64::from(COUNT_MAX) + 1,
            after: None,
            ..filter.clone()
        };
        let all = tasks::list(reader, viewer, &counted).await?;
        Some(Count::of(all.found.len(), all.reached.is_some()))
    } else {
        None
    };
    let filter = TaskFilter {
        limit: i64::from(limit) + 1,
        ..filter
    };
    let Inbox { mut found, reached } = tasks::list(reader, viewer, &filter).await?;
    // The task after the page only shows that there is a next page. The answer names none of its people.
    let is_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let last = found.last().filter(|_| is_more);
    let next = last.map_or(reached, |task| Some(filter.place(task)));
    let next = next.map(|place| place.to_string());
    let lines = lines(app, who, options, found).await?;
    let names = if options.include.contains(&TaskPart::People) {
        Some(named(&lines).names(app, who.tenant).await?)
    } else {
        None
    };
    let names_bytes = names.as_ref().map_or(0, DisplayNames::bytes);
    let bytes = names_bytes + lines.iter().map(ListedTask::bytes).sum::<usize>();
    let page = move || -> Page<TaskSummary> {
        let page = page_to(lines, next);
        page.with_names(names).with_count(count)
    };
    let fields = options.fields.clone();
    written(app, who.tenant, bytes, move || fields.text(&page())).await
}

/// The tasks with their parts.
async fn lines(
    app: &App,
    who: &Identity,
    options: &TaskListOptions,
    found: Vec<tasks::TaskSummary>,
) -> Result<Vec<ListedTask>, Problem> {
    let includes = |part| options.include.contains(&part);
    let mut declarations = Declarations::default();
    let mut lines = Vec::with_capacity(found.len());
    for task in found {
        let in_full = includes(TaskPart::Outcomes);
        let declared = declarations.of(app, who, &task, in_full).await?;
        let actions = None;
        lines.push(ListedTask {
            task,
            declared,
            actions,
        });
    }
    if includes(TaskPart::Actions) {
        let open = lines.iter();
        let open = open.filter(|line| line.task.ended_at.is_none());
        let open: Vec<_> = open.map(ListedTask::open).collect();
        let mut actions = app.engine.actions().on_tasks(who, &open).await?;
        for line in &mut lines {
            line.actions = actions.remove(&line.task.id);
        }
    }
    Ok(lines)
}

/// Everybody whom the tasks name.
fn named(lines: &[ListedTask]) -> NamedIds {
    let mut named = NamedIds::default();
    for ListedTask { task, .. } in lines {
        let suspended = task.suspended.as_ref().map(|suspension| &suspension.by);
        let people = [task.owner.as_ref(), task.on_behalf_of.as_ref(), suspended];
        let people = people.into_iter().flatten().chain([&task.initiator]);
        people.for_each(|id| named.person(id));
        let candidates = task.candidates.iter();
        candidates.for_each(|candidate| named.candidate(candidate));
    }
    named
}
