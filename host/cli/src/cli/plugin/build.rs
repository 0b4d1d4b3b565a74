//! `wrkflw plugin build`: the tool of the flow's language makes a component. For a flow in Rust, cargo builds a core module,
//! and this program makes a component of it.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::Environment;
use super::super::failure::{Exit, Failure};
use super::super::output::Output;
use super::check::refusal;
use super::language::Language;
use super::project::{Project, cargo, no_cargo};
use super::toolchain;
use super::tools::{Tools, progress};
use wrkflw_core::ids::Digest;
use wrkflw_engine::Error;
use wrkflw_sandbox::componentize::{STACK, componentize};
use wrkflw_sandbox::{Compiler, Settings, scan};

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

/// The purpose of a build.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Publishing,
    /// To try a change soon. Only crates are built another way.
    Watching,
}

pub(super) fn run(output: Output, environment: &Environment) -> Result<()> {
    let found = Project::find()?;
    let project = Project::require(found.as_ref())?;
    let built = build(project, For::Publishing, (output, environment))?;
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

/// Builds the component and writes it to a file. Returns its output, with its path.
pub(super) fn build(
    project: &Project,
    for_: For,
    (output, environment): (Output, &Environment),
) -> Result<Value> {
    let path = match for_ {
        For::Publishing => project.component(),
        For::Watching => project.component().with_extension("watch.wasm"),
    };
    let folder = path.parent().context("the component has a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let tools = Tools {
        project,
        output,
        environment,
    };
    let component = match project.language {
        Language::Rust => of_crate(project, for_, (output, environment))?,
        Language::Ts | Language::Js => signed(tools.node()?, "typescript"),
        Language::Python => signed(tools.python()?, "python"),
        Language::C => signed(tools.clang()?, "c"),
    };
    scan(
        &component,
        Settings::new(Compiler::InProcess).component_bytes_max,
    )
    .map_err(|problems| refusal(Error::Unpublishable(problems), "the component"))?;
    fs::write(&path, &component).with_context(|| format!("cannot write {}", path.display()))?;
    let digest = Digest(Sha256::digest(&component).into()).to_string();
    Ok(
        json!({ "name": project.name, "path": path, "sizeBytes": component.len(), "digest": digest }),
    )
}

/// The component with the name and version of its SDK, which is part of this program, in a custom section like that of the Rust SDK.
fn signed(mut component: Vec<u8>, language: &str) -> Vec<u8> {
    const NAME: &str = "wrkflw:sdk";
    let (sdk, version) = (format!("wrkflw-{language}"), env!("CARGO_PKG_VERSION"));
    let text = json!({ "sdk": sdk, "version": version, "wit": "wrkflw:flow@0.1.0" }).to_string();
    // Both lengths are below 128, and so take one byte of LEB 128.
    let [length, name_length] = [1 + NAME.len() + text.len(), NAME.len()]
        .map(|length| u8::try_from(length).expect("a short text"));
    component.extend([0, length, name_length]);
    component.extend(NAME.bytes().chain(text.bytes()));
    component
}

/// The component of a crate.
fn of_crate(
    project: &Project,
    for_: For,
    (output, environment): (Output, &Environment),
) -> Result<Vec<u8>> {
    let profile = match for_ {
        For::Publishing => PROFILE,
        For::Watching => QUICK,
    };
    let toolchain = toolchain::find(output)?;
    let mut command = cargo(Some(&toolchain), environment);
    command.current_dir(&project.folder).args([
        "rustc",
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
    if output.quiet {
        command.arg("--quiet");
    }
    command.args(["--", &format!("-Clink-arg={STACK}")]);
    let (succeeded, lines) = progress(&mut command, output).map_err(|_| no_cargo())?;
    if !succeeded {
        let failure = Failure::new(
            Exit::Failed,
            format!("{} does not compile for {TARGET}", project.name),
        );
        let failure = failure.details(lines);
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
    let core = fs::read(&module).with_context(|| {
        format!(
            "cargo left no {}: the crate needs `crate-type = [\"cdylib\", \"rlib\"]` under [lib]",
            module.display()
        )
    })?;
    componentize(&core).map_err(|error| {
        let failure = Failure::new(Exit::Invalid, error).next("export the flow with `wrkflw_guest::export!`, and use no crate that needs an operating system");
        failure.into()
    })
}
