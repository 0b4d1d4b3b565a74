//! The hazards of one statement for many commands, each provoked on a real PostgreSQL: what a batch's members do to
//! each other, who waits for whom, and what is left when the connection breaks.
//!
//! `desk` makes changes without HTTP or wasm; `wire` stands between a host and its database, and breaks. `plans` looks
//! at how the statements are planned.

mod batches;
mod chains;
mod crowds;
mod desk;
mod joints;
mod plans;
mod starts;
mod waits;
pub(crate) mod wire;
mod writers;
