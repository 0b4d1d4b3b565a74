//! Tests of a flow without wasm, database or clock: given facts, when an event happens, then the answer is checked.
//!
//! [`given()`] makes a [`Scenario`]. [`Scenario::when`] sends an event to it and runs the flow until it waits again. The
//! [`Outcome`] has assertions about the result.
//!
//! A scenario runs the core of the host itself. Eligibility, limits, deadlines, joins and buffered signals work as on a host, and refusals
//! have the same codes. The harness has no rules of its own: it selects the task or deadline that a test names, acts as the directory, and
//! moves the time. Without such a task, deadline, child or call, the outcome is denied with `no_task`, `no_deadline`, `unknown_child` or
//! `no_call`. A config or graph that the host would not publish, or an answer that violates the contract, fails the test with the host's
//! message, in the words of `wrkflw plugin check`. Work that the flow offers to nobody fails the test, too; a host reports it to operators.
//! [`export!`](crate::export!) adds a test that the flow can be published with its `config.json`.
//!
//! With the SDK's feature `schemas`, a test checks the schemas of a graph like `plugin check`, and validates data and inputs against
//! them. Without it, tests ignore schemas and compile faster. A test has no limits of the sandbox (memory, time and fuel of a call,
//! size and imports of the component) and no checks of the API, such as permissions (`instance:start`) and budgets of tenants.
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
//! #         Graph::start(State::Review)
//! #             .task(State::Review, "Review", |s| {
//! #                 s.on(Trigger::Approve, State::Done);
//! #                 s.on(Trigger::Reject, State::Rework);
//! #             })
//! #             .own_work(State::Rework, "Rework", |s| s.on(Trigger::Submit, State::Review))
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
    When, answered, child, claim, deadline, decide, delegate, escalate, later, migrate, reassign,
    release, resume, signal, start, suspend, unanswered,
};
pub use outcome::{Entered, Outcome};
pub use scenario::{Scenario, given};
pub use version::can_be_published;
