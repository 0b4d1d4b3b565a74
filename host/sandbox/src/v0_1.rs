//! Version 0.1 of the contract: its bindings, and the conversion between its types and the core's.
//!
//! Each version of the contract has a folder of its own. [`lower`] converts facts to the guest's types and cannot fail. [`lift`]
//! and [`graph`] convert answers and validate them. For tests of flows, the SDK compiles these three with its own bindings, so
//! that both convert alike. [`logic`] makes the calls.

#[path = "../../../wit/translation@0.1.0/graph.rs"]
pub(super) mod graph;
#[path = "../../../wit/translation@0.1.0/lift.rs"]
pub(super) mod lift;
pub(super) mod logic;
#[path = "../../../wit/translation@0.1.0/lower.rs"]
pub(super) mod lower;
#[cfg(test)]
mod tests;

/// The package that guests are built for.
pub(super) const PACKAGE: &str = "wrkflw:flow@0.1.0";
/// The interface a component must export.
pub(super) const LOGIC: &str = "wrkflw:flow/logic@0.1.0";

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/flow@0.1.0",
        world: "wrkflw:flow/flow",
        exports: { default: async },
        additional_derives: [PartialEq, serde::Serialize],
    });
}

pub use bindings::wrkflw::flow::types;
use bindings::{Flow, FlowPre};

/// So that a message's size can be taken; which flags are set does not matter for that.
macro_rules! flags_with_size {
    ($($flags:ident),*) => {
        $(impl serde::Serialize for types::$flags {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u32(u32::from(*self == types::$flags::empty()))
            }
        })*
    };
}
flags_with_size!(FiredBy, Reads);
