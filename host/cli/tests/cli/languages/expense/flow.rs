//! An expense: small ones pass, others need the manager and two of finance, and then receipts within
//! seven working days.

use serde::{Deserialize, Serialize};
use wrkflw_guest::{
    Actor, Assignment, AttributeType, CommentRule, Due, Event, Facts, FiredBy, Flow, Graph, Plan,
    Refusal, SignalSubscription, Verdict, Waiting, allow, hours, invalid, json,
};

wrkflw_guest::states! {
    pub enum State {
        Sort,
        Manager,
        /// Two of finance decide.
        Vote,
        Receipts,
        Paid,
        Declined,
        Lapsed,
    }
}
wrkflw_guest::triggers! { pub enum Trigger { Sorted, Approve, Decline, Received, Late } }

use State::{Declined, Lapsed, Manager, Paid, Receipts, Sort, Vote};
use Trigger::{Approve, Decline, Late, Received, Sorted};

wrkflw_guest::config! {
    pub struct Config {
        finance: String = "reviewers",
        /// Up to this amount, an expense is paid at once.
        limit: i64 = 100,
    }
}

/// What somebody spent. The data also has `votes`, which `transition` writes and nothing here reads.
#[derive(Serialize, Deserialize)]
pub struct Expense {
    amount: i64,
    number: String,
}

pub struct Expenses;

impl Flow for Expenses {
    type Config = Config;
    type Data = Expense;
    type State = State;
    type Trigger = Trigger;

    fn graph(config: &Config) -> Graph<State, Trigger> {
        let pages = || json!({ "type": "object", "properties": { "pages": { "type": "integer", "minimum": 1 } }, "required": ["pages"] });
        Graph::start(Sort)
            .titled("Expense")
            .described("What somebody spent.")
            .data_schema(|| {
                json!({
                    "type": "object",
                    "properties": {
                        "amount": { "type": "integer" },
                        "number": { "type": "string" },
                        "votes": { "type": "integer" },
                    },
                    "required": ["amount", "number"],
                })
            })
            .instance_title("Expense {/number}")
            .instance_summary("{/amount} in all")
            .attribute("number", AttributeType::Text)
            .attribute("amount", AttributeType::Decimal)
            .priority_name("low", 0)
            .priority_name("high", 50)
            .uses_groups([&config.finance])
            .uses_calendars(["office"])
            .router(Sort, "Sort", |s| {
                s.on(Sorted, [Manager, Paid])
                    .condition("Up to the limit it is paid at once")
            })
            .task(Manager, "Manager", |s| {
                s.on(Approve, Vote);
                s.on(Decline, Declined).comment(CommentRule::Required);
            })
            .task(Vote, "Vote", |s| {
                s.until_quorum(Approve, Decline);
                s.on(Approve, Receipts).titled("Pay it");
                s.on(Decline, Declined)
                    .described("Say why.")
                    .comment(CommentRule::Required);
            })
            .wait(Receipts, "Receipts", |s| {
                s.on(Received, Paid).input(pages);
                s.on(Late, Lapsed).fired_by(FiredBy::DEADLINE);
            })
            .terminal(Paid, "PAID")
            .terminal(Declined, "DECLINED")
            .terminal(Lapsed, "LAPSED")
    }

    fn start(facts: &Facts<Self>, _: &Actor) -> Verdict {
        if facts.data.amount <= 0 {
            return invalid("/data/amount", "range", "It is above 0.");
        }
        allow()
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match event.state {
            Sort => {
                let Expense { amount, number } = &facts.data;
                let small = *amount <= facts.config.limit;
                Plan::to(if small { Paid } else { Manager })
                    .attribute("number", number)
                    .attribute("amount", *amount)
            }
            Vote => {
                let plan = Plan::along(facts, event)?;
                let votes = json!({ "votes": event.votes(Approve) });
                match plan.next_state() {
                    None => plan.note_with("open", "More votes are needed.", &votes),
                    Some(Receipts) => plan.patch(&votes).publish("approved", &votes),
                    Some(_) => plan,
                }
            }
            _ => Plan::along(facts, event)?,
        })
    }

    fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        Ok(match state {
            Vote => Assignment::to_each_member(&facts.config.finance)
                .needed(2)
                .priority(50)
                .deadline(Due::after_hours(24).remind().every(hours(24))),
            _ => Assignment::to_manager_of(facts.initiator())
                .deadline(Due::after_hours(48).escalate()),
        })
    }

    fn wait(facts: &Facts<Self>, _: State) -> Result<Waiting, Refusal> {
        let receipts = SignalSubscription::to(Received).correlation(&facts.data.number);
        Ok(Waiting::for_signals()
            .subscribe(receipts)
            .deadline(Due::working_days(7, "office").fire(Late)))
    }
}

wrkflw_guest::export!(Expenses);
