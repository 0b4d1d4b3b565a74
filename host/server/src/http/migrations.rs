//! Migrates an instance to another version of its definition, and shows what that would change.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::actions::ActionView;
use super::answered::events_of;
use super::commands::{CommandAnswer, CommandResult, READS, ShownInstance, permission_first, run};
use super::extract::{Body, Caller, DryRun, Options, Path};
use super::large::rendered;
use super::minimal::MinimalInstance;
use super::problem::Problem;
use super::view::each;
use super::views::InstanceView;
use wrkflw_core::answer::OverdueAction;
use wrkflw_core::command::Command;
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::{Instance, OpenDeadline};
use wrkflw_core::json::whole;
use wrkflw_engine::migration::{self, MigrationPreview, Side};
use wrkflw_engine::validation::check_states;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(migrate))
}

/// The version to which an instance is migrated.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MigrateBody {
    /// A published version of the instance's definition.
    #[serde(deserialize_with = "whole")]
    pub version: u32,
    /// Old to new names, for each state that the new version renames.
    #[serde(default)]
    pub states: BTreeMap<String, String>,
}

/// The answer to a migration. That to its dry run has also what would change, for who may read instances.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MigrationAnswer {
    #[serde(flatten)]
    pub answer: CommandAnswer,
    /// Only of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<SideView>,
    /// Only of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<SideView>,
}

/// The instance before or after the migration.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SideView {
    pub instance: InstanceView,
    /// What the caller may do, and why other actions are refused.
    pub actions: Vec<ActionView>,
    pub deadlines: Vec<DeadlineView>,
}

/// An open deadline that counts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeadlineView {
    /// Name of the state.
    pub state: String,
    /// None for the state as a whole.
    #[serde(rename = "taskId", skip_serializing_if = "Option::is_none")]
    pub task: Option<Uuid>,
    #[schema(value_type = String, format = DateTime)]
    pub due_at: Timestamp,
    /// What it does.
    #[schema(value_type = Object)]
    pub action: OverdueAction,
}

/// Migrates an instance to another version of its definition. It keeps its state, decisions and data. Its open work is
/// offered as that version determines.
#[utoipa::path(post, path = "/v1/instances/{id}/migrate", tag = "instances", operation_id = "migrateInstance", params(("id" = Uuid, Path), DryRun),
    request_body = MigrateBody,
    responses((status = 200, body = MigrationAnswer)))]
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
    let previewed = migration::preview(
        &app.engine,
        &who,
        &command,
        options.if_match,
        &options.trace,
    );
    let MigrationPreview {
        before,
        after,
        entries,
        actor,
    } = match previewed.await {
        Ok(preview) => preview,
        Err(error) => {
            let permission = command.permission();
            return Err(permission_first(&app, &who, permission, error).await.into());
        }
    };
    let versions = [&before, &after].map(|side| side.instance.definition.clone());
    let old = app.engine.versions().get(who.tenant, &versions[0]).await?;
    let new = app.engine.versions().get(who.tenant, &versions[1]).await?;
    let reads = actor.may(READS);
    let (bytes, tenant) = (before.bytes() + after.bytes(), who.tenant);
    let (host, caller) = (app.clone(), who);
    let shown = move || {
        let events =
            reads.then(|| events_of(&host, &caller, &new.graph, &after.instance, &entries));
        let minimal = MinimalInstance::of(&after.instance);
        let of = |graph, one| reads.then(|| side(graph, one, &caller.subject));
        MigrationAnswer {
            answer: CommandAnswer {
                result: CommandResult::Migrated,
                instance: ShownInstance::Minimal(Box::new(minimal)),
                task: None,
                events,
                dry_run: true,
            },
            before: of(&old.graph, before),
            after: of(&new.graph, after),
        }
    };
    rendered(&app, tenant, bytes, shown).await
}

fn side(graph: &Graph, side: Side, viewer: &str) -> SideView {
    SideView {
        instance: InstanceView::of(&side.instance, graph, viewer),
        deadlines: deadlines(&side.instance),
        actions: each(side.actions),
    }
}

fn deadlines(instance: &Instance) -> Vec<DeadlineView> {
    let mut shown = Vec::new();
    for state_instance in &instance.active {
        let mut add = |task, deadlines: &[OpenDeadline]| {
            shown.extend(deadlines.iter().filter_map(|deadline| {
                Some(DeadlineView {
                    state: state_instance.name.clone(),
                    task,
                    due_at: deadline.due_at?,
                    action: deadline.action.clone(),
                })
            }));
        };
        add(None, &state_instance.deadlines);
        for task in state_instance
            .tasks
            .iter()
            .filter(|task| task.status.is_open())
        {
            add(Some(task.id.0), task.counting());
        }
    }
    shown.sort_by_key(|deadline| deadline.due_at);
    shown
}
