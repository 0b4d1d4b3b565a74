//! Tests of wrkflw from the outside: one binary, one module per subject.

mod flow;
mod kafka;
mod sandbox;
mod support;
