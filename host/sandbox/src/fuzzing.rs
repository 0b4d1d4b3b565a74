//! What fuzz targets call: each step that processes untrusted bytes and answers.
//!
//! For fuzz targets only. The host uses [`super::Sandbox`], which takes these steps in order and under limits.

use std::sync::OnceLock;

use wasmtime::Engine;
use wasmtime::component::Component;

pub use super::v0_1::types;

use super::engine;
use super::v0_1::{graph, lift};
use wrkflw_core::answer::{Plan, Refusal, Work};
use wrkflw_core::graph::Graph;

/// Compiles a component as the compiling child does.
pub fn compile(bytes: &[u8]) -> Result<(), String> {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let engine =
        ENGINE.get_or_init(|| Engine::new(&engine::base()).expect("a known configuration"));
    Component::new(engine, bytes)
        .map(drop)
        .map_err(|error| format!("{error:#}"))
}

/// Converts a refusal.
pub fn refusal(answer: types::Refusal) -> Result<Refusal, String> {
    lift::refusal(answer)
}

/// Converts the answer of a transition.
pub fn plan(answer: types::Plan) -> Result<Plan, String> {
    lift::plan(answer)
}

/// Converts the work in a state.
pub fn work(answer: types::Work) -> Result<Work, String> {
    lift::work(answer)
}

/// Converts the definition that a component describes.
pub fn graph(definition: types::Definition) -> Result<Graph, String> {
    graph::graph(definition)
}
