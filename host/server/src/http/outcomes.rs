//! The outcomes by which a task may be decided, as the API shows them.

use serde::Serialize;
use utoipa::ToSchema;

use super::shapes::CommentNeed;
use wrkflw_core::graph::{FiredBy, Graph, Transition};
use wrkflw_core::json::Json;

/// An outcome by which a task may be decided.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutcomeView {
    /// What a decision names.
    pub outcome: String,
    /// For people; the outcome itself if the definition has no title.
    pub title: String,
    #[schema(value_type = CommentNeed)]
    pub comment: &'static str,
    /// Whether the input must satisfy a schema.
    pub needs_input: bool,
}

/// An outcome by which a task may be decided, with all that the definition says of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutcomeDetail {
    #[serde(flatten)]
    pub outcome: OutcomeView,
    /// What it means, for people.
    pub description: Option<String>,
    /// When it is possible or leads where, for people.
    pub condition: Option<String>,
    /// What the decider needs besides being eligible.
    pub permission: Option<String>,
    /// JSON Schema of the input.
    #[schema(value_type = Option<Object>)]
    pub input: Option<Json>,
}

impl OutcomeView {
    /// The outcomes of a state, in their declared order.
    pub(super) fn of_state(graph: &Graph, state: &str) -> Vec<OutcomeView> {
        let ways = graph.leaving(state).filter(|way| by_decision(way));
        ways.map(OutcomeView::of).collect()
    }

    /// The approximate size of the outcomes of a state, in bytes.
    pub(super) fn bytes_of_state(graph: &Graph, state: &str) -> usize {
        const OUTCOME_BYTES: usize = 80;
        let ways = graph.leaving(state).filter(|way| by_decision(way));
        let bytes = ways.map(|way| OUTCOME_BYTES + way.trigger.len() + way.shown_title().len());
        bytes.sum()
    }

    fn of(way: &Transition) -> OutcomeView {
        OutcomeView {
            outcome: way.trigger.clone(),
            title: way.shown_title().to_owned(),
            comment: way.comment.name(),
            needs_input: way.input.is_some(),
        }
    }
}

impl OutcomeDetail {
    /// The outcomes of a state, in their declared order.
    pub(super) fn of_state(graph: &Graph, state: &str) -> Vec<OutcomeDetail> {
        let words = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let detail = |way: &Transition| OutcomeDetail {
            outcome: OutcomeView::of(way),
            description: words(&way.description),
            condition: words(&way.condition),
            permission: way.permission.clone(),
            input: way.input.clone(),
        };
        let ways = graph.leaving(state).filter(|way| by_decision(way));
        ways.map(detail).collect()
    }
}

fn by_decision(way: &Transition) -> bool {
    way.by.contains(&FiredBy::Decision)
}
