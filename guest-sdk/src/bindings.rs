//! The types of `wrkflw:flow` as Rust sees them, made by wit-bindgen.
//!
//! Authors never name this module; `lib.rs` lists by hand what they see of it. The test `bindings` of this crate compares
//! `generated.rs` with the contract that `wit/` links to, and writes it.

#[rustfmt::skip]
#[expect(
    missing_docs,
    unreachable_pub,
    unsafe_code,
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::unwrap_used,
    reason = "generated"
)]
mod generated;

pub use generated::*;
