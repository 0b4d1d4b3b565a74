//! Forks and joins, run by the core of the host: nested, conditional, with branches that end or are cancelled, and entered again.
//! A join begins once, when every branch of the fork around it has arrived or ended.

use std::collections::BTreeMap;

use wrkflw_guest::testing::{Scenario, decide, given, start};
use wrkflw_guest::{Assignment, Event, Facts, Flow, Graph, NoConfig, Plan, Refusal, json};

wrkflw_guest::states! { enum State { Begin, Left, Right, Inner, Other, Meet, Side, All, Done } }
wrkflw_guest::triggers! { enum Trigger { Both, One, Split, Skip, Go, End, Stop, Again } }
use State::{All, Begin, Done, Inner, Left, Meet, Other, Right, Side};
use Trigger::{Again, Both, End, Go, One, Skip, Split, Stop};

struct Branches;

impl Flow for Branches {
    type Config = NoConfig;
    type Data = BTreeMap<String, String>;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Begin)
            .task(Begin, "Begin", |s| {
                s.fork(Both, [Left, Right]);
                s.on(One, [Left, Right]);
            })
            .task(Left, "Left", |s| {
                s.fork(Split, [Inner, Other]);
                s.on(Skip, [Inner, Meet]);
                s.on(Go, All);
            })
            .task(Right, "Right", |s| {
                s.on(Go, All);
                s.on(End, All);
                s.on(Stop, Right);
            })
            .task(Inner, "Inner", |s| {
                s.on(Go, Meet);
                s.on(End, Meet);
            })
            .task(Other, "Other", |s| {
                s.on(Go, Meet);
                s.on(End, Meet);
            })
            .task(Meet, "Inner branches", |s| {
                s.join();
                s.on(Go, All);
            })
            .task(All, "All branches", |s| {
                s.join();
                s.on(Go, Done);
                s.on(Again, Begin);
            })
            .terminal(Done, "DONE")
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match event.trigger {
            One => Plan::to(Right),
            Skip => Plan::to(Meet),
            End => Plan::end_branch(),
            Stop => Plan::to(Right).cancel_others(facts, event),
            _ => Plan::along(facts, event)?,
        })
    }

    fn assign(_: &Facts<Self>, _: State) -> Result<Assignment, Refusal> {
        Ok(Assignment::to_group("all"))
    }
}

/// Decides in each of these states in turn, by any candidate.
fn after(steps: &[(State, Trigger)]) -> Scenario<Branches> {
    let mut flow = given().member("bob", "all");
    flow.follow([start("ann", json!({}))]);
    step(&mut flow, steps);
    flow
}

fn step(flow: &mut Scenario<Branches>, steps: &[(State, Trigger)]) {
    for (state, trigger) in steps {
        flow.follow([decide("bob", *trigger).in_state(*state)]);
    }
}

#[test]
fn an_outer_join_waits_for_the_inner_one() {
    let mut flow = after(&[(Begin, Both), (Left, Split), (Right, Go), (Inner, Go)]);
    assert_eq!(flow.states(), [Other]);
    step(&mut flow, &[(Other, Go)]);
    assert_eq!(flow.states(), [Meet]);
    step(&mut flow, &[(Meet, Go)]);
    assert_eq!(flow.states(), [All]);
    assert_eq!(flow.state_instances()[0].predecessors.len(), 2);
}

#[test]
fn a_join_does_not_wait_for_a_branch_that_ended() {
    let mut flow = after(&[(Begin, Both), (Left, Go)]);
    assert_eq!(flow.states(), [Right]);
    step(&mut flow, &[(Right, End)]);
    assert_eq!(flow.states(), [All]);
    let mut flow = after(&[(Begin, Both), (Left, Split), (Right, Go), (Inner, End)]);
    step(&mut flow, &[(Other, End)]);
    assert_eq!(flow.states(), [All]);
}

#[test]
fn a_branch_that_skips_a_fork_does_not_wait_at_its_join() {
    // Only the left branch can reach the inner join, and it was not forked there.
    let mut flow = after(&[(Begin, Both), (Left, Skip)]);
    assert_eq!(flow.states(), [Right, Meet]);
    step(&mut flow, &[(Right, Go), (Meet, Go)]);
    assert_eq!(flow.states(), [All]);
}

#[test]
fn a_join_outside_a_fork_begins_at_once() {
    assert_eq!(after(&[(Begin, One), (Right, Go)]).states(), [All]);
}

#[test]
fn a_fork_that_is_entered_again_is_a_new_fork() {
    let round = [(Begin, Both), (Left, Go), (Right, Go)];
    let mut flow = after(&round);
    step(&mut flow, &[(All, Again)]);
    step(&mut flow, &round);
    assert_eq!(flow.states(), [All]);
    assert_eq!(flow.facts().past_states(All).count(), 1);
    flow.when(decide("bob", Go)).ends("DONE");
}

#[test]
fn a_join_does_not_wait_for_cancelled_branches() {
    let mut flow = after(&[(Begin, Both), (Left, Split), (Inner, Go), (Right, Stop)]);
    assert_eq!(flow.states(), [Right]);
    assert!(flow.facts().waiting.is_empty());
    step(&mut flow, &[(Right, Go)]);
    assert_eq!(flow.states(), [All]);
}

/// A flow in which a branch inside the inner fork may leave it. The state after that fork is itself a join.
struct Aside;

impl Flow for Aside {
    type Config = NoConfig;
    type Data = BTreeMap<String, String>;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Begin)
            .task(Begin, "Begin", |s| s.fork(Both, [Left, Right]))
            .task(Left, "Left", |s| s.fork(Split, [Inner, Other]))
            .task(Inner, "Inner", |s| s.on(Skip, [Side, Meet]))
            .task(Other, "Other", |s| s.on(Go, Meet))
            .task(Meet, "Inner branches", |s| {
                s.join();
                s.on(Go, Side);
            })
            .task(Side, "One side", |s| {
                s.join();
                s.on(Go, All);
            })
            .task(Right, "Right", |s| s.on(Go, All))
            .task(All, "All branches", |s| {
                s.join();
                s.on(Go, Done);
            })
            .terminal(Done, "DONE")
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match event.trigger {
            Skip => Plan::to(Meet),
            _ => Plan::along(facts, event)?,
        })
    }

    fn assign(_: &Facts<Self>, _: State) -> Result<Assignment, Refusal> {
        Ok(Assignment::to_group("all"))
    }
}

#[test]
fn a_choice_inside_a_closed_fork_counts_at_the_next_join() {
    let mut flow: Scenario<Aside> = given().member("bob", "all");
    flow.follow([start("ann", json!({})), decide("bob", Both)]);
    for (state, trigger) in [(Left, Split), (Inner, Skip), (Other, Go), (Meet, Go)] {
        flow.follow([decide("bob", trigger).in_state(state)]);
    }
    // No branch on the right can reach `Side`, so that join does not wait for the right.
    assert_eq!(flow.states(), [Right, Side]);
}
