//! Tests of a flow without wasm, database or clock: given facts, when an event, then the answer.
//!
//! [`given`] makes a [`Scenario`]; [`Scenario::when`] puts an event to it and follows the flow to
//! where it leads; what came of it is asserted on the [`Outcome`]. A scenario stands in for the
//! host: it claims the task of whoever decides, holds the flow to its graph, applies its plans,
//! settles routers and joins, lets deadlines pass, keeps early signals, and asks who gets the work.
//! An answer that the host would refuse fails the test. It does not check the data against its
//! schema nor inputs against their forms, and knows no time but what it is told.
//!
//! ```
//! # wrkflw_guest::states! { pub enum State { Review, Rework, Done } }
//! # wrkflw_guest::triggers! { pub enum Trigger { Approve, Reject, Submit } }
//! # use wrkflw_guest::{testing::{decide, given, start}, *};
//! # pub struct Reports;
//! # impl Flow for Reports {
//! #     type Config = NoConfig;
//! #     type Data = std::collections::BTreeMap<String, String>;
//! #     type State = State;
//! #     type Trigger = Trigger;
//! #     fn graph(_: &NoConfig) -> Graph<State, Trigger> {
//! #         Graph::start(State::Review).task(State::Review, "Review")
//! #             .on(Trigger::Approve, State::Done).on(Trigger::Reject, State::Rework)
//! #             .own_work(State::Rework, "Rework").on(Trigger::Submit, State::Review)
//! #             .terminal(State::Done, "DONE")
//! #     }
//! #     fn guard(_: &Facts<Self>, event: &Event<Self>) -> Verdict {
//! #         invalid("/comment", "required", "Say what is missing.")
//! #             .when(event.trigger == Trigger::Reject && event.comment().is_empty())
//! #     }
//! #     fn assign(facts: &Facts<Self>, state: State) -> Assignment {
//! #         match state {
//! #             State::Rework => Assignment::to_user(facts.initiator()),
//! #             _ => Assignment::to_group("reviewers"),
//! #         }
//! #     }
//! # }
//! let mut flow = given::<Reports>().member("rob", "reviewers");
//! flow.when(start("ann", json!({}))).enters(State::Review).offers_to_group("reviewers");
//! flow.when(decide("rob", Trigger::Reject)).invalid("/comment", "required");
//! flow.when(decide("rob", Trigger::Reject).comment("No figures.")).enters(State::Rework).offers_to_user("ann");
//! ```

mod branches;
mod checks;
mod event;
mod host;
mod outcome;
mod rules;
mod scenario;
mod time;
mod work;

pub use event::{
    When, child, claim, deadline, decide, escalate, failure, later, migrate, release, reply,
    signal, start,
};
pub use outcome::{Entered, Outcome};
pub use scenario::{Scenario, given};
