//! The diagram of an instance: that of its definition, with the path that the instance took.

use std::collections::HashMap;
use wrkflw_core::instance::blind::hidden_entry;

use axum::extract::State;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::conditional::conditional;
use super::extract::{Caller, Path};
use super::instances::read;
use super::layers::without_query;
use super::problem::Problem;
use super::views::is_hidden;
use super::{App, svg};
use crate::diagram::{Taken, TakenEdge};
use wrkflw_core::instance::{Candidate, Instance, StateInstance};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(diagram));
    without_query(conditional(single))
}

/// The diagram of the definition with the path that the instance took.
#[utoipa::path(get, path = "/v1/instances/{id}/diagram.svg", tag = "instances", operation_id = "getInstanceDiagram", params(("id" = Uuid, Path)),
    responses((status = 200, content_type = "image/svg+xml", body = String)))]
pub(super) async fn diagram(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<Response, Problem> {
    let stored = read(&app, &who, id).await?;
    let version = app
        .engine
        .versions()
        .get(who.tenant, &stored.instance.definition)
        .await?;
    let (tenant, viewer) = (who.tenant, who.subject);
    let draw = move || crate::diagram::svg(&version.graph, Some(&taken(&stored.instance, &viewer)));
    Ok(svg(app.engine.offload().run(tenant, draw).await?))
}

/// The edges that the instance took and that this person may see, in the order of the state instances to which they led.
fn taken(instance: &Instance, viewer: &str) -> Taken {
    let mut taken = Taken::default();
    let state_instances: HashMap<_, _> = instance
        .state_instances()
        .map(|state_instance| (state_instance.id, state_instance))
        .collect();
    let left = instance.past.iter();
    let left_trigger: HashMap<_, _> = left
        .map(|past| (past.state.id, &past.left_trigger))
        .collect();
    for state_instance in instance.state_instances() {
        *taken.visits.entry(state_instance.name.clone()).or_default() += 1;
        let entered_trigger = state_instance.entered_trigger.as_ref();
        let entered_trigger =
            entered_trigger.filter(|_| !is_hidden(hidden_entry(instance, state_instance), viewer));
        let sources = state_instance.predecessors.iter();
        for source in sources.filter_map(|id| state_instances.get(id)) {
            // Each branch that a join waited for is drawn with the trigger by which its last state was left.
            let trigger = match left_trigger.get(&source.id) {
                Some(trigger) if state_instance.predecessors.len() > 1 => Some(*trigger),
                _ => entered_trigger,
            };
            if let Some(trigger) = trigger {
                taken.edges.push(TakenEdge {
                    source: source.name.clone(),
                    trigger: trigger.clone(),
                    target: state_instance.name.clone(),
                });
            }
        }
    }
    for state_instance in &instance.active {
        let active = taken.active.entry(state_instance.name.clone()).or_default();
        active.extend(work(state_instance));
    }
    taken
}

/// Who owns the open tasks of a state instance, or may claim them, and when it or its next task is due.
fn work(state_instance: &StateInstance) -> Vec<String> {
    let open = || {
        state_instance
            .tasks
            .iter()
            .filter(|task| task.status.is_open())
    };
    let (mut owners, mut candidates) = (Vec::new(), Vec::new());
    for task in open() {
        if let Some(owner) = task.owner() {
            push_new(&mut owners, owner);
        } else {
            let ids = task.candidates.iter().map(Candidate::id);
            ids.for_each(|id| push_new(&mut candidates, id));
        }
    }
    let due = open()
        .filter_map(|task| task.due_at)
        .chain(state_instance.due_at)
        .min();
    [("with", owners), ("for", candidates)]
        .into_iter()
        .filter(|(_, people)| !people.is_empty())
        .map(|(how, people)| format!("{how} {}", few(&people)))
        .chain(due.map(|due| format!("due {} UTC", due.strftime("%F %R"))))
        .collect()
}

fn push_new<'a>(people: &mut Vec<&'a str>, id: &'a str) {
    if !people.contains(&id) {
        people.push(id);
    }
}

/// The first of them, and how many more there are.
fn few(people: &[&str]) -> String {
    const SHOWN_MAX: usize = 2;
    let shown = people[..people.len().min(SHOWN_MAX)].join(", ");
    match people.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} +{more}"),
    }
}
