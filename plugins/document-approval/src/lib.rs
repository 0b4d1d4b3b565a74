//! Two reviews of a document. A rejected one goes back to its author, who reworks and submits it
//! again, or abandons it.

use serde::{Deserialize, Serialize};
use wrkflw_guest::{AssignCause, Assignment, Event, Facts, Flow, Graph, Verdict, invalid, json};

wrkflw_guest::states! { pub enum State { Submitted, FinalReview, ReworkRequested, Approved, Rejected } }
wrkflw_guest::triggers! { pub enum Trigger { Approve, Reject, Submit, Abandon } }

/// Which groups take part, and whether a rejection has to say why.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    initiators: String,
    reviewers: String,
    approvers: String,
    rejection_needs_comment: bool,
}

impl Default for Config {
    fn default() -> Self {
        let [initiators, reviewers, approvers] =
            ["authors", "reviewers", "approvers"].map(String::from);
        Self {
            initiators,
            reviewers,
            approvers,
            rejection_needs_comment: true,
        }
    }
}

/// What the instance is about; the document itself stays where it is.
#[derive(Serialize, Deserialize)]
pub struct Document {
    title: String,
    link: Option<String>,
}

pub struct DocumentApproval;

impl Flow for DocumentApproval {
    type Config = Config;
    type Data = Document;
    type State = State;
    type Trigger = Trigger;

    fn graph(config: &Config) -> Graph<State, Trigger> {
        Graph::start(State::Submitted)
            .started_by(&config.initiators)
            .schema(json!({
                "type": "object",
                "required": ["title"],
                "properties": { "title": { "type": "string", "minLength": 1 }, "link": { "type": "string" } },
            }))
            .task(State::Submitted, "First review")
            .on(Trigger::Approve, State::FinalReview)
            .on(Trigger::Reject, State::ReworkRequested)
            .task(State::FinalReview, "Final review")
            .on(Trigger::Approve, State::Approved)
            .on(Trigger::Reject, State::ReworkRequested)
            .own_work(State::ReworkRequested, "Rework")
            .on(Trigger::Submit, State::Submitted)
            .on(Trigger::Abandon, State::Rejected)
            .terminal(State::Approved, "APPROVED")
            .terminal(State::Rejected, "REJECTED")
    }

    fn guard(facts: &Facts<Self>, event: &Event<Self>) -> Verdict {
        let unexplained = event.trigger == Trigger::Reject && event.comment().is_empty();
        invalid("/comment", "required", "Say what has to change.")
            .when(facts.config.rejection_needs_comment && unexplained)
    }

    fn assign(facts: &Facts<Self>, state: State, _: &AssignCause) -> Assignment {
        match state {
            State::Submitted => Assignment::to_group(&facts.config.reviewers),
            State::FinalReview => Assignment::to_group(&facts.config.approvers),
            _ => Assignment::to_user(facts.initiator()),
        }
    }
}

wrkflw_guest::export!(DocumentApproval);

#[cfg(test)]
mod tests {
    use wrkflw_guest::testing::{Scenario, decide, given, start};

    use super::*;

    fn submitted() -> Scenario<DocumentApproval> {
        let mut flow = given()
            .member("ann", "authors")
            .member("rob", "reviewers")
            .member("amy", "approvers");
        flow.when(start("ann", json!({ "title": "Budget" })))
            .enters(State::Submitted)
            .offers_to_group("reviewers");
        flow
    }

    #[test]
    fn two_approvals_approve() {
        let mut flow = submitted();
        flow.when(decide("rob", Trigger::Approve))
            .enters(State::FinalReview)
            .offers_to_group("approvers");
        flow.when(decide("amy", Trigger::Approve)).ends("APPROVED");
    }

    #[test]
    fn a_rejected_document_is_reworked_and_reviewed_from_the_beginning() {
        let mut flow = submitted();
        flow.when(decide("rob", Trigger::Approve));
        flow.when(decide("amy", Trigger::Reject).comment("Too dear."))
            .enters(State::ReworkRequested)
            .offers_to_user("ann");
        flow.when(decide("ann", Trigger::Submit))
            .enters(State::Submitted)
            .offers_to_group("reviewers");
    }

    #[test]
    fn an_abandoned_document_is_rejected() {
        let mut flow = submitted();
        flow.when(decide("rob", Trigger::Reject).comment("Wrong year."));
        flow.when(decide("rob", Trigger::Abandon))
            .denied("not_a_candidate");
        flow.when(decide("ann", Trigger::Abandon)).ends("REJECTED");
    }

    #[test]
    fn a_rejection_says_why_unless_it_need_not() {
        submitted()
            .when(decide("rob", Trigger::Reject).comment(" "))
            .invalid("/comment", "required");
        let mut lenient = submitted().config(&json!({ "rejectionNeedsComment": false }));
        lenient
            .when(decide("rob", Trigger::Reject))
            .enters(State::ReworkRequested);
    }

    #[test]
    fn only_authors_start_and_a_title_is_needed() {
        given::<DocumentApproval>()
            .when(start("eve", json!({ "title": "Budget" })))
            .denied("not_an_initiator");
        given::<DocumentApproval>()
            .member("ann", "authors")
            .when(start("ann", json!({})))
            .invalid("/title", "required");
    }

    #[test]
    fn a_misspelt_setting_is_refused() {
        given::<DocumentApproval>()
            .config(&json!({ "reviewer": "peers" }))
            .refuses_config("/reviewer", "unknown");
    }
}
