//! Two reviews of a document; a rejected one goes back to its author.

use serde::{Deserialize, Serialize};
use wrkflw_guest::{Assignment, CommentRule, Facts, Flow, Graph, Refusal, json};

wrkflw_guest::states! {
    pub enum State {
        Submitted,
        FinalReview,
        /// The author changes the document as the rejection says, or gives it up.
        ReworkRequested,
        Approved,
        Rejected,
    }
}
wrkflw_guest::triggers! { pub enum Trigger { Approve, Reject, Submit, Abandon } }
use State::{Approved, FinalReview, Rejected, ReworkRequested, Submitted};
use Trigger::{Abandon, Approve, Reject, Submit};

wrkflw_guest::config! {
    /// The groups that take part, and whether a rejection has to say why.
    pub struct Config {
        initiators: String = "authors",
        reviewers: String = "reviewers",
        approvers: String = "approvers",
        rejection_needs_comment: bool = true,
    }
}

/// The part of the document that the logic needs: its title.
#[derive(Serialize, Deserialize)]
pub struct Document {
    title: String,
}

pub struct DocumentApproval;

impl Flow for DocumentApproval {
    type Config = Config;
    type Data = Document;
    type State = State;
    type Trigger = Trigger;

    fn graph(config: &Config) -> Graph<State, Trigger> {
        let rejection = if config.rejection_needs_comment {
            CommentRule::Required
        } else {
            CommentRule::Optional
        };
        Graph::start(Submitted)
            .titled("Document approval")
            .described("Two reviews; a rejected document goes back to its author.")
            .instance_title("{/title}")
            .started_by(&config.initiators)
            .data_schema(|| {
                let properties =
                    json!({ "title": { "type": "string" }, "link": { "type": "string" } });
                json!({ "type": "object", "properties": properties, "required": ["title"] })
            })
            .task(Submitted, "First review", |s| {
                s.on(Approve, FinalReview);
                s.on(Reject, ReworkRequested).comment(rejection);
            })
            .task(FinalReview, "Final review", |s| {
                s.on(Approve, Approved);
                s.on(Reject, ReworkRequested).comment(rejection);
            })
            .own_work(ReworkRequested, "Rework", |s| {
                s.on(Submit, Submitted);
                s.on(Abandon, Rejected);
            })
            .terminal(Approved, "APPROVED")
            .terminal(Rejected, "REJECTED")
    }

    fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        Ok(match state {
            Submitted => Assignment::to_group(&facts.config.reviewers),
            FinalReview => Assignment::to_group(&facts.config.approvers),
            _ => Assignment::to_user(facts.initiator()),
        })
    }
}

wrkflw_guest::export!(DocumentApproval);

#[cfg(test)]
mod tests {
    use super::*;
    use wrkflw_guest::testing::{Scenario, decide, given, start};

    fn submitted() -> Scenario<DocumentApproval> {
        let mut flow = given().member("ann", "authors").member("rob", "reviewers");
        flow.when(start("rob", json!({})))
            .denied("not_an_initiator");
        flow.when(start("ann", json!({ "title": "Budget" })))
            .is_titled("Budget");
        flow.member("amy", "approvers")
    }

    #[test]
    fn a_reviewer_and_an_approver_approve() {
        let mut flow = submitted();
        flow.when(decide("amy", Approve)).denied("not_a_candidate");
        flow.when(decide("rob", Approve)).enters(FinalReview);
        flow.when(decide("amy", Approve)).ends("APPROVED");
    }

    #[test]
    fn a_rejected_document_is_reworked_and_reviewed_again() {
        let mut flow = submitted();
        let rejection = decide("amy", Reject).comment("Too dear.");
        flow.follow([decide("rob", Approve), rejection]);
        flow.when(decide("ann", Submit)).enters(Submitted);
    }

    #[test]
    fn an_abandoned_document_is_rejected() {
        let mut flow = submitted();
        flow.follow([decide("rob", Reject).comment("Wrong year.")]);
        flow.when(decide("ann", Abandon)).ends("REJECTED");
    }

    #[test]
    fn a_rejection_needs_a_comment_unless_the_config_says_otherwise() {
        let mut flow = submitted();
        flow.when(decide("rob", Reject))
            .invalid("/comment", "required");
        flow = flow.config(&json!({ "rejectionNeedsComment": false }));
        flow.when(decide("rob", Reject)).enters(ReworkRequested);
    }

    #[test]
    fn a_misspelt_setting_is_refused() {
        let flow = submitted().config(&json!({ "reviewer": "peers" }));
        flow.refuses_config("/reviewer", "unknown");
    }
}
