//! Wrong uses of the SDK are in `tests/wrong`. This crate has no code of its own.
