//! Has no code, only dependencies.
//!
//! Procedural macros and the host use many of the same crates. If they ask for different features, cargo compiles such a crate twice:
//! about a hundred of seven hundred units, among them `ring`, `rustls`, `tokio` and `sqlx`. This crate asks for the features of both in
//! both places. A build of the whole workspace then compiles each crate once. It also asks for what only tests use of the core, so that
//! documentation and the fuzzer need no other core than the tests. No other crate depends on this one, so builds of single
//! packages, such as a release or a guest, have only the features that they ask for.
