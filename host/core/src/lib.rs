//! The pure core: the data model of an instance, and the rules that turn a command into events.
//!
//! It does no input or output, reads no clock, draws no random numbers, and knows no SQL, HTTP or WebAssembly.
//! The same arguments always give the same result. Replays and dry runs depend on this.
//!
//! It may use crates that compute, and `wrkflw-fault`; a test has the list. Every other crate of the host except
//! `wrkflw-runtime` may use it. The SDK runs it in the tests of flows, without the features `schema` and `subscriptions`:
//! these take long to compile, and an execution does not need them.
//!
//! Reading order: [`ids`], [`json`], [`graph`] (declared by a definition), [`instance`] (one run), [`answer`] (the
//! answers of flow logic), [`event`], [`execution`] (one command, from its checks to its events).

pub mod absence;
pub mod actor;
pub mod ahead;
pub mod answer;
pub mod apply;
pub mod audit;
pub mod calendar;
pub mod check;
pub mod checkpoint;
pub mod cloudevent;
pub mod column;
pub mod command;
pub mod data_history;
mod declare;
pub mod eligibility;
pub mod event;
#[cfg(feature = "subscriptions")]
pub mod event_filter;
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
pub mod participant;
pub mod question;
pub mod refusal;
pub mod rejection;
pub mod scenario;
pub mod schema;
pub mod search;
pub mod shown;
mod stored;
#[cfg(feature = "subscriptions")]
pub mod subscription;
pub mod template;
pub mod text;
pub mod version;
mod weight;
pub mod zone;
