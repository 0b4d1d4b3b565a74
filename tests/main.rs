//! Tests of wrkflw from the outside: one binary, one module per subject.

mod kafka;
mod sandbox;
mod support;
