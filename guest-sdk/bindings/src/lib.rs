//! The test of this crate generates the bindings of the SDKs for Rust and C.
