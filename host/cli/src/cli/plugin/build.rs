//! `wrkflw plugin build`: cargo builds a core module, and this program makes a component of it.

use std::fs;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::Environment;
use super::super::failure::{Exit, Failure};
use super::super::output::Output;
use super::project::{Project, cargo, no_cargo};
use super::toolchain;
use wrkflw_core::ids::Digest;
use wrkflw_sandbox::componentize::componentize;

const TARGET: &str = "wasm32-unknown-unknown";
/// The profile that the scaffold's manifest declares.
const PROFILE: &str = "guest";

pub(super) fn run(output: Output, environment: &Environment) -> Result<()> {
    let found = Project::find()?;
    let project = Project::require(found.as_ref())?;
    let built = build(project, environment)?;
    output.record(
        &built,
        &[
            ("name", "/name"),
            ("path", "/path"),
            ("bytes", "/sizeBytes"),
            ("digest", "/digest"),
        ],
    )?;
    output.hint("next: wrkflw plugin check, or wrkflw definition publish");
    Ok(())
}

/// Builds the component and writes it to its path. Returns what is shown of it.
pub(super) fn build(project: &Project, environment: &Environment) -> Result<Value> {
    let toolchain = toolchain::find()?;
    let mut command = cargo(Some(&toolchain), environment);
    command.current_dir(&project.folder).args([
        "build",
        "--lib",
        "--target",
        TARGET,
        "--profile",
        PROFILE,
        "--package",
        &project.name,
    ]);
    command.arg("--target-dir").arg(&project.target);
    let status = command
        .stdout(Stdio::from(std::io::stderr()))
        .status()
        .map_err(|_| no_cargo())?;
    if !status.success() {
        let failure = Failure::new(
            Exit::Failed,
            format!("{} does not compile for {TARGET}", project.name),
        );
        return Err(failure
            .next("fix what cargo reports above; `wrkflw plugin test` finds most of it faster")
            .into());
    }
    let module = project
        .target
        .join(TARGET)
        .join(PROFILE)
        .join(project.name.replace('-', "_"))
        .with_extension("wasm");
    let core = fs::read(&module).with_context(|| {
        format!(
            "cargo left no {}: the crate needs `crate-type = [\"cdylib\", \"rlib\"]` under [lib]",
            module.display()
        )
    })?;
    let component = componentize(&core).map_err(|error| {
        Failure::new(Exit::Invalid, error).next("export the flow with `wrkflw_guest::export!`, and use no crate that needs an operating system")
    })?;
    let path = project.component();
    let folder = path.parent().context("the component has a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(&path, &component).with_context(|| format!("cannot write {}", path.display()))?;
    let digest = Digest(Sha256::digest(&component).into()).to_string();
    Ok(
        json!({ "name": project.name, "path": path, "sizeBytes": component.len(), "digest": digest }),
    )
}
