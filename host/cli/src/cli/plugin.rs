//! `wrkflw plugin`: from an empty folder to a component that can be published. Needs no server and, once cargo has the crates, no
//! network.

mod build;
mod check;
mod language;
mod lock;
mod manifest;
pub(super) mod project;
mod scaffold;
mod toolchain;
mod tools;

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use serde_json::json;

use super::Environment;
use super::failure::{Exit, Failure};
use super::output::Output;
use language::Language;
use project::{Project, cargo};

#[derive(Debug, Subcommand)]
pub(super) enum PluginCommand {
    /// Create a flow that can be built, and the SDK beside it
    New {
        /// Its name, and the key of its definition
        name: String,
        /// What it is written in
        #[arg(long, value_enum, default_value_t, value_name = "LANGUAGE")]
        language: Language,
        /// Write into this folder instead of a new one
        #[arg(long)]
        init: bool,
    },
    /// Make a component of the flow in this folder, with the tool of its language
    Build,
    /// Check a component as the server does when it is published
    Check {
        /// The component. Default: what `wrkflw plugin build` made in this folder
        file: Option<PathBuf>,
        /// Settings of the flow, a JSON file. Default: config.json of the plugin's folder
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Run the tests of the flow in this folder, natively
    Test {
        /// Passed to `cargo test`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
}

pub(super) fn run(command: PluginCommand, output: Output, environment: &Environment) -> Result<()> {
    match command {
        PluginCommand::New {
            name,
            language,
            init,
        } => scaffold::new(&name, language, init, output),
        PluginCommand::Build => build::run(output, environment),
        PluginCommand::Check { file, config } => check::run(file, config, output, environment),
        PluginCommand::Test { arguments } => test(&arguments, output, environment),
    }
}

fn test(arguments: &[String], output: Output, environment: &Environment) -> Result<()> {
    let found = Project::find()?;
    let project = Project::require(found.as_ref())?;
    if project.language != Language::Rust {
        let message = format!(
            "{} has no native tests: only a flow in Rust has",
            project.name
        );
        let failure = Failure::new(Exit::Usage, message);
        return Err(failure
            .next("wrkflw plugin build, and wrkflw plugin check")
            .into());
    }
    let mut command = cargo(None, environment);
    command
        .current_dir(&project.folder)
        .arg("test")
        .args(arguments);
    // Cargo's output is progress. Standard output is for data only.
    let status = command
        .stdout(Stdio::from(std::io::stderr()))
        .status()
        .context("cargo cannot be run")?;
    if !status.success() {
        return Err(Failure::new(Exit::Failed, format!("tests of {} fail", project.name)).into());
    }
    output.record(
        &json!({ "name": project.name, "passed": true }),
        &[("name", "/name"), ("passed", "/passed")],
    )?;
    output.hint("next: wrkflw plugin build");
    Ok(())
}
