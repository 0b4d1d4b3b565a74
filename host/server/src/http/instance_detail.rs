//! The members of an instance in answers to reads beside its own: names, priority, deadlines, and the states ahead of it.

use std::collections::{BTreeMap, BTreeSet};

use axum::response::Response;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::{PartialSchema as _, ToSchema};

use super::App;
use super::include::{Fields, NamedIds};
use super::instances::{InstancePart, InstanceSummary};
use super::large::written;
use super::page::{COUNT_MAX, Count, Page, page_to};
use super::problem::Problem;
use super::shapes::StateKindName;
use super::views::{CandidateView, InstanceView, StateView, hides};
use wrkflw_core::ahead::ahead;
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::VersionRef;
use wrkflw_core::instance::{Instance, Status, Task};
use wrkflw_engine::Identity;
use wrkflw_store::attributes;
use wrkflw_store::instances::{self, InstanceFilter, Listed};
use wrkflw_store::names::DisplayNames;
use wrkflw_store::open_work::{self, OpenWork};
use wrkflw_store::viewer::Viewer;

/// An instance as it is read: with names, and what is ahead of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstanceDetail {
    #[serde(flatten)]
    instance: InstanceView,
    /// The highest priority of its active states. None without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    /// As the definition names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority_name: Option<String>,
    /// When the next deadline of the instance passes. None while its deadlines are paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    next_due_at: Option<Timestamp>,
    /// The states that it may still reach: the nearest first, then in their declared order. Empty once it has ended.
    ahead: Vec<StepAhead>,
    /// Who owns its open tasks, each once.
    owners: BTreeSet<String>,
    /// Who owned its tasks that ended, each once. They may be owners, too.
    past_owners: BTreeSet<String>,
    /// The display names of the initiator, requesters, owners and candidates, by id.
    people: BTreeMap<String, String>,
    /// The display names of the groups that are candidates, by id.
    groups: BTreeMap<String, String>,
}

/// A state that an instance may still reach, by its declared transitions. Which way is taken is decided later.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepAhead {
    state: String,
    title: String,
    /// What is done in it; may be empty.
    description: String,
    #[schema(value_type = StateKindName)]
    kind: &'static str,
    /// The fewest transitions that lead to it.
    transitions: u32,
    /// Whether every way to an end leads through it.
    certain: bool,
}

impl StepAhead {
    fn all(graph: &Graph, active: &[&str]) -> Vec<StepAhead> {
        let steps = ahead(graph, active).into_iter();
        steps
            .map(|step| StepAhead {
                state: step.state.name.clone(),
                title: step.state.title.clone(),
                description: step.state.description.clone(),
                kind: step.state.kind.name(),
                transitions: step.transitions,
                certain: step.certain,
            })
            .collect()
    }
}

impl InstanceDetail {
    /// Its active states.
    pub(super) fn states(&mut self) -> &mut [StateView] {
        &mut self.instance.states
    }

    /// As this person may see it.
    pub(super) fn of(
        instance: &Instance,
        graph: &Graph,
        viewer: &str,
        names: DisplayNames,
    ) -> InstanceDetail {
        let active: Vec<_> = instance
            .active
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        let highest = instance.active.iter().rev().max_by_key(|one| one.priority);
        let has_ended = instance.status.ended_at().is_some();
        let (owners, past_owners) = owners(instance, viewer);
        InstanceDetail {
            instance: InstanceView::of(instance, graph, viewer),
            priority: highest.map(|state| state.priority),
            priority_name: highest.and_then(|state| state.priority_name.clone()),
            next_due_at: next_due_at(instance),
            ahead: if has_ended {
                Vec::new()
            } else {
                StepAhead::all(graph, &active)
            },
            owners,
            past_owners,
            people: names.people,
            groups: names.groups,
        }
    }
}

/// The owners of open tasks and of ended ones, as this person may see them.
fn owners(instance: &Instance, viewer: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut present, mut past) = (BTreeSet::new(), BTreeSet::new());
    for state in instance.state_instances() {
        let is_active = instance.active.iter().any(|active| active.id == state.id);
        for task in &state.tasks {
            let Some(owner) = task.owner() else {
                continue;
            };
            if task.status.is_open() {
                present.insert(owner.to_owned());
            } else if !(is_active && hides(state, task, viewer)) {
                past.insert(owner.to_owned());
            }
        }
    }
    (present, past)
}

/// The next of the deadlines that count.
fn next_due_at(instance: &Instance) -> Option<Timestamp> {
    if instance.status != Status::Running {
        return None;
    }
    let of_state = instance.active.iter().flat_map(|state| {
        let open = state.tasks.iter().filter(|task| task.status.is_open());
        let of_tasks = open.flat_map(Task::counting);
        state.deadlines.iter().chain(of_tasks)
    });
    of_state.filter_map(|deadline| deadline.due_at).min()
}

/// Everybody whom an instance names: requesters, owners of its tasks, candidates of its open tasks, and people who suspended or
/// cancelled it or a task.
pub(super) fn named(instance: &Instance, viewer: &str) -> NamedIds {
    let mut named = NamedIds::default();
    let (owners, past_owners) = owners(instance, viewer);
    let requesters = instance.requesters.iter().chain([&instance.initiator]);
    let people = requesters.chain(&owners).chain(&past_owners);
    people.for_each(|id| named.person(id));
    match &instance.status {
        Status::Suspended { by, .. } | Status::Cancelled { by, .. } => named.person(by),
        Status::Running | Status::Completed { .. } => {}
    }
    let tasks = instance.active.iter().flat_map(|state| &state.tasks);
    for task in tasks.filter(|task| task.status.is_open()) {
        task.suspended.iter().for_each(|one| named.person(&one.by));
        task.candidates.iter().for_each(|one| named.candidate(one));
    }
    named
}

/// An instance in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstanceLine {
    #[serde(flatten)]
    instance: InstanceSummary,
    /// Only with `include=people`: who owns an open task.
    #[serde(skip_serializing_if = "Option::is_none")]
    owners: Option<BTreeSet<String>>,
    /// Only with `include=people`: who may claim an open task.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<Vec<CandidateView>>,
    /// Only with `include=ahead`: the states that it may still reach, as in the instance itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<Vec<StepAhead>>,
}

/// An instance of a page, with its parts.
struct ListedInstance {
    instance: instances::InstanceSummary,
    work: Option<OpenWork>,
    ahead: Option<Vec<StepAhead>>,
}

impl ListedInstance {
    fn bytes(&self) -> usize {
        const STEP_BYTES: usize = 120;
        const PERSON_BYTES: usize = 80;
        let ahead = self.ahead.iter().flatten();
        let ahead: usize = ahead.map(|step| STEP_BYTES + step.description.len()).sum();
        let work = self.work.as_ref();
        let people = work.map_or(0, |work| work.owners.len() + work.candidates.len());
        self.instance.bytes() + ahead + PERSON_BYTES * people
    }
}

impl From<ListedInstance> for InstanceLine {
    fn from(line: ListedInstance) -> InstanceLine {
        let (owners, candidates) = line.work.map(|work| (work.owners, work.candidates)).unzip();
        let view = |all: BTreeSet<_>| all.iter().map(CandidateView::of).collect();
        InstanceLine {
            instance: line.instance.into(),
            owners,
            candidates: candidates.map(view),
            ahead: line.ahead,
        }
    }
}

/// The members that a request asks for, besides the filter of the list.
pub(super) struct InstanceListOptions {
    pub include: Vec<InstancePart>,
    pub fields: Fields,
    pub count: bool,
}

/// The members of instances that a request names.
pub(super) fn fields(names: Vec<String>) -> Result<Fields, Problem> {
    Fields::of(names, &[InstanceLine::schema(), InstanceSummary::schema()])
}

/// Answers with a page of instances.
pub(super) async fn page(
    app: &App,
    (who, viewer): (&Identity, &Viewer),
    options: InstanceListOptions,
    filter: InstanceFilter,
) -> Result<Response, Problem> {
    let (reader, includes) = (app.engine.reader(), |part| options.include.contains(&part));
    let Listed { mut lines, next } = instances::list(reader, viewer, &filter).await?;
    let count = if options.count {
        let all = InstanceFilter {
            limit: COUNT_MAX,
            after: None,
            ..filter
        };
        let all = instances::list(reader, viewer, &all).await?;
        Some(Count::of(all.lines.len(), all.next.is_some()))
    } else {
        None
    };
    let ids: Vec<_> = lines.iter().map(|line| line.id).collect();
    if includes(InstancePart::Attributes) {
        let mut attributes = attributes::list(reader, viewer, &ids).await?;
        for line in &mut lines {
            line.attributes = Some(attributes.remove(&line.id).unwrap_or_default());
        }
    }
    let plain = |instance| ListedInstance {
        instance,
        work: None,
        ahead: None,
    };
    let mut lines: Vec<_> = lines.into_iter().map(plain).collect();
    if includes(InstancePart::Ahead) {
        for line in &mut lines {
            line.ahead = Some(steps(app, who, &line.instance).await?);
        }
    }
    let mut names = None;
    if includes(InstancePart::People) {
        let mut works = open_work::find(reader, viewer, &ids).await?;
        let mut everybody = NamedIds::default();
        for line in &mut lines {
            let work = works.remove(&line.instance.id).unwrap_or_default();
            everybody.person(&line.instance.initiator);
            work.owners.iter().for_each(|id| everybody.person(id));
            work.candidates
                .iter()
                .for_each(|one| everybody.candidate(one));
            line.work = Some(work);
        }
        names = Some(everybody.names(app, who.tenant).await?);
    }
    let next = next.map(|id| id.to_string());
    let of_names = names.as_ref().map_or(0, DisplayNames::bytes);
    let bytes = of_names + lines.iter().map(ListedInstance::bytes).sum::<usize>();
    let page =
        move || -> Page<InstanceLine> { page_to(lines, next).with_names(names).with_count(count) };
    let fields = options.fields;
    written(app, who.tenant, bytes, move || fields.text(&page())).await
}

async fn steps(
    app: &App,
    who: &Identity,
    line: &instances::InstanceSummary,
) -> Result<Vec<StepAhead>, Problem> {
    let version = VersionRef {
        key: line.definition_key.clone(),
        version: line.definition_version,
    };
    let version = app.engine.versions().get(who.tenant, &version).await?;
    let active: Vec<_> = match line.status.as_str() {
        "RUNNING" | "SUSPENDED" => line.states.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    Ok(StepAhead::all(&version.graph, &active))
}
