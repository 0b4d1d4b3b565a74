//! Builds one guest crate of this workspace for WebAssembly, in a target folder of its own.
//!
//! The build script and the tests both include this file, so it must not use code of either.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TARGET: &str = "wasm32-unknown-unknown";
const PROFILE: &str = "guest";

/// Builds `package` and returns the core module. `root` is the folder of the workspace, `link` an argument of the linker.
pub(crate) fn build(
    root: &Path,
    package: &str,
    target_dir: &Path,
    link: &str,
) -> Result<Vec<u8>, String> {
    let toolchain = toolchain(root)?;
    let mut cargo = Command::new("cargo");
    cargo
        .arg(format!("+{toolchain}"))
        .args(["rustc", "--lib", "--locked", "--package", package])
        .args(["--target", TARGET, "--profile", PROFILE])
        .arg("--target-dir")
        .arg(target_dir)
        .args(["--", &format!("-Clink-arg={link}")])
        .current_dir(root);
    forget_outer_build(&mut cargo);
    let output = run(&mut cargo)?;
    if !output.status.success() {
        return Err(format!(
            "building {package} for {TARGET} failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let module: PathBuf = target_dir
        .join(TARGET)
        .join(PROFILE)
        .join(package.replace('-', "_"))
        .with_extension("wasm");
    std::fs::read(&module).map_err(|error| format!("{}: {error}", module.display()))
}

/// The toolchain that has the target's standard library. The script installs one if none has it.
fn toolchain(root: &Path) -> Result<String, String> {
    let mut script = Command::new(root.join("scripts/wasm-target.sh"));
    script.current_dir(root);
    let output = run(&mut script)?;
    let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !name.is_empty() {
        return Ok(name);
    }
    Err(format!(
        "no toolchain can build for {TARGET}. Run `rustup target add {TARGET}`, or see what \
         `scripts/wasm-target.sh` said:\n{}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn run(command: &mut Command) -> Result<Output, String> {
    command
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", command.get_program().display()))
}

/// Removes the variables of the outer build (compiler, wrapper, flags): they do not apply to a guest.
fn forget_outer_build(cargo: &mut Command) {
    const KEPT: [&str; 6] = [
        "CARGO_HOME",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_REGISTRIES_",
        "CARGO_REGISTRY_",
        "CARGO_TERM_",
    ];
    const DROPPED: [&str; 8] = [
        "CARGO",
        "RUSTC",
        "RUSTDOC",
        "RUSTFLAGS",
        "RUSTUP_TOOLCHAIN",
        "CLIPPY_ARGS",
        "MAKEFLAGS",
        "LD_LIBRARY_PATH",
    ];
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if starts(&DROPPED) && !starts(&KEPT) {
            cargo.env_remove(&*name);
        }
    }
}
