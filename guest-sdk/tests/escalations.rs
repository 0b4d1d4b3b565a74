//! Default escalation in states whose tasks have the same label.

use serde::{Deserialize, Serialize};
use wrkflw_guest::testing::{Scenario, claim, given, later, start};
use wrkflw_guest::{Assignment, Due, Facts, Flow, Graph, NoConfig, Offer, Refusal, hours, json};

wrkflw_guest::states! { enum State { Review, Done } }
wrkflw_guest::triggers! { enum Trigger { Agree } }
use State::{Done, Review};
use Trigger::Agree;

#[derive(Serialize, Deserialize)]
struct Contract {}

/// Two groups review a contract. Neither offer has a label.
struct Contracts;

impl Flow for Contracts {
    type Config = NoConfig;
    type Data = Contract;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Review)
            .task(Review, "Review", |s| s.on(Agree, Done))
            .terminal(Done, "DONE")
    }

    fn assign(_: &Facts<Self>, _: State) -> Result<Assignment, Refusal> {
        let reminded = Due::after_hours(1).remind();
        let offers = [
            Offer::new("").to_group("legal"),
            Offer::new("").to_group("finance").deadline(reminded),
        ];
        Ok(Assignment::new(offers).deadline(Due::after_hours(8).escalate()))
    }
}

/// Two managers review a report. Their offers have the same label. The second one also escalates after an hour.
struct Reports;

impl Flow for Reports {
    type Config = NoConfig;
    type Data = Contract;
    type State = State;
    type Trigger = Trigger;

    fn graph(config: &NoConfig) -> Graph<State, Trigger> {
        Contracts::graph(config)
    }

    fn assign(_: &Facts<Self>, _: State) -> Result<Assignment, Refusal> {
        let late = Due::after_hours(1).escalate();
        Ok(Assignment::new([
            Offer::new("").to_manager_of("lea"),
            Offer::new("").to_manager_of("fin").deadline(late),
        ]))
    }
}

#[test]
fn offers_to_managers_keep_their_deadlines_from_manager_to_manager() {
    let mut flow: Scenario<Reports> = given()
        .managed("lea", "mia")
        .managed("fin", "meg")
        .managed("meg", "moe")
        .managed("moe", "top");
    flow.follow([start("ann", json!({}))]);
    flow.when(later(hours(1))).offers_to_manager_of("meg");
    flow.when(later(hours(1))).offers_to_manager_of("moe");
}

fn reviewed() -> Scenario<Contracts> {
    let mut flow = given()
        .member("lea", "legal")
        .member("fin", "finance")
        .managed("fin", "meg");
    flow.follow([start("ann", json!({}))]);
    flow
}

#[test]
fn late_work_of_a_group_stays_with_the_group() {
    let mut flow = reviewed();
    flow.when(later(hours(8)))
        .offers_to_group("legal")
        .offers_to_group("finance");
}

#[test]
fn the_task_that_goes_to_a_manager_keeps_the_deadlines_of_its_own_offer() {
    let mut flow = reviewed();
    flow.follow([claim("fin")]);
    flow.when(later(hours(8)))
        .offers_to_group("legal")
        .offers_to_manager_of("fin");
    flow.when(later(hours(1))).reminds("Review");
}
