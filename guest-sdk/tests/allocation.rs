//! Tasks that the host allocates to a member of a group: in turn, or to the member with the fewest tasks.

use wrkflw_guest::testing::{Scenario, decide, given, start};
use wrkflw_guest::{Assignment, Facts, Flow, Graph, NoConfig, Offer, Refusal, json};

wrkflw_guest::states! { enum State { Call, Check, Done } }
wrkflw_guest::triggers! { enum Trigger { Again, Check_, End } }
use State::{Call, Check, Done};
use Trigger::{Again, Check_, End};

#[derive(serde::Serialize, serde::Deserialize)]
struct Customer {}

struct Desk;

impl Flow for Desk {
    type Config = NoConfig;
    type Data = Customer;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Call)
            .task(Call, "Call the customer", |s| {
                s.on(Again, Call);
                s.on(Check_, Check);
            })
            .task(Check, "Check the call", |s| s.on(End, Done))
            .terminal(Done, "DONE")
    }

    fn assign(_: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        let desk = Assignment::to_group("desk");
        Ok(match state {
            Call => desk.each(Offer::round_robin),
            _ => desk.each(Offer::least_loaded),
        })
    }
}

fn desk() -> Scenario<Desk> {
    let mut people = ["bob", "cid", "dan"].iter();
    people
        .try_fold(given(), |flow: Scenario<Desk>, person| {
            Some(flow.member(person, "desk"))
        })
        .expect("all")
}

/// The owner of the only task.
fn owner(flow: &Scenario<Desk>) -> Option<&str> {
    flow.state_instances()[0].tasks[0].owner.as_deref()
}

#[test]
fn everybody_has_their_turn() {
    let mut flow = desk();
    flow.when(start("ann", json!({}))).allowed();
    for person in ["bob", "cid", "dan", "bob", "cid"] {
        assert_eq!(owner(&flow), Some(person));
        flow.when(decide("ann", Again)).denied("own_request");
        flow.when(decide(person, Again)).enters(Call);
    }
}

#[test]
fn round_robin_takes_the_member_whose_last_task_is_oldest() {
    let mut flow = desk()
        .given_task("bob", "2026-01-03T09:00:00.000Z")
        .given_task("cid", "2026-01-01T09:00:00.000Z")
        .given_task("dan", "2026-01-02T09:00:00.000Z");
    flow.when(start("ann", json!({}))).allowed();
    assert_eq!(owner(&flow), Some("cid"));
}

#[test]
fn least_loaded_takes_the_member_with_the_fewest_tasks_who_is_not_absent() {
    for (absent, expected) in [("eve", "dan"), ("dan", "bob")] {
        let mut flow = desk()
            .owning("bob", 2)
            .owning("cid", 3)
            .owning("dan", 1)
            .absent(absent);
        flow.follow([start("ann", json!({})), decide("bob", Check_)]);
        assert_eq!(owner(&flow), Some(expected));
    }
}
