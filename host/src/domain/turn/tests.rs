//! Turns whose flow logic is a script of closures: what the host refuses of callers, and what of flow logic.
//!
//! `script` holds the flow and drives the turns.

mod ability;
mod answers;
mod callers;
mod deadlines;
mod escalations;
mod forks;
mod hands;
mod ladder;
mod limits;
mod migration;
mod model;
mod operation;
mod people;
mod random;
mod script;
mod signals;
mod substitutes;
mod town;
mod waits;
mod watches;
