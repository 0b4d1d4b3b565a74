//! wrkflw: a workflow engine for work that people decide - approvals, reviews, annotation.
//!
//! The host keeps instances and tasks in PostgreSQL, serialises decisions, writes an audit that cannot be
//! altered unnoticed, and publishes every change to Kafka. What a flow *means* is a sandboxed WebAssembly
//! component that imports nothing: the guest proposes, the host disposes.
//!
//! # Map
//!
//! This crate is the program: its commands, its settings, and how the parts are put together. It uses all others, and
//! none uses it. Each of them says in its first lines what it is and where to begin; `host/` has a folder for each.
//!
//! | crate | what it is | may use |
//! |---|---|---|
//! | `wrkflw_fault` | faults for tests: points to die at, costly invariants | nothing |
//! | [`wrkflw_runtime`] | time, ids and random bytes; logs and metrics; background workers; the HTTP client | nothing |
//! | [`wrkflw_core`] | the pure core: instances, graphs, executions, events, audit chain | fault |
//! | [`wrkflw_audit`] | the proof of what was recorded: verification, replay, exports, seals, signatures | core |
//! | [`wrkflw_sandbox`] | the sandbox; alone uses `wasmtime` | core, fault |
//! | [`wrkflw_store`] | PostgreSQL; alone uses `sqlx` | core, audit (its rows), fault |
//! | [`wrkflw_relay`] | the relay to Kafka, alone with `rdkafka`; the notifier: notifications, and webhooks of subscribers | core, store, runtime, fault |
//! | [`wrkflw_engine`] | use cases: the one write path | core, store, sandbox, audit, runtime, fault |
//! | [`wrkflw_server`] | the API, alone with `axum`; drawings and documents | core, engine, store (reads), runtime, fault |
//! | `wrkflw` | the program: [`cli`], settings ([`config`]), the default [`roles`], the [`sample`] flow | all |
//!
//! # The path of a command
//!
//! [`wrkflw_server::http`] parses a request into a [`wrkflw_core::command::Command`]. [`wrkflw_engine::pipeline`] runs it in
//! stages: queue, load, execute, group commit, answer. The execution ([`wrkflw_core::execution::Execution`]) asks flow logic,
//! checks its answers and folds events. [`wrkflw_store::Store::commit`] is one statement that applies everything or nothing. Dry
//! runs and the explanation of buttons take the same stages and stop before the commit. `docs/architecture.md` shows it on one
//! page, `docs/glossary.md` explains the words.
//!
//! # Invariants
//!
//! - The core waits for nothing and knows no clock; no transaction is open while guest code runs.
//! - Only `wrkflw_store::commit` writes instances, state instances, tasks, decisions and their audit entries; the relay only
//!   deletes what the broker acknowledged.
//! - Audit entries and decisions are never changed: by grants and by trigger, not by convention.
//! - A guest's answer depends on its input alone. An instance keeps the version that it started with.
//! - Every queue, loop, payload, cache and retry has a named bound.

pub mod cli;
pub mod config;
pub mod roles;
pub mod sample;
