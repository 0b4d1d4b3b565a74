//! Display texts: the title and the summary of an instance, descriptions, and names of priorities.

use serde::{Deserialize, Serialize};
use wrkflw_guest::testing::{decide, given, start};
use wrkflw_guest::{Assignment, Event, Facts, Flow, Graph, NoConfig, Plan, Refusal, json};

wrkflw_guest::states! {
    enum State {
        /// A letter is read.
        Review = "READING",
        /// It was read.
        Done,
    }
}
wrkflw_guest::triggers! { enum Trigger { Count, Approve } }
use State::{Done, Review};
use Trigger::{Approve, Count};

#[derive(Serialize, Deserialize)]
struct Letter {
    subject: String,
    count: u32,
}

struct Letters;

impl Flow for Letters {
    type Config = NoConfig;
    type Data = Letter;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Review)
            .titled("Letters")
            .described("Somebody reads each letter.")
            .instance_title("Letter: {/subject}")
            .instance_summary("read {/count} times")
            .priority_name("normal", 0)
            .priority_name("urgent", 100)
            .task(Review, "Review", |s| {
                s.on(Count, Review);
                s.on(Approve, Done);
            })
            .terminal(Done, "DONE")
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match event.trigger {
            Count => Plan::to(Review).patch(&json!({ "count": facts.data.count + 1 })),
            Approve => Plan::to(Done),
        })
    }

    fn assign(_: &Facts<Self>, _: State) -> Result<Assignment, Refusal> {
        Ok(Assignment::to_group("readers"))
    }
}

#[test]
fn the_title_and_the_summary_follow_the_data() {
    let mut flow = given::<Letters>()
        .member("bob", "readers")
        .member("cid", "readers");
    flow.when(start("ann", json!({ "subject": " A\nb ", "count": 0 })))
        .is_titled("Letter: A b")
        .is_summarised("read 0 times");
    flow.when(decide("bob", Count))
        .is_titled("Letter: A b")
        .is_summarised("read 1 times");
    flow = flow.data(&json!({ "subject": "B", "count": 7 }));
    flow.when(decide("cid", Approve))
        .ends("DONE")
        .is_titled("Letter: B")
        .is_summarised("read 7 times");
}

#[test]
#[should_panic(expected = "expected the title \"Other\"")]
fn a_wrong_title_fails_the_test() {
    let mut flow = given::<Letters>().member("bob", "readers");
    flow.when(start("ann", json!({ "subject": "A", "count": 0 })))
        .is_titled("Other");
}
