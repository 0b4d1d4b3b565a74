//! Makes a component of the core module that cargo or clang builds for `wasm32-unknown-unknown`.
//!
//! The build script includes this file, too, so it names nothing of this crate.

use wit_component::ComponentEncoder;

/// The linker's argument for the stack of a component, which is below its data.
///
/// After a call, the host clears up to 1 MiB of memory in place and unmaps the rest. The linker's default stack alone has 1 MiB. Before
/// Linux 6.7 the host cannot ask which pages were written, so it would clear the whole stack, and unmap the data and the heap.
pub const STACK: &str = "-zstack-size=262144";

/// Wraps a core module built with the SDK into a component that the host admits.
pub fn componentize(core: &[u8]) -> Result<Vec<u8>, String> {
    ComponentEncoder::default()
        .validate(true)
        .module(core)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| format!("this module cannot be made a component: {error:#}"))
}
