//! A state that goes on while a deadline or a decision begins a branch beside it.

use wrkflw_guest::testing::{Scenario, deadline, decide, given, start};
use wrkflw_guest::{
    Assignment, Due, Event, Facts, FiredBy, Flow, Graph, NoConfig, Plan, Refusal, Value, hours,
    json,
};

wrkflw_guest::states! { enum State { Review, Advice, Chase, Meet, Done } }
wrkflw_guest::triggers! { enum Trigger { Approve, Ask, Late, Reply, Drop } }
use State::{Advice, Chase, Done, Meet, Review};
use Trigger::{Approve, Ask, Drop, Late, Reply};

/// Whoever reviews may ask for advice, and the office chases a late review. The end waits for both.
struct Papers;

impl Flow for Papers {
    type Config = NoConfig;
    type Data = Value;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Review)
            .task(Review, "Review")
            .on(Approve, Meet)
            .on(Ask, Advice)
            .on(Late, Chase)
            .by(FiredBy::DEADLINE)
            .task(Advice, "Advice")
            .on(Reply, Meet)
            .task(Chase, "Chase the reviewer")
            .on(Drop, Meet)
            .task(Meet, "Close")
            .join()
            .on(Approve, Done)
            .terminal(Done, "DONE")
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match event.trigger {
            Ask => Plan::spawn([Advice]),
            Late => match facts.state_instance(Chase) {
                Some(_) => Plan::stay(),
                None => Plan::spawn([Chase]),
            },
            Drop => Plan::end_branch(),
            _ => Plan::along(facts, event)?,
        })
    }

    fn assign(_: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        Ok(match state {
            Review => Assignment::any_of(["bob", "cid"], 1)
                .deadline(Due::After(hours(1)).fire(Late).every(hours(1))),
            _ => Assignment::to_group("office"),
        })
    }
}

fn submitted() -> Scenario<Papers> {
    let mut flow = given().member("eve", "office").member("fay", "office");
    flow.follow([start("ann", json!({}))]);
    flow
}

#[test]
fn a_late_review_is_chased_by_a_branch_of_its_own() {
    let mut flow = submitted();
    flow.when(deadline(Late))
        .stays()
        .enters(Chase)
        .offers_to_group("office");
    assert_eq!(flow.states(), [Review, Chase]);
    let chase = flow.state_instances()[1].predecessors.clone();
    assert_eq!(chase, [flow.state_instances()[0].id.clone()]);
    flow.when(deadline(Late)).stays();
    assert_eq!(flow.states(), [Review, Chase], "one at a time");
    flow.follow([decide("bob", Approve).in_state(Review)]);
    assert_eq!(flow.states(), [Chase], "the join waits for it");
    flow.follow([decide("eve", Drop)]);
    assert_eq!(flow.states(), [Meet]);
    flow.when(decide("fay", Approve)).ends("DONE");
}

#[test]
fn a_decision_that_asks_for_advice_leaves_the_other_task() {
    let mut flow = submitted();
    flow.when(decide("bob", Ask)).stays().enters(Advice);
    flow.follow([decide("eve", Reply).in_state(Advice)]);
    assert_eq!(flow.states(), [Review]);
    flow.follow([decide("cid", Approve)]);
    assert_eq!(flow.states(), [Meet]);
    let lineage = flow.facts();
    let meet = lineage.state_instance(Meet).expect("it is active");
    assert!(lineage.came_through(meet, Advice));
}

/// `Advice` was left before the review beside which it began.
#[test]
fn a_branch_came_through_the_state_beside_which_it_began() {
    let mut flow = submitted();
    flow.follow([decide("bob", Ask), decide("cid", Approve).in_state(Review)]);
    let facts = flow.facts();
    let advice = facts.state_instance(Advice).expect("it is active");
    assert!(facts.came_through(advice, Review));
    let waits = &facts.waiting[0];
    assert!(!facts.came_through(waits, Advice), "it has not arrived");
}
