//! A vote of all members of a board. It succeeds with two thirds, and fails with more than a third against it.

use wrkflw_guest::testing::{Scenario, decide, given, start};
use wrkflw_guest::{
    Assignment, Event, Facts, Flow, Graph, Needed, NoConfig, Plan, Quorum, Refusal, json,
};

wrkflw_guest::states! { enum State { Vote, Passed, Failed } }
wrkflw_guest::triggers! { enum Trigger { Approve, Object, Abstain } }
use State::{Failed, Passed, Vote};
use Trigger::{Abstain, Approve, Object};

#[derive(serde::Serialize, serde::Deserialize)]
struct Motion {}

struct Board;

impl Flow for Board {
    type Config = NoConfig;
    type Data = Motion;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Vote)
            .task(Vote, "Vote of the board", |s| {
                s.until_quorum(Approve, Object);
                s.on(Approve, Passed);
                s.on(Object, Failed);
                s.on(Abstain, []);
            })
            .terminal(Passed, "PASSED")
            .terminal(Failed, "FAILED")
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        let vetoed = event.quorum_of(Object, &Needed::more_than(1, 3)) == Quorum::Reached;
        Ok(match event.quorum(Approve) {
            Quorum::Open if vetoed => Plan::to(Failed),
            _ => Plan::along(facts, event)?,
        })
    }

    fn assign(_: &Facts<Self>, _: State) -> Result<Assignment, Refusal> {
        Ok(Assignment::to_each_member("board").at_least(2, 3))
    }
}

/// A vote of five.
fn moved() -> Scenario<Board> {
    let mut flow = ["bob", "cid", "dan", "eve", "fay"]
        .iter()
        .fold(given(), |flow, person| flow.member(person, "board"));
    flow.follow([start("ann", json!({}))]);
    flow
}

#[test]
fn one_objection_does_not_end_a_vote_that_can_still_succeed() {
    let mut flow = moved();
    assert_eq!(flow.state_instances()[0].needed, 4);
    flow.when(decide("bob", Object)).stays();
    for person in ["cid", "dan", "eve"] {
        flow.when(decide(person, Approve)).stays();
    }
    flow.when(decide("fay", Approve)).ends("PASSED");
}

#[test]
fn a_vote_ends_as_soon_as_it_cannot_succeed() {
    let mut flow = moved();
    flow.when(decide("bob", Abstain)).stays();
    flow.when(decide("cid", Object)).ends("FAILED");
}

#[test]
fn each_member_decides_on_their_own_task() {
    let mut flow = moved();
    flow.when(decide("gus", Approve)).denied("not_a_candidate");
    flow.when(decide("bob", Approve)).stays();
    flow.when(decide("bob", Approve)).denied("already_decided");
}
