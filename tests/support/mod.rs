//! What tests share.

pub(crate) mod guests;
