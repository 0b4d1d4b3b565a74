//! Turns whose flow logic is a script of closures: what the host refuses of callers, and what of flow logic.
//!
//! `script` holds the flow and drives the turns.

mod ability;
mod answers;
mod callers;
mod forks;
mod ladder;
mod migration;
mod random;
mod script;
mod town;
