//! Who gets in, and what it costs: a real host (the program itself, on a port) met by forgers, by other tenants, by an
//! identity provider that fails, and by clients that are slow, silent or far too many.
//!
//! One module per subject; `host`, `provider` and `client` are what they share. The long versions of what is counted
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

/// How long anything may take on a busy machine before it counts as not happening.
const TIMEOUT: Duration = Duration::from_mins(1);
