//! Answers that the host would refuse fail a test of the flow, with a message that helps to correct them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};
use wrkflw_guest::testing::{Scenario, decide, given, start};
use wrkflw_guest::{
    Assignment, AttributeType, Child, Due, Event, Facts, FiredBy, Flow, Graph, NoConfig, Offer,
    Plan, Refusal, Value, Waiting, hours, json,
};

wrkflw_guest::states! { enum State { Own, Work, Pause, Done } }
wrkflw_guest::triggers! { enum Trigger { Go, Wait, Ring, Ended } }
use State::{Done, Own, Pause, Work};
use Trigger::{Ended, Go, Ring, Wait};

#[derive(Serialize, Deserialize)]
struct Wrong {
    answer: String,
}

struct Mistaken;

impl Flow for Mistaken {
    type Config = NoConfig;
    type Data = Wrong;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Own)
            .attribute("amount", AttributeType::Decimal)
            .own_work(Own, "Own", |s| s.on(Go, Work))
            .task(Work, "Work", |s| {
                s.on(Go, [Done, Pause]);
                s.on(Wait, Pause);
            })
            .wait(Pause, "Pause", |s| {
                s.on(Ended, Done).fired_by(FiredBy::CHILD)
            })
            .terminal(Done, "DONE")
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(
            match (event.state, event.trigger, facts.data.answer.as_str()) {
                (Own, ..) => Plan::to(Work),
                (_, Wait, _) => Plan::to(Pause),
                (_, _, "undeclared") => Plan::to(Work),
                (_, _, "twice") => Plan::fork([Done, Done]),
                (_, _, "type") => Plan::to(Done).attribute("amount", 0.5),
                (_, _, "name") => Plan::to(Done).attribute("sum", 5),
                (_, _, "cancel") => Plan::to(Done).cancel(&event.state_instance),
                (_, _, "stuck") => Plan::stay(),
                (_, _, "lost") => Plan::end_branch(),
                _ => Plan::to(Done),
            },
        )
    }

    fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        let initiator = facts.initiator();
        Ok(match (state, facts.data.answer.as_str()) {
            (Own, "own") => Assignment::to_user("bob"),
            (Own, _) => Assignment::to_user(initiator),
            (_, "nobody") => Assignment::nobody(),
            (_, "needed") => Assignment::any_of(["bob"], 2),
            (_, "owner") => Assignment::new([Offer::new("x").owned_by(initiator)]),
            (_, "deadline") => Assignment::to_user("bob").deadline(Due::After(hours(1)).fire(Ring)),
            _ => Assignment::to_user("bob"),
        })
    }

    fn wait(_: &Facts<Self>, _: State) -> Result<Waiting, Refusal> {
        Ok(Waiting::for_children([Child::new(
            "part",
            "part",
            "1",
            &json!({}),
        )
        .on_end(Ring)]))
    }
}

/// The message of the failed test when these decide in turn.
fn complaint(answer: &str, steps: &[(&str, Trigger)]) -> String {
    let attempt = || {
        let mut flow: Scenario<Mistaken> = given();
        flow.when(start("ann", json!({ "answer": answer })));
        for (who, trigger) in steps {
            flow.when(decide(who, *trigger));
        }
    };
    let panicked = catch_unwind(AssertUnwindSafe(attempt)).expect_err(answer);
    let text = panicked.downcast_ref::<String>().cloned();
    text.or_else(|| panicked.downcast_ref::<&str>().map(ToString::to_string))
        .expect("a message")
}

#[test]
fn assignments_are_checked_against_the_rules() {
    assert!(complaint("own", &[]).contains("is the initiator's own work"));
    for (answer, words) in [
        ("nobody", "offers the work of Work to nobody"),
        ("needed", "needs 2 decisions and offers 1 task besides"),
        ("owner", "is given to ann, who must not decide"),
        ("deadline", "a deadline of Work fires \"RING\""),
    ] {
        let said = complaint(answer, &[("ann", Go)]);
        assert!(said.contains(words), "{answer}: {said}");
    }
    let said = complaint("child", &[("ann", Go), ("bob", Wait)]);
    assert!(
        said.contains("the end of a child of Pause fires \"RING\""),
        "{said}"
    );
}

#[test]
fn plans_are_checked_against_the_graph() {
    for (answer, words) in [
        ("undeclared", "may lead to Done, Pause, not to \"Work\""),
        ("twice", "must not enter a state twice"),
        ("type", "amount is no Decimal"),
        ("name", "\"sum\" is not declared"),
        ("cancel", "is no other active or waiting state"),
        ("stuck", "nothing left that could move it"),
        ("lost", "ends the last branch without an outcome"),
    ] {
        let said = complaint(answer, &[("ann", Go), ("bob", Go)]);
        assert!(said.contains(words), "{answer}: {said}");
    }
    let mut sound: Scenario<Mistaken> = given();
    let data: Value = json!({ "answer": "sound" });
    sound
        .follow([start("ann", data), decide("ann", Go), decide("bob", Go)])
        .ends("DONE");
}
