//! Makes a component of the core module that cargo or clang builds for `wasm32-unknown-unknown`.
//!
//! The build script includes this file, too, so it names nothing of this crate.

use wit_component::ComponentEncoder;

/// The linker's argument for the stack of a component, which is below its data.
///
/// The default of 1 MiB is what the host clears in place after a call, so the memory behind it would be unmapped and mapped again.
/// Before Linux 6.7, all of it is cleared, because the host cannot ask which pages were written. A call takes half the time with
/// 256 KiB there, and as long as before on later systems.
pub const STACK: &str = "-zstack-size=262144";

/// Wraps a core module built with the SDK into a component that the host admits.
pub fn componentize(core: &[u8]) -> Result<Vec<u8>, String> {
    ComponentEncoder::default()
        .validate(true)
        .module(core)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| format!("this module cannot be made a component: {error:#}"))
}
