//! The generator of the SDK's bindings is the test of this crate.
