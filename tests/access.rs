//! Access and its cost: a real host (the program itself, on a port) against forged tokens, other tenants, an identity provider
//! that fails, and clients that are slow, silent or too many.
//!
//! One module per subject; `host`, `provider` and `client` are shared. `WRKFLW_SOAK=1` runs the long versions.
//! here run with `WRKFLW_SOAK=1`.

mod client;
mod clients;
mod console;
mod crowd;
mod embedding;
mod furniture;
mod host;
mod keys;
mod matrix;
mod open_pages;
mod presence;
mod provider;
mod questions;
mod recorder;
mod secrets;
mod settings;
mod signer;
mod statements;
mod tenants;

use std::time::Duration;

/// The longest time that anything may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);
