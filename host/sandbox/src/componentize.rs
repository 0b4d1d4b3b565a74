//! Makes a component of the core module that `cargo build --target wasm32-unknown-unknown` builds.
//!
//! The build script includes this file, too, so it names nothing of this crate.

use wit_component::ComponentEncoder;

/// Wraps a core module built with the SDK into a component that the host admits.
pub fn componentize(core: &[u8]) -> Result<Vec<u8>, String> {
    ComponentEncoder::default()
        .validate(true)
        .module(core)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| format!("this module cannot be made a component: {error:#}"))
}
