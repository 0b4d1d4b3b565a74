//! wrkflw: a workflow engine for work that people decide.
pub mod asyncapi;
pub mod domain;
pub mod outbox;
pub mod store;
