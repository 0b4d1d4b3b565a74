//! Executions with closures as flow logic: what the host refuses from callers, and from flow logic.
//!
//! `script` has the flow and drives the executions.

mod allocation;
mod answers;
mod branches;
mod callers;
mod claims;
mod comments;
mod counted;
mod deadlines;
mod directory;
mod enter;
mod escalations;
mod fallback;
mod familiar;
mod forks;
mod inputs;
mod items;
mod labels;
mod limits;
mod members;
mod migrated_waits;
mod migration;
mod model;
mod operation;
mod ownership;
mod people;
mod random;
mod reoffer;
mod savepoints;
mod script;
mod separate;
mod services;
mod signals;
mod sources;
mod spawn;
mod staffing;
mod subscriptions;
mod substitutes;
mod suspended_tasks;
mod waits;
mod watches;
