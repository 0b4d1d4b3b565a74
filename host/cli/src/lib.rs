//! wrkflw: a workflow engine for work that people decide - approvals, reviews, annotation.
//!
//! The host keeps instances and tasks in PostgreSQL, serialises decisions, writes an audit that cannot be altered unnoticed,
//! and publishes every change to Kafka. The logic of a flow is a sandboxed WebAssembly component that imports nothing. It
//! proposes the next steps, and the host checks them.
//!
//! # Map
//!
//! This crate is the program: its commands, its settings, and the assembly of the parts. It uses all other crates, and none
//! uses it. Each crate has a folder in `host/`. Its first lines say what it is and where to begin.
//!
//! | crate | what it is | may use |
//! |---|---|---|
//! | `wrkflw_fault` | faults for tests: points at which a process dies, costly checks of invariants | nothing |
//! | [`wrkflw_runtime`] | time, ids and random bytes; logs and metrics; background workers; the HTTP client | nothing |
//! | [`wrkflw_core`] | the pure core: instances, graphs, executions, events, audit chain | fault |
//! | [`wrkflw_audit`] | the proof of what was recorded: verification, replay, exports, seals, signatures | core |
//! | [`wrkflw_sandbox`] | the sandbox; only it uses `wasmtime` | core, fault |
//! | [`wrkflw_scenario`] | scenario files: tests of a flow for components of any language | core |
//! | [`wrkflw_store`] | PostgreSQL; only it uses `sqlx` | core, audit (its rows), fault |
//! | [`wrkflw_relay`] | the relay to Kafka; the notifier: notifications and webhooks; only it uses `rdkafka` | core, store, runtime, fault |
//! | [`wrkflw_engine`] | use cases: the one write path | core, store, sandbox, audit, runtime, fault |
//! | [`wrkflw_server`] | the API; diagrams and documents | core, engine, store (reads), runtime, fault |
//! | [`wrkflw_console`] | the pages in which people see and decide; it calls the API in this process | core, engine (sessions), runtime, server |
//! | `wrkflw` | the program: [`cli`], settings ([`config`]), the default [`roles`], the [`sample`] flow | all |
//!
//! # The path of a command
//!
//! [`wrkflw_server::http`] parses a request into a [`wrkflw_core::command::Command`]. [`wrkflw_engine::pipeline`] runs it in
//! stages: queue, load, execute, group commit, answer. The execution ([`wrkflw_core::execution::Execution`]) calls flow logic,
//! checks its answers and applies the events. [`wrkflw_store::commit::commit`] is one statement that applies everything or
//! nothing. A dry run takes the same stages and stops before the commit. The list of possible actions loads the instance once and
//! executes each command on it. `docs/architecture.md` shows this on one page, `docs/glossary.md` explains the words.
//!
//! # Invariants
//!
//! - The core does no IO and reads no clock. No transaction is open while guest code runs.
//! - Only `wrkflw_store::commit` writes instances, state instances, tasks, decisions and their audit entries. The relay only
//!   deletes events that the broker acknowledged.
//! - Grants and triggers prevent every change of audit entries and decisions.
//! - A guest's answer depends on its input alone. An instance keeps the version that it started with.
//! - Every queue, loop, payload, cache and retry has a named bound.

pub mod cli;
pub mod config;
pub mod roles;
pub mod sample;
