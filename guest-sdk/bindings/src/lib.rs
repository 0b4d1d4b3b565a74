//! The generator of the SDKs' bindings, in Rust and C, is the test of this crate.
