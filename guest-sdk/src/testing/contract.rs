//! Converts between the SDK's bindings and the core: the translation that the host uses, compiled with these bindings.

use crate::bindings::wrkflw::flow::types;

#[path = "../../translation/graph.rs"]
pub(super) mod graph;
#[path = "../../translation/lift.rs"]
pub(super) mod lift;
#[path = "../../translation/lower.rs"]
pub(super) mod lower;
