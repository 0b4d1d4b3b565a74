//! The sandbox: flow logic, asked one question at a time.
//!
//! A component is scanned, compiled once, and kept ready; every question gets a fresh instance of it
//! under limits of fuel, time, memory, stack and output, and the instance is dropped with its answer.
//! Guests import nothing, so an answer depends on its question alone.
//!
//! This folder is the only one that names `wasmtime`. It knows no store, no HTTP and no transaction;
//! it does not judge what a plan means - [`crate::domain`] does, against the declared graph.
//!
//! Reading order: [`settings`], [`sandbox`] (what callers use), [`call`] (one call under limits),
//! [`lane`] (where it runs), [`library`] (from a digest to a component that is ready), [`scan`] and [`compile`] (from bytes to
//! machine code), [`artifacts`] (machine code on disk), [`v0_1`] (the contract's types and ours).

mod artifacts;
mod call;
mod compile;
pub mod componentize;
mod engine;
pub mod error;
#[doc(hidden)]
pub mod fuzzing;
mod lane;
mod library;
mod limits;
pub mod profile;
pub mod sandbox;
mod scan;
pub mod settings;
mod size;
mod text;
mod v0_1;

pub use compile::{COMPILE_COMMAND, compile_child_main};
pub use error::{Cause, GuestError, Pinned, Trap};
pub use profile::Profile;
pub use sandbox::{Admission, AdmitError, Evaluation, Sandbox};
pub use settings::{CompileLimits, Compiler, Settings};
