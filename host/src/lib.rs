//! wrkflw: a workflow engine for work that people decide.
pub mod diagram;
pub mod domain;
