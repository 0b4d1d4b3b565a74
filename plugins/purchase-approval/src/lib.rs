//! A purchase: approved by the manager, by two of five in finance and, above a limit, by the CFO.
//!
//! Nobody approves in two steps. Too many rejections end the purchase at once. Requesters may withdraw it by a signal. The manager
//! may take the approval back until finance decides. Late work goes up from manager to manager.

use serde::{Deserialize, Serialize};
use wrkflw_guest::{
    Assignment, AttributeType, CommentRule::Required, Decimal, Event, Facts, Flow, Graph, Plan,
    Refusal, Sla, Value, Verdict, Violation, allow, deny, json, not_now,
};

wrkflw_guest::states! { pub enum State { Intake, Manager, Finance, Sizing, Cfo, Approved, Rejected, Withdrawn } }
wrkflw_guest::triggers! { pub enum Trigger { Sort, Approve, Reject, Withdraw, TakeBack } }
use State::{Approved, Cfo, Finance, Intake, Manager, Rejected, Sizing, Withdrawn};
use Trigger::{Approve, Reject, Sort, TakeBack, Withdraw};

wrkflw_guest::config! {
    /// Who approves, how many of them, from which amount the CFO is needed, and how soon.
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
        // The requester and the manager who approved do not take part in the vote.
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
            .data_schema(|| include_str!("purchase.schema.json"))
            .attribute("amount", AttributeType::Decimal)
            .attribute("supplier", AttributeType::Text)
            .attribute("stepDue", AttributeType::Timestamp)
            .separate([Manager, Finance, Cfo])
            .router(Intake, "Intake", |s| s.on(Sort, Manager))
            .task(Manager, "Approval by the manager", |s| {
                s.on(Approve, Finance);
                s.on(Reject, Rejected).comment(Required);
                s.on_signal(Withdraw, Withdrawn);
            })
            .task(Finance, "Approval by finance", |s| {
                s.until_quorum(Approve, Reject);
                s.on(Approve, Sizing)
                    .input(|| include_str!("finance.schema.json"));
                s.on(Reject, Rejected).comment(Required);
                s.on_signal(TakeBack, Manager)
                    .titled("Take the approval back");
                s.on_signal(Withdraw, Withdrawn);
            })
            .router(Sizing, "Small or large", |s| {
                s.on(Sort, [Cfo, Approved]).condition(&format!(
                    "The CFO approves amounts above {}, finance all others.",
                    config.cfo_above
                ))
            })
            .task(Cfo, "Approval by the CFO", |s| {
                s.on(Approve, Approved);
                s.on(Reject, Rejected).comment(Required);
                s.on_signal(Withdraw, Withdrawn);
            })
            .terminal(Approved, "APPROVED")
            .terminal(Rejected, "REJECTED")
            .terminal(Withdrawn, "WITHDRAWN")
    }

    fn guard(facts: &Facts<Self>, event: &Event<Self>) -> Verdict {
        match event.trigger {
            Withdraw => event.only_requester(facts),
            TakeBack => taken_back(facts, event),
            _ => allow(),
        }
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        let (config, data) = (&facts.config, &facts.data);
        let plan = match event.state {
            Intake => Plan::along(facts, event)?
                .attribute("amount", &data.amount)
                .attribute("supplier", &data.supplier),
            Sizing if data.amount > config.cfo_above => Plan::to(Cfo).note_with(
                "above_limit",
                "The CFO approves what is above the limit.",
                &json!({ "cfoAbove": config.cfo_above }),
            ),
            Sizing => Plan::to(Approved).note("within_limit", "Finance suffices for this amount."),
            _ => Plan::along(facts, event)?,
        };
        Ok(match plan.next_state() {
            // The deadline of the step, for searches.
            Some(step @ (Manager | Finance | Cfo)) => {
                plan.attribute_if_any("stepDue", sla(config, step).due(facts.now))
            }
            Some(Rejected) if event.state == Finance => {
                plan.note("too_few_left", "Too few are left to approve.")
            }
            Some(Approved) => plan.publish("purchase.approved", &order(facts)),
            _ => plan,
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

/// The manager who approved may take it back until somebody in finance has decided.
fn taken_back(facts: &Facts<PurchaseApproval>, event: &Event<PurchaseApproval>) -> Verdict {
    let approval = facts.last_past_state(Manager);
    let approver = approval.and_then(|state| state.actor.as_deref());
    let actor = event.actor().map(|actor| actor.id.as_str());
    if actor.is_none() || actor != approver {
        return deny("not_approver", "Only who approved it before may do this.");
    }
    if !facts.deciders(Finance).is_empty() {
        return not_now("finance_decided", "Finance has begun to decide.");
    }
    allow()
}

fn sla(config: &Config, step: State) -> &Sla {
    match step {
        Finance => &config.finance_sla,
        Cfo => &config.cfo_sla,
        _ => &config.manager_sla,
    }
}

/// The data for the person who orders it.
fn order(facts: &Facts<PurchaseApproval>) -> Value {
    let (entity, amount) = (&facts.instance.entity_id, facts.data.amount.to_string());
    json!({ "entity": entity, "amount": amount, "currency": facts.data.currency })
}

wrkflw_guest::export!(PurchaseApproval);

#[cfg(test)]
mod tests;
