//! A fork into eight branches, and their join. GO moves a branch to the join, END ends it.

use wrkflw_guest::{Assignment, Event, Facts, Flow, Graph, NoConfig, Plan, Refusal, Value};

wrkflw_guest::states! { pub enum State { Begin, A, B, C, D, E, F, G, H, Meet, Done } }
wrkflw_guest::triggers! { pub enum Trigger { Spread, Go, End } }
use State::{A, B, Begin, C, D, Done, E, F, G, H, Meet};

const BRANCHES: [State; 8] = [A, B, C, D, E, F, G, H];

pub struct Branches;

impl Flow for Branches {
    type Config = NoConfig;
    type Data = Value;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        let begin = Graph::start(Begin)
            .router(Begin, "Begin")
            .on(Trigger::Spread, BRANCHES);
        BRANCHES
            .into_iter()
            .fold(begin, |graph, branch| {
                graph
                    .task(branch, "A branch")
                    .on(Trigger::Go, Meet)
                    .on(Trigger::End, Meet)
            })
            .task(Meet, "All of them")
            .join()
            .on(Trigger::Go, Done)
            .terminal(Done, "DONE")
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match event.trigger {
            Trigger::Spread => Plan::fork(BRANCHES),
            Trigger::End => Plan::end_branch(),
            Trigger::Go => Plan::along(facts, event)?,
        })
    }

    fn assign(_: &Facts<Self>, _: State) -> Result<Assignment, Refusal> {
        Ok(Assignment::to_group("reviewers"))
    }
}

wrkflw_guest::export!(Branches);
