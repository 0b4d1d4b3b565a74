//! The sandbox: runs flow logic, one question per call.
//!
//! A component is scanned, compiled once, and cached. Every call gets a fresh instance with limits of fuel, time, memory, stack
//! and output, and the instance is dropped after the answer. Guests import nothing, so an answer depends only on its question.
//!
//! This crate is the only one that names `wasmtime`. It uses `wrkflw-core` for questions and answers, and `wrkflw-fault`. It knows no store, no HTTP
//! and no transaction. It does not check a plan against the declared graph: [`wrkflw_core`] does.
//!
//! Reading order: [`settings`], [`sandbox`] (what callers use), [`admission`] (before a version is published), [`call`] (one call
//! under limits), [`priority`] (on which threads it runs), [`measures`] (its metrics), [`library`] (from a digest to a component that
//! can be instantiated), [`mod@scan`] and [`compile`] (from bytes to machine code), [`functions`] (machine code of functions in memory),
//! [`artifacts`] (machine code on disk), [`v0_1`] (conversion between the contract's types and ours).

pub mod admission;
mod artifacts;
mod call;
mod compile;
pub mod componentize;
mod engine;
pub mod error;
mod functions;
#[doc(hidden)]
pub mod fuzzing;
mod library;
mod measures;
mod priority;
pub mod profile;
pub mod sandbox;
mod scan;
pub mod settings;
mod size;
pub mod trap;
mod v0_1;

pub use admission::{Admission, AdmitError};
pub use compile::{COMPILE_COMMAND, compile_child_main};
pub use error::{Cause, GuestError, Pinned};
pub use profile::Profile;
pub use sandbox::{Asking, Evaluation, Sandbox};
pub use scan::{Scanned, scan};
pub use settings::{CompileLimits, Compiler, Settings};
pub use trap::Trap;
