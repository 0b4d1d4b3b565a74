//! The history of an instance: its state instances in order, the notes of its flow on the moves, escalations and comments.

use std::collections::HashMap;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::comments::CommentView;
use super::conditional::conditional;
use super::extract::{Caller, Path};
use super::instances::read;
use super::large::rendered;
use super::layers::without_query;
use super::page::LIMIT_MAX;
use super::problem::Problem;
use super::shapes::EscalationReason;
use super::view::{each, view};
use super::views::{CandidateView, StateView};
use wrkflw_core::answer;
use wrkflw_core::event::Event;
use wrkflw_core::ids::{InstanceId, StateId};
use wrkflw_core::json::Json;
use wrkflw_store::comments::{self, Comment};
use wrkflw_store::load::Stored;
use wrkflw_store::past::{self, Moves, PastMove};
use wrkflw_store::viewer::Viewer;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(history));
    without_query(conditional(single))
}

/// The state instances of an instance with their tasks and decisions: the past ones, oldest first, then the active ones.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct History {
    pub data: Vec<PastStateView>,
    /// The newest comments on the instance, oldest first. `GET /v1/instances/{id}/comments` lists all.
    pub comments: Vec<CommentView>,
    /// Whether older comments are left out.
    pub comments_omitted: bool,
    /// Whether notes of old plans are left out: of all but the newest 500, or beyond a mebibyte.
    pub notes_omitted: bool,
}

/// A state instance, and the notes of the plans that were made in it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PastStateView {
    #[serde(flatten)]
    state: StateView,
    /// The plans with notes, oldest first. Empty in a blind state until it ends.
    plans: Vec<PlanView>,
    /// The escalations of its work, oldest first.
    escalations: Vec<EscalationView>,
}

/// An escalation of work.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EscalationView {
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// None for all open tasks of the state.
    task_id: Option<Uuid>,
    #[schema(value_type = EscalationReason)]
    reason: String,
    /// The former owners, or the candidates of tasks without an owner.
    previous_candidates: Vec<CandidateView>,
    /// The new candidates. Empty for overdue work, whose new tasks have them.
    candidates: Vec<CandidateView>,
}

/// A plan of the flow with its notes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanView {
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The trigger that it followed.
    trigger: String,
    /// The names of the states that it led to; empty if the state went on alone or its branch ended.
    to: Vec<String>,
    /// Why it was chosen.
    notes: Vec<NoteView>,
}

view! {
    of answer::Note;
    /// A note of the flow on why it chose a plan.
    pub(super) struct NoteView {
        /// A code of the flow's own.
        pub code: String,
        /// A sentence for people.
        pub message: String,
        /// What programs may need.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<Object>)]
        pub detail: Option<Json>,
    }
}

/// The history of an instance.
#[utoipa::path(get, path = "/v1/instances/{id}/history", tag = "instances", operation_id = "getInstanceHistory",
    params(("id" = Uuid, Path)), responses((status = 200, body = History)))]
pub(super) async fn history(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<Response, Problem> {
    let Stored { instance, head, .. } = read(&app, &who, id).await?;
    let version = app
        .engine
        .versions()
        .get(who.tenant, &instance.definition)
        .await?;
    let reader = app.engine.reader();
    // The caller sees the instance, or it would not have been read.
    let all = Viewer::all(who.tenant);
    let moves = past::moves(reader, &all, InstanceId(id), head.seq).await?;
    let Moves { newest, omitted } = moves;
    let (mut comments, comments_omitted) = newest_comments(&app, &all, id).await?;
    comments.reverse();
    let texts = comments.iter().filter_map(|one| one.comment.as_ref());
    let read = newest.iter().map(|one| one.payload.len()).sum::<usize>()
        + texts.map(String::len).sum::<usize>();
    let (bytes, viewer) = (instance.weight() + read, who.subject.clone());
    let history = move || {
        let mut plans = noted(&newest);
        let mut escalations = escalated(&newest);
        let graph = &version.graph;
        let mut with_plans = |id: &StateId, state: StateView, tells: bool| PastStateView {
            plans: plans.remove(id).filter(|_| tells).unwrap_or_default(),
            escalations: escalations.remove(id).unwrap_or_default(),
            state,
        };
        let mut data = Vec::new();
        for past in &instance.past {
            data.push(with_plans(
                &past.state.id,
                StateView::past(past, &instance, graph, &viewer),
                true,
            ));
        }
        for state in &instance.active {
            let view = StateView::of(state, &instance, graph, &viewer);
            data.push(with_plans(&state.id, view, !state.blind));
        }
        History {
            data,
            comments: each(comments),
            comments_omitted,
            notes_omitted: omitted,
        }
    };
    rendered(&app, who.tenant, bytes, history).await
}

/// The newest comments, newest first, and whether there are older ones.
async fn newest_comments(
    app: &App,
    viewer: &Viewer,
    id: Uuid,
) -> Result<(Vec<Comment>, bool), Problem> {
    let (reader, instance) = (app.engine.reader(), InstanceId(id));
    let listing = comments::list(reader, viewer, instance, None, LIMIT_MAX + 1);
    let mut comments = listing.await?;
    let are_more = comments.len() > LIMIT_MAX as usize;
    comments.truncate(LIMIT_MAX as usize);
    Ok((comments, are_more))
}

/// The escalations, by the state instance of their work.
fn escalated(moves: &[PastMove]) -> HashMap<StateId, Vec<EscalationView>> {
    let mut escalations: HashMap<_, Vec<_>> = HashMap::new();
    for one in moves {
        if let Ok(Event::TaskEscalated {
            state,
            task,
            reason,
            from,
            to,
            ..
        }) = serde_json::from_str(&one.payload)
        {
            escalations.entry(state).or_default().push(EscalationView {
                at: one.at,
                task_id: task.map(|task| task.0),
                reason,
                previous_candidates: from.iter().map(CandidateView::of).collect(),
                candidates: to.iter().map(CandidateView::of).collect(),
            });
        }
    }
    escalations
}

/// The plans with notes, by the state instance in which they were made.
fn noted(moves: &[PastMove]) -> HashMap<StateId, Vec<PlanView>> {
    let mut plans: HashMap<_, Vec<_>> = HashMap::new();
    for one in moves {
        if let Ok(
            Event::StateTransitioned {
                state,
                trigger,
                to,
                notes,
                ..
            }
            | Event::StateContinued {
                state,
                trigger,
                to,
                notes,
                ..
            },
        ) = serde_json::from_str(&one.payload)
            && !notes.is_empty()
        {
            plans.entry(state).or_default().push(PlanView {
                at: one.at,
                trigger,
                to,
                notes: notes.into_iter().map(NoteView::from).collect(),
            });
        }
    }
    plans
}
