//! Write the logic of a wrkflw flow in Rust.
//!
//! A flow is a type that implements [`Flow`]. It declares its graph. From the given facts, it answers who may do what, who gets
//! the work and which state comes next. The host does the rest.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use wrkflw_guest::{Assignment, Facts, Flow, Graph, NoConfig, Refusal};
//!
//! wrkflw_guest::states! { pub enum State { Review, Accepted, Declined } }
//! wrkflw_guest::triggers! { pub enum Trigger { Accept, Decline } }
//!
//! #[derive(Serialize, Deserialize)]
//! pub struct Proposal {
//!     reviewer: String,
//! }
//!
//! pub struct Proposals;
//!
//! impl Flow for Proposals {
//!     type Config = NoConfig;
//!     type Data = Proposal;
//!     type State = State;
//!     type Trigger = Trigger;
//!
//!     fn graph(_: &NoConfig) -> Graph<State, Trigger> {
//!         Graph::start(State::Review)
//!             .task(State::Review, "Review", |s| {
//!                 s.on(Trigger::Accept, State::Accepted);
//!                 s.on(Trigger::Decline, State::Declined);
//!             })
//!             .terminal(State::Accepted, "ACCEPTED")
//!             .terminal(State::Declined, "DECLINED")
//!     }
//!
//!     fn assign(facts: &Facts<Self>, _: State) -> Result<Assignment, Refusal> {
//!         Ok(Assignment::to_user(&facts.data.reviewer))
//!     }
//! }
//!
//! wrkflw_guest::export!(Proposals);
//!
//! // In a test of the flow: given, when, then.
//! use wrkflw_guest::json;
//! use wrkflw_guest::testing::{decide, given, start};
//!
//! let mut flow = given::<Proposals>();
//! flow.when(start("ann", json!({ "reviewer": "rob" }))).enters(State::Review).offers_to_user("rob");
//! flow.when(decide("rob", Trigger::Accept)).ends("ACCEPTED");
//! ```
//!
//! Where to look: [`Graph`], [`StateBuilder`] and [`TransitionBuilder`] declare the graph. [`Facts`] and [`Event`] are the input.
//! [`Refusal`], [`Plan`], [`Assignment`], [`ServiceCall`] and [`Waiting`] are the answers. `testing` (with the feature of that name, among
//! a flow's dev-dependencies) is for tests that run the host's rules in milliseconds, without wasm.
//!
//! `docs/patterns.md` has a flow for each of the known workflow patterns.
//!
//! | to | use |
//! |---|---|
//! | describe a state or trigger for people, or call it by another name outside | [`states!`], [`triggers!`] |
//! | require a number of equal decisions | [`Assignment::any_of`] with [`StateBuilder::until_quorum`], or [`Event::quorum`] for rules of one's own |
//! | ask somebody whom the data names | [`Assignment::to_user_or_manager_of`] |
//! | remind and escalate | [`Sla`], [`Due`]; who gets it then: [`Flow::escalate`] |
//! | separate duties | [`Graph::separate`]; for other rules [`Facts::deciders`] with [`Assignment::exclude`] or [`Event::not_by`] |
//! | read the groups of the actor, or earlier comments | [`Graph::reads`] |
//! | ask for a comment or a form | [`TransitionBuilder::comment`], [`TransitionBuilder::input`]; where it depends on data [`Event::require_comment`], [`Event::require_field`] |
//! | let only the requester do something | [`Event::only_requester`] |
//! | go on when some branches have arrived | [`StateBuilder::join_count`] |
//! | compare money | [`Decimal`] |
//! | count time | [`Moment`] |
//! | go back to a state that the instance has been in | [`Event::way_back`], [`Facts::came_through`], [`Facts::last_past_state`] |
//! | begin several branches at once | [`StateBuilder::fork`], or [`Plan::fork`] for some of them |
//! | begin a branch beside a state that goes on | [`StateBuilder::spawn`], [`Plan::spawn`] |
//! | begin one branch per item | [`Target::key`] with [`Plan::fork`] or [`Plan::spawn`]; [`Facts::entering`] |
//! | cancel the other branches | [`Plan::cancel_others`] |
//! | wait for signals, also early ones, or children | [`Waiting`], [`Event::children_running`] |

#![deny(missing_docs)]

mod assignment;
mod attribute;
mod bindings;
mod config;
mod decimal;
mod demands;
mod escalation;
mod export;
mod facts;
mod flow;
mod graph;
#[cfg(any(all(target_arch = "wasm32", feature = "heap"), test))]
mod heap;
mod json;
mod lineage;
mod merge;
mod moment;
mod names;
mod plan;
mod quorum;
mod refusal;
mod sla;
#[cfg(feature = "testing")]
pub mod testing;
mod waiting;

/// The examples of `docs/patterns.md`, as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/patterns.md")]
mod patterns {}

pub use serde_json::{Value, json};

pub use assignment::{days, hours, minutes};
pub use config::NoConfig;
pub use decimal::Decimal;
pub use facts::{Event, Facts};
pub use flow::Flow;
pub use graph::{Graph, StateBuilder, Targets, TransitionBuilder};
pub use moment::Moment;
pub use names::{Names, States, Triggers};
pub use plan::{Plan, Target};
pub use quorum::Quorum;
pub use refusal::{Verdict, all, allow, deny, fault, invalid, not_now};
pub use sla::Sla;

// Types of the contract.
pub use bindings::wrkflw::flow::types::{
    Actor, Allocation, Assignment, Attribute, AttributeType, AttributeValue, Child, ChildStatus,
    CommentRule, Deadline, Decider, Decision, Due, EndedChild, EntryCause, EventSource, FiredBy,
    Fraction, Instance, Member, Needed, Offer, Omitted, Overdue, OverdueAction, PassedDeadline,
    PastState, Principal, PublishedEvent, Reads, Reason, ReceivedSignal, Refusal, ServiceAnswer,
    ServiceCall, SignalSubscription, Since, StateInstance, Suspension, Task, TaskDecision,
    TaskStatus, Violation, Waiting, WorkingDays, WorkingTime,
};

/// For the expansion of the macros. Not part of the public API.
#[doc(hidden)]
pub mod plumbing {
    pub use serde;

    pub use crate::bindings::{export_logic, exports, wrkflw};
    pub use crate::config::Setting;
    pub use crate::export::{Logic, is_flow};
    pub use crate::names::{all_differ, ascii, capitals, capitals_len, is_name, named};

    /// The content of the custom section `wrkflw:sdk` of the component.
    pub const SDK: &[u8; SDK_TEXT.len()] = SDK_TEXT
        .as_bytes()
        .first_chunk()
        .expect("as long as itself");
    const SDK_TEXT: &str = concat!(
        r#"{"sdk":"wrkflw-guest","version":""#,
        env!("CARGO_PKG_VERSION"),
        r#"","wit":"wrkflw:flow@0.1.0"}"#
    );
}
