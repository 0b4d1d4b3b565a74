//! Data whose numbers have more digits than an f64, changed by a flow whose type covers only a part of it.

use serde::{Deserialize, Serialize};
use wrkflw_guest::testing::{Scenario, decide, given, start};
use wrkflw_guest::{
    Assignment, Decimal, Event, Facts, Flow, Graph, NoConfig, Plan, Refusal, Verdict, allow, deny,
    json,
};

wrkflw_guest::states! { enum State { Review, Done } }
wrkflw_guest::triggers! { enum Trigger { Correct, Add, Approve } }
use State::{Done, Review};
use Trigger::{Add, Approve, Correct};

#[derive(Serialize, Deserialize)]
struct Budget {
    total: Decimal,
    lines: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    amount: Decimal,
}

#[derive(Deserialize)]
struct Correction {
    total: Decimal,
}

struct Budgets;

impl Flow for Budgets {
    type Config = NoConfig;
    type Data = Budget;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Review)
            .task(Review, "Review", |s| {
                s.on(Correct, Review);
                s.on(Add, Review);
                s.on(Approve, Done);
            })
            .terminal(Done, "DONE")
    }

    fn guard(facts: &Facts<Self>, event: &Event<Self>) -> Verdict {
        if event.trigger == Approve && facts.data.total.to_string() != "9007199254740993.02" {
            return deny("total", facts.data.total.to_string());
        }
        allow()
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match event.trigger {
            Correct => {
                let correction: Correction = event.input()?;
                Plan::to(Review)
                    .change(facts, |budget| budget.total = correction.total)
                    .patch(&json!({ "note": "corrected" }))
            }
            Add => Plan::to(Review).change(facts, |budget| {
                budget.lines.push(Line {
                    amount: Decimal::from(3),
                });
            }),
            Approve => Plan::to(Done),
        })
    }

    fn assign(_: &Facts<Self>, _: State) -> Result<Assignment, Refusal> {
        Ok(Assignment::to_user("bob"))
    }
}

/// Data with a line that has a field unknown to the flow.
fn submitted() -> Scenario<Budgets> {
    let mut flow = given();
    let lines = r#"[{ "amount": 0.10000000000000000001, "account": 77 }]"#;
    let data = format!(r#"{{ "total": 9007199254740993.01, "lines": {lines} }}"#);
    flow.follow([start("ann", data)]);
    flow
}

/// The nearest f64 of both totals is the same.
#[test]
fn a_change_of_the_last_of_many_digits_is_kept() {
    let mut flow = submitted();
    flow.when(decide("bob", Approve)).denied("total");
    let correction = decide("bob", Correct).input(json!({ "total": "9007199254740993.02" }));
    flow.follow([correction]);
    flow.when(decide("bob", Approve)).ends("DONE");
    assert_eq!(flow.data_now()["note"], "corrected");
}

#[test]
fn adding_a_line_does_not_change_the_others() {
    let mut flow = submitted();
    flow.follow([decide("bob", Add)]);
    let facts = flow.facts();
    assert_eq!(
        facts.instance.data,
        r#"{"lines":[{"account":77,"amount":0.10000000000000000001},{"amount":3}],"total":9007199254740993.01}"#
    );
}
