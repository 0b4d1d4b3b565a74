//! wrkflw: a workflow engine for work that people decide.

pub mod clock;
pub mod domain;
pub mod engine;
pub mod sample;
pub mod store;
pub mod wasm;
