//! An order: credit check and stock reservation in parallel, by different people, then shipping.
//!
//! If the order is paid in advance, a third branch waits for the payment, which may come early. A refused credit ends all
//! branches. Shipping has a deadline at the promised time, and can lead back to an earlier step.

use serde::{Deserialize, Serialize};
use wrkflw_guest::{
    Assignment, AttributeType, Decimal, Due, Event, Facts, Flow, Graph, Moment, Plan, Refusal,
    SignalSubscription, Verdict, Waiting, allow, days, hours, json,
};

wrkflw_guest::states! { pub enum State { Intake, Received, CreditCheck, StockReservation, Payment, Shipping, Shipped, Refused } }
wrkflw_guest::triggers! { pub enum Trigger { Sort, Accept, Grant, Refuse, Reserve, Paid, Ship, Rollback } }
use State::{CreditCheck, Payment, Received, Refused, Shipped, Shipping, StockReservation};
use Trigger::{Accept, Refuse, Rollback, Sort};

wrkflw_guest::config! {
    /// The groups that take part.
    pub struct Config {
        intake: String = "intake",
        credit: String = "credit",
        warehouse: String = "warehouse",
        dispatch: String = "dispatch",
    }
}

/// The part of an order that the logic needs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    customer: String,
    total: Decimal,
    weight: f64,
    ship_by: Moment,
    #[serde(default)]
    express: bool,
    #[serde(default)]
    in_advance: bool,
    lines: Vec<String>,
}

pub struct OrderHandling;

impl Flow for OrderHandling {
    type Config = Config;
    type Data = Order;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &Config) -> Graph<State, Trigger> {
        Graph::start(State::Intake)
            .titled("Order handling")
            .described("Credit and stock are checked in parallel, then the order is shipped.")
            .instance_title("Order {entityId} of {/customer}")
            .priority_name("normal", 0)
            .priority_name("express", 1)
            .data_schema(|| include_str!("order.schema.json"))
            .attribute("customer", AttributeType::Text)
            .attribute("express", AttributeType::Boolean)
            .attribute("total", AttributeType::Decimal)
            .attribute("weight", AttributeType::Float)
            .attribute("shipBy", AttributeType::Timestamp)
            .attribute("fingerprint", AttributeType::Bytes)
            .separate([CreditCheck, StockReservation])
            .router(State::Intake, "Intake", |s| s.on(Sort, Received))
            .task(Received, "Order received", |s| {
                s.on(Accept, [CreditCheck, StockReservation, Payment])
            })
            .task(CreditCheck, "Credit check", |s| {
                s.on(Trigger::Grant, Shipping);
                s.on(Refuse, Refused);
            })
            .task(StockReservation, "Stock reservation", |s| {
                s.on(Trigger::Reserve, Shipping)
            })
            .wait(Payment, "Payment in advance", |s| {
                s.on(Trigger::Paid, Shipping)
                    .input(|| json!({ "properties": { "reference": { "type": "string" } } }))
            })
            .task(Shipping, "Shipping", |s| {
                s.join();
                s.on(Trigger::Ship, Shipped);
                s.on(Rollback, [Received, StockReservation]);
            })
            .terminal(Shipped, "SHIPPED")
            .terminal(Refused, "REFUSED")
    }

    fn guard(facts: &Facts<Self>, event: &Event<Self>) -> Verdict {
        match (event.state, event.trigger) {
            (_, Rollback) => event.way_back(facts, "/to").map(drop),
            _ => allow(),
        }
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        let order = &facts.data;
        let unpaid = order.in_advance && facts.last_past_state(Payment).is_none();
        Ok(match event.trigger {
            Sort => Plan::to(Received)
                .attribute("customer", &order.customer)
                .attribute("express", order.express)
                .attribute("total", &order.total)
                .attribute("weight", order.weight)
                .attribute("shipBy", order.ship_by)
                .attribute("fingerprint", fingerprint(&order.lines)),
            Accept if unpaid => Plan::fork([CreditCheck, StockReservation, Payment]),
            Accept => Plan::fork([CreditCheck, StockReservation]),
            Refuse => Plan::to(Refused).cancel_others(facts, event),
            Rollback => Plan::to(event.way_back(facts, "/to")?),
            _ => Plan::along(facts, event)?,
        })
    }

    fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        let (config, due) = (&facts.config, facts.data.ship_by);
        let assignment = match state {
            CreditCheck => Assignment::to_group(&config.credit),
            StockReservation => Assignment::to_group(&config.warehouse),
            Shipping => Assignment::to_group(&config.dispatch)
                .deadline(Due::at(due.before(days(1))).remind().every(hours(4)))
                .deadline(Due::at(due).escalate().every(days(1))),
            _ => Assignment::to_group(&config.intake),
        };
        Ok(assignment.priority(u8::from(facts.data.express)))
    }

    fn wait(facts: &Facts<Self>, _: State) -> Result<Waiting, Refusal> {
        let paid = SignalSubscription::to(Trigger::Paid).correlation(&facts.instance.entity_id);
        Ok(Waiting::for_signals().subscribe(paid.buffered()))
    }
}

/// FNV-1a of the order's lines. A search by this hash finds an identical order.
fn fingerprint(lines: &[String]) -> [u8; 8] {
    let bytes = lines.iter().flat_map(|line| line.bytes().chain([0]));
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    sum.to_be_bytes()
}

wrkflw_guest::export!(OrderHandling);

#[cfg(test)]
mod tests;
