//! Tests of wrkflw from the outside: one binary, one module per subject.

mod access;
mod api;
mod audit;
mod concurrency;
mod crashes;
mod events;
mod faults;
mod flow;
mod flows;
mod group_commit;
mod idempotency;
mod jobs;
mod roles;
mod sandbox;
mod scenarios;
mod schema;
mod structure;
mod subflows;
mod support;
mod version_migration;
