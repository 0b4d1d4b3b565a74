//! wrkflw: a workflow engine for work that people decide.

pub mod clock;
pub mod diagram;
pub mod domain;
pub mod engine;
pub mod outbox;
pub mod sample;
pub mod store;
pub mod wasm;
