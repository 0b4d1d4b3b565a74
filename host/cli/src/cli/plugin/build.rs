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
/// The profile of `wrkflw plugin watch`. It compiles in a fraction of the time, to a larger and slower component.
const QUICK: &str = "watch";
const OF_QUICK: [&str; 5] = [
    "inherits=\"guest\"",
    "lto=false",
    "codegen-units=16",
    "opt-level=1",
    "incremental=true",
];

/// What a component is built for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Publishing,
    /// To try a change soon.
    Watching,
}

pub(super) fn run(output: Output, environment: &Environment) -> Result<()> {
    let found = Project::find()?;
    let project = Project::require(found.as_ref())?;
    let built = build(project, For::Publishing, environment)?;
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

/// Builds the component and writes it to a file. Returns what is shown of it, with its path.
pub(super) fn build(project: &Project, for_: For, environment: &Environment) -> Result<Value> {
    let core = module(project, for_, environment)?;
    let component = componentize(&core).map_err(|error| {
        Failure::new(Exit::Invalid, error).next("export the flow with `wrkflw_guest::export!`, and use no crate that needs an operating system")
    })?;
    let path = match for_ {
        For::Publishing => project.component(),
        For::Watching => project.component().with_extension("watch.wasm"),
    };
    let folder = path.parent().context("the component has a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(&path, &component).with_context(|| format!("cannot write {}", path.display()))?;
    let digest = Digest(Sha256::digest(&component).into()).to_string();
    Ok(
        json!({ "name": project.name, "path": path, "sizeBytes": component.len(), "digest": digest }),
    )
}

/// The core module that cargo builds.
fn module(project: &Project, for_: For, environment: &Environment) -> Result<Vec<u8>> {
    let profile = match for_ {
        For::Publishing => PROFILE,
        For::Watching => QUICK,
    };
    let toolchain = toolchain::find()?;
    let mut command = cargo(Some(&toolchain), environment);
    command.current_dir(&project.folder).args([
        "build",
        "--lib",
        "--target",
        TARGET,
        "--profile",
        profile,
        "--package",
        &project.name,
    ]);
    command.arg("--target-dir").arg(&project.target);
    if for_ == For::Watching {
        let settings = OF_QUICK.iter();
        command.args(settings.map(|setting| format!("--config=profile.{QUICK}.{setting}")));
    }
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
        .join(profile)
        .join(project.name.replace('-', "_"))
        .with_extension("wasm");
    fs::read(&module).with_context(|| {
        format!(
            "cargo left no {}: the crate needs `crate-type = [\"cdylib\", \"rlib\"]` under [lib]",
            module.display()
        )
    })
}
