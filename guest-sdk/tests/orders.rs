//! A flow with votes, a fork and its join, a router, waits for signals and children, deadlines and attributes. The tests follow it
//! from its start to each of its ends.

use serde::{Deserialize, Serialize};
use wrkflw_guest::testing::{
    Scenario, When, child, deadline, decide, escalate, given, signal, start,
};
use wrkflw_guest::{
    Actor, Assignment, AttributeType, AttributeValue, Child, Due, Event, Facts, FiredBy, Flow,
    Graph, Offer, Overdue, Plan, Quorum, Reads, Refusal, SignalSubscription, Value, Verdict,
    Violation, Waiting, allow, days, deny, hours, invalid, json, not_now,
};

wrkflw_guest::states! { enum State { Check, Unrated, Sort, Board, Legal, Technical, Agreed, Delivery, Done, Refused } }
wrkflw_guest::triggers! { enum Trigger { Rated, Unreachable, Sorted, Approve, Reject, Agree, Arrived, Late, Settled } }

wrkflw_guest::config! {
    struct Config { quorum: u32 = 2, limit: u32 = 1000 }
}

#[derive(Serialize, Deserialize)]
struct Order {
    amount: u32,
    rating: Option<String>,
    #[serde(default)]
    delays: u32,
}

#[derive(Deserialize)]
struct Rating {
    rating: String,
}

struct Orders;

impl Flow for Orders {
    type Config = Config;
    type Data = Order;
    type State = State;
    type Trigger = Trigger;

    fn check(config: &Config) -> Vec<Violation> {
        let impossible = config.quorum == 0 || config.quorum > 3;
        Violation::new(
            "/quorum",
            "range",
            "The quorum is 1 to 3: the board has three seats.",
        )
        .only_if(impossible)
    }

    fn graph(_: &Config) -> Graph<State, Trigger> {
        Graph::start(State::Check)
            .attribute("amount", AttributeType::Decimal)
            .reads(Reads::GROUPS)
            .uses_calendars(["office"])
            .wait(State::Check, "Credit check", |s| {
                s.on(Trigger::Rated, State::Sort);
                s.on(Trigger::Unreachable, State::Unrated)
                    .fired_by(FiredBy::DEADLINE);
            })
            .task(State::Unrated, "Rate by hand", |s| {
                s.on(Trigger::Approve, State::Sort).needs("orders:rate")
            })
            .router(State::Sort, "Small or large", |s| {
                s.on(Trigger::Sorted, [State::Delivery, State::Board])
            })
            .task(State::Board, "Vote of the board", |s| {
                s.fork(Trigger::Approve, [State::Legal, State::Technical]);
                s.on(Trigger::Reject, State::Refused)
                    .fired_by(FiredBy::DECISION | FiredBy::DEADLINE);
            })
            .task(State::Legal, "Terms", |s| {
                s.on(Trigger::Agree, State::Agreed);
                s.on(Trigger::Reject, State::Refused);
            })
            .task(State::Technical, "Specification", |s| {
                s.on(Trigger::Agree, State::Agreed)
            })
            .router(State::Agreed, "All agreed", |s| {
                s.join();
                s.on(Trigger::Sorted, State::Delivery);
            })
            .wait(State::Delivery, "Delivery", |s| {
                s.on(Trigger::Arrived, State::Done);
                s.on(Trigger::Late, State::Refused)
                    .fired_by(FiredBy::DEADLINE);
                s.on(Trigger::Settled, State::Done).fired_by(FiredBy::CHILD);
            })
            .terminal(State::Done, "DONE")
            .terminal(State::Refused, "REFUSED")
    }

    fn start(facts: &Facts<Self>, actor: &Actor) -> Verdict {
        if actor.is_in("suspended") {
            return deny("suspended", "You may not order.");
        }
        if facts.data.amount == 0 {
            return invalid("/data/amount", "range", "Order something.");
        }
        allow()
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match (event.state, event.trigger) {
            (State::Check, Trigger::Rated) => {
                let Ok(answer) = event.input::<Rating>() else {
                    return not_now("rating", "The service sent no rating.");
                };
                let plan = Plan::to(State::Sort).attribute("amount", i64::from(facts.data.amount));
                plan.change(facts, |order| order.rating = Some(answer.rating))
                    .publish("rated", &event.input)
            }
            (State::Sort, _) if facts.data.amount < facts.config.limit => Plan::to(State::Delivery)
                .note_with(
                    "within_limit",
                    "The amount is within the limit.",
                    &json!({ "row": 1 }),
                ),
            (State::Sort, _) => Plan::to(State::Board),
            (State::Board, Trigger::Approve) if event.quorum(Trigger::Approve) == Quorum::Open => {
                Plan::stay()
            }
            (State::Delivery, Trigger::Late)
                if event.deadline().is_some_and(|late| late.count == 1) =>
            {
                Plan::stay().change(facts, |order| order.delays += 1)
            }
            (State::Legal, Trigger::Agree) => {
                Plan::to(State::Agreed).patch(&json!({ "terms": "ok" }))
            }
            _ => Plan::along(facts, event)?,
        })
    }

    fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        Ok(match state {
            State::Board => Assignment::new(
                ["one", "two", "three"].map(|seat| Offer::new(seat).to_group("board")),
            )
            .needed(facts.config.quorum)
            .priority(5)
            .deadline(Due::working(hours(8), "office").escalate().every(days(1)))
            .deadline(Due::After(days(7)).fire(Trigger::Reject)),
            State::Legal => Assignment::to_group("legal")
                .exclude(facts.deciders(State::Board))
                .fallback("office"),
            _ => Assignment::to_manager_of(facts.initiator()),
        })
    }

    fn escalate(
        facts: &Facts<Self>,
        state: State,
        overdue: &Overdue,
    ) -> Result<Assignment, Refusal> {
        match state {
            State::Board => Ok(Assignment::to_group("chair")),
            _ => Assignment::upwards(facts, state, overdue),
        }
    }

    fn wait(facts: &Facts<Self>, state: State) -> Result<Waiting, Refusal> {
        if state == State::Check {
            let credit = Waiting::for_signals()
                .subscribe(SignalSubscription::to(Trigger::Rated).correlation("credit"));
            return Ok(credit.deadline(Due::After(hours(1)).fire(Trigger::Unreachable)));
        }
        let invoice = Child::new("invoice", "order", &facts.instance.entity_id, &json!({}))
            .on_end(Trigger::Settled);
        let waiting = Waiting::for_children([invoice]).subscribe(
            SignalSubscription::to(Trigger::Arrived)
                .correlation(&facts.instance.entity_id)
                .buffered(),
        );
        Ok(waiting.deadline(Due::After(days(30)).fire(Trigger::Late).every(days(7))))
    }
}

fn ordered(amount: u32) -> Scenario<Orders> {
    let board = ["bea", "bob", "ben"]
        .iter()
        .fold(given().managed("ann", "meg"), |flow, who| {
            flow.member(who, "board")
        });
    let mut flow = board
        .member("bea", "legal")
        .member("lea", "legal")
        .member("cy", "chair");
    let started = flow.when(start("ann", json!({ "amount": amount, "colour": "red" })));
    assert_eq!(
        started.waiting().subscriptions[0].correlation.as_deref(),
        Some("credit")
    );
    flow
}

/// The reply of the credit agency.
fn rated(answer: Value) -> When<Trigger> {
    signal("agency", Trigger::Rated).input(answer)
}

fn voted() -> Scenario<Orders> {
    let mut flow = ordered(5000);
    flow.follow([
        rated(json!({ "rating": "A" })),
        decide("bea", Trigger::Approve),
    ]);
    flow
}

#[test]
fn a_small_order_is_delivered_without_a_vote() {
    let mut flow = ordered(10);
    let checked = flow.when(rated(json!({ "rating": "A" })));
    checked
        .enters(State::Sort)
        .enters(State::Delivery)
        .publishes("rated");
    assert_eq!(checked.waiting().children[0].key, "invoice");
    assert_eq!(
        flow.data_now(),
        json!({ "amount": 10, "colour": "red", "rating": "A" })
    );
    assert_eq!(
        flow.facts().attribute("amount"),
        Some(&AttributeValue::Decimal("10".into()))
    );
    flow.when(child(Trigger::Settled, "invoice", "PAID"))
        .ends("DONE");
}

#[test]
fn a_signal_finds_the_state_by_its_correlation_key() {
    let mut flow = ordered(10);
    let answer = || rated(json!({ "rating": "A" }));
    flow.when(answer().correlation("debit"))
        .denied("nobody_waits");
    flow.when(answer().correlation("credit"))
        .enters(State::Sort);
}

#[test]
fn a_deadline_fires_again_until_the_flow_refuses_the_order() {
    let mut flow = ordered(10);
    flow.follow([rated(json!({ "rating": "A" }))]);
    flow.when(deadline(Trigger::Late)).stays();
    flow.when(deadline(Trigger::Late)).ends("REFUSED");
}

#[test]
fn a_signal_cannot_fire_a_deadline_trigger() {
    let mut flow = ordered(10);
    flow.follow([rated(json!({ "rating": "A" }))]);
    flow.when(signal("shop", Trigger::Late))
        .invalid("/trigger", "unknown_signal");
    flow.when(signal("shop", Trigger::Arrived)).ends("DONE");
}

#[test]
fn an_unreadable_reply_is_refused() {
    ordered(10)
        .when(rated(json!({ "rate": "A" })))
        .refused("rating");
}

#[test]
fn rating_by_hand_needs_a_permission() {
    let mut flow = ordered(10);
    flow.when(deadline(Trigger::Unreachable))
        .enters(State::Unrated)
        .offers_to_manager_of("ann");
    flow.when(decide("meg", Trigger::Approve))
        .denied("permission_missing");
    flow = flow.permitted("meg", "orders:rate");
    flow.when(decide("meg", Trigger::Approve))
        .enters(State::Delivery)
        .notes("within_limit");
}

#[test]
fn the_board_votes_and_both_branches_meet() {
    let mut flow = voted();
    flow.when(decide("bea", Trigger::Approve))
        .denied("already_decided");
    flow.when(decide("bob", Trigger::Approve))
        .enters(State::Legal)
        .enters(State::Technical);
    flow.when(decide("bea", Trigger::Agree)).denied("excluded");
    flow.when(decide("lea", Trigger::Agree))
        .enters(State::Agreed);
    assert_eq!(flow.states(), [State::Technical]);
    flow.when(decide("meg", Trigger::Agree))
        .enters(State::Delivery);
    assert_eq!(flow.data_now()["terms"], "ok");
    assert_eq!(
        flow.facts()
            .past_states(State::Agreed)
            .next()
            .map(|state_instance| state_instance.predecessors.len()),
        Some(2)
    );
}

#[test]
fn a_rejection_in_one_branch_ends_the_instance() {
    let mut flow = voted();
    flow.follow([decide("bob", Trigger::Approve)]);
    flow.when(decide("lea", Trigger::Reject)).ends("REFUSED");
}

#[test]
fn an_overdue_vote_goes_to_the_chair_and_is_lost_at_the_second_deadline() {
    let mut flow = voted();
    flow.when(escalate(1)).offers_to_group("chair");
    flow.when(decide("ben", Trigger::Approve))
        .denied("not_a_candidate");
    flow.when(deadline(Trigger::Reject)).ends("REFUSED");
}

#[test]
fn a_start_is_checked_by_its_data_and_actor() {
    given::<Orders>()
        .when(start("ann", json!({ "amount": 0 })))
        .invalid("/data/amount", "range");
    given::<Orders>()
        .member("eve", "suspended")
        .when(start("eve", json!({ "amount": 0 })))
        .denied("suspended");
    given::<Orders>()
        .when(start("ann", json!({ "amount": "ten" })))
        .invalid("/data/amount", "type");
    given::<Orders>()
        .config(&json!({ "quorum": 9 }))
        .refuses_config("/quorum", "range");
}
