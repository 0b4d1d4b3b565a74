//! Scenario files: the actions of people on an instance of a flow, and the expected effects. They are the same for components
//! of every language.
//!
//! [`Scenario::read`] reads a file, [`play()`] runs it with the core, and [`record`] makes one from the audit of an instance.
//! It uses `wrkflw-core` alone and does no input or output: the caller reads files and answers for the flow.

mod expect;
mod file;
pub mod play;
pub mod record;
mod seen;
mod step;
mod write;
mod yaml;

pub use file::{Problem, SCHEMA, STEPS_MAX, Scenario};
pub use play::{Failure, play};

#[cfg(test)]
mod tests;
