//! Migrating an instance to another version of its definition, and what that would change.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::App;
use super::commands::{Changed, events, run};
use super::extract::{Body, Caller, DryRun, Options, Path};
use super::problem::Problem;
use super::views::InstanceView;
use crate::domain::answer::OverdueAction;
use crate::domain::command::Command;
use crate::domain::ids::InstanceId;
use crate::domain::instance::{Instance, OpenDeadline};
use crate::domain::json::{Json, whole};
use crate::engine::migration::Side;
use crate::engine::{Action, Identity};

/// How many states a mapping may name.
pub(super) const STATES_MAX: usize = 200;

/// Where an instance goes on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MigrateBody {
    /// A published version of the instance's definition.
    #[serde(deserialize_with = "whole")]
    pub version: u32,
    /// The new name of each state that does not keep its own.
    #[serde(default)]
    pub states: BTreeMap<String, String>,
}

/// What a migration came to, or would change when it is run dry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Migrated {
    #[expect(
        dead_code,
        reason = "it is rendered within the commit; here it stands for its schema"
    )]
    Done(Box<Changed>),
    Dry(Box<MigrationPreview>),
}

/// What a migration would change.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MigrationPreview {
    pub before: SideView,
    pub after: SideView,
    /// The events that it would leave, as CloudEvents.
    #[schema(value_type = Vec<Object>)]
    pub events: Vec<Json>,
    /// Always true: nothing was written.
    pub dry_run: bool,
}

/// An instance before or after.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SideView {
    pub instance: InstanceView,
    /// What the caller may do, and why not the rest.
    pub actions: Vec<Action>,
    pub deadlines: Vec<DeadlineView>,
}

/// A deadline that is open.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeadlineView {
    /// Name of the state.
    pub state: String,
    /// None for the state as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Uuid>,
    #[schema(value_type = String, format = DateTime)]
    pub due_at: Timestamp,
    /// What it does.
    #[schema(value_type = Object)]
    pub action: OverdueAction,
}

/// Takes an instance to another version of its definition. Its state, decisions and data stay; its open work is offered
/// as that version says.
#[utoipa::path(post, path = "/v1/instances/{id}/migrate", tag = "instances", params(("id" = Uuid, Path), DryRun), request_body = MigrateBody,
    responses((status = 200, body = Migrated)))]
pub(super) async fn migrate(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { value, canonical }: Body<MigrateBody>,
) -> Result<Response, Problem> {
    check_states(&value.states)?;
    let command = Command::Migrate {
        instance: InstanceId(id),
        version: value.version,
        states: value.states,
    };
    if !options.dry_run {
        return run(&app, &who, command, options, &canonical).await;
    }
    let preview = app
        .engine
        .preview_migration(&who, &command, options.if_match, &options.trace)
        .await?;
    let events = events(&app, &who, &preview.after.instance, &preview.entries);
    let shown = MigrationPreview {
        before: side(&app, &who, preview.before).await?,
        after: side(&app, &who, preview.after).await?,
        events,
        dry_run: true,
    };
    Ok(axum::Json(Migrated::Dry(Box::new(shown))).into_response())
}

pub(super) fn check_states(states: &BTreeMap<String, String>) -> Result<(), Problem> {
    if states.len() <= STATES_MAX {
        return Ok(());
    }
    let detail = format!("at most {STATES_MAX} states");
    Err(Problem::new("invalid_request", &*detail).at("/states", "too_long", detail))
}

async fn side(app: &App, who: &Identity, side: Side) -> Result<SideView, Problem> {
    let instance = &side.instance;
    let version = app.engine.version(who.tenant, &instance.definition).await?;
    Ok(SideView {
        instance: InstanceView::of(instance, &version.graph),
        deadlines: deadlines(instance),
        actions: side.actions,
    })
}

fn deadlines(instance: &Instance) -> Vec<DeadlineView> {
    let mut shown = Vec::new();
    for stay in &instance.active {
        let mut add = |task, deadlines: &[OpenDeadline]| {
            shown.extend(deadlines.iter().map(|deadline| DeadlineView {
                state: stay.name.clone(),
                task,
                due_at: deadline.due_at,
                action: deadline.action.clone(),
            }));
        };
        add(None, &stay.deadlines);
        for task in stay.tasks.iter().filter(|task| task.status.is_open()) {
            add(Some(task.id.0), &task.deadlines);
        }
    }
    shown.sort_by_key(|deadline| deadline.due_at);
    shown
}
