//! A review to which somebody adds reviewers while it runs.

use serde::{Deserialize, Serialize};
use wrkflw_guest::testing::{Scenario, decide, given, start};
use wrkflw_guest::{
    Assignment, Event, Facts, Flow, Graph, NoConfig, Plan, Quorum, Refusal, Verdict, allow, json,
};

wrkflw_guest::states! { enum State { Review, Done } }
wrkflw_guest::triggers! { enum Trigger { Approve, Invite } }
use State::{Done, Review};
use Trigger::{Approve, Invite};

#[derive(Serialize, Deserialize)]
struct Paper {
    reviewers: Vec<String>,
}

#[derive(Deserialize)]
struct Invited {
    reviewer: String,
}

struct Papers;

impl Flow for Papers {
    type Config = NoConfig;
    type Data = Paper;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Review)
            .task(Review, "Review", |s| {
                s.on(Approve, Done);
                s.on(Invite, Done);
            })
            .terminal(Done, "DONE")
    }

    fn guard(_: &Facts<Self>, event: &Event<Self>) -> Verdict {
        if event.trigger == Invite {
            event.require_field("/reviewer")?;
        }
        allow()
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match (event.trigger, event.quorum(Approve)) {
            (Invite, _) => {
                let invited: Invited = event.input()?;
                Plan::reoffer().change(facts, |paper| paper.reviewers.push(invited.reviewer))
            }
            (Approve, Quorum::Reached) => Plan::to(Done),
            (Approve, _) => Plan::stay(),
        })
    }

    fn assign(facts: &Facts<Self>, _: State) -> Result<Assignment, Refusal> {
        Ok(Assignment::any_of(&facts.data.reviewers, 2))
    }
}

fn submitted() -> Scenario<Papers> {
    let mut flow = given();
    flow.follow([start("ann", json!({ "reviewers": ["bob", "cid", "dan"] }))]);
    flow
}

#[test]
fn an_invited_reviewer_has_a_task_and_the_others_keep_theirs() {
    let mut flow = submitted();
    flow.when(decide("bob", Invite))
        .invalid("/input/reviewer", "required");
    let invited = decide("bob", Invite).input(json!({ "reviewer": "eve" }));
    flow.when(invited).stays().offers_to_user("eve");
    flow.when(decide("cid", Approve)).stays();
    flow.when(decide("eve", Approve)).ends("DONE");
}

#[test]
fn who_has_invited_has_decided() {
    let mut flow = submitted();
    flow.follow([decide("bob", Invite).input(json!({ "reviewer": "eve" }))]);
    flow.when(decide("bob", Approve)).denied("already_decided");
}
