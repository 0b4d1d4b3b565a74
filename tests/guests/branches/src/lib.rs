//! A fork into eight branches, and their join. GO moves a branch to the join, END ends it.
//!
//! The data and the config change the flow:
//! - With `{"count": 3}` in the config, the join waits for this many branches.
//! - With `"late": 60` in the data, a reminder begins beside branch `A` every 60 seconds until the work is done. It meets the
//!   others in the join.
//! - With `"cancel": 60`, a deadline of branch `B` cancels everything.
//! - With `"items": [{"id": "a", "group": "reviewers"}]` there is one branch per item instead, offered to the item's group. The
//!   signal MORE begins branches for the `items` of its payload.
//! - With `"retain": true` the work after the join goes to a reviewer who is familiar with the instance.

use wrkflw_guest::{
    Assignment, Due, Event, Facts, FiredBy, Flow, Graph, Offer, Plan, Refusal, StateBuilder,
    Target, Value,
};

wrkflw_guest::states! { pub enum State { Begin, A, B, C, D, E, F, G, H, Item, Reminder, Meet, Done } }
wrkflw_guest::triggers! { pub enum Trigger { Spread, Go, End, Late, More } }
use State::{A, B, Begin, C, D, Done, E, F, G, H, Item, Meet, Reminder};

wrkflw_guest::config! {
    /// How many branches the join waits for; 0 is all of them.
    pub struct Config {
        count: u32 = 0,
    }
}

const BRANCHES: [State; 8] = [A, B, C, D, E, F, G, H];

/// One target for each item in this document.
fn branches(document: &Value) -> Vec<Target<State>> {
    let items = document["items"].as_array().into_iter().flatten();
    let branch = |item: &Value| {
        let id = item["id"].as_str().unwrap_or_default();
        Target::new(Item).key(id).data(item)
    };
    items.map(branch).collect()
}

/// The common declarations of all branches.
fn meets(s: &StateBuilder<State, Trigger>) {
    s.on(Trigger::Go, Meet);
    s.on(Trigger::End, Meet);
}

pub struct Branches;

impl Flow for Branches {
    type Config = Config;
    type Data = Value;
    type State = State;
    type Trigger = Trigger;

    fn graph(config: &Config) -> Graph<State, Trigger> {
        let begin = Graph::start(Begin).router(Begin, "Begin", |s| {
            s.on(Trigger::Spread, [A, B, C, D, E, F, G, H, Item]);
        });
        let branches = BRANCHES.into_iter().fold(begin, |graph, branch| {
            graph.task(branch, "A branch", |s| {
                meets(s);
                s.spawn(Trigger::Late, Reminder).fired_by(FiredBy::DEADLINE);
            })
        });
        branches
            .task(Item, "An item", |s| {
                meets(s);
                s.on_signal(Trigger::More, Item);
            })
            .task(Reminder, "Ask for it", meets)
            .task(Meet, "All of them", |s| {
                match config.count {
                    0 => s.join(),
                    count => s.join_count(count),
                }
                s.on(Trigger::Go, Done);
            })
            .terminal(Done, "DONE")
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match event.trigger {
            Trigger::Spread => match branches(&facts.data) {
                items if items.is_empty() => Plan::fork(BRANCHES),
                items => Plan::fork(items),
            },
            Trigger::More => Plan::spawn(branches(&event.input)),
            Trigger::End => Plan::end_branch(),
            Trigger::Late | Trigger::Go => Plan::along(facts, event)?,
        })
    }

    fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        if let Some(item) = facts.entering().filter(|_| state == Item) {
            let item: Value = item.item()?;
            return Ok(Assignment::to_group(
                item["group"].as_str().unwrap_or_default(),
            ));
        }
        let retain = facts.data["retain"] == true;
        let work = Assignment::to_group("reviewers").each(|offer| Offer { retain, ..offer });
        let seconds = |name: &str| {
            let seconds = facts.data[name].as_u64();
            seconds.and_then(|seconds| u32::try_from(seconds).ok())
        };
        Ok(match (seconds("late"), seconds("cancel")) {
            (Some(late), _) if state == A => {
                work.deadline(Due::After(late).fire(Trigger::Late).every(late))
            }
            (_, Some(longest)) if state == B => {
                work.deadline(Due::After(longest).cancel("B took too long"))
            }
            _ => work,
        })
    }
}

wrkflw_guest::export!(Branches);
