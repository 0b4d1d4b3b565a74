//! Tests of a flow without wasm, database or clock: given facts, when an event, then the answer.
//!
//! [`given`] makes a [`Scenario`]; [`Scenario::when`] puts an event to it and follows the flow to
//! where it leads; what came of it is asserted on the [`Outcome`].
//!
//! A scenario runs the core of the host itself. Who may do what, limits, deadlines, joins and early signals are as on a
//! host, and refusals have the same codes. The harness has no rules of its own. It says which task or deadline a test means, tells the
//! core of the people that the test names, and moves the time. Where a test means nothing that there is, [`Outcome::denied`] is told
//! `no_task`, `no_deadline` or `unknown_child`. What the host does not accept - a graph that is not published, an answer that breaks a
//! rule - fails the test with the host's words. So does work that the flow offers to nobody, which a host reports to operators.
//!
//! With the SDK's feature `schemas`, data is held against the flow's schema and inputs against the forms of tasks; without it
//! the tests compile faster. On a host only there are the limits of the sandbox - memory, time and fuel of one answer - and what
//! the API asks for: permissions such as `instance:start`, and budgets of tenants.
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
//! #         if event.trigger == Trigger::Reject {
//! #             event.require_comment("Say what is missing.")?;
//! #         }
//! #         allow()
//! #     }
//! #     fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
//! #         Ok(match state {
//! #             State::Rework => Assignment::to_user(facts.initiator()),
//! #             _ => Assignment::to_group("reviewers"),
//! #         })
//! #     }
//! # }
//! let mut flow = given::<Reports>().member("rob", "reviewers");
//! flow.when(start("ann", json!({}))).enters(State::Review).offers_to_group("reviewers");
//! flow.when(decide("rob", Trigger::Reject)).invalid("/comment", "required");
//! flow.when(decide("rob", Trigger::Reject).comment("No figures.")).enters(State::Rework).offers_to_user("ann");
//! ```

mod contract;
mod directory;
mod event;
mod given;
mod outcome;
mod run;
mod scenario;
mod time;
mod told;
mod version;
mod when;
mod work;

pub use event::{
    When, child, claim, deadline, decide, escalate, later, migrate, release, signal, start,
};
pub use outcome::{Entered, Outcome};
pub use scenario::{Scenario, given};
