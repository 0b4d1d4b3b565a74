//! The toolchain that compiles for WebAssembly. The script that finds it, and installs what is missing, is embedded in this
//! program.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use super::super::failure::{Exit, Failure};
use super::super::output::Output;

const SCRIPT: &str = include_str!("../../../../../scripts/wasm-target.sh");

/// The toolchain that this program is built with.
const OURS: &str = include_str!("../../../../../rust-toolchain.toml");

/// Makes the command use the toolchain that built this program, if the user's rustup has no default: a toolchain file applies
/// only in this project's folder, and a plugin is in another folder.
pub(super) fn choose(command: &mut Command) {
    let mut rustup = Command::new("rustup");
    // `rustup` gets the environment of the command, because it decides the answer.
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => rustup.env(name, value),
            None => rustup.env_remove(name),
        };
    }
    let status = rustup
        .args(["show", "active-toolchain"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if status.is_ok_and(|status| !status.success()) {
        command.env("RUSTUP_TOOLCHAIN", own_toolchain());
    }
}

/// The toolchain that built this program.
fn own_toolchain() -> String {
    let file: toml::Table = toml::from_str(OURS).expect("the workspace's own file is TOML");
    let channel = file
        .get("toolchain")
        .and_then(|toolchain| toolchain.get("channel"));
    channel
        .and_then(toml::Value::as_str)
        .expect("it names a channel")
        .to_owned()
}

/// The name of the toolchain, if it is there already. Installs nothing.
pub(in crate::cli) fn ready() -> Option<String> {
    run(&["--check"], Stdio::null()).ok().flatten()
}

/// The name of the toolchain. Progress goes to standard error, unless the output is quiet.
pub(super) fn find(output: Output) -> Result<String> {
    let progress = if output.quiet {
        Stdio::null()
    } else {
        Stdio::inherit()
    };
    if let Some(name) = run(&[], progress)? {
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

/// The name that the script prints, if it succeeds.
fn run(arguments: &[&str], progress: Stdio) -> Result<Option<String>> {
    let mut shell = Command::new("bash");
    choose(&mut shell);
    let mut shell = shell
        .args(["-s", "--"])
        .args(arguments)
        .stderr(progress)
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
    Ok(Some(name).filter(|name| output.status.success() && !name.is_empty()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_own_toolchain_is_known() {
        assert_eq!(super::own_toolchain(), "1.95.0");
    }
}
