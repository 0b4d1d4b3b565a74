//! wrkflw: a workflow engine for work that people decide.
pub mod domain;
pub mod store;
