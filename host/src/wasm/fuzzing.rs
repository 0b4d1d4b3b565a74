//! What fuzz targets call of this folder: the ways of bytes and answers of strangers, one by one.
//!
//! Not for anybody else: the service asks [`super::Sandbox`], which takes these steps in order and under limits.

use std::sync::OnceLock;

use wasmtime::Engine;
use wasmtime::component::Component;

pub use super::v0_1::types;

use super::v0_1::{graph, lift};
use super::{engine, scan};
use crate::domain::answer::{Assignment, Plan, Verdict, Waiting};
use crate::domain::check::Problem;
use crate::domain::graph::Graph;

/// Looks through a component of at most this size before it is compiled.
pub fn scan(bytes: &[u8], bytes_max: usize) -> Result<(), Vec<Problem>> {
    scan::scan(bytes, bytes_max).map(drop)
}

/// Compiles a component as the compiling child does.
pub fn compile(bytes: &[u8]) -> Result<(), String> {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let engine =
        ENGINE.get_or_init(|| Engine::new(&engine::base()).expect("a known configuration"));
    Component::new(engine, bytes)
        .map(drop)
        .map_err(|error| format!("{error:#}"))
}

/// What a guard answered.
pub fn verdict(answer: types::Verdict) -> Result<Verdict, String> {
    lift::verdict(answer)
}

/// What a transition answered.
pub fn plan(answer: types::Plan) -> Result<Plan, String> {
    lift::plan(answer)
}

/// What an assignment answered.
pub fn assignment(answer: types::Assignment) -> Result<Assignment, String> {
    lift::assignment(answer)
}

/// What a wait state answered.
pub fn waiting(answer: types::Waiting) -> Result<Waiting, String> {
    lift::waiting(answer)
}

/// What a component says of its flow.
pub fn graph(definition: types::Definition) -> Result<Graph, String> {
    graph::graph(definition)
}
