//! What tests share.

pub(crate) mod guests;
pub(crate) mod program;
