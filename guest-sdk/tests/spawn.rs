//! A state that goes on while a deadline or a decision begins a branch beside it, and one branch per item.

use wrkflw_guest::testing::{Scenario, claim, deadline, decide, escalate, given, start};
use wrkflw_guest::{
    Assignment, Due, Event, Facts, FiredBy, Flow, Graph, NoConfig, Plan, Refusal, Target, Value,
    hours, json,
};

wrkflw_guest::states! { enum State { Review, Advice, Chase, Meet, Done } }
wrkflw_guest::triggers! { enum Trigger { Approve, Ask, Late, Reply, Drop } }
use State::{Advice, Chase, Done, Meet, Review};
use Trigger::{Approve, Ask, Drop, Late, Reply};

/// A reviewer may ask for advice, and the office reminds of a late review. The end waits for both.
struct Papers;

impl Flow for Papers {
    type Config = NoConfig;
    type Data = Value;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Review)
            .task(Review, "Review", |s| {
                s.on(Approve, Meet);
                s.spawn(Ask, Advice);
                s.spawn(Late, Chase).fired_by(FiredBy::DEADLINE);
            })
            .task(Advice, "Advice", |s| s.on(Reply, Meet))
            .task(Chase, "Chase the reviewer", |s| s.on(Drop, Meet))
            .task(Meet, "Close", |s| {
                s.join();
                s.on(Approve, Done);
            })
            .terminal(Done, "DONE")
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match event.trigger {
            Late if facts.state_instance(Chase).is_some() => Plan::stay(),
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
fn a_late_review_begins_a_branch_beside_it() {
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
fn a_decision_that_asks_for_advice_keeps_the_other_task() {
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

/// `Advice` ended before the review beside which it began.
#[test]
fn the_lineage_of_a_branch_has_the_state_beside_which_it_began() {
    let mut flow = submitted();
    flow.follow([decide("bob", Ask), decide("cid", Approve).in_state(Review)]);
    let facts = flow.facts();
    let advice = facts.state_instance(Advice).expect("it is active");
    assert!(facts.came_through(advice, Review));
    let waits = &facts.waiting[0];
    assert!(!facts.came_through(waits, Advice), "it has not arrived");
}

mod orders {
    use super::*;

    wrkflw_guest::states! { pub enum Step { Check, Pack, Ship, Sent } }
    wrkflw_guest::triggers! { pub enum Act { Accept, Packed, Send } }
    use Act::{Accept, Packed, Send};
    use Step::{Check, Pack, Sent, Ship};

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Order {
        lines: Vec<Line>,
    }

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Line {
        sku: String,
        store: String,
    }

    /// A flow that packs every line of an order in its own store, in two steps. A late line goes to a manager.
    struct Orders;

    impl Flow for Orders {
        type Config = NoConfig;
        type Data = Order;
        type State = Step;
        type Trigger = Act;

        fn graph(_: &NoConfig) -> Graph<Step, Act> {
            Graph::start(Check)
                .task(Check, "Check", |s| s.on(Accept, Pack))
                .task(Pack, "Pack", |s| {
                    s.on(Accept, Pack);
                    s.on(Packed, Ship);
                })
                .task(Ship, "Ship", |s| {
                    s.join();
                    s.on(Send, Sent);
                })
                .terminal(Sent, "SENT")
        }

        fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<Step>, Refusal> {
            let line = |line: &Line| Target::new(Pack).key(&line.sku).data(json!(line));
            Ok(match (event.state, event.trigger) {
                (Check, Accept) => Plan::fork(facts.data.lines.iter().map(line)),
                (Pack, Accept) => Plan::to(Target::new(Pack).same_item_as(&event.state_instance)),
                _ => Plan::along(facts, event)?,
            })
        }

        fn assign(facts: &Facts<Self>, state: Step) -> Result<Assignment, Refusal> {
            Ok(match facts.entering() {
                Some(pack) if state == Pack => Assignment::to_group(&pack.item::<Line>()?.store)
                    .deadline(Due::After(hours(8)).escalate()),
                _ => Assignment::to_group("office"),
            })
        }
    }

    fn accepted(lines: &[(&str, &str)]) -> Scenario<Orders> {
        let mut flow = given().member("eve", "office");
        flow = flow.member("nora", "north").member("sue", "south");
        flow = flow.managed("nora", "meg").managed("sue", "mia");
        let line = |(sku, store): &(&str, &str)| json!({ "sku": sku, "store": store });
        let lines: Vec<_> = lines.iter().map(line).collect();
        flow.follow([
            start("ann", json!({ "lines": lines })),
            decide("eve", Accept),
        ]);
        flow
    }

    #[test]
    fn every_line_is_packed_in_its_store() {
        let mut flow = accepted(&[("bolt", "north"), ("nut", "south"), ("gear", "north")]);
        assert_eq!(flow.states(), [Pack, Pack, Pack]);
        flow.when(decide("sue", Packed).key("bolt"))
            .denied("not_a_candidate");
        flow.when(decide("nora", Accept).key("gear"))
            .enters(Pack)
            .offers_to_group("north");
        for (person, sku) in [("nora", "bolt"), ("sue", "nut")] {
            flow.follow([decide(person, Packed).key(sku)]);
        }
        assert_eq!(flow.states(), [Pack], "the join waits for the gear");
        assert_eq!(flow.state_instances()[0].key.as_deref(), Some("gear"));
        flow.follow([decide("nora", Packed)]);
        assert_eq!(flow.states(), [Ship]);
        let keys = |facts: &Facts<Orders>| {
            let packed = facts.past_states(Pack);
            let mut keys: Vec<_> = packed.filter_map(|past| past.key.clone()).collect();
            keys.sort();
            keys
        };
        assert_eq!(keys(&flow.facts()), ["bolt", "gear", "gear", "nut"]);
        flow.when(decide("eve", Send)).ends("SENT");
    }

    #[test]
    fn a_late_line_goes_to_a_manager_and_the_other_lines_do_not_change() {
        for (person, sku) in [("nora", "bolt"), ("sue", "nut")] {
            let mut late = accepted(&[("bolt", "north"), ("nut", "south")]);
            late.follow([claim("nora").key("bolt"), claim("sue").key("nut")]);
            let escalated = late.when(escalate(1).key(sku));
            escalated.offers_to_manager_of(person);
            assert_eq!(escalated.assignment().offers.len(), 1, "of {sku} alone");
            for line in late.state_instances() {
                let open = line.tasks.iter().filter(|task| task.is_open());
                assert_eq!(open.count(), 1, "{:?}", line.key);
            }
        }
    }

    #[test]
    fn a_single_line_makes_one_branch() {
        let mut flow = accepted(&[("bolt", "north")]);
        assert_eq!(flow.states(), [Pack]);
        flow.follow([decide("nora", Packed)]);
        assert_eq!(flow.states(), [Ship]);
    }
}
