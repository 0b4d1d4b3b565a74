//! A fork into eight branches, and their join. GO moves a branch to the join, END ends it.
//!
//! With `"late": 60` in the data, a reminder begins beside branch `A` each time it is so many seconds late, and meets the others,
//! too.

use wrkflw_guest::{
    Assignment, Due, Event, Facts, FiredBy, Flow, Graph, NoConfig, Plan, Refusal, Value,
};

wrkflw_guest::states! { pub enum State { Begin, A, B, C, D, E, F, G, H, Reminder, Meet, Done } }
wrkflw_guest::triggers! { pub enum Trigger { Spread, Go, End, Late } }
use State::{A, B, Begin, C, D, Done, E, F, G, H, Meet, Reminder};

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
                    .on(Trigger::Late, Reminder)
                    .by(FiredBy::DEADLINE)
            })
            .task(Reminder, "Ask for it")
            .on(Trigger::Go, Meet)
            .on(Trigger::End, Meet)
            .task(Meet, "All of them")
            .join()
            .on(Trigger::Go, Done)
            .terminal(Done, "DONE")
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match event.trigger {
            Trigger::Spread => Plan::fork(BRANCHES),
            Trigger::End => Plan::end_branch(),
            Trigger::Late => Plan::spawn([Reminder]),
            Trigger::Go => Plan::along(facts, event)?,
        })
    }

    fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        let work = Assignment::to_group("reviewers");
        let late = facts.data["late"].as_u64();
        Ok(match late.and_then(|late| u32::try_from(late).ok()) {
            Some(late) if state == A => {
                work.deadline(Due::After(late).fire(Trigger::Late).every(late))
            }
            _ => work,
        })
    }
}

wrkflw_guest::export!(Branches);
