//! wrkflw: a workflow engine for work that people decide.

pub mod asyncapi;
pub mod cli;
pub mod clock;
pub mod config;
pub mod diagram;
pub mod domain;
pub mod engine;
pub mod http;
pub mod outbox;
pub mod roles;
pub mod sample;
pub mod store;
pub mod telemetry;
pub mod wasm;
