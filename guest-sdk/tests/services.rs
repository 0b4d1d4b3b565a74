//! A flow that calls a machine first, and offers the work to people when the call fails.

use std::collections::BTreeMap;

use serde_json::Value;
use wrkflw_guest::testing::{answered, decide, given, later, start, unanswered};
use wrkflw_guest::{
    Assignment, Event, Facts, FiredBy, Flow, Graph, NoConfig, Plan, Refusal, ServiceCall, json,
};

wrkflw_guest::states! { enum State { Score, Manual, Scored } }
wrkflw_guest::triggers! { enum Trigger { Answered, Failed, Decide } }
use State::{Manual, Score, Scored};

struct Scoring;

impl Flow for Scoring {
    type Config = NoConfig;
    type Data = BTreeMap<String, Value>;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Score)
            .uses_services(["scorer"])
            .service(Score, "Score", |s| {
                s.on(Trigger::Answered, Scored).input(|| {
                    json!({
                        "type": "object",
                        "properties": { "score": { "type": "number" } },
                        "required": ["score"],
                    })
                });
                s.on(Trigger::Failed, Manual).fired_by(FiredBy::FAILURE);
            })
            .task(Manual, "Score by hand", |s| {
                s.on(Trigger::Decide, Scored);
            })
            .terminal(Scored, "SCORED")
    }

    fn call(facts: &Facts<Self>, _: State) -> Result<ServiceCall, Refusal> {
        let call = ServiceCall::new(
            "scorer",
            &json!(facts.data),
            Trigger::Answered,
            Trigger::Failed,
        );
        Ok(call.timeout(5).retries([1, 2]))
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        let plan = Plan::along(facts, event)?;
        let Some(answer) = event.service() else {
            return Ok(plan);
        };
        let by = answer.model.as_deref().unwrap_or("nobody");
        let code = format!("{by}_{}", answer.attempts);
        let error = answer.error.as_deref().unwrap_or("No error.");
        Ok(plan.note(&code, error))
    }

    fn assign(_: &Facts<Self>, _: State) -> Result<Assignment, Refusal> {
        Ok(Assignment::to_group("experts"))
    }
}

#[test]
fn the_reply_of_the_machine_is_used() {
    let mut flow = given::<Scoring>().member("ann", "experts");
    let entered = flow.when(start("sam", json!({ "pages": 3 })));
    let call = entered.call();
    assert_eq!(
        (call.service.as_str(), call.timeout, &call.retries[..]),
        ("scorer", 5, &[1, 2][..])
    );
    assert_eq!(call.request, r#"{"pages":3}"#);
    flow.when(answered(json!({ "score": "high" })))
        .invalid("/input/score", "type");
    let reply = answered(json!({ "score": 0.5 })).attempts(2);
    flow.when(reply.model("scorer", "3"))
        .notes("scorer_2")
        .ends("SCORED");
}

#[test]
fn people_decide_after_the_last_attempt_has_failed() {
    let mut flow = given::<Scoring>().member("ann", "experts");
    flow.when(start("sam", json!({})));
    flow.when(unanswered("the service answered 500"))
        .notes("nobody_3")
        .enters(Manual);
    flow.when(answered(json!({ "score": 1 }))).denied("no_call");
    flow.when(later(60));
    flow.when(decide("ann", Trigger::Decide)).ends("SCORED");
}
