//! Every rule of an order, without wasm and in milliseconds.

use super::*;
use Trigger::{Grant, Paid, Reserve, Ship};
use wrkflw_guest::testing::{Outcome, Scenario, When, decide, given, later, signal, start};
use wrkflw_guest::{AttributeValue, Value, json};

fn company() -> Scenario<OrderHandling> {
    let people = [
        ("ida", "intake"),
        ("cleo", "credit"),
        ("walt", "warehouse"),
        ("dora", "dispatch"),
        ("both", "credit"),
        ("both", "warehouse"),
    ];
    let flow = people
        .iter()
        .fold(given(), |flow, (who, group)| flow.member(who, group));
    flow.managed("dora", "dan")
}

fn order() -> Value {
    json!({
        "customer": "Lamps Inc", "total": 1999.9, "weight": 12.5, "express": true,
        "shipBy": "2026-01-12T17:00:00+01:00", "lines": ["2 lamps", "1 bulb"],
    })
}

/// Both checks are open.
fn accepted(change: impl FnOnce(&mut Value)) -> Scenario<OrderHandling> {
    let (mut flow, mut order) = (company(), order());
    change(&mut order);
    flow.follow([start("ann", order), decide("ida", Accept)]);
    flow
}

fn checked() -> Scenario<OrderHandling> {
    let mut flow = accepted(|_| ());
    flow.follow([decide("walt", Reserve), decide("cleo", Grant)]);
    flow
}

fn back(to: &str) -> When<Trigger> {
    decide("dora", Rollback).input(json!({ "to": to }))
}

fn predecessors(flow: &Scenario<OrderHandling>) -> Vec<String> {
    let facts = flow.facts();
    let state_instance = facts.state_instance(Shipping).expect("shipping");
    let name = |id: &String| {
        facts
            .past
            .iter()
            .find(|past| &past.id == id)
            .map(|past| past.name.clone())
    };
    state_instance
        .predecessors
        .iter()
        .filter_map(name)
        .collect()
}

#[test]
fn shipping_begins_when_both_checks_are_done() {
    let mut flow = accepted(|_| ());
    assert_eq!(flow.states(), [CreditCheck, StockReservation]);
    flow.when(decide("walt", Reserve)).enters(Shipping);
    assert_eq!(flow.states(), [CreditCheck]);
    flow.when(decide("cleo", Grant))
        .enters(Shipping)
        .offers_to_group("dispatch");
    assert_eq!(predecessors(&flow), ["StockReservation", "CreditCheck"]);
    flow.when(decide("dora", Ship)).ends("SHIPPED");
}

#[test]
fn one_person_does_not_make_both_checks() {
    for (first, other) in [(Grant, Reserve), (Reserve, Grant)] {
        let mut flow = accepted(|_| ());
        flow.follow([decide("both", first)]);
        flow.when(decide("both", other)).denied("decided_elsewhere");
    }
    let mut flow = accepted(|_| ());
    flow.follow([decide("sue", Grant).on_behalf_of("both")]);
    flow.when(decide("both", Reserve))
        .denied("decided_elsewhere");
    flow.follow([decide("walt", Reserve), back("StockReservation")]);
    flow.when(decide("both", Reserve))
        .denied("decided_elsewhere");
}

#[test]
fn a_refused_credit_ends_the_other_branches() {
    let mut flow = accepted(|_| ());
    flow.when(decide("cleo", Refuse)).ends("REFUSED");
    assert!(
        flow.facts()
            .last_past_state(StockReservation)
            .is_some_and(|state_instance| state_instance.left_trigger == Refuse)
    );
    let mut flow = accepted(|_| ());
    flow.follow([decide("walt", Reserve)]);
    flow.when(decide("cleo", Refuse)).ends("REFUSED");
    assert!(flow.facts().waiting.is_empty());
}

#[test]
fn a_second_reservation_goes_on_without_a_second_credit_check() {
    let mut flow = checked();
    flow.when(back("StockReservation")).enters(StockReservation);
    assert_eq!(flow.states(), [StockReservation]);
    flow.when(decide("walt", Reserve))
        .enters(Shipping)
        .offers_to_group("dispatch");
    assert_eq!(flow.states(), [Shipping]);
    assert_eq!(predecessors(&flow), ["StockReservation"]);
}

#[test]
fn an_order_that_is_received_again_is_checked_again() {
    let mut flow = checked();
    flow.when(back("Received")).enters(Received);
    flow.follow([decide("ida", Accept), decide("cleo", Grant)]);
    assert_eq!(flow.states(), [StockReservation]);
    flow.when(decide("walt", Reserve))
        .offers_to_group("dispatch");
}

#[test]
fn an_order_goes_back_only_to_states_that_it_has_been_in() {
    let mut flow = checked();
    for (to, code) in [
        ("CreditCheck", "no_way"),
        ("Shipped", "no_way"),
        ("Nowhere", "no_way"),
    ] {
        flow.when(back(to)).invalid("/input/to", code);
    }
    flow.when(decide("dora", Rollback))
        .invalid("/input/to", "required");
    assert_eq!(flow.states(), [Shipping]);
}

#[test]
fn an_order_waits_only_once_for_its_payment_in_advance() {
    let in_advance = |order: &mut Value| order["inAdvance"] = json!(true);
    let mut flow = accepted(in_advance);
    assert_eq!(flow.states(), [CreditCheck, StockReservation, Payment]);
    flow.follow([decide("walt", Reserve), decide("cleo", Grant)]);
    assert_eq!(flow.states(), [Payment]);
    flow.when(signal("bank", Paid)).offers_to_group("dispatch");
    flow.follow([back("Received"), decide("ida", Accept)]);
    assert_eq!(flow.states(), [CreditCheck, StockReservation]);
}

#[test]
fn a_payment_may_come_early() {
    let mut order = order();
    order["inAdvance"] = json!(true);
    let mut flow = company();
    flow.follow([start("ann", order)]);
    flow.when(signal("bank", Paid)).is_kept();
    let forked: Outcome = flow.when(decide("ida", Accept));
    assert_eq!(
        forked.waiting().subscriptions[0].correlation.as_deref(),
        Some("1")
    );
    assert_eq!(flow.states(), [CreditCheck, StockReservation]);
    flow.follow([decide("walt", Reserve), decide("cleo", Grant)])
        .offers_to_group("dispatch");
    assert_eq!(
        predecessors(&flow),
        ["Payment", "StockReservation", "CreditCheck"]
    );
}

#[test]
fn shipping_has_a_reminder_a_day_before_and_escalates_when_due() {
    let mut flow = checked();
    let due = |flow: &Scenario<OrderHandling>| {
        flow.facts()
            .state_instance(Shipping)
            .and_then(|state_instance| state_instance.due_at.clone())
    };
    assert_eq!(due(&flow).as_deref(), Some("2026-01-11T16:00:00.000Z"));
    flow.when(later(days(6) + hours(7))).reminds("Shipping");
    flow.follow([wrkflw_guest::testing::claim("dora")]);
    let late = flow.when(later(days(1)));
    late.offers_to_manager_of("dora");
    flow.when(decide("dan", Ship)).ends("SHIPPED");
}

#[test]
fn an_order_can_be_searched_by_attributes_of_every_type() {
    let mut flow = company();
    flow.follow([start("ann", order())]);
    let facts = flow.facts();
    for (name, value) in [
        ("customer", AttributeValue::Text("Lamps Inc".into())),
        ("express", AttributeValue::Boolean(true)),
        ("total", AttributeValue::Decimal("1999.9".into())),
        ("weight", AttributeValue::Float(12.5)),
        (
            "shipBy",
            AttributeValue::Timestamp("2026-01-12T16:00:00.000Z".into()),
        ),
    ] {
        assert_eq!(facts.attribute(name), Some(&value), "{name}");
    }
    let print =
        |lines: &[&str]| fingerprint(&lines.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(
        facts.attribute("fingerprint"),
        Some(&print(&["2 lamps", "1 bulb"]).into())
    );
    assert_ne!(print(&["2 lamps", "1 bulb"]), print(&["2 lamp", "s1 bulb"]));
}

#[test]
fn express_orders_come_first() {
    let mut flow = company();
    let priority = |outcome: Outcome| outcome.assignment().priority;
    assert_eq!(priority(flow.when(start("ann", order()))), 1);
    let mut slow = order();
    slow["express"] = json!(false);
    assert_eq!(priority(company().when(start("ann", slow))), 0);
}
