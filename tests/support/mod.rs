//! What tests share.

pub mod guests;
