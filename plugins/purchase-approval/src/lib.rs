//! A purchase: approved by the manager, by two of five in finance and, above a limit, by the CFO.
//!
//! Nobody approves in two steps. Too many rejections end it at once; requesters may withdraw it by a signal; late work climbs.

use serde::{Deserialize, Serialize};
use wrkflw_guest::{
    Assignment, AttributeType, CommentRule::Required, Decimal, Event, Facts, Flow, Graph, Plan,
    Quorum, Refusal, Sla, Verdict, Violation, allow, json,
};

wrkflw_guest::states! { pub enum State { Intake, Manager, Finance, Sizing, Cfo, Approved, Rejected, Withdrawn } }
wrkflw_guest::triggers! { pub enum Trigger { Sort, Approve, Reject, Withdraw } }
use State::{Approved, Cfo, Finance, Intake, Manager, Rejected, Sizing, Withdrawn};
use Trigger::{Approve, Reject, Sort, Withdraw};

wrkflw_guest::config! {
    /// Who approves, how many of them, from which amount on the CFO too, and how soon.
    pub struct Config {
        finance: Vec<String> = vec![],
        finance_needed: u32 = 2,
        cfo_group: String = "cfo",
        fallback_group: String = "finance-office",
        cfo_above: Decimal = Decimal::from(50_000),
        manager_sla: Sla = Sla::hours(24, 48),
        finance_sla: Sla = Sla::hours(24, 72),
        cfo_sla: Sla = Sla::hours(12, 24),
    }
}

/// What is to be bought.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Purchase {
    amount: Decimal,
    currency: String,
    supplier: String,
}

pub struct PurchaseApproval;

impl Flow for PurchaseApproval {
    type Config = Config;
    type Data = Purchase;
    type State = State;
    type Trigger = Trigger;

    fn check(config: &Config) -> Vec<Violation> {
        // The requester and the manager who approved before take no part in the vote.
        let few = config.finance.len() < config.finance_needed as usize + 2;
        let message = "Name at least two people more than have to approve.";
        Violation::new("/finance", "too_few", message).only_if(few)
    }

    fn graph(config: &Config) -> Graph<State, Trigger> {
        let slas = [&config.manager_sla, &config.finance_sla, &config.cfo_sla];
        Graph::start(Intake)
            .titled("Purchase approval")
            .described("The manager approves, then finance, and above a limit the CFO.")
            .instance_title("Purchase from {/supplier}")
            .instance_summary("{/amount} {/currency}")
            .uses_people(&config.finance)
            .uses_groups([&config.cfo_group, &config.fallback_group])
            .uses_calendars(slas.into_iter().filter_map(|sla| sla.calendar()))
            .schema(include_str!("purchase.schema.json"))
            .attribute("amount", AttributeType::Decimal)
            .attribute("supplier", AttributeType::Text)
            .attribute("stepDue", AttributeType::Timestamp)
            .separate([Manager, Finance, Cfo])
            .router(Intake, "Intake")
            .on(Sort, Manager)
            .task(Manager, "Approval by the manager")
            .on(Approve, Finance)
            .on(Reject, Rejected)
            .comment(Required)
            .on_signal(Withdraw, Withdrawn)
            .task(Finance, "Approval by finance")
            .on(Approve, [Sizing, Rejected])
            .input(include_str!("finance.schema.json"))
            .on(Reject, [Sizing, Rejected])
            .comment(Required)
            .on_signal(Withdraw, Withdrawn)
            .router(Sizing, "Small or large")
            .on(Sort, [Cfo, Approved])
            .condition(&format!(
                "The CFO approves amounts above {}.",
                config.cfo_above
            ))
            .task(Cfo, "Approval by the CFO")
            .on(Approve, Approved)
            .on(Reject, Rejected)
            .comment(Required)
            .on_signal(Withdraw, Withdrawn)
            .terminal(Approved, "APPROVED")
            .terminal(Rejected, "REJECTED")
            .terminal(Withdrawn, "WITHDRAWN")
    }

    fn guard(facts: &Facts<Self>, event: &Event<Self>) -> Verdict {
        match event.trigger {
            Withdraw => event.only_requester(facts),
            _ => allow(),
        }
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        let data = &facts.data;
        Ok(match (event.state, event.trigger) {
            (Intake, _) => step(facts, Manager)
                .attribute("amount", &data.amount)
                .attribute("supplier", &data.supplier),
            (Manager, Approve) => step(facts, Finance),
            (Finance, Approve | Reject) => match event.quorum(Approve) {
                Quorum::Reached => Plan::to(Sizing),
                Quorum::Impossible => {
                    Plan::to(Rejected).note("too_few_left", "Too few are left to approve.")
                }
                Quorum::Open => Plan::stay(),
            },
            (Sizing, _) if data.amount > facts.config.cfo_above => step(facts, Cfo).note_with(
                "above_limit",
                "The CFO approves what is above the limit.",
                &json!({ "cfoAbove": facts.config.cfo_above }),
            ),
            (Sizing, _) => {
                approved(facts).note("within_limit", "Finance suffices for this amount.")
            }
            (Cfo, Approve) => approved(facts),
            _ => Plan::along(facts, event)?,
        })
    }

    fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        let config = &facts.config;
        let assignment = match state {
            Finance => Assignment::any_of(&config.finance, config.finance_needed)
                .without(&facts.instance.requesters)
                .without(facts.deciders(Manager)),
            Cfo => Assignment::to_group(&config.cfo_group),
            _ => Assignment::to_manager_of(facts.initiator()),
        };
        Ok(assignment
            .fallback(&config.fallback_group)
            .each(|offer| offer.sla(sla(config, state))))
    }
}

fn sla(config: &Config, step: State) -> &Sla {
    match step {
        Finance => &config.finance_sla,
        Cfo => &config.cfo_sla,
        _ => &config.manager_sla,
    }
}

/// On to a step, with its deadline to search by.
fn step(facts: &Facts<PurchaseApproval>, step: State) -> Plan<State> {
    Plan::to(step).attribute_if_any("stepDue", sla(&facts.config, step).due(facts.now))
}

/// The end, told to whoever orders it.
fn approved(facts: &Facts<PurchaseApproval>) -> Plan<State> {
    let (entity, amount) = (&facts.instance.entity_id, facts.data.amount.to_string());
    let order = json!({ "entity": entity, "amount": amount, "currency": facts.data.currency });
    Plan::to(Approved).publish("purchase.approved", &order)
}

wrkflw_guest::export!(PurchaseApproval);

#[cfg(test)]
mod tests;
