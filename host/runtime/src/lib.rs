//! What every process of the host needs: a clock, ids, random bytes, a cache, logs, metrics, background workers, the HTTP client, and
//! the signatures of what is sent.
//!
//! It uses none of the host's crates. It is the only crate that reads the wall clock, draws random numbers, and knows where logs
//! and metrics go. Other crates take a [`Clock`](clock::Clock) and emit by `tracing` and `metrics`. `wrkflw-core` does not use
//! it: there, the time is an argument.
//!
//! Begin with [`clock`], which is short. The program sets up [`telemetry`] once. The table of all metrics is in its
//! `measures`. [`worker`] repeats background work; [`lease_worker`] is the worker of a queue whose rows are claimed by lease.

pub mod clock;
pub mod http_client;
pub mod lease_worker;
pub mod lru;
pub mod signature;
pub mod telemetry;
pub mod worker;
