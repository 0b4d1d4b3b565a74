//! Tests of wrkflw from the outside: one binary, one module per subject.

mod access;
mod api;
mod audit;
mod chaos;
mod errands;
mod faults;
mod flow;
mod hazards;
mod idempotency;
mod jobs;
mod kafka;
mod migrations;
mod races;
mod roles;
mod sandbox;
mod support;
mod tidy;
mod work;
