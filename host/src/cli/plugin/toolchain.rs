//! Which toolchain compiles for WebAssembly. The script that knows, and that installs what is missing, is
//! carried along.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use super::super::failure::{Exit, Failure};

const SCRIPT: &str = include_str!("../../../../scripts/wasm-target.sh");

/// The name of the toolchain. Progress goes to standard error.
pub(super) fn find() -> Result<String> {
    let mut shell = Command::new("bash")
        .arg("-s")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("bash cannot be run; it looks for the toolchain")?;
    let mut stdin = shell.stdin.take().context("the shell has an input")?;
    stdin
        .write_all(SCRIPT.as_bytes())
        .context("the shell ended early")?;
    drop(stdin);
    let output = shell.wait_with_output().context("the shell was lost")?;
    let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !name.is_empty() {
        return Ok(name);
    }
    let failure = Failure::new(
        Exit::Failed,
        "no Rust toolchain here can compile for WebAssembly",
    );
    Err(failure
        .next("rustup target add wasm32-unknown-unknown")
        .into())
}
