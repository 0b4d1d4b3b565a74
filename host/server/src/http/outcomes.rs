//! The outcomes by which a task may be decided, as the API shows them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::shapes::CommentNeed;
use wrkflw_core::graph::{CommentRule, FiredBy, Graph, Transition};
use wrkflw_core::json::{Json, escaped};

/// An outcome by which a task may be decided.
#[derive(Debug, Clone, Serialize, ToSchema)]
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
    /// JSON Pointers into the body of the decision: what it must have. Those inside the members of the input are in its schema.
    pub required: Vec<String>,
    /// What it means, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When it is possible or leads where, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What the decider needs besides being eligible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
    /// JSON Schema of the input. Lists have this and the members above, from `description` on, with `include=outcomes` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub input: Option<Json>,
}

impl OutcomeView {
    /// The outcomes of a state, in their declared order, with all that the definition says of them.
    pub(super) fn of_state(graph: &Graph, state: &str) -> Vec<OutcomeView> {
        let ways = graph.leaving(state);
        let ways = ways.filter(|way| way.by.contains(&FiredBy::Decision));
        ways.map(OutcomeView::of).collect()
    }

    /// The same without descriptions and schemas.
    pub(super) fn brief(self) -> OutcomeView {
        OutcomeView {
            description: None,
            condition: None,
            permission: None,
            input: None,
            ..self
        }
    }

    /// Its approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        const OUTCOME_BYTES: usize = 100;
        let texts = [&self.description, &self.condition, &self.permission];
        let texts = texts.into_iter().flatten().map(String::len);
        let required = self.required.iter().map(String::len);
        let input = self.input.as_ref().map_or(0, |input| input.as_str().len());
        let names = self.outcome.len() + self.title.len();
        OUTCOME_BYTES + names + texts.sum::<usize>() + required.sum::<usize>() + input
    }

    fn of(way: &Transition) -> OutcomeView {
        let words = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        OutcomeView {
            outcome: way.trigger.clone(),
            title: way.shown_title().to_owned(),
            comment: way.comment.name(),
            needs_input: way.input.is_some(),
            required: required(way),
            description: words(&way.description),
            condition: words(&way.condition),
            permission: way.permission.clone(),
            input: way.input.clone(),
        }
    }
}

/// The required parts of a decision: a comment, and members of its input.
fn required(way: &Transition) -> Vec<String> {
    #[derive(Default, Deserialize)]
    struct Schema {
        #[serde(default)]
        required: Vec<String>,
    }
    let input = way.input.as_ref();
    let schema = input.and_then(|input| serde_json::from_str::<Schema>(input.as_str()).ok());
    let members = schema.unwrap_or_default().required.into_iter();
    let pointer = |name: String| format!("/input/{}", escaped(&name));
    let comment = (way.comment == CommentRule::Required).then(|| "/comment".to_owned());
    comment.into_iter().chain(members.map(pointer)).collect()
}
