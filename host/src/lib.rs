//! wrkflw: a workflow engine for work that people decide - approvals, reviews, annotation.
//!
//! The host keeps instances and tasks in PostgreSQL, serialises decisions, writes an audit that cannot be
//! altered unnoticed, and publishes every change to Kafka. What a flow *means* is a sandboxed WebAssembly
//! component that imports nothing: the guest proposes, the host disposes.
//!
//! # Map
//!
//! | module | what it is | may use |
//! |---|---|---|
//! | [`domain`] | the pure core: instances, graphs, turns, events, audit chain | fault |
//! | [`store`] | PostgreSQL; alone names `sqlx` | domain |
//! | [`wasm`] | the sandbox; alone names `wasmtime` | domain |
//! | [`outbox`] | the relay to Kafka; alone names `rdkafka` | domain, store |
//! | [`webhook`] | the notifier: notifications, and webhooks of subscribers | domain, store, clock |
//! | [`engine`] | use cases: the one write path | domain, store, wasm, clock |
//! | [`http`] | the API; alone names `axum` | domain, engine, store (reads), diagram, asyncapi, telemetry |
//! | [`diagram`], [`asyncapi`] | drawings and documents | domain |
//! | [`cli`], [`config`], [`roles`] | the program: commands, settings, what roles permit | all |
//! | [`clock`], [`telemetry`] | time, ids and random bytes; logs and metrics | clock |
//! | [`fault`] | what a process under test does besides: dies where it is told to, checks invariants | nothing |
//! | [`sample`] | the component of the sample flow, made by the build | nothing |
//!
//! # The way of a command
//!
//! `http` parses a request into a [`domain::command::Command`]; [`engine::Engine::execute`] loads the
//! instance in one query, drives a [`domain::turn::Turn`] - which asks flow logic, checks its answers
//! and folds events - and hands the result to [`store::Store::commit`], one statement that applies
//! everything or nothing. Dry runs and the explanation of buttons take the same way and stop before
//! the commit.
//!
//! # What holds
//!
//! - `domain` waits for nothing and knows no clock; no transaction is open while guest code runs.
//! - Only `store::commit` writes instances, stays, tasks, decisions and their audit entries; the relay only
//!   deletes what the broker acknowledged.
//! - Audit entries and decisions are never changed: by grants and by trigger, not by convention.
//! - A guest's answer depends on its input alone. An instance keeps the version that it started with.
//! - Every queue, loop, payload, cache and retry has a named bound.

pub mod asyncapi;
pub mod cli;
pub mod clock;
pub mod config;
pub mod diagram;
pub mod domain;
pub mod engine;
pub mod fault;
pub mod http;
pub mod outbox;
pub mod roles;
pub mod sample;
pub mod store;
pub mod telemetry;
pub mod wasm;
pub mod webhook;
