//! The statement that commits many commands, on a real PostgreSQL, and its possible faults: effects of a batch's members on each
//! other, waits for locks, and lost connections.
//!
//! `fixture` makes changes without HTTP or wasm. `wire` is a proxy between a host and its database that cuts connections. `plans`
//! checks the plans of the statements.

mod batches;
mod chains;
mod fixture;
mod one_instance;
mod opposite_orders;
mod plans;
mod purges;
mod starts;
mod types;
mod waits;
pub(crate) mod wire;
mod writers;
