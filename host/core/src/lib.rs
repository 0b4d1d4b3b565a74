//! The pure core: what an instance is, what may happen to it, and what follows.
//!
//! Nothing here waits, reads a clock, draws a random number or knows of SQL, HTTP or WebAssembly.
//! The same arguments always give the same result, which is what makes replay and dry runs honest.
//!
//! It may use crates that compute, and `wrkflw-fault`; a test has the list. Every other crate of the host but
//! `wrkflw-runtime` may use it. The SDK runs it in the tests of flows, without the features that take long to compile and
//! that an execution can do without: `schema` and `subscriptions`.
//!
//! Reading order: [`ids`], [`json`], [`graph`] (what a definition declares), [`instance`] (one run),
//! [`answer`] (what flow logic may answer), [`event`] (what happened), [`execution`] (one command, from
//! its checks to its events).

pub mod absence;
pub mod actor;
pub mod answer;
pub mod apply;
pub mod audit;
pub mod calendar;
pub mod check;
pub mod checkpoint;
pub mod cloudevent;
pub mod column;
pub mod command;
mod declare;
pub mod eligibility;
pub mod event;
pub mod event_schema;
pub mod execution;
pub mod graph;
pub mod ids;
pub mod instance;
pub mod json;
pub mod lookup;
pub mod merkle;
pub mod moment;
pub mod notification;
pub mod question;
pub mod refusal;
pub mod rejection;
pub mod schema;
pub mod search;
pub mod shown;
mod stored;
#[cfg(feature = "subscriptions")]
pub mod subscription;
pub mod text;
pub mod version;
mod weight;
